// Connections of clients, in Node: one request under way on each, so that the bound of connections is one of requests too, and none that is held by a
// client who does not read.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How often, in milliseconds, is looked whether a client takes what waits for it. Node lets it pass once more after a write, so it is cut off after 30 s. */
const STALL_MS = 15_000;
/** Requests that may come behind one that is under way; a client that sends more is cut off at once. */
const MAX_BEHIND = 16;

export class Connections {
  readonly #stallMs: number;
  /** The answer that is under way. */
  readonly #answers = new WeakMap<Socket, ServerResponse>();
  /** Requests that came before their turn. */
  readonly #behind = new WeakMap<Socket, number>();

  constructor(stallMs = STALL_MS) {
    this.#stallMs = stallMs;
  }

  /**
   * A listener that has a connection's requests handled one at a time. One that comes before the last was answered is not served: the connection ends
   * behind the answer that is under way, and who sent it asks again on another (RFC 9112, 9.3.2). Kept waiting, it would have to be kept unread, and
   * then nobody would see its client go.
   */
  oneAtATime(handle: RequestListener): RequestListener {
    return (incoming, outgoing) => {
      const { socket } = incoming;
      // An answer gets its connection when it is its turn.
      if (outgoing.socket === null || this.#behind.has(socket)) return this.#refuse(incoming, outgoing);
      this.#answers.set(socket, outgoing);
      outgoing.once('close', () => this.#answers.delete(socket));
      handle(incoming, outgoing);
    };
  }

  /** Ends connections whose client does not read, and idle ones when their time is over. */
  bound(server: Server): void {
    server.timeout = this.#stallMs;
    // Also comes after `keepAliveTimeout`. A quiet one with a request under way waits for its worker, which has a bound of its own.
    server.on('timeout', (socket: Socket) => {
      if (socket.writableLength > 0 || !this.#answers.has(socket)) socket.destroy();
    });
  }

  /** Whether an answer has begun, so that nothing else may be written. */
  isAnswering(socket: Socket): boolean {
    return this.#answers.get(socket)?.headersSent === true;
  }

  #refuse(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    const behind = (this.#behind.get(socket) ?? 0) + 1;
    this.#behind.set(socket, behind);
    if (behind > MAX_BEHIND) return void socket.destroy();
    incoming.resume();
    if (outgoing.socket !== null) socket.destroySoon();
    else outgoing.once('socket', () => socket.destroySoon());
  }
}
