// Splits a message of the Mooncake master into its sequence and its payload, and refuses what is too large to be one of
// its batches. The payload stays bytes: the core decodes it inside linear memory (assembly/objects.ts). Limits and the
// rule that an unreadable message still records its sequence: spec/kv-events.md 5.2 and design.md 5.
import { WireError } from '../errors.js';
import { FRAMES_PER_MESSAGE, readSequence } from './frames.js';

/** Most bytes that the frames of one store message may have together. */
export const MAX_STORE_MESSAGE_BYTES = 1_048_576;
/** Most events in one store batch; the core counts them. */
export const MAX_STORE_EVENTS = 4096;

/** A store message that can't be read. `sequence` is its number where that frame could be read, so that the caller records it. */
export class StoreFrameError extends WireError {
  readonly sequence: bigint | null;

  constructor(code: string, message: string, sequence: bigint | null) {
    super(code, message);
    this.sequence = sequence;
  }
}

/**
 * The sequence and payload of a store message `[topic, 8-byte big-endian sequence, payload]`. The payload is the given
 * frame, not a copy; the topic is empty in practice and not looked at.
 * @throws {StoreFrameError} `frame-count` (not 3 frames), `sequence-width` (the second is not 8 bytes), both with
 * `sequence` null; `message-too-large` (more than 1 MiB together) with the sequence that was read.
 */
export function splitStoreFrames(frames: readonly Uint8Array[]): { sequence: bigint; payload: Uint8Array } {
  if (frames.length !== FRAMES_PER_MESSAGE) {
    throw new StoreFrameError(
      'frame-count',
      `a store message has ${FRAMES_PER_MESSAGE} frames, got ${frames.length}`,
      null,
    );
  }
  const [topic, sequenceFrame, payload] = frames as readonly [Uint8Array, Uint8Array, Uint8Array];
  const sequence = sequenceOrFail(sequenceFrame);
  const bytes = topic.length + sequenceFrame.length + payload.length;
  if (bytes > MAX_STORE_MESSAGE_BYTES) {
    const text = `store message ${sequence} has ${bytes} bytes, at most ${MAX_STORE_MESSAGE_BYTES} are read`;
    throw new StoreFrameError('message-too-large', text, sequence);
  }
  return { sequence, payload };
}

function sequenceOrFail(frame: Uint8Array): bigint {
  try {
    return readSequence(frame);
  } catch (error) {
    if (error instanceof WireError) throw new StoreFrameError(error.code, error.message, null);
    throw error;
  }
}
