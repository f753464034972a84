// Reads the single fields of a worker's event, each with the types that it may hold; what it may not is thrown as a Fault, which loses the
// event and nothing else. Lists of numbers go to core/numbers.ts. Rules: spec/kv-events.md 1.5 and 1.8.
import { type NumberFault, ROW, ROW_WORDS, STEP } from '../core/numbers.js';
import type { Cursor } from './cursor.js';
import { FIELD, FIELD_NAMES } from './field-names.js';
import type { EventFault, EventShape } from './worker-event.js';

/** Most tokens that one event may carry. */
export const MAX_EVENT_TOKENS = 1_048_576;

/** Stands for a float where an integer is due: as a number it could not be told from one. */
const A_FLOAT: unique symbol = Symbol('a float');

/** Why an event can't be read. No Error, because 65,536 of them a batch must stay cheap. */
export class Fault {
  constructor(
    readonly code: EventFault,
    readonly text: string,
  ) {}
}

/** The blocks' hashes, which must be there. */
export function readHashes(cursor: Cursor): void {
  if (cursor.nil()) throw missing(FIELD.blockHashes);
  const end = cursor.numbers.readHashes(cursor.at, cursor.row);
  if (end === 0) throw numberFault(cursor, FIELD.blockHashes);
  cursor.pass(STEP.hashes, end);
}

/** The hash of the block before, or nil. */
export function readParent(cursor: Cursor): void {
  const end = cursor.numbers.readParent(cursor.at, cursor.row);
  if (end === 0) throw numberFault(cursor, FIELD.parentBlockHash);
  cursor.pass(STEP.parent, end);
}

/** The token ids, which must be there. */
export function readTokens(cursor: Cursor): void {
  if (cursor.nil()) throw missing(FIELD.tokenIds);
  const end = cursor.numbers.readTokens(cursor.at, cursor.row);
  if (end === 0) throw numberFault(cursor, FIELD.tokenIds);
  cursor.pass(STEP.tokens, end);
}

/** The extra keys. Lists of nothing but nil, the common case, are only counted. */
export function readExtraKeys(cursor: Cursor, shape: EventShape): void {
  const start = cursor.at;
  const nils = cursor.nils();
  shape.nilKeys = nils >= 0;
  if (nils < 0) {
    shape.extraKeys = cursor.value();
    return;
  }
  cursor.numbers.rows[cursor.row * ROW_WORDS + ROW.nilKeys] = nils;
  const end = cursor.at;
  cursor.at = start;
  cursor.pass(STEP.nils, end);
}

/** The deprecated adapter number. What is no unsigned integer is kept as something else, for then its type matters. */
export function loraId(cursor: Cursor): unknown {
  const number = cursor.uint32();
  if (number >= 0) return number;
  const value = cursor.value();
  return typeof value === 'number' ? A_FLOAT : value;
}

/** The array form types this slot; in a map a surprising value only costs the event its eligibility. */
export function typedLoraId(cursor: Cursor): unknown {
  const at = cursor.at;
  const value = loraId(cursor);
  if (value === undefined || typeof value === 'number' || (typeof value === 'bigint' && value >= 0n)) return value;
  cursor.at = at;
  throw wrong(cursor, FIELD.loraId);
}

/** A text, or null for nil. */
export function text(cursor: Cursor, field: number): string | null {
  if (cursor.nil()) return null;
  const value = cursor.text();
  if (value === null) throw wrong(cursor, field);
  return value;
}

/** An unsigned 32-bit integer, or null for nil. */
export function uint32(cursor: Cursor, field: number): number | null {
  if (cursor.nil()) return null;
  const value = cursor.uint32();
  if (value < 0) throw wrong(cursor, field);
  return value;
}

/** Passes over values that nobody reads. */
export function skipAll(cursor: Cursor, items: number): void {
  for (let i = 0; i < items; i++) {
    const start = cursor.at;
    cursor.skip();
    const end = cursor.at;
    cursor.at = start;
    cursor.pass(STEP.any, end);
  }
}

// ---- faults ----

function numberFault(cursor: Cursor, field: number): Fault {
  const { why, at, index }: NumberFault = cursor.numbers.fault;
  const name = FIELD_NAMES[field]!;
  if (why === 'no-list') return wrong(cursor, field);
  if (why === 'too-many' && field === FIELD.tokenIds) return tooMany(index);
  if (why === 'too-many')
    return new Fault('too-many-hashes', `the message's hashes are more than ${cursor.numbers.hashCap}`);
  cursor.at = at;
  const found = cursor.describe();
  if (field === FIELD.tokenIds) {
    const expected = why === 'no-pair' ? 'a pair like those before it' : 'an unsigned 32-bit integer';
    return new Fault('field-type', `${name}[${index}] is ${found}, expected ${expected}`);
  }
  if (why === 'width') return new Fault('hash-width', `${name}: hash ${index} is ${found}, expected 32 bytes`);
  if (why === 'mixed') return new Fault('hash-mixed', `${name}: hash ${index} is ${found}, unlike those before it`);
  return new Fault('hash-type', `${name}: hash ${index} is ${found}, neither a 64-bit integer nor binary`);
}

/** The fault of an event with more tokens than are read. */
export function tooMany(count: number): Fault {
  return new Fault('too-many-tokens', `token_ids holds ${count} tokens, at most ${MAX_EVENT_TOKENS} are read`);
}

/** The fault of a field that is not there. */
export function missing(field: number): Fault {
  return new Fault('field-missing', `${FIELD_NAMES[field]} is missing`);
}

/** The fault of a field that holds what it may not; the cursor stands at it. */
export function wrong(cursor: Cursor, field: number): Fault {
  return new Fault('field-type', `${FIELD_NAMES[field]} is ${cursor.describe()}`);
}
