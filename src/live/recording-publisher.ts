// Who published a message of which nobody says it: captures, and recordings made with ZeroMQ's monitor.
import { WireError } from '../errors.js';
import { boundedDecoder } from '../wire/msgpack.js';
import { isMap } from '../wire/values.js';
import type { SourceKind } from './recording.js';

const LIMITS = { bytes: 16 * 1024 * 1024, depth: 64, objects: 4_194_304 };
const decode = boundedDecoder(['event_type', 'object_key'], LIMITS);

/** The publisher's kind, by the message's first event; null when none can be read. Only the master names an object's key. */
export function publisherOf(frames: readonly Uint8Array[]): SourceKind | null {
  const payload = frames[2];
  const batch = payload === undefined ? null : tryDecode(payload);
  if (isMap(batch)) return 'worker'; // a map for a batch is a worker's alone
  const events: unknown = Array.isArray(batch) ? batch[1] : null;
  if (!Array.isArray(events) || events.length === 0) return null;
  const event: unknown = events[0];
  return isMap(event) && ('event_type' in event || 'object_key' in event) ? 'store' : 'worker';
}

function tryDecode(payload: Uint8Array): unknown {
  try {
    return decode(payload);
  } catch (error) {
    if (error instanceof WireError) return null;
    throw error;
  }
}
