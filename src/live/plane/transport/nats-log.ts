// Reads the model's stream for one router: a consumer of its own, that lives as long as the connection and begins behind what was read before. The
// server sends what is asked for and no more, so a slow handler holds up the server's sending and nothing grows here.
import type { JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { Backoff } from '../../backoff.js';
import { systemClock } from '../../clock.js';
import { deliver, type PlaneHandlers } from './delivery.js';
import type { PlaneNames } from './names.js';
import { wait } from './nats-link.js';
import type { NatsPackages } from './nats-package.js';
import { NatsPull, type Pulled } from './nats-pull.js';
import { type FoundStream, findOrMakeStream } from './nats-stream.js';
import { MAX_PAYLOAD, PAYLOAD_SLACK, type StreamLimits } from './options.js';

/** A consumer that nobody asks is dropped by the server after so long. */
const INACTIVE_MS = 60_000;
/** Handlers' turns end after so long, so that others have theirs. */
const TURN_MS = 4;
const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 2000;
const NANOS = 1_000_000;

export interface LogParts {
  readonly packages: NatsPackages;
  readonly names: PlaneNames;
  readonly limits: StreamLimits;
  readonly handlers: PlaneHandlers;
  /** As notices say where it is. */
  readonly shown: string;
  readonly random: (() => number) | undefined;
}

export class NatsLog {
  readonly #parts: LogParts;
  readonly #backoff: Backoff;
  /** When the stream was made that was read last; null before the first. */
  #created: string | null = null;
  /** Place of the message that was handed over last; 0 before the stream's first. */
  #last = 0;
  #differs: string | null = null;

  constructor(parts: LogParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(RETRY_FIRST_MS, RETRY_MOST_MS, parts.random);
  }

  /** Reads until the connection ends or the signal comes. Never fails. */
  async read(connection: NatsConnection, signal: AbortSignal): Promise<void> {
    const { packages, handlers } = this.#parts;
    const over = () => signal.aborted || connection.isClosed();
    const client = packages.jetstream.jetstream(connection);
    while (!over()) {
      try {
        const manager = await client.jetstreamManager(false);
        const consumer = await this.#begin(manager);
        if (over()) return;
        handlers.onNotice({ kind: 'connected', to: this.#parts.shown });
        await this.#follow(consumer, connection, signal);
      } catch (error) {
        if (over()) return;
        const detail = `reading the stream ${this.#parts.names.stream}: ${(error as Error).message}`;
        handlers.onNotice({ kind: 'trouble', detail });
        await wait(this.#backoff.next(), signal);
      }
    }
  }

  /** A consumer that begins where reading ended. */
  async #begin(manager: JetStreamManager): Promise<string> {
    const { names, limits, handlers } = this.#parts;
    const stream = await findOrMakeStream(manager, names, limits);
    if (stream.differs !== null && stream.differs !== this.#differs) {
      handlers.onNotice({ kind: 'trouble', detail: stream.differs });
    }
    this.#differs = stream.differs;
    this.#place(stream);
    const { name } = await manager.consumers.add(names.stream, {
      ack_policy: 'none',
      deliver_policy: 'by_start_sequence',
      opt_start_seq: this.#last + 1,
      inactive_threshold: INACTIVE_MS * NANOS,
      mem_storage: true,
      num_replicas: 1,
      max_waiting: 8,
    });
    return name;
  }

  /** Compares the stream with what was read of it. */
  #place({ created, firstSequence, lastSequence }: FoundStream): void {
    const { handlers, names } = this.#parts;
    const gap = (detail: string) => handlers.onNotice({ kind: 'gap', detail: `the stream ${names.stream} ${detail}` });
    const known = this.#created;
    this.#created = created;
    if (known !== null && known !== created) {
      gap('was made anew; it is read from its beginning');
      this.#last = 0;
    } else if (lastSequence < this.#last) {
      // A disk that forgot, or a copy put back: what it lost was handed over already.
      gap(`ends at ${lastSequence}, and was read up to ${this.#last}`);
      this.#last = lastSequence;
    } else if (this.#last > 0 && firstSequence > this.#last + 1) {
      gap(`begins at ${firstSequence}, and was read up to ${this.#last}`);
      this.#last = firstSequence - 1;
    }
  }

  async #follow(consumer: string, connection: NatsConnection, signal: AbortSignal): Promise<void> {
    const pull = new NatsPull({
      connection,
      inbox: this.#parts.packages.transport.createInbox(),
      stream: this.#parts.names.stream,
      consumer,
      maxMessage: (connection.info?.max_payload ?? 0) + PAYLOAD_SLACK,
    });
    const stop = () => pull.close();
    signal.addEventListener('abort', stop);
    let sent = 0;
    let turnEnd = performance.now() + TURN_MS;
    try {
      for (let message = await pull.next(); message !== null && !signal.aborted; message = await pull.next()) {
        // The consumer numbers what it sends: what was lost on the way a new one sends again.
        if (message.consumerSequence !== ++sent) throw new Error('a message was lost on the way');
        await this.#take(message);
        if (performance.now() < turnEnd) continue;
        await systemClock.breathe();
        turnEnd = performance.now() + TURN_MS;
      }
    } finally {
      signal.removeEventListener('abort', stop);
      pull.close();
    }
  }

  async #take(message: Pulled): Promise<void> {
    const { handlers, names } = this.#parts;
    const { streamSequence: seq, subject, data } = message;
    if (this.#last > 0 && seq > this.#last + 1) {
      const detail = `${seq - this.#last - 1} messages of the stream ${names.stream} are gone before they were read`;
      handlers.onNotice({ kind: 'gap', detail });
    }
    this.#last = seq;
    this.#backoff.succeeded();
    const rank = names.rankOfSubject(subject);
    if (rank === null)
      handlers.onNotice({ kind: 'trouble', detail: `the stream has a message under ${subject.slice(0, 200)}` });
    else if (data.length > MAX_PAYLOAD) {
      const detail = `the stream has a batch of ${data.length} bytes, above ${MAX_PAYLOAD}`;
      handlers.onNotice({ kind: 'trouble', detail });
    } else await deliver(handlers, { rank, payload: data, place: BigInt(seq) });
  }
}
