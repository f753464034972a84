// The sequence frame that vLLM's publisher and the Mooncake master share: the second of three ZeroMQ frames, an unsigned
// 64-bit number, big endian, exactly 8 bytes (spec/kv-events.md 1.1, spec/mooncake-events.md 1).
import { WireError } from '../errors.js';

/** Frames of one message: topic, sequence, payload. */
export const FRAMES_PER_MESSAGE = 3;
/** Bytes of a sequence frame. */
export const SEQUENCE_BYTES = 8;

/**
 * The number in a sequence frame.
 * @throws {WireError} `sequence-width` when the frame is not 8 bytes.
 */
export function readSequence(frame: Uint8Array): bigint {
  if (frame.length !== SEQUENCE_BYTES) {
    throw new WireError('sequence-width', `the sequence frame has ${frame.length} bytes, expected ${SEQUENCE_BYTES}`);
  }
  return new DataView(frame.buffer, frame.byteOffset, SEQUENCE_BYTES).getBigUint64(0);
}

/** The 8-byte frame of `sequence`, which is taken modulo 2^64. */
export function writeSequence(sequence: bigint): Uint8Array {
  const frame = new Uint8Array(SEQUENCE_BYTES);
  new DataView(frame.buffer).setBigUint64(0, sequence);
  return frame;
}
