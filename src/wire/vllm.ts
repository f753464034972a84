// Messages of a vLLM worker's KV event stream: three frames, a MessagePack batch, its events in either encoding. One bad
// event loses itself only; a batch that can't be read at all is an error. No state: sequences are compared by whoever
// keeps the stream. Rules: spec/kv-events.md 1.1–1.8, vllm-store.md 8, design.md 5 and 9.41.
import { WireError } from '../errors.js';
import { FRAMES_PER_MESSAGE, readSequence } from './frames.js';
import { boundedDecoder } from './msgpack.js';
import { EVENT_KEYS, readWorkerEvent } from './read-event.js';
import { describe, isAbsent } from './values.js';
import type { UnreadEvent, WorkerEvent } from './worker-event.js';

export type { EngineHash, EngineHashes } from './engine-hashes.js';
export { MAX_EVENT_TOKENS } from './read-event.js';
export type {
  ClearedEvent,
  EventFault,
  IgnoredEvent,
  RemovedEvent,
  StoredEvent,
  UnreadEvent,
  WorkerEvent,
} from './worker-event.js';

/** Most bytes of a batch's payload: 16 MiB. */
export const MAX_WORKER_PAYLOAD_BYTES = 16 * 1024 * 1024;
/** Most events in a batch. */
export const MAX_BATCH_EVENTS = 65_536;
/** Most bytes of a topic. */
export const MAX_TOPIC_BYTES = 1024;
/** Most containers inside each other; a real batch needs 9. */
const MAX_DEPTH = 32;
/** Most texts, binaries and containers in a batch. */
const MAX_OBJECTS = 2_097_152;

/** A bad event of a batch: its place among all events of the batch, and why. */
export interface RejectedEvent extends UnreadEvent {
  readonly index: number;
}

/** What one payload holds. */
export interface WorkerBatch {
  /** Seconds since 1970 by the worker's clock; null when the wire gave no number. */
  readonly timestamp: number | null;
  /** Data-parallel rank of all its events. */
  readonly dpRank: number;
  /** The good events, in order. */
  readonly events: WorkerEvent[];
  /** The bad ones, in order. */
  readonly rejected: RejectedEvent[];
}

const MM_INFO_KEYS = ['mm_objects', 'mm_hash', 'offsets'];
const decode = boundedDecoder([...EVENT_KEYS, ...MM_INFO_KEYS], {
  bytes: MAX_WORKER_PAYLOAD_BYTES,
  depth: MAX_DEPTH,
  objects: MAX_OBJECTS,
});
const utf8 = new TextDecoder();

/**
 * Decodes the frames of one message: `[topic, 8-byte big-endian sequence, payload]`. The sequence is 0 for a process's first
 * batch; a worker that restarts begins again at 0. (The end marker of a replay, `ff`×8 with an empty payload, is no message.)
 * @throws {WireError} `frame-count`, `sequence-width`, `topic-too-long`, or what `decodeWorkerBatch` throws.
 */
export function decodeWorkerMessage(frames: readonly Uint8Array[]): {
  topic: string;
  sequence: bigint;
  batch: WorkerBatch;
} {
  if (frames.length !== FRAMES_PER_MESSAGE) {
    throw new WireError('frame-count', `a worker message has ${FRAMES_PER_MESSAGE} frames, got ${frames.length}`);
  }
  const [topic, sequence, payload] = frames as readonly [Uint8Array, Uint8Array, Uint8Array];
  if (topic.length > MAX_TOPIC_BYTES) {
    throw new WireError('topic-too-long', `the topic has ${topic.length} bytes, at most ${MAX_TOPIC_BYTES} are read`);
  }
  return { topic: utf8.decode(topic), sequence: readSequence(sequence), batch: decodeWorkerBatch(payload) };
}

/**
 * Decodes a batch `[timestamp, events, dp_rank?]`. Binary inside the raw fields of an event is a view of `payload`.
 * @throws {WireError} `payload-too-large` (over 16 MiB), `payload-malformed`, `payload-too-complex`, `batch-shape` (not an array
 * of 2 or 3 with a list of events in it), `batch-rank` (no 32-bit integer), `too-many-events` (over 65,536).
 */
export function decodeWorkerBatch(payload: Uint8Array): WorkerBatch {
  const batch = decode(payload);
  if (!Array.isArray(batch) || batch.length < 2 || batch.length > 3 || !Array.isArray(batch[1])) {
    throw new WireError(
      'batch-shape',
      'a worker batch is an array [timestamp, list of events, rank?]; this payload is not',
    );
  }
  const [time, list, rank] = batch as [unknown, readonly unknown[], unknown];
  if (list.length > MAX_BATCH_EVENTS) {
    throw new WireError('too-many-events', `the batch has ${list.length} events, at most ${MAX_BATCH_EVENTS} are read`);
  }
  const dpRank = readRank(rank);
  const events: WorkerEvent[] = [];
  const rejected: RejectedEvent[] = [];
  list.forEach((value, index) => {
    const event = readWorkerEvent(value);
    if ('type' in event) events.push(event);
    else rejected.push({ index, ...event });
  });
  const timestamp = typeof time === 'number' || typeof time === 'bigint' ? Number(time) : null;
  return { timestamp, dpRank, events, rejected };
}

/** Nil and missing are rank 0; a negative 32-bit integer is reinterpreted as unsigned. A guess would blame another rank. */
function readRank(value: unknown): number {
  if (isAbsent(value)) return 0;
  const rank = typeof value === 'bigint' ? Number(value) : value;
  if (typeof rank !== 'number' || !Number.isInteger(rank) || rank < -0x8000_0000 || rank > 0xffff_ffff) {
    throw new WireError(
      'batch-rank',
      `the batch's data-parallel rank is ${describe(value)}, expected a 32-bit integer or nil`,
    );
  }
  return rank >>> 0;
}
