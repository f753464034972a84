// A TCP relay on loopback that can be cut: for connections that break while what is behind them goes on.
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A relay to one endpoint. */
export class TcpGate {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #frozen = false;
  #shut = false;
  readonly #target: { readonly host: string; readonly port: number };

  private constructor(target: string) {
    const { hostname, port } = new URL(target.replace('tcp://', 'http://'));
    this.#target = { host: hostname, port: Number(port) };
    this.#server = createServer((from) => {
      if (this.#shut) {
        from.destroy();
        return;
      }
      const to = connect(this.#target);
      for (const socket of [from, to]) {
        this.#sockets.add(socket);
        socket.setNoDelay(true);
        socket.on('error', () => {});
        socket.on('close', () => {
          this.#sockets.delete(socket);
          from.destroy();
          to.destroy();
        });
      }
      from.on('data', (bytes) => this.#frozen || to.write(bytes));
      to.on('data', (bytes) => this.#frozen || from.write(bytes));
    });
  }

  /** Nothing comes through any more, and nobody is told, as where a cable was pulled. */
  freeze(): void {
    this.#frozen = true;
  }

  /** New connections work again. */
  thaw(): void {
    this.cut();
    this.#frozen = false;
  }

  static async open(target: string): Promise<TcpGate> {
    const gate = new TcpGate(target);
    await new Promise<void>((resolve) => gate.#server.listen(0, '127.0.0.1', resolve));
    return gate;
  }

  get endpoint(): string {
    return `tcp://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks all connections, and new ones at once. */
  shut(): void {
    this.#shut = true;
    this.cut();
  }

  reopen(): void {
    this.#shut = false;
  }

  /** Breaks all connections; new ones are let through. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
