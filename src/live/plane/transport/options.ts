// What opens a plane's transport: the settings of both sides, and the bounds that hold whatever carries it.
import { ConfigError } from '../../../errors.js';
import type { PlaneNotice, PlaneRank } from '../transport.js';

/** Largest payload of a batch, by the envelope's rules. */
export const MAX_PAYLOAD = 8 << 20;
/** What frames, subjects and headers may add to it before a message is refused. */
export const PAYLOAD_SLACK = 64 << 10;
/** Most bytes that wait in a publisher for the transport: eight of the largest batches, or minutes of ordinary ones. */
export const MAX_PENDING = 64 << 20;
/** How long a publisher that is closed waits for what it has taken. */
export const CLOSE_PATIENCE_MS = 1000;
/** Most recovery questions that one publisher answers at a time; more are told to come again. */
export const MAX_QUESTIONS = 16;
/** A recovery question is some 100 bytes. */
export const MAX_QUESTION_BYTES = 64 << 10;

/** How long a stream of JetStream keeps what is published. It is made with these; one that exists is used as it is. */
export interface StreamLimits {
  /** Milliseconds. Default 600,000. */
  readonly maxAge: number;
  /** Default 1 GiB. The server sets so much aside. */
  readonly maxBytes: number;
  /** Default 1,000,000. */
  readonly maxMessages: number;
  /** Default `file`. A stream in memory is gone with its server. */
  readonly storage: 'file' | 'memory';
}

/** Longer than a router takes to start, and more than a busy pool publishes meanwhile; what is older a recovery question brings. */
export const STREAM_LIMITS: StreamLimits = {
  maxAge: 600_000,
  maxBytes: 1 << 30,
  maxMessages: 1_000_000,
  storage: 'file',
};

/** For tls:// and for servers that ask for it; file names in PEM. */
export interface PlaneTls {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

/** What both sides of a plane have. */
interface Common {
  /** The model whose workers' events these are. */
  readonly model: string;
  /** NATS alone: what the model's stream keeps, where nobody has made it yet. */
  readonly stream?: Partial<StreamLimits>;
  /** NATS alone. */
  readonly tls?: PlaneTls;
  /** Draws from [0, 1), for the jitter of reconnects. */
  readonly random?: () => number;
}

/** How a publisher's side of a plane is opened. */
export interface PlanePublisherOptions extends Common {
  /** Ranks for which it answers recovery questions. */
  readonly ranks: readonly PlaneRank[];
  /** Hears of connections, losses and faults. */
  readonly onNotice?: ((notice: PlaneNotice) => void) | null;
}

/** How a router's side of a plane is opened. */
export interface PlaneSubscriberOptions extends Common {
  /** ZMQ alone: where this router tells its load (`tcp://HOST:PORT` to bind, port 0 for any), and where its peers tell theirs. */
  readonly loadBind?: string | null;
  readonly loadPeers?: readonly string[];
}

/** Fills in the defaults. @throws ConfigError `plane-stream`, which names the limit */
export function streamLimits(given: Partial<StreamLimits> = {}): StreamLimits {
  const limits = { ...STREAM_LIMITS, ...given };
  for (const name of ['maxAge', 'maxBytes', 'maxMessages'] as const) {
    const value = limits[name];
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new ConfigError(
        'plane-stream',
        `${name} of the plane's stream is ${value}, expected a whole number from 1 on`,
      );
    }
  }
  // Below that the server takes no age (its check runs by the 100 ms).
  if (limits.maxAge < 100) {
    throw new ConfigError('plane-stream', `maxAge of the plane's stream is ${limits.maxAge} ms, expected 100 or more`);
  }
  if (limits.storage !== 'file' && limits.storage !== 'memory') {
    throw new ConfigError(
      'plane-stream',
      `storage of the plane's stream is ${limits.storage}, expected file or memory`,
    );
  }
  return limits;
}
