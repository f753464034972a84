// Reads one KV event of a vLLM worker in both of its encodings, tagged map (vLLM of June 2026 on) and tagged array (before): which field
// comes next, and what must be there. A bad event is thrown as a Fault and caught by read-batch.ts, which passes over it. Rules:
// spec/kv-events.md 1.5–1.8.
import { DENSE, hashForm, KEYED, ROW, ROW_WORDS, STEP } from '../core/numbers.js';
import type { Cursor } from './cursor.js';
import {
  Fault,
  loraId,
  MAX_EVENT_TOKENS,
  missing,
  readExtraKeys,
  readHashes,
  readParent,
  readTokens,
  skipAll,
  text,
  tooMany,
  typedLoraId,
  uint32,
  wrong,
} from './event-fields.js';
import { readTail } from './event-tail.js';
import { FIELD, type FieldNames, UNKNOWN_FIELD } from './field-names.js';
import { describe } from './values.js';
import { type ClearedEvent, EventShape, RemovedRecord, StoredRecord, type WorkerEvent } from './worker-event.js';

/** Reads the event at the cursor. `cursor.tag` is its tag as soon as that is known. */
export function readEvent(cursor: Cursor, names: FieldNames): WorkerEvent {
  cursor.startEvent();
  const items = cursor.array();
  if (items > 0) {
    const tag = readTag(cursor);
    if (tag === 'BlockStored') return readStored(cursor, names, 'positional', items);
    return readOther(cursor, names, tag, 'positional', items - 1);
  }
  if (items === 0) throw new Fault('tag-missing', 'an event is a list of 0');
  const pairs = cursor.map();
  if (pairs < 0) throw new Fault('not-an-event', `an event is ${cursor.describe()}`);
  const tag = findTag(cursor, names, pairs);
  if (tag === 'BlockStored') return readStored(cursor, names, 'map', pairs);
  return readOther(cursor, names, tag, 'map', pairs);
}

/** Reads a stored event field by field, noting in `cursor.steps` what varies between events of the same shape. */
function readStored(cursor: Cursor, names: FieldNames, form: 'map' | 'positional', count: number): StoredRecord {
  const event = new StoredRecord(cursor.numbers, cursor.row, new EventShape(form));
  if (form === 'map') event.shape.repeats = readPairs(cursor, names, count, event, storedField);
  else readStoredSlots(cursor, names, count, event);
  if (!cursor.passed(STEP.hashes)) throw missing(FIELD.blockHashes);
  if (!cursor.passed(STEP.tokens)) throw missing(FIELD.tokenIds);
  if (event.shape.blockSize < 0) throw missing(FIELD.blockSize);
  if (event.tokenCount > MAX_EVENT_TOKENS) throw tooMany(event.tokenCount);
  checkParent(cursor, event);
  const { blockCount, blockSize, tokenCount, tokenPairs } = event;
  const dense = blockCount > 0 && blockSize > 0 && !tokenPairs && tokenCount === blockCount * blockSize;
  const keyed = event.extraKeyCount === blockCount;
  cursor.numbers.rows[cursor.row * ROW_WORDS + ROW.laid] = (dense ? DENSE : 0) | (keyed ? KEYED : 0);
  return event;
}

/** The parent's hash must have the form of the blocks' hashes. */
function checkParent({ numbers, row }: Cursor, event: StoredRecord): void {
  const parentForm = hashForm(numbers.rows[row * ROW_WORDS + ROW.parentForm]!);
  if (event.hasParent && event.blockCount > 0 && parentForm !== event.hashForm) {
    throw new Fault('hash-mixed', 'of parent_block_hash and block_hashes one is binary, the other integer');
  }
}

function readOther(
  cursor: Cursor,
  names: FieldNames,
  tag: string,
  form: 'map' | 'positional',
  count: number,
): WorkerEvent {
  switch (tag) {
    case 'BlockRemoved': {
      const event = new RemovedRecord(cursor.numbers, cursor.row, form);
      if (form === 'map') readPairs(cursor, names, count, event, removedField);
      else readRemovedSlots(cursor, count, event);
      if (!cursor.passed(STEP.hashes)) throw missing(FIELD.blockHashes);
      return event;
    }
    case 'AllBlocksCleared': {
      const event: { -readonly [K in keyof ClearedEvent]: ClearedEvent[K] } = {
        type: 'cleared',
        form,
        ownership: null,
      };
      if (form === 'map') readPairs(cursor, names, count, event, clearedField);
      else readClearedSlots(cursor, count, event);
      return event;
    }
    case 'Ignored':
      skipAll(cursor, form === 'map' ? count * 2 : count);
      return { type: 'ignored', form };
    default:
      throw new Fault('tag-unknown', `the event's type is ${describe(tag)}`);
  }
}

function readTag(cursor: Cursor): string {
  const tag = cursor.text();
  if (tag === null) throw new Fault('tag-missing', `the event's type is ${cursor.describe()}, not text`);
  cursor.tag = tag;
  return tag;
}

/** The tag of a map of `pairs` pairs, wherever it stands; the cursor stays at the first key. A map that names two types has none. */
function findTag(cursor: Cursor, names: FieldNames, pairs: number): string {
  const start = cursor.at;
  let field: number = UNKNOWN_FIELD;
  for (let pair = 0; pair < pairs; pair++) {
    field = names.read(cursor, field);
    if (field !== FIELD.type) cursor.skip();
    else if (cursor.tag === null) readTag(cursor);
    else if (cursor.text() !== cursor.tag) throw new Fault('tag-conflict', 'the event names two types');
  }
  if (cursor.tag === null) throw new Fault('tag-missing', "the event's type is missing");
  cursor.at = start;
  return cursor.tag;
}

// ---- map form ----

/** Reads the pairs of a map; of a field said twice the last counts. Returns whether one was. */
function readPairs<T>(
  cursor: Cursor,
  names: FieldNames,
  pairs: number,
  event: T,
  readField: (cursor: Cursor, field: number, event: T) => void,
): boolean {
  let field: number = UNKNOWN_FIELD;
  let seen = 0;
  let repeats = false;
  for (let pair = 0; pair < pairs; pair++) {
    field = names.read(cursor, field);
    if (field !== UNKNOWN_FIELD) {
      repeats ||= (seen & (1 << field)) !== 0;
      seen |= 1 << field;
    }
    if (field === FIELD.type) cursor.skip();
    else readField(cursor, field, event);
  }
  return repeats;
}

function storedField(cursor: Cursor, field: number, event: StoredRecord): void {
  const { shape } = event;
  switch (field) {
    case FIELD.blockHashes:
      readHashes(cursor);
      break;
    case FIELD.parentBlockHash:
      readParent(cursor);
      break;
    case FIELD.tokenIds:
      readTokens(cursor);
      break;
    case FIELD.blockSize:
      shape.blockSize = uint32(cursor, field) ?? -1;
      break;
    case FIELD.loraId:
      shape.loraId = loraId(cursor);
      break;
    case FIELD.loraName:
      shape.loraName = text(cursor, field);
      break;
    case FIELD.cacheSalt:
      shape.cacheSalt = text(cursor, field);
      break;
    case FIELD.extraKeys:
      readExtraKeys(cursor, shape);
      break;
    case FIELD.isEagle:
      shape.isEagle = cursor.value();
      break;
    case FIELD.sharedCacheEligible:
      shape.sharedCacheEligible = cursor.value();
      break;
    case FIELD.blockMmInfos:
      shape.blockMmInfos = cursor.value();
      break;
    default:
      placeField(cursor, field, shape);
  }
}

function removedField(cursor: Cursor, field: number, event: RemovedRecord): void {
  if (field === FIELD.blockHashes) readHashes(cursor);
  else placeField(cursor, field, event);
}

function clearedField(cursor: Cursor, field: number, event: { ownership: string | null }): void {
  if (field === FIELD.ownership) event.ownership = text(cursor, field);
  else cursor.skip();
}

/** The fields that say where the blocks are, which stored and removed events share. */
function placeField(cursor: Cursor, field: number, event: EventShape | RemovedRecord): void {
  switch (field) {
    case FIELD.medium:
      event.medium = text(cursor, field);
      break;
    case FIELD.groupIdx:
      event.groupIdx = uint32(cursor, field);
      break;
    case FIELD.specKind:
      event.specKind = text(cursor, field);
      break;
    case FIELD.slidingWindow:
      event.slidingWindow = uint32(cursor, field);
      break;
    case FIELD.locality:
      event.locality = text(cursor, field);
      break;
    case FIELD.ownership:
      event.ownership = text(cursor, field);
      break;
    default:
      skipAll(cursor, 1);
  }
}

// ---- array form (1.7) ----

const STORED_SLOTS = 9;
/** Behind the tag. */
const REMOVED_SLOTS = 2;

function readStoredSlots(cursor: Cursor, names: FieldNames, items: number, event: StoredRecord): void {
  const slots = Math.min(items, STORED_SLOTS);
  for (let slot = 1; slot < slots; slot++) {
    if (slot === FIELD.loraId) event.shape.loraId = typedLoraId(cursor);
    else if (slot === FIELD.loraName) readLoraSlot(cursor, names, event.shape);
    else storedField(cursor, slot, event);
  }
  if (items > STORED_SLOTS) readTail(cursor, items - STORED_SLOTS, event.shape);
}

function readRemovedSlots(cursor: Cursor, items: number, event: RemovedRecord): void {
  if (items > 0) readHashes(cursor);
  if (items > 1) event.medium = text(cursor, FIELD.medium);
  if (items > REMOVED_SLOTS) readTail(cursor, items - REMOVED_SLOTS, event);
}

function readClearedSlots(cursor: Cursor, items: number, event: { ownership: string | null }): void {
  if (items > 0) event.ownership = text(cursor, FIELD.ownership);
  skipAll(cursor, items - 1);
}

/** The LoRA's name; SGLang puts a map there that may hold the salt. An empty map leaves the salt to the extra keys; nil is no salt. */
function readLoraSlot(cursor: Cursor, names: FieldNames, event: EventShape): void {
  if (cursor.nil()) return;
  event.loraName = cursor.text();
  if (event.loraName !== null) return;
  const pairs = cursor.map();
  if (pairs < 0) throw wrong(cursor, FIELD.loraName);
  let field: number = UNKNOWN_FIELD;
  for (let pair = 0; pair < pairs; pair++) {
    field = names.read(cursor, field);
    if (field === FIELD.cacheSalt) event.cacheSalt = text(cursor, field) ?? '';
    else cursor.skip();
  }
}
