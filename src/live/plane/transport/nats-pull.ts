// Takes messages out of a consumer of JetStream, as many at a time as this side has room for, by count and by bytes; the package's own readers
// bound one of the two. Requests, statuses and reply subjects are as NATS documents them.
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';

/** What one request asks for, and so what waits here at most for a slow handler. */
const PULL_MESSAGES = 1024;
const PULL_BYTES = 16 << 20;
/** How long the server keeps a request, and how often it says that it is there. */
const EXPIRES_MS = 30_000;
const HEARTBEAT_MS = 1000;
/** A request of which nothing was heard for so long is lost, and its consumer may be. */
const SILENT_MS = 3 * HEARTBEAT_MS;
const NANOS = 1_000_000;

/** Headers without a message: the server says how a request stands. */
const HEARTBEAT = 100;
const ENDED: ReadonlySet<number> = new Set([404, 408]);
const CONFLICT = 409;

/** A message of a log, and its places: in the log, and among those that this consumer was sent. */
export interface Pulled {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly streamSequence: number;
  readonly consumerSequence: number;
}

export interface PullTarget {
  readonly connection: NatsConnection;
  /** A subject that nobody else listens to. */
  readonly inbox: string;
  readonly stream: string;
  readonly consumer: string;
  /** Longest message that the server takes: one that is larger than what is asked for would never come. */
  readonly maxMessage: number;
}

export class NatsPull {
  readonly #target: PullTarget;
  readonly #subscription: Subscription;
  readonly #question: Uint8Array;
  #messages: Pulled[] = [];
  #head = 0;
  /** Requests made; statuses of earlier ones mean nothing any more. */
  #requests = 0;
  /** Messages that the running request may still bring; 0 when none runs. */
  #awaited = 0;
  #heardAt = 0;
  #failure: Error | null = null;
  #closed = false;
  #wake: (() => void) | null = null;
  readonly #watch: ReturnType<typeof setInterval>;

  constructor(target: PullTarget) {
    this.#target = target;
    this.#question = new TextEncoder().encode(
      JSON.stringify({
        batch: PULL_MESSAGES,
        max_bytes: Math.max(PULL_BYTES, target.maxMessage),
        expires: EXPIRES_MS * NANOS,
        idle_heartbeat: HEARTBEAT_MS * NANOS,
      }),
    );
    this.#subscription = target.connection.subscribe(`${target.inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#take(message);
        else this.#fail(error);
      },
    });
    this.#watch = setInterval(() => {
      if (this.#awaited > 0 && performance.now() - this.#heardAt > SILENT_MS) {
        this.#fail(new Error(`the server has been silent for ${SILENT_MS} ms`));
      }
    }, HEARTBEAT_MS);
    void target.connection.closed().then(() => this.close());
  }

  /** The next message; null when this or its connection is closed. @throws Error what the server refused with, or that it is silent */
  async next(): Promise<Pulled | null> {
    for (;;) {
      const message = this.#messages[this.#head];
      if (message !== undefined) {
        this.#head++;
        return message;
      }
      this.#messages = [];
      this.#head = 0;
      if (this.#closed) return null;
      if (this.#failure !== null) throw this.#failure;
      if (this.#awaited === 0) this.#ask();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#watch);
    if (!this.#target.connection.isClosed()) this.#subscription.unsubscribe();
    this.#woken();
  }

  #ask(): void {
    const { connection, inbox, stream, consumer } = this.#target;
    if (connection.isClosed()) {
      this.close();
      return;
    }
    this.#requests++;
    this.#awaited = PULL_MESSAGES;
    this.#heardAt = performance.now();
    connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, this.#question, {
      reply: `${inbox}.${this.#requests}`,
    });
  }

  #take(message: Msg): void {
    this.#heardAt = performance.now();
    const { inbox } = this.#target;
    if (message.subject.startsWith(inbox)) {
      if (message.subject === `${inbox}.${this.#requests}`) this.#status(message);
      return;
    }
    const sequences = readReply(message.reply ?? '');
    if (sequences === null) {
      this.#fail(new Error(`a message came with the reply subject ${(message.reply ?? '').slice(0, 200)}`));
      return;
    }
    if (this.#awaited > 0) this.#awaited--;
    this.#messages.push({ subject: message.subject, data: message.data, ...sequences });
    this.#woken();
  }

  #status({ headers }: Msg): void {
    const code = headers?.code ?? 0;
    const description = headers?.description ?? '';
    if (code === HEARTBEAT) return;
    if (ENDED.has(code) || (code === CONFLICT && /maxbytes|batch completed/i.test(description))) {
      this.#awaited = 0;
      this.#woken();
    } else this.#fail(new Error(`the server says ${code} ${description}`));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#awaited = 0;
    this.#woken();
  }

  #woken(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}

/**
 * The sequences in a reply subject: `$JS.ACK.<stream>.<consumer>.<deliveries>.<in the stream>.<for the consumer>.<time>.<pending>`, with a domain and
 * an account before the stream in those of newer servers. Null for any other.
 */
export function readReply(
  reply: string,
): { readonly streamSequence: number; readonly consumerSequence: number } | null {
  const parts = reply.split('.');
  if (parts[0] !== '$JS' || parts[1] !== 'ACK' || parts.length < 9) return null;
  const shift = parts.length === 9 ? 0 : 2;
  const streamSequence = Number(parts[5 + shift]);
  const consumerSequence = Number(parts[6 + shift]);
  const whole = Number.isSafeInteger(streamSequence) && Number.isSafeInteger(consumerSequence);
  return whole && streamSequence > 0 && consumerSequence > 0 ? { streamSequence, consumerSequence } : null;
}
