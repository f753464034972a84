// An HTTP relay on loopback that can hold an answer back: asked and answered at the master, but not delivered yet.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A relay to one server, for GET requests. */
export class HttpGate {
  readonly #server: Server;
  #held: { readonly path: string; readonly opened: Promise<void>; readonly open: () => void } | null = null;
  /** Answers that wait now. */
  waiting = 0;

  private constructor(target: string) {
    this.#server = createServer(async (request, response) => {
      try {
        const answer = await fetch(target + request.url);
        const body = Buffer.from(await answer.arrayBuffer());
        const held = this.#held;
        if (held !== null && held.path === request.url) {
          this.waiting++;
          await held.opened;
          this.waiting--;
        }
        response.writeHead(answer.status, { 'content-length': body.length }).end(body);
      } catch {
        response.destroy();
      }
    });
  }

  static async open(target: string): Promise<HttpGate> {
    const gate = new HttpGate(target);
    await new Promise<void>((resolve) => gate.#server.listen(0, '127.0.0.1', resolve));
    return gate;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on answers for that path wait. */
  hold(path: string): void {
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    this.#held = { path, opened, open };
  }

  /** Lets those that wait go, and those that come. */
  release(): void {
    this.#held?.open();
    this.#held = null;
  }

  async close(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
