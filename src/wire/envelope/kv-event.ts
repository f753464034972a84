// The part that envelopes of both kinds share: an event's number, its rank, and what happened to which blocks (spec/kv-events.md 4.1). Blocks are
// by far the most of a payload. A whole one, as every writer writes it, is 57 bytes of which only two hashes vary: recognised by comparing words and read
// without looking at its names, and written by copying the one before. All other spellings are read name by name. Hashes pass as two 32-bit
// words each (typed arrays' order, low word first: little endian is taken for granted, as everywhere beside WebAssembly).
import { WireError } from '../../errors.js';
import { MAX_READ_HASHES } from './limits.js';
import { Names } from './names.js';
import { PlainReader, writePlain } from './plain.js';
import { Fault, type Reader } from './reader.js';
import type { EventData, RemovedData, RouterEvent, StoredData } from './types.js';
import { unwritable, Writer } from './writer.js';

/** What an event says of its eligibility in one place. */
export const FLAG = { missing: 0, no: 1, yes: 2, unreadable: 3 } as const;
export type Flag = (typeof FLAG)[keyof typeof FLAG];

/** The older place of `sce`, inside of what was stored. */
const OLDER_FLAG = 'shared_cache_eligible';

// A name's number is its place in the list.
const KV_EVENT = new Names(['event_id', 'data', 'dp_rank']);
const VARIANTS = ['stored', 'removed', 'cleared'];
const VARIANT = new Names(VARIANTS);
const CLEARED = 2;
const STORED = new Names(['parent_hash', 'start_position', 'blocks', OLDER_FLAG]);
const REMOVED = new Names(['block_hashes']);
const BLOCK = new Names(['block_hash', 'tokens_hash', 'mm_extra_info']);
const BLOCK_HASHES = 3; // bits of the two that must be there

/** Least bytes of a block: a map of two names with a byte each. */
const LEAST_BLOCK = 1 + 11 + 1 + 12 + 1;
/** Bytes of a block whose hashes take nine each and that has no multimodal information. */
const WHOLE_BLOCK = 57;
/** Where its hashes stand. */
const BLOCK_HASH_AT = 13;
const TOKENS_HASH_AT = 34;
const MM_AT = 42;
const WHOLE = wholeBlock();

function wholeBlock(): Uint8Array {
  const writer = new Writer();
  writer.map(3);
  writer.text('block_hash');
  writer.big(0xffff_ffff_ffff_ffffn);
  writer.text('tokens_hash');
  writer.big(0xffff_ffff_ffff_ffffn);
  writer.text('mm_extra_info');
  writer.nil();
  return writer.take();
}

// Its words between the hashes, as they stand at these places.
const words = new DataView(WHOLE.buffer);
const [W0, W4, W8, W9] = [words.getUint32(0), words.getUint32(4), words.getUint32(8), words.getUint32(9)];
const [W21, W25, W29, W30] = [words.getUint32(21), words.getUint32(25), words.getUint32(29), words.getUint32(30)];
const [W42, W46, W50, W53] = [words.getUint32(42), words.getUint32(46), words.getUint32(50), words.getUint32(53)];

function isWhole(view: DataView, at: number): boolean {
  return (
    view.getUint32(at) === W0 &&
    view.getUint32(at + 4) === W4 &&
    view.getUint32(at + 8) === W8 &&
    view.getUint32(at + 9) === W9 &&
    view.getUint32(at + 21) === W21 &&
    view.getUint32(at + 25) === W25 &&
    view.getUint32(at + 29) === W29 &&
    view.getUint32(at + 30) === W30 &&
    view.getUint32(at + MM_AT) === W42 &&
    view.getUint32(at + MM_AT + 4) === W46 &&
    view.getUint32(at + MM_AT + 8) === W50 &&
    view.getUint32(at + MM_AT + 11) === W53
  );
}

/** Reads that part, event by event; what it read stands in its fields until the next. */
export class KvEventReader {
  /** Null until it is known. */
  eventId: bigint | null = null;
  dpRank = 0;
  /** Whether the event names its rank. */
  hasRank = false;
  data: EventData | null = null;
  /** What stored data said of its eligibility. */
  flag: Flag = FLAG.missing;
  readonly plain = new PlainReader();
  /** Hashes of the payload so far. */
  #hashes = 0;

  /** Starts on a payload. */
  start(): void {
    this.#hashes = 0;
    this.plain.start();
  }

  /** Starts on an event. */
  reset(): void {
    this.eventId = null;
    this.dpRank = 0;
    this.hasRank = false;
    this.data = null;
    this.flag = FLAG.missing;
  }

  /** @throws {Fault} @throws {WireError} */
  read(reader: Reader): void {
    this.reset();
    const pairs = mapOf(reader, 'event');
    for (let i = 0; i < pairs; i++) {
      switch (reader.name(KV_EVENT)) {
        case 0:
          this.eventId = unsigned64(reader, 'event_id');
          break;
        case 1:
          this.data = this.#data(reader);
          break;
        case 2:
          this.dpRank = unsigned32(reader, 'dp_rank');
          this.hasRank = true;
          break;
        default:
          reader.skip();
      }
    }
    if (this.eventId === null) throw missing('event.event_id');
    if (this.data === null) throw missing('event.data');
  }

  #data(reader: Reader): EventData {
    this.flag = FLAG.missing;
    const { at } = reader;
    const pairs = reader.map();
    if (pairs < 0) {
      if (reader.name(VARIANT) === CLEARED) return { kind: 'cleared' };
      reader.at = at;
      throw new Fault('unknown-data', `event.data is ${reader.describe()}, expected a map of one variant, or cleared`);
    }
    if (pairs !== 1) throw new Fault('unknown-data', `event.data is a map of ${pairs}, expected one variant`);
    switch (reader.name(VARIANT)) {
      case 0:
        return this.#stored(reader);
      case 1:
        return this.#removed(reader);
      case CLEARED:
        if (reader.nil()) return { kind: 'cleared' };
    }
    throw new Fault('unknown-data', `event.data is none of ${VARIANTS.join(', ')}`);
  }

  #stored(reader: Reader): StoredData {
    let parent: bigint | null = null;
    let startPosition: number | null = null;
    let blocks: Pick<StoredData, 'hashes' | 'locals' | 'mm'> | null = null;
    const pairs = mapOf(reader, 'stored');
    for (let i = 0; i < pairs; i++) {
      switch (reader.name(STORED)) {
        case 0:
          parent = reader.nil() ? null : unsigned64(reader, 'parent_hash');
          break;
        case 1:
          startPosition = reader.nil() ? null : unsigned32(reader, 'start_position');
          break;
        case 2:
          blocks = this.#blocks(reader);
          break;
        case 3:
          this.flag = readFlag(reader);
          break;
        default:
          reader.skip();
      }
    }
    if (blocks === null) throw missing('stored.blocks');
    return { kind: 'stored', parent, startPosition, ...blocks };
  }

  #blocks(reader: Reader): Pick<StoredData, 'hashes' | 'locals' | 'mm'> {
    const count = reader.array();
    if (count < 0) throw typeFault(reader, 'blocks', 'a list');
    if (count * LEAST_BLOCK > reader.end - reader.at) {
      throw new Fault('field-type', `${count} blocks can't be in the ${reader.end - reader.at} bytes that follow`);
    }
    this.#count(count);
    const hashes = new BigUint64Array(count);
    const locals = new BigUint64Array(count);
    const hashWords = new Uint32Array(hashes.buffer);
    const localWords = new Uint32Array(locals.buffer);
    const { view } = reader;
    const lastWhole = reader.end - WHOLE_BLOCK;
    let mm: unknown[] | null = null;
    for (let i = 0; i < count; i++) {
      const { at } = reader;
      if (at <= lastWhole && isWhole(view, at)) {
        hashWords[2 * i + 1] = view.getUint32(at + BLOCK_HASH_AT);
        hashWords[2 * i] = view.getUint32(at + BLOCK_HASH_AT + 4);
        localWords[2 * i + 1] = view.getUint32(at + TOKENS_HASH_AT);
        localWords[2 * i] = view.getUint32(at + TOKENS_HASH_AT + 4);
        reader.at = at + WHOLE_BLOCK;
        continue;
      }
      const info = this.#block(reader, 2 * i, hashWords, localWords);
      if (info === null) continue;
      mm ??= new Array(count).fill(null);
      mm[i] = info;
    }
    return { hashes, locals, mm };
  }

  /** Reads a block name by name; its multimodal information. */
  #block(reader: Reader, word: number, hashes: Uint32Array, locals: Uint32Array): unknown {
    let given = 0;
    let info: unknown = null;
    const pairs = mapOf(reader, 'a block');
    for (let i = 0; i < pairs; i++) {
      const name = reader.name(BLOCK);
      if (name === 2) info = this.plain.read(reader);
      else if (name < 0) reader.skip();
      else {
        if (!reader.uint64()) throw typeFault(reader, name === 0 ? 'block_hash' : 'tokens_hash', 'an unsigned integer');
        const into = name === 0 ? hashes : locals;
        into[word] = reader.low;
        into[word + 1] = reader.high;
        given |= 1 << name;
      }
    }
    if (given !== BLOCK_HASHES) throw missing((given & 1) === 0 ? 'block_hash' : 'tokens_hash');
    return info;
  }

  #removed(reader: Reader): RemovedData {
    let hashes: BigUint64Array | null = null;
    const pairs = mapOf(reader, 'removed');
    for (let i = 0; i < pairs; i++) {
      if (reader.name(REMOVED) === 0) hashes = this.#hashList(reader);
      else reader.skip();
    }
    if (hashes === null) throw missing('removed.block_hashes');
    return { kind: 'removed', hashes };
  }

  #hashList(reader: Reader): BigUint64Array {
    const count = reader.array();
    if (count < 0) throw typeFault(reader, 'block_hashes', 'a list');
    this.#count(count);
    const hashes = new BigUint64Array(count);
    const into = new Uint32Array(hashes.buffer);
    for (let i = 0; i < 2 * count; i += 2) {
      if (!reader.uint64()) throw typeFault(reader, 'block_hashes', 'unsigned integers');
      into[i] = reader.low;
      into[i + 1] = reader.high;
    }
    return hashes;
  }

  #count(hashes: number): void {
    this.#hashes += hashes;
    if (this.#hashes <= MAX_READ_HASHES) return;
    throw new WireError(
      'too-many-blocks',
      `the payload has more than ${MAX_READ_HASHES} hashes; publish smaller batches`,
    );
  }
}

/** What an event says of its eligibility; what is no truth value is no yes. */
export function readFlag(reader: Reader): Flag {
  const flag = reader.bool();
  if (flag !== null) return flag ? FLAG.yes : FLAG.no;
  reader.skip();
  return FLAG.unreadable;
}

/** Pairs of the map that must start here. @throws {Fault} `positional`, `field-type` */
export function mapOf(reader: Reader, what: string): number {
  const pairs = reader.map();
  if (pairs >= 0) return pairs;
  const items = reader.array();
  if (items < 0) throw typeFault(reader, what, 'a map');
  throw new Fault('positional', `${what} is a list of ${items}: not supported, fields must have their names`);
}

/** @throws {Fault} `field-type` */
export function unsigned64(reader: Reader, field: string): bigint {
  if (!reader.uint64()) throw typeFault(reader, field, 'an unsigned integer');
  return reader.big;
}

/** @throws {Fault} `field-type` */
export function unsigned32(reader: Reader, field: string): number {
  const value = reader.uint32();
  if (value < 0) throw typeFault(reader, field, 'an unsigned 32-bit integer');
  return value;
}

export function typeFault(reader: Reader, field: string, expected: string): Fault {
  return new Fault('field-type', `${field} is ${reader.describe()}, expected ${expected}`);
}

export function missing(field: string): Fault {
  return new Fault('missing-field', `${field} is missing`);
}

// ---- writing ----

/** Writes that part, in the order of the field's own writers. @throws {WireError} `unwritable`, `payload-too-large` */
export function writeKvEvent(writer: Writer, event: Pick<RouterEvent, 'eventId' | 'dpRank' | 'data'>): void {
  writer.map(3);
  writer.text('event_id');
  writer.unsigned(event.eventId, 'event id');
  writer.text('data');
  writeData(writer, event.data);
  writer.text('dp_rank');
  writer.uint32(event.dpRank, 'rank');
}

function writeData(writer: Writer, data: EventData): void {
  if (data.kind === 'cleared') {
    writer.text('cleared');
    return;
  }
  writer.map(1);
  writer.text(data.kind);
  if (data.kind === 'removed') {
    writer.map(1);
    writer.text('block_hashes');
    writer.array(data.hashes.length);
    const from = wordsOf(data.hashes);
    for (let i = 0; i < from.length; i += 2) writer.uint64(from[i]!, from[i + 1]!);
    return;
  }
  writer.map(3);
  writer.text('parent_hash');
  if (data.parent === null) writer.nil();
  else writer.unsigned(data.parent, 'parent hash');
  writer.text('start_position');
  if (data.startPosition === null) writer.nil();
  else writer.uint32(data.startPosition, 'start position');
  writer.text('blocks');
  writeBlocks(writer, data);
}

function writeBlocks(writer: Writer, { hashes, locals, mm }: StoredData): void {
  const count = hashes.length;
  if (locals.length !== count || (mm !== null && mm.length !== count)) {
    throw unwritable(
      `a store has ${count} hashes, ${locals.length} local ones, ${mm?.length ?? 'no'} multimodal infos`,
    );
  }
  writer.array(count);
  const hashWords = wordsOf(hashes);
  const localWords = wordsOf(locals);
  for (let i = 0; i < count; ) {
    let next = i; // first block that is not whole
    while (
      next < count &&
      hashWords[2 * next + 1] !== 0 &&
      localWords[2 * next + 1] !== 0 &&
      (mm === null || isNone(mm[next]))
    ) {
      next++;
    }
    if (next > i) writeWhole(writer, hashWords, localWords, i, next);
    else writeBlock(writer, hashWords, localWords, next++, mm);
    i = next;
  }
}

function isNone(info: unknown): boolean {
  return info === null || info === undefined;
}

/** Writes whole blocks: all copies of one first, each run of copies twice as long as the one before, then the hashes into them. */
function writeWhole(writer: Writer, hashes: Uint32Array, locals: Uint32Array, from: number, to: number): void {
  const total = (to - from) * WHOLE_BLOCK;
  writer.need(total);
  const { bytes, view } = writer;
  const start = writer.at;
  bytes.set(WHOLE, start);
  for (let done = WHOLE_BLOCK; done < total; done *= 2) {
    bytes.copyWithin(start + done, start, start + Math.min(done, total - done));
  }
  let at = start;
  for (let i = 2 * from; i < 2 * to; i += 2) {
    view.setUint32(at + BLOCK_HASH_AT, hashes[i + 1]!);
    view.setUint32(at + BLOCK_HASH_AT + 4, hashes[i]!);
    view.setUint32(at + TOKENS_HASH_AT, locals[i + 1]!);
    view.setUint32(at + TOKENS_HASH_AT + 4, locals[i]!);
    at += WHOLE_BLOCK;
  }
  writer.at = at;
}

function writeBlock(writer: Writer, hashes: Uint32Array, locals: Uint32Array, i: number, mm: StoredData['mm']): void {
  writer.map(3);
  writer.text('block_hash');
  writer.uint64(hashes[2 * i]!, hashes[2 * i + 1]!);
  writer.text('tokens_hash');
  writer.uint64(locals[2 * i]!, locals[2 * i + 1]!);
  writer.text('mm_extra_info');
  writePlain(writer, mm === null ? null : mm[i]);
}

/** A view of hashes as pairs of words, low ones first. */
function wordsOf(hashes: BigUint64Array): Uint32Array {
  return new Uint32Array(hashes.buffer, hashes.byteOffset, hashes.length * 2);
}
