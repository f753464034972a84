// Messages of a vLLM worker's KV event stream: three frames, a MessagePack batch, its events in either encoding. No state: sequences are
// compared by whoever keeps the stream. Rules: spec/kv-events.md 1.1–1.8, vllm-store.md 8, design.md 5 and 8.
import { sharedNumbers } from '../core/numbers.js';
import { WireError } from '../errors.js';
import { FRAMES_PER_MESSAGE, readSequence } from './frames.js';
import { BatchReader, type WorkerBatch } from './read-batch.js';

export type { EngineHash, EngineHashes } from './engine-hashes.js';
export { MAX_EVENT_TOKENS } from './event-fields.js';
export { MAX_BATCH_EVENTS, type RejectedEvent, type WorkerBatch } from './read-batch.js';
export type {
  ClearedEvent,
  EventFault,
  IgnoredEvent,
  RemovedEvent,
  StoredEvent,
  UnreadEvent,
  WorkerEvent,
} from './worker-event.js';

/** Most bytes of a topic. */
export const MAX_TOPIC_BYTES = 1024;

/** A worker's message, its payload still bytes. */
export interface WorkerFrames {
  readonly topic: Uint8Array;
  readonly sequence: bigint;
  readonly payload: Uint8Array;
}

/**
 * Takes the frames of one message apart: `[topic, 8-byte big-endian sequence, payload]`. The sequence is 0 for a process's first batch; a
 * worker that restarts begins again at 0. (The end marker of a replay, `ff`×8 with an empty payload, is no message.)
 * @throws {WireError} `frame-count`, `sequence-width`, `topic-too-long`.
 */
export function splitWorkerFrames(frames: readonly Uint8Array[]): WorkerFrames {
  if (frames.length !== FRAMES_PER_MESSAGE) {
    throw new WireError('frame-count', `a worker message has ${FRAMES_PER_MESSAGE} frames, got ${frames.length}`);
  }
  const [topic, sequence, payload] = frames as readonly [Uint8Array, Uint8Array, Uint8Array];
  if (topic.length > MAX_TOPIC_BYTES) {
    throw new WireError('topic-too-long', `the topic has ${topic.length} bytes, at most ${MAX_TOPIC_BYTES} are read`);
  }
  return { topic, sequence: readSequence(sequence), payload };
}

const utf8 = new TextDecoder();
let reader: BatchReader | undefined;

/**
 * Decodes the frames of one message. Its events own their numbers and may be kept.
 * @throws {WireError} what `splitWorkerFrames` and `decodeWorkerBatch` throw.
 */
export function decodeWorkerMessage(frames: readonly Uint8Array[]): {
  topic: string;
  sequence: bigint;
  batch: WorkerBatch;
} {
  const { topic, sequence, payload } = splitWorkerFrames(frames);
  return { topic: utf8.decode(topic), sequence, batch: decodeWorkerBatch(payload) };
}

/**
 * Decodes a payload; likewise.
 * @throws {WireError} what `BatchReader.read` throws.
 */
export function decodeWorkerBatch(payload: Uint8Array): WorkerBatch {
  reader ??= new BatchReader(sharedNumbers());
  const batch = reader.read(payload);
  for (const event of batch.events) if (event.type === 'stored' || event.type === 'removed') event.own();
  return batch;
}
