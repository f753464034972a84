// The same envelopes as JSON, digit for digit. JSON.parse makes doubles of numbers, so that a 64-bit hash comes out as its neighbour; here a text is turned
// into MessagePack and read from there, and written the other way round: every rule about fields stands in one place. The grammar is
// RFC 8259's, nothing more is taken. Whole numbers without point and exponent stay whole up to 64 bits; others are doubles.
import { WireError } from '../../errors.js';
import { MAX_DEPTH, MAX_JSON_CHARS, MAX_PAYLOAD_BYTES } from './limits.js';
import { Fault, Reader, readWhole } from './reader.js';
import { type EventBatch, EventBatchReader, encodeEvents } from './router-event.js';
import type { RouterEvent } from './types.js';
import { MAX_UINT64, Writer } from './writer.js';

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_MAP = 0x7b;
const CLOSE_MAP = 0x7d;
const NUMBER = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const WORDS: readonly (readonly [string, boolean | null])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
];
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);
/** Digits and sign of the longest 64-bit integer. */
const MAX_DIGITS = 20;
const MIN_INT64 = -0x8000_0000_0000_0000n;
/** Halves of a pair that stand alone: no character. */
const LONE_SURROGATE = /\p{Surrogate}/u;
/** Characters shown of what is wrong. */
const SHOWN = 12;

const writer = new Writer(MAX_PAYLOAD_BYTES);
const reader = new Reader();
const batches = new EventBatchReader();

/** Events as a JSON list. @throws {WireError} as `encodeEvents` */
export function encodeEventsJson(events: readonly RouterEvent[]): string {
  return jsonOf(encodeEvents(events));
}

/** Reads a JSON list of events, a text or its UTF-8, by the rules of `EventBatchReader`. @throws {WireError} as that, and as `msgpackOf` */
export function decodeEventsJson(json: string | Uint8Array): EventBatch {
  return batches.read(msgpackOf(json));
}

// ---- reading ----

/**
 * The MessagePack of a JSON text. The bytes are the caller's own.
 * @throws {WireError} `json-too-large` (over 16 Mi characters), `json-text` (no UTF-8, or half a character), `json-malformed`, `payload-too-complex`
 * (nested too deeply), `payload-too-large` (over 9 MiB as MessagePack)
 */
export function msgpackOf(json: string | Uint8Array): Uint8Array {
  if (json.length > MAX_JSON_CHARS) {
    throw new WireError('json-too-large', `the JSON text is ${json.length} long, at most ${MAX_JSON_CHARS} are read`);
  }
  const scanner = new Scanner(typeof json === 'string' ? json : decodeUtf8(json));
  writer.start();
  scanner.value(0);
  scanner.finish();
  return writer.take();
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new WireError('json-text', `the ${bytes.length} bytes of the JSON text are no UTF-8`);
  }
}

/** Goes through one text, writing. */
class Scanner {
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): void {
    const char = this.#next();
    if (char === QUOTE) writer.text(this.#string());
    else if (char === OPEN_LIST) this.#container(depth, CLOSE_LIST);
    else if (char === OPEN_MAP) this.#container(depth, CLOSE_MAP);
    else if (!this.#word()) this.#number();
  }

  finish(): void {
    if (!Number.isNaN(this.#next())) throw this.#malformed('the end');
  }

  /** The first character that is no white space, which is not passed; NaN at the end. */
  #next(): number {
    for (;;) {
      const char = this.#text.charCodeAt(this.#at);
      if (char !== SPACE && char !== 0x0a && char !== 0x0d && char !== 0x09) return char;
      this.#at++;
    }
  }

  /** A list or map. How many it holds is known at its end, and written at its beginning then. */
  #container(depth: number, close: number): void {
    if (depth === MAX_DEPTH) {
      throw new WireError('payload-too-complex', `the JSON text nests deeper than ${MAX_DEPTH} containers`);
    }
    this.#at++;
    const header = writer.at;
    writer.wideHeader(close === CLOSE_MAP);
    let count = 0;
    if (this.#next() === close) this.#at++;
    else {
      for (let more = true; more; count++) {
        if (close === CLOSE_MAP) this.#name();
        this.value(depth + 1);
        const char = this.#next();
        if (char !== COMMA && char !== close) throw this.#malformed(close === CLOSE_MAP ? ', or }' : ', or ]');
        this.#at++;
        more = char === COMMA;
      }
    }
    writer.setCount(header, count);
  }

  #name(): void {
    if (this.#next() !== QUOTE) throw this.#malformed('a name');
    writer.text(this.#string());
    if (this.#next() !== COLON) throw this.#malformed(':');
    this.#at++;
  }

  #word(): boolean {
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      if (value === null) writer.nil();
      else writer.bool(value);
      return true;
    }
    return false;
  }

  #number(): void {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (found === null) throw this.#malformed('a value');
    const [whole, digits, fraction, exponent] = found;
    this.#at += whole.length;
    const isWhole = fraction === undefined && exponent === undefined && digits !== '-0' && whole.length <= MAX_DIGITS;
    const big = isWhole ? BigInt(whole) : null;
    if (big !== null && big >= MIN_INT64 && big <= MAX_UINT64) writer.big(big);
    else writer.float64(Number(whole));
  }

  /** A string; its first quotation mark is next. */
  #string(): string {
    const text = this.#text;
    let from = ++this.#at;
    let value = '';
    for (;;) {
      const char = text.charCodeAt(this.#at);
      if (Number.isNaN(char) || char < SPACE) throw this.#malformed("a string's end");
      if (char !== QUOTE && char !== BACKSLASH) {
        this.#at++;
        continue;
      }
      value += text.slice(from, this.#at);
      this.#at++;
      if (char === QUOTE) break;
      value += this.#escape();
      from = this.#at;
    }
    if (LONE_SURROGATE.test(value)) {
      throw new WireError('json-text', `the JSON string that ends at ${this.#at} holds half a character`);
    }
    return value;
  }

  /** The character that an escape stands for; its backslash is passed. */
  #escape(): string {
    const kind = this.#text.charAt(this.#at);
    const plain = ESCAPES.get(kind);
    if (plain !== undefined) {
      this.#at++;
      return plain;
    }
    const digits = this.#text.slice(this.#at + 1, this.#at + 5);
    if (kind !== 'u' || !/^[0-9a-fA-F]{4}$/.test(digits)) throw this.#malformed('an escape');
    this.#at += 5;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  #malformed(expected: string): WireError {
    const seen = this.#text.slice(this.#at, this.#at + SHOWN);
    const shown = seen === '' ? 'it ends' : `${JSON.stringify(seen)} stands there`;
    return new WireError('json-malformed', `the JSON text: ${expected} expected at ${this.#at}, ${shown}`);
  }
}

// ---- writing ----

/**
 * A MessagePack payload as JSON. Binary becomes a list of numbers, as the field writes it; numbers that JSON has not become null.
 * @throws {WireError} as all readers here; `not-supported` for extensions and names that are no text
 */
export function jsonOf(payload: Uint8Array): string {
  return readWhole(reader, payload, (from) => {
    const parts: string[] = [];
    writeJson(from, parts, 0);
    return parts.join('');
  });
}

function writeJson(from: Reader, parts: string[], depth: number): void {
  if (from.nil()) {
    parts.push('null');
    return;
  }
  const number = numberText(from);
  const truth = number === null ? from.bool() : null;
  if (number !== null || truth !== null) {
    parts.push(number ?? String(truth));
    return;
  }
  const text = from.text(MAX_PAYLOAD_BYTES);
  if (text !== null) {
    parts.push(JSON.stringify(text));
    return;
  }
  const binary = from.binaryBytes();
  if (binary >= 0) {
    from.at += binary;
    parts.push(`[${from.bytes.subarray(from.at - binary, from.at).join(',')}]`);
    return;
  }
  if (depth === MAX_DEPTH) {
    throw new WireError('payload-too-complex', `the payload nests deeper than ${MAX_DEPTH} containers`);
  }
  const items = from.array();
  if (items >= 0) {
    parts.push('[');
    for (let i = 0; i < items; i++) {
      if (i > 0) parts.push(',');
      writeJson(from, parts, depth + 1);
    }
    parts.push(']');
    return;
  }
  const pairs = from.map();
  if (pairs < 0) throw notJson(from);
  parts.push('{');
  for (let i = 0; i < pairs; i++) {
    const name = from.text(MAX_PAYLOAD_BYTES);
    if (name === null) throw notJson(from);
    parts.push(i > 0 ? ',' : '', JSON.stringify(name), ':');
    writeJson(from, parts, depth + 1);
  }
  parts.push('}');
}

/** A number's digits, floats with a point or an exponent; null, and nothing is passed, when something else stands here. */
function numberText(from: Reader): string | null {
  const isFloat = from.atFloat;
  const number = from.number();
  if (number === null) return null;
  if (!isFloat) return String(number);
  if (!Number.isFinite(number)) return 'null';
  const text = Object.is(number, -0) ? '-0' : String(number);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

function notJson(from: Reader): Fault {
  return new Fault('not-supported', `${from.describe()} has no place in JSON: not supported`);
}
