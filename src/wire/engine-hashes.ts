// Engine block hashes as they stand on the wire, in one form: their low 64 bits, and the whole digest where the engine
// sends it. vLLM publishes either integers (the last 8 digest bytes read big endian, signed or unsigned, bit for bit) or
// 32 raw bytes, by its setting VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES (spec/kv-events.md 1.5 and 1.8, vllm-store.md 8).

/** Bytes of a SHA-256 block digest. */
export const DIGEST_BYTES = 32;
const LOW64_BYTES = 8;
// The decoder gives integers of up to 32 bits as numbers and all others as bigints, so any other number is a float.
const MIN_INT32 = -0x8000_0000;
const MAX_UINT32 = 0xffff_ffff;

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

/** What is wrong with a list of hashes; the caller says where it stood. */
export interface HashFault {
  readonly fault: 'hash-type' | 'hash-width' | 'hash-mixed';
  readonly text: string;
}

/** The last 8 bytes of the digest that starts at `offset`, big endian: `low64`. */
export function digestLow64(digests: Uint8Array, offset = 0): bigint {
  const view = new DataView(digests.buffer, digests.byteOffset + offset + DIGEST_BYTES - LOW64_BYTES, LOW64_BYTES);
  return view.getBigUint64(0);
}

/** The 32 bytes of a digest given as 64 hex digits. */
export function digestFromHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: DIGEST_BYTES }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16));
}

/** `low64` of a digest given as 64 hex digits. */
export function low64OfHex(hex: string): bigint {
  return digestLow64(digestFromHex(hex));
}

/**
 * Reads the decoded MessagePack values of an event's hashes. All must have one form: integers that fit 64 bits, or binary
 * of exactly 32 bytes. Binary is copied, so the payload may be reused.
 */
export function readHashes(values: readonly unknown[]): EngineHashes | HashFault {
  const low64 = new BigUint64Array(values.length);
  const binary = values[0] instanceof Uint8Array;
  const digests = binary ? new Uint8Array(values.length * DIGEST_BYTES) : null;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value instanceof Uint8Array) {
      if (!digests) return { fault: 'hash-mixed', text: `hash ${i} is binary, those before it are integers` };
      if (value.length !== DIGEST_BYTES) {
        return { fault: 'hash-width', text: `hash ${i} has ${value.length} bytes, expected ${DIGEST_BYTES}` };
      }
      digests.set(value, i * DIGEST_BYTES);
      low64[i] = digestLow64(digests, i * DIGEST_BYTES);
    } else if (typeof value === 'bigint' || isSmallInteger(value)) {
      if (digests) return { fault: 'hash-mixed', text: `hash ${i} is an integer, those before it are binary` };
      low64[i] = BigInt(value); // stored modulo 2^64: −1 becomes 18446744073709551615
    } else {
      return { fault: 'hash-type', text: `hash ${i} is neither a 64-bit integer nor binary` };
    }
  }
  return { low64, digests };
}

function isSmallInteger(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= MIN_INT32 && (value as number) <= MAX_UINT32;
}
