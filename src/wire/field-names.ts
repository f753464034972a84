// The names under which fields stand in a worker's maps, found by their bytes. A publisher writes its fields in one order, so the name
// that followed last time is tried first.
import type { Cursor } from './cursor.js';
import { KnownText } from './texts.js';

/** Fields of an event, by the places of their names in FIELD_NAMES; those of a batch follow. */
export const FIELD = {
  type: 0,
  blockHashes: 1,
  parentBlockHash: 2,
  tokenIds: 3,
  blockSize: 4,
  loraId: 5,
  medium: 6,
  loraName: 7,
  extraKeys: 8,
  groupIdx: 9,
  specKind: 10,
  slidingWindow: 11,
  locality: 12,
  ownership: 13,
  cacheSalt: 14,
  isEagle: 15,
  sharedCacheEligible: 16,
  blockMmInfos: 17,
  ts: 18,
  events: 19,
  dataParallelRank: 20,
} as const;

/** The names on the wire, in the same order. */
export const FIELD_NAMES = [
  'type',
  'block_hashes',
  'parent_block_hash',
  'token_ids',
  'block_size',
  'lora_id',
  'medium',
  'lora_name',
  'extra_keys',
  'group_idx',
  'kv_cache_spec_kind',
  'kv_cache_spec_sliding_window',
  'locality',
  'ownership',
  'cache_salt',
  'is_eagle',
  'shared_cache_eligible',
  'block_mm_infos',
  'ts',
  'events',
  'data_parallel_rank',
] as const;

/** What a name that is not among them, or no text, is read as. */
export const UNKNOWN_FIELD = FIELD_NAMES.length;

const encoder = new TextEncoder();
const NAMES = FIELD_NAMES.map((name) => new KnownText(name, encoder.encode(name)));
const BY_LENGTH: readonly number[][] = Array.from(
  { length: 1 + Math.max(...FIELD_NAMES.map((name) => name.length)) },
  (_, length) => NAMES.flatMap((name, field) => (name.length === length ? [field] : [])),
);

/** Reads map keys. */
export class FieldNames {
  /** By field, and one place for the start of a map: what followed it last time. */
  readonly #next = new Uint8Array(FIELD_NAMES.length + 1).fill(0);

  /** Reads the key at the cursor. `before` is the field before it, UNKNOWN_FIELD at a map's start. */
  read(cursor: Cursor, before: number): number {
    const length = cursor.textBytes();
    if (length < 0) {
      cursor.skip();
      return UNKNOWN_FIELD;
    }
    const { view, at } = cursor;
    cursor.at = at + length;
    const likely = this.#next[before]!;
    return NAMES[likely]!.is(view, at, length) ? likely : this.#find(view, at, length, before);
  }

  #find(view: DataView, at: number, length: number, before: number): number {
    for (const field of BY_LENGTH[length] ?? []) {
      if (!NAMES[field]!.is(view, at, length)) continue;
      this.#next[before] = field;
      return field;
    }
    return UNKNOWN_FIELD;
  }
}
