// A request's JSON, read as strictly as everything behind it has to agree on: UTF-8 alone, no name twice in one object (readers differ in which
// they take, and then the router would judge another prompt than the worker answers), no deeper than a prompt has reason to be. The scan also
// says where the values of the outermost object stand, so that one can be replaced with every other byte left alone.
import { Buffer, isUtf8 } from 'node:buffer';
import { ApiError } from './errors.js';

/** Where a value stands in the text: bytes `start` up to, not including, `end`. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** A JSON object with the places of its values. */
export interface JsonObject {
  readonly fields: Readonly<Record<string, unknown>>;
  place(name: string): Place | null;
}

/** Deepest nesting: schemas of tools are the deepest things in a request. */
const MAX_DEPTH = 128;

/**
 * Most values, for each costs many times its bytes. Token ids don't count: in a list of plain values each is no larger than its text, and the body's own
 * bound is enough.
 */
const MAX_VALUES = 250_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Reads a JSON object.
 * @throws ApiError 400 `invalid-json`, `too-many-values`, `duplicate-field`
 */
export function readJsonObject(bytes: Uint8Array): JsonObject {
  refuseCostly(bytes);
  let fields: unknown;
  try {
    // In Node faster than a strict TextDecoder, and as strict.
    if (!isUtf8(bytes)) throw new Error('not UTF-8');
    fields = JSON.parse(textOf(bytes));
  } catch {
    // What the parser says shows parts of the text.
    throw new ApiError(400, 'invalid-json', 'the body is not JSON in UTF-8.');
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw new ApiError(400, 'invalid-json', 'the body must be a JSON object.');
  }
  const places = scan(bytes);
  return { fields: fields as Readonly<Record<string, unknown>>, place: (name) => places.get(name) ?? null };
}

/** The text with one value replaced. */
export function withValue(bytes: Uint8Array, { start, end }: Place, value: unknown): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(value));
  const changed = new Uint8Array(bytes.length - (end - start) + text.length);
  changed.set(bytes.subarray(0, start));
  changed.set(text, start);
  changed.set(bytes.subarray(end), start + text.length);
  return changed;
}

/** Refuses what would cost more to parse than a request is worth, by a look at its brackets and commas; it may be no JSON. @throws ApiError */
function refuseCostly(bytes: Uint8Array): void {
  const endOfFlatList = flatLists(bytes);
  let values = 0;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfText(bytes, at) - 1;
        break;
      case OPEN_OBJECT:
      case OPEN_LIST: {
        values++;
        const close = bytes[at] === OPEN_LIST ? endOfFlatList(at) : null;
        if (close !== null) at = close;
        else if (++depth > MAX_DEPTH) throw new ApiError(400, 'invalid-json', 'the body is nested too deeply.');
        break;
      }
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        depth--;
        break;
      case COMMA:
        values++;
        break;
    }
    if (values > MAX_VALUES) {
      throw new ApiError(400, 'too-many-values', `the body has more than ${MAX_VALUES} values besides token ids.`);
    }
  }
}

/** Places of the outermost values of what is known to be a JSON object. @throws ApiError */
function scan(bytes: Uint8Array): Map<string, Place> {
  const places = new Map<string, Place>();
  /** Names of each open object, null for a list. */
  const open: (Set<string> | null)[] = [];
  let name: string | null = null;
  let start = 0;
  const end = (at: number) => {
    if (open.length !== 1 || name === null) return;
    places.set(name, trimmed(bytes, start, at));
    name = null;
  };
  const endOfFlatList = flatLists(bytes);
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE: {
        const close = endOfText(bytes, at);
        const names = open.at(-1);
        // A text right behind `{` or `,` of an object is a name: what follows it is a colon.
        if (names !== undefined && names !== null && isName(bytes, close)) {
          const found = JSON.parse(textOf(bytes.subarray(at, close))) as string;
          if (names.has(found)) throw new ApiError(400, 'duplicate-field', 'the body has a field twice in one object.');
          names.add(found);
          at = skipTo(bytes, close, COLON);
          if (open.length === 1) {
            name = found;
            start = at + 1;
          }
        } else at = close - 1;
        break;
      }
      case OPEN_OBJECT:
      case OPEN_LIST: {
        const close = bytes[at] === OPEN_LIST ? endOfFlatList(at) : null;
        if (close !== null) {
          at = close;
          break;
        }
        open.push(bytes[at] === OPEN_OBJECT ? new Set() : null);
        break;
      }
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        end(at);
        open.pop();
        break;
      case COMMA:
        end(at);
        break;
    }
  }
  return places;
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('utf8');
}

/**
 * Finds the closing bracket of a list of plain values, such as a prompt of ids, which need not be looked through; null for other lists. Is to be asked
 * of opening brackets in turn.
 */
function flatLists(bytes: Uint8Array): (at: number) => number | null {
  const nextOf = [QUOTE, OPEN_LIST, OPEN_OBJECT].map((byte) => seeker(bytes, byte));
  const closing = seeker(bytes, CLOSE_LIST);
  return (at) => {
    const close = closing(at);
    return close < bytes.length && nextOf.every((next) => next(at + 1) > close) ? close : null;
  };
}

/** Finds the next such byte from `at` on, where `at` only grows: the text is gone through once, however often is asked. */
function seeker(bytes: Uint8Array, byte: number): (at: number) => number {
  let next = -1;
  return (at) => {
    if (next < at) {
      const found = bytes.indexOf(byte, at);
      next = found < 0 ? bytes.length : found;
    }
    return next;
  };
}

/** Behind the closing quote of the text that begins at `at`; the end where it is never closed. */
function endOfText(bytes: Uint8Array, at: number): number {
  for (let next = at + 1; ; ) {
    const close = bytes.indexOf(QUOTE, next);
    if (close < 0) return bytes.length;
    let slashes = 0;
    while (bytes[close - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return close + 1;
    next = close + 1;
  }
}

function isName(bytes: Uint8Array, at: number): boolean {
  while (isSpace(bytes[at])) at++;
  return bytes[at] === COLON;
}

function skipTo(bytes: Uint8Array, at: number, byte: number): number {
  while (bytes[at] !== byte) at++;
  return at;
}

function trimmed(bytes: Uint8Array, start: number, end: number): Place {
  while (isSpace(bytes[start])) start++;
  while (isSpace(bytes[end - 1])) end--;
  return { start, end };
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
