// Which multimodal objects (images, mostly) an event says lie in each of its blocks, and the two ways in which they enter a
// block's local hash: as pad tokens in the places of the model's image token, when that is known, or as bytes behind the
// tokens. Rules: spec/kv-events.md 1.12, 1.13, 2.1 and 2.3.
import { isMap } from '../wire/values.js';
import type { StoredEvent } from '../wire/worker-event.js';

/** XXH3-64 with seed 0. */
export type Xxh3 = (bytes: Uint8Array) => bigint;

/** Longest identifier that is read, in UTF-16 units; its UTF-8 has at most 3 MiB, which the core can hash at once. */
const MAX_IDENTIFIER_UNITS = 1_048_576;
/** A SHA-256 digest in hex: it stands for itself, by its first 16 digits. */
const HEX_DIGEST = /^[0-9a-f]{64}$/i;
const HASH_DIGITS = 16;
/** Pad tokens lie above any vocabulary, in a range of 2^30. */
const FIRST_PAD_TOKEN = 1_000_000;
const PAD_TOKEN_MASK = 2n ** 30n - 1n;

/** The hash of the object that an engine or a renderer calls so; null for a text that names nothing. */
export function hashMmIdentifier(identifier: string, xxh3: Xxh3): bigint | null {
  if (identifier === '' || identifier.length > MAX_IDENTIFIER_UNITS) return null;
  if (HEX_DIGEST.test(identifier)) return BigInt(`0x${identifier.slice(0, HASH_DIGITS)}`);
  return xxh3(new TextEncoder().encode(identifier));
}

/**
 * The hashes of the objects in each of the event's `blocks` blocks, in the event's order and null where there are none; null
 * when no block has any. A list of `blockMmInfos` counts alone, even when it holds nothing; else the extra keys are read.
 */
export function blockMmHashes(
  event: Pick<StoredEvent, 'blockMmInfos' | 'extraKeys' | 'loraName'>,
  blocks: number,
  xxh3: Xxh3,
): readonly (readonly bigint[] | null)[] | null {
  const { blockMmInfos, extraKeys, loraName } = event;
  if (Array.isArray(blockMmInfos)) {
    return eachBlock(blockMmInfos.map(objectsOf), blocks, (object) => (isMap(object) ? asHash(object.mm_hash) : null));
  }
  return Array.isArray(extraKeys) ? eachBlock(extraKeys, blocks, (key) => hashExtraKey(key, loraName, xxh3)) : null;
}

/** The value that stands in each place of the object's image tokens. */
export function padToken(mmHash: bigint): number {
  return FIRST_PAD_TOKEN + Number(mmHash & PAD_TOKEN_MASK);
}

/**
 * Replaces the image tokens of one block in place: the first run of them by the first object's pad token, and so on; the last
 * object serves whatever runs follow.
 */
export function padImages(tokens: Uint32Array, imageTokenId: number, mmHashes: readonly bigint[]): void {
  if (mmHashes.length === 0) return;
  let runs = 0;
  let pad: number | null = null; // inside a run
  for (let i = 0; i < tokens.length; i++) {
    if (tokens[i] === imageTokenId) {
      pad ??= padToken(mmHashes[Math.min(runs++, mmHashes.length - 1)]!);
      tokens[i] = pad;
    } else {
      pad = null;
    }
  }
}

/** The bytes that are hashed for a block: its tokens, then its objects' hashes in ascending order, all little endian. */
export function mmBlockBytes(tokens: Uint32Array, mmHashes: readonly bigint[]): Uint8Array {
  const bytes = new Uint8Array(4 * tokens.length + 8 * mmHashes.length);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < tokens.length; i++) view.setUint32(4 * i, tokens[i]!, true);
  const sorted = BigUint64Array.from(mmHashes).sort();
  for (let i = 0; i < sorted.length; i++) view.setBigUint64(4 * tokens.length + 8 * i, sorted[i]!, true);
  return bytes;
}

/** Turns the items of each block into hashes. What is no list, and what has no hash, is passed over. */
function eachBlock(
  lists: readonly unknown[],
  blocks: number,
  hashOf: (item: unknown) => bigint | null,
): (readonly bigint[] | null)[] | null {
  let found: (readonly bigint[] | null)[] | null = null;
  for (let block = 0; block < blocks && block < lists.length; block++) {
    const items = lists[block];
    if (!Array.isArray(items)) continue;
    const hashes = items.map(hashOf).filter((hash) => hash !== null);
    if (hashes.length === 0) continue;
    found ??= new Array(blocks).fill(null);
    found[block] = hashes;
  }
  return found;
}

function objectsOf(info: unknown): unknown {
  return isMap(info) ? info.mm_objects : null;
}

/** A 64-bit hash as decoded, signed or not, bit for bit; null for anything else. */
function asHash(value: unknown): bigint | null {
  return isInteger(value) ? BigInt.asUintN(64, BigInt(value)) : null;
}

/**
 * An identifier with its offset is an object's whatever it reads like. Bare text may as well be a LoRA name or a salt, so
 * only a digest counts.
 */
function hashExtraKey(key: unknown, loraName: string | null, xxh3: Xxh3): bigint | null {
  if (typeof key === 'string') return HEX_DIGEST.test(key) && key !== loraName ? hashMmIdentifier(key, xxh3) : null;
  if (!Array.isArray(key) || key.length !== 2) return null;
  const [identifier, offset] = key as [unknown, unknown];
  return typeof identifier === 'string' && isInteger(offset) ? hashMmIdentifier(identifier, xxh3) : null;
}

function isInteger(value: unknown): value is number | bigint {
  // A number beyond 32 bits was a float on the wire.
  if (typeof value === 'number') return Number.isInteger(value) && value >= -0x8000_0000 && value <= 0xffff_ffff;
  return typeof value === 'bigint';
}
