// The model's stream in JetStream: looked up, and made where there is none. One that exists is used as it is, never changed and never deleted.
import type { JetStreamManager, StreamInfo } from '@nats-io/jetstream';
import type { PlaneNames } from './names.js';
import type { StreamLimits } from './options.js';

/** A publish that is tried again within this time is stored once. The server keeps the ids of so long in memory. */
const DUPLICATE_WINDOW_MS = 120_000;
const STREAM_NOT_FOUND = 10059;
/** Another made it at the same moment, with other limits. */
const STREAM_NAME_IN_USE = 10058;
const NANOS = 1_000_000;

export interface FoundStream {
  /** When it was made: another time is another stream of the same name. */
  readonly created: string;
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** In what it is not as asked for; null when it is. */
  readonly differs: string | null;
}

/** @throws what the server answers */
export async function findOrMakeStream(
  manager: JetStreamManager,
  names: PlaneNames,
  limits: StreamLimits,
): Promise<FoundStream> {
  return found(await infoOrNew(manager, names, limits), names, limits);
}

async function infoOrNew(manager: JetStreamManager, names: PlaneNames, limits: StreamLimits): Promise<StreamInfo> {
  try {
    return await manager.streams.info(names.stream);
  } catch (error) {
    if (apiCode(error) !== STREAM_NOT_FOUND) throw error;
  }
  try {
    return await manager.streams.add({
      name: names.stream,
      subjects: [names.allEvents],
      retention: 'limits',
      discard: 'old',
      storage: limits.storage,
      num_replicas: 1,
      max_age: limits.maxAge * NANOS,
      max_bytes: limits.maxBytes,
      max_msgs: limits.maxMessages,
      duplicate_window: Math.min(DUPLICATE_WINDOW_MS, limits.maxAge) * NANOS,
    });
  } catch (error) {
    if (apiCode(error) !== STREAM_NAME_IN_USE) throw error;
    return manager.streams.info(names.stream);
  }
}

function found({ created, state, config }: StreamInfo, names: PlaneNames, limits: StreamLimits): FoundStream {
  const wanted: Readonly<Record<string, unknown>> = {
    storage: limits.storage,
    discard: 'old',
    retention: 'limits',
    max_age: limits.maxAge * NANOS,
    max_bytes: limits.maxBytes,
    max_msgs: limits.maxMessages,
    subjects: names.allEvents,
  };
  const has: Readonly<Record<string, unknown>> = { ...config, subjects: config.subjects?.join() };
  const differing = Object.keys(wanted).filter((name) => has[name] !== wanted[name]);
  const differs =
    differing.length === 0
      ? null
      : `the stream ${names.stream} exists and is used as it is: ${differing.map((name) => `${name} ${has[name]}, not ${wanted[name]}`).join('; ')}`;
  return { created: String(created), firstSequence: state.first_seq, lastSequence: state.last_seq, differs };
}

/** The server's own code for what it refused; 0 for other errors. */
export function apiCode(error: unknown): number {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : 0;
}
