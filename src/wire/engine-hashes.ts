// Engine block hashes in one form: their low 64 bits, and the whole digest where the engine sends it. vLLM publishes either integers (the
// last 8 digest bytes read big endian, signed or unsigned, bit for bit) or 32 raw bytes, by its setting
// VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES (spec/kv-events.md 1.5 and 1.8, vllm-store.md 8).

/** Bytes of a SHA-256 block digest. */
export const DIGEST_BYTES = 32;
const LOW64_BYTES = 8;

/** Hashes of one event, in block order. */
export interface EngineHashes {
  readonly low64: BigUint64Array;
  /** The 32-byte digests back to back, or null when the event carries integers (or no hash at all). */
  readonly digests: Uint8Array | null;
}

/** One hash: its low 64 bits, and the 32-byte digest when the engine sent it. */
export interface EngineHash {
  readonly low64: bigint;
  readonly digest: Uint8Array | null;
}

/** The 32 bytes of a digest given as 64 hex digits. */
export function digestFromHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: DIGEST_BYTES }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16));
}

/** `low64` of a digest given as 64 hex digits: its last 8 bytes, big endian. */
export function low64OfHex(hex: string): bigint {
  return BigInt(`0x${hex.slice(-2 * LOW64_BYTES)}`);
}
