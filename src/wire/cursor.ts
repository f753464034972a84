// A cursor over one payload: the structure of a message (headers, names, short values) is read here in TypeScript, byte by byte and
// without making values of what nobody asked for; number lists are left to core/numbers.ts. It believes no length before what
// follows is known to be there, and does not recurse.
import { type Numbers, ROW_WORDS } from '../core/numbers.js';
import { WireError } from '../errors.js';
import { boundedDecoder } from './msgpack.js';
import { TextTable } from './texts.js';
import { describe } from './values.js';

/** Stands for a value that can't be looked at: nested too deeply, too large, or holding text that is none. It equals nothing that a field may hold. */
export const OPAQUE: unique symbol = Symbol('too complex to be looked at');

/** Most bytes of values that are decoded whole, a message. */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024;
/** Most containers inside each other in such a value. */
const MAX_DEPTH = 32;
/** Most values in it that cost memory of their own. */
const MAX_OBJECTS = 1_048_576;
/** Numbers of a shape's steps that are worth noting: one step more than a shape may have. */
const MAX_NOTED = 3 * 16;
/** Bytes of a text that is shown in an error. */
const MAX_SHOWN = 256;
const NIL = 0xc0;
const FLOAT_64 = 0xcb;

const decodeWhole = boundedDecoder(['mm_objects', 'mm_hash', 'offsets'], {
  bytes: MAX_WHOLE_BYTES,
  depth: MAX_DEPTH,
  objects: MAX_OBJECTS,
});

/** Reads one payload at a time, into `numbers`. */
export class Cursor {
  at = 0;
  /** The tag of the event in hand, null until it is known. */
  tag: string | null = null;
  /** The event in hand's row in `numbers`. */
  row = 0;
  /** What varies in the event in hand: step, start and end, one after the other (core/numbers.ts, `keepShape`). */
  readonly steps: number[] = [];
  readonly numbers: Numbers;
  /** The payload's bytes, for those who compare them. */
  readonly view: DataView;
  readonly #bytes: Uint8Array;
  readonly #texts = new TextTable();
  #end = 0;
  #wholeBytes = 0;
  /** Bits of the steps that the event in hand has had. */
  #given = 0;

  constructor(numbers: Numbers) {
    this.numbers = numbers;
    this.#bytes = numbers.bytes;
    this.view = new DataView(numbers.bytes.buffer, numbers.bytes.byteOffset, numbers.bytes.length);
  }

  /** Starts on a payload of at most `numbers.payloadBytes` bytes. */
  open(payload: Uint8Array): void {
    this.numbers.open(payload);
    this.at = 0;
    this.#end = payload.length;
    this.#wholeBytes = 0;
    this.row = 0;
  }

  /** Starts on an event that is to be read field by field. */
  startEvent(): void {
    this.tag = null;
    this.steps.length = 0;
    this.#given = 0;
    this.numbers.rows.fill(0, this.row * ROW_WORDS, (this.row + 1) * ROW_WORDS);
  }

  /** Whether the event in hand has given that list. */
  passed(step: number): boolean {
    return (this.#given & (1 << step)) !== 0;
  }

  get atEnd(): boolean {
    return this.at === this.#end;
  }

  /** The byte that says what stands here; 0xc1, which is no value, at the end. */
  get head(): number {
    return this.#bytes[this.at]!;
  }

  /** Items of the array that starts here, -1 when something else does. */
  array(): number {
    const head = this.head;
    if ((head & 0xf0) === 0x90) {
      this.at++;
      return this.#fits(head & 0x0f);
    }
    return head === 0xdc || head === 0xdd ? this.#sized(head === 0xdc ? 2 : 4, 1) : -1;
  }

  /** Pairs of the map that starts here, -1 when something else does. */
  map(): number {
    const head = this.head;
    if ((head & 0xf0) === 0x80) {
      this.at++;
      return this.#fits(head & 0x0f);
    }
    return head === 0xde || head === 0xdf ? this.#sized(head === 0xde ? 2 : 4, 2) : -1;
  }

  #sized(lengthBytes: number, valuesEach: number): number {
    const count = this.#unsigned(this.at + 1, lengthBytes);
    this.at += 1 + lengthBytes;
    this.#fits(count * valuesEach);
    return count;
  }

  /** Every value takes a byte at least. */
  #fits(values: number): number {
    if (values > this.#end - this.at) throw this.truncated();
    return values;
  }

  #unsigned(from: number, bytes: number): number {
    let value = 0;
    for (let i = 0; i < bytes; i++) value = value * 0x100 + this.#bytes[from + i]!;
    return value;
  }

  /** Passes over nil; false when something else stands here. */
  nil(): boolean {
    if (this.head !== NIL || this.at >= this.#end) return false;
    this.at++;
    return true;
  }

  /** Bytes of the text that starts here, the cursor at its first one; -1 when something else does. */
  textBytes(): number {
    const head = this.head;
    let length: number;
    let header = 1;
    if ((head & 0xe0) === 0xa0) length = head & 0x1f;
    else if (head === 0xd9 || head === 0xda || head === 0xdb) {
      const lengthBytes = 1 << (head - 0xd9);
      length = this.#unsigned(this.at + 1, lengthBytes);
      header += lengthBytes;
    } else return -1;
    this.at += header;
    if (length > this.#end - this.at) throw this.truncated();
    return length;
  }

  /** The text that starts here; null, and nothing is passed, when something else does or it is no UTF-8. */
  text(): string | null {
    const start = this.at;
    const length = this.textBytes();
    if (length < 0) return null;
    const text = this.#texts.of(this.view, this.at, length);
    this.at = text === null ? start : this.at + length;
    return text;
  }

  /** The unsigned 32-bit integer that starts here, in any width; -1, and nothing is passed, when something else does. */
  uint32(): number {
    const head = this.head;
    if (head < 0x80) {
      this.at++;
      return this.at > this.#end ? -1 : head;
    }
    if (head < 0xcc || head > 0xd3) return -1;
    const width = 1 << ((head - 0xcc) & 3);
    const from = this.at + 1;
    if (width === 8 && this.#unsigned(from, 4) !== 0) return -1;
    const value = width === 8 ? this.#unsigned(from + 4, 4) : this.#unsigned(from, width);
    if (head >= 0xd0 && value >= 2 ** (width * 8 - 1)) return -1; // a negative one
    this.at = from + width;
    if (this.at > this.#end) throw this.truncated();
    return value;
  }

  /** Passes over a value that varies between events of one shape. Steps beyond those that a shape can have are not noted. */
  pass(step: number, end: number): void {
    if (this.steps.length < MAX_NOTED) this.steps.push(step, this.at, end);
    this.#given |= 1 << step;
    this.at = end;
  }

  /** The value that starts here in a few words, for the reader of an error. Nothing is decoded that is large. */
  describe(): string {
    const { head } = this;
    const start = this.at;
    const items = this.array();
    const pairs = items < 0 ? this.map() : -1;
    const bytes = items < 0 && pairs < 0 ? this.textBytes() : -1;
    this.at = start;
    if (items >= 0) return `a list of ${items}`;
    if (pairs >= 0) return `a map of ${pairs}`;
    if (bytes > MAX_SHOWN) return `a text of ${bytes} bytes`;
    if (head >= 0xc4 && head <= 0xc6) return `binary of ${this.#unsigned(this.at + 1, 1 << (head - 0xc4))} bytes`;
    if (head === 0xca || head === 0xcb) return 'a float';
    if ((head >= 0xc7 && head <= 0xc9) || (head >= 0xd4 && head <= 0xd8)) return 'an extension';
    return describe(this.value());
  }

  /** Passes over one value of any kind. */
  skip(): void {
    const head = this.head;
    if (head < 0x80 || head === NIL || head >= 0xe0) this.at++;
    else this.at = this.numbers.skip(this.at);
    if (this.at === 0 || this.at > this.#end) throw this.truncated();
  }

  /** The value that starts here, whatever it is, undefined for nil; OPAQUE when it is too complex. */
  value(): unknown {
    const head = this.head;
    if (this.nil()) return undefined;
    if (head === 0xc2 || head === 0xc3) {
      this.at++;
      return head === 0xc3;
    }
    const number = head === FLOAT_64 ? this.#float64() : this.uint32();
    if (number >= 0) return number;
    return this.#whole();
  }

  /** The float that starts here; -1, and nothing is passed, for one below zero or NaN. */
  #float64(): number {
    const number = this.view.getFloat64(this.at + 1);
    if (!(number >= 0)) return -1;
    this.at += 9;
    if (this.at > this.#end) throw this.truncated();
    return number;
  }

  /** Items of a list of nothing but nil, which is passed; -1, and nothing is passed, when something else starts here. */
  nils(): number {
    const start = this.at;
    const items = this.array();
    for (let i = 0; i < items; i++) {
      if (this.#bytes[this.at + i] !== NIL) {
        this.at = start;
        return -1;
      }
    }
    if (items > 0) this.at += items;
    return items;
  }

  #whole(): unknown {
    const start = this.at;
    this.skip();
    this.#wholeBytes += this.at - start;
    if (this.#wholeBytes > MAX_WHOLE_BYTES) return OPAQUE;
    try {
      return decodeWhole(this.#bytes.slice(start, this.at));
    } catch (error) {
      if (error instanceof WireError) return OPAQUE;
      throw error;
    }
  }

  /** The error for a payload that ends too early, or has something behind its value. */
  truncated(): WireError {
    return new WireError('payload-malformed', `the payload's ${this.#end} bytes are not one whole MessagePack value`);
  }
}
