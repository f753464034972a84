// A reader over one payload's bytes, value by value: it makes nothing that nobody asked for, believes no length before what follows is known to be
// there, and does not recurse into what it passes over. Two kinds of failure: a WireError for bytes that are no MessagePack (nothing behind
// them can be found any more), and a Fault for a value that is not what its place demands, which costs one event only.
import { WireError } from '../../errors.js';
import { MAX_DEPTH, MAX_PAYLOAD_BYTES } from './limits.js';
import { type Names, UNKNOWN } from './names.js';

/** Why an event, or a message that is one value, can't be read. */
export type FaultCode =
  /** Not a map, or a part of it is a list where the fields' names are demanded: not supported. */
  | 'positional'
  /** A payload that is no list of events. */
  | 'batch-shape'
  /** A field that must be there is missing. */
  | 'missing-field'
  /** A field holds what it can't. */
  | 'field-type'
  /** A tier that nobody knows. */
  | 'unknown-tier'
  /** A residency domain that is null, unknown, or impossible where it stands. */
  | 'residency-domain'
  /** Neither stored, removed nor cleared. */
  | 'unknown-data'
  /** Two places name different ranks. */
  | 'rank-conflict'
  /** A list that is longer than is read. */
  | 'too-many'
  /** Understood, and not supported. */
  | 'not-supported'
  /** A value to be passed on that is too large or can't be. */
  | 'passed-on-value';

/** Why a value can't be taken. No Error, because tens of thousands in one payload must stay cheap. */
export class Fault {
  constructor(
    readonly code: FaultCode,
    readonly text: string,
  ) {}
}

/** No MessagePack value begins with it; stands for the byte behind the end. */
const NOTHING = 0xc1;
const NIL = 0xc0;
const BIN_8 = 0xc4;
const EXT_8 = 0xc7;
const FLOAT_32 = 0xca;
const FLOAT_64 = 0xcb;
const UINT_8 = 0xcc;
const INT_8 = 0xd0;
const INT_64 = 0xd3;
const FIXEXT_1 = 0xd4;
const STR_8 = 0xd9;
const ARRAY_16 = 0xdc;
const MAP_16 = 0xde;
const WORD = 0x1_0000_0000;
const EMPTY = new Uint8Array(0);

export class Reader {
  at = 0;
  end = 0;
  bytes: Uint8Array = EMPTY;
  view: DataView = new DataView(EMPTY.buffer);
  /** The halves of the integer that `uint64` read last. */
  low = 0;
  high = 0;
  readonly #open = new Float64Array(MAX_DEPTH);
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  /** Starts on a payload. @throws {WireError} `payload-too-large` */
  open(payload: Uint8Array): void {
    if (payload.length > MAX_PAYLOAD_BYTES) {
      throw new WireError(
        'payload-too-large',
        `the payload has ${payload.length} bytes, at most ${MAX_PAYLOAD_BYTES} are read`,
      );
    }
    this.at = 0;
    this.end = payload.length;
    this.bytes = payload;
    this.view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  }

  /** Lets go of the payload. */
  close(): void {
    this.at = 0;
    this.end = 0;
    this.bytes = EMPTY;
    this.view = new DataView(EMPTY.buffer);
  }

  /** The first byte of what stands here. */
  get head(): number {
    return this.at < this.end ? this.bytes[this.at]! : NOTHING;
  }

  get atFloat(): boolean {
    return this.head === FLOAT_32 || this.head === FLOAT_64;
  }

  /** Items of the list that starts here, its items next; -1, and nothing is passed, when something else does. */
  array(): number {
    const head = this.head;
    if ((head & 0xf0) === 0x90) return this.#counted(1, head & 0x0f, 1);
    if (head !== ARRAY_16 && head !== ARRAY_16 + 1) return -1;
    const width = head === ARRAY_16 ? 2 : 4;
    return this.#counted(1 + width, this.#length(width), 1);
  }

  /** Pairs of the map that starts here, its first name next; -1, and nothing is passed, when something else does. */
  map(): number {
    const head = this.head;
    if ((head & 0xf0) === 0x80) return this.#counted(1, head & 0x0f, 2);
    if (head !== MAP_16 && head !== MAP_16 + 1) return -1;
    const width = head === MAP_16 ? 2 : 4;
    return this.#counted(1 + width, this.#length(width), 2);
  }

  /** Passes a header. Every value takes a byte at least. */
  #counted(header: number, count: number, valuesEach: number): number {
    if (header + count * valuesEach > this.end - this.at) throw this.truncated();
    this.at += header;
    return count;
  }

  /** The length behind the first byte. */
  #length(width: number): number {
    if (1 + width > this.end - this.at) throw this.truncated();
    const from = this.at + 1;
    return width === 1
      ? this.bytes[from]!
      : width === 2
        ? this.view.getUint16(from)
        : width === 4
          ? this.view.getUint32(from)
          : 0;
  }

  /** Passes a map's name; UNKNOWN for others, and for what is no text. */
  name(names: Names): number {
    const length = this.textBytes();
    if (length < 0) {
      this.skip();
      return UNKNOWN;
    }
    this.at += length;
    return names.find(this.view, this.at - length, length);
  }

  /** Passes over nil; false when something else stands here. */
  nil(): boolean {
    if (this.head !== NIL) return false;
    this.at++;
    return true;
  }

  /** A truth value; null, and nothing is passed, when something else stands here. */
  bool(): boolean | null {
    const head = this.head;
    if (head !== 0xc2 && head !== 0xc3) return null;
    this.at++;
    return head === 0xc3;
  }

  /** Reads an unsigned integer of any width into `low` and `high`; false, and nothing is passed, when something else or a negative one stands here. */
  uint64(): boolean {
    const head = this.head;
    if (head < 0x80) {
      this.low = head;
      this.high = 0;
      this.at++;
      return true;
    }
    if (head < UINT_8 || head > INT_64) return false;
    const width = 1 << ((head - UINT_8) & 3);
    if (1 + width > this.end - this.at) throw this.truncated();
    const from = this.at + 1;
    if (head >= INT_8 && this.bytes[from]! >= 0x80) return false;
    this.high = width === 8 ? this.view.getUint32(from) : 0;
    if (width === 8) this.low = this.view.getUint32(from + 4);
    else if (width === 4) this.low = this.view.getUint32(from);
    else this.low = width === 2 ? this.view.getUint16(from) : this.bytes[from]!;
    this.at = from + width;
    return true;
  }

  /** The integer that `uint64` read last. */
  get big(): bigint {
    return this.high === 0 ? BigInt(this.low) : (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  /** An unsigned integer of at most 32 bits; -1, and nothing is passed, when something else stands here. */
  uint32(): number {
    const start = this.at;
    if (!this.uint64()) return -1;
    if (this.high === 0) return this.low;
    this.at = start;
    return -1;
  }

  /** A number as JavaScript has it, whole ones beyond 2^53 as bigints; null, and nothing is passed, when something else stands here. */
  number(): number | bigint | null {
    if (this.uint64()) return this.high < 0x20_0000 ? this.high * WORD + this.low : this.big;
    const head = this.head;
    if (head >= 0xe0) {
      this.at++;
      return head - 0x100;
    }
    if (head < FLOAT_32 || head > INT_64) return null;
    const width = head === FLOAT_32 ? 4 : head === FLOAT_64 ? 8 : 1 << ((head - UINT_8) & 3);
    if (1 + width > this.end - this.at) throw this.truncated();
    const from = this.at + 1;
    this.at = from + width;
    if (head === FLOAT_32) return this.view.getFloat32(from);
    if (head === FLOAT_64) return this.view.getFloat64(from);
    if (width === 1) return this.view.getInt8(from);
    if (width === 2) return this.view.getInt16(from);
    if (width === 4) return this.view.getInt32(from);
    const value = this.view.getBigInt64(from);
    return value >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(value) : value;
  }

  /** Bytes of the text that starts here, its first one next; -1, and nothing is passed, when something else does. */
  textBytes(): number {
    const head = this.head;
    if ((head & 0xe0) === 0xa0) return this.#counted(1, head & 0x1f, 1);
    if (head < STR_8 || head >= ARRAY_16) return -1;
    const width = 1 << (head - STR_8);
    return this.#counted(1 + width, this.#length(width), 1);
  }

  /** Bytes of the binary that starts here, its first one next; -1, and nothing is passed, when something else does. */
  binaryBytes(): number {
    const head = this.head;
    if (head < BIN_8 || head >= EXT_8) return -1;
    const width = 1 << (head - BIN_8);
    return this.#counted(1 + width, this.#length(width), 1);
  }

  /** A text of at most `most` bytes of UTF-8; null, and nothing is passed, when something else stands here. */
  text(most: number): string | null {
    const start = this.at;
    const length = this.textBytes();
    if (length >= 0 && length <= most) {
      this.at += length;
      try {
        return this.#utf8.decode(this.bytes.subarray(this.at - length, this.at));
      } catch {
        // no UTF-8
      }
    }
    this.at = start;
    return null;
  }

  /** Passes over one value of any kind. @throws {WireError} `payload-malformed`, `payload-too-complex` */
  skip(): void {
    const { bytes, end } = this;
    let depth = 0;
    let left = 1; // values still to come in the innermost container
    for (;;) {
      while (left === 0 && depth > 0) left = this.#open[--depth]!;
      if (left === 0) return;
      left--;
      const head = this.head;
      if (head < 0x80 || head >= 0xe0) {
        this.at++;
        continue;
      }
      const items = this.array();
      const pairs = items < 0 ? this.map() : -1;
      if (items < 0 && pairs < 0) {
        this.#skipFlat(head);
        continue;
      }
      if (depth === MAX_DEPTH) {
        throw new WireError('payload-too-complex', `the payload nests deeper than ${MAX_DEPTH} containers`);
      }
      this.#open[depth++] = left;
      left = items < 0 ? pairs * 2 : items;
      // Lists of small numbers, which are most of what is ever skipped.
      while (left > 0 && this.at < end && bytes[this.at]! < 0x80) {
        this.at++;
        left--;
      }
    }
  }

  /** Passes over a value that holds no others. */
  #skipFlat(head: number): void {
    if (head === NOTHING) {
      if (this.at >= this.end) throw this.truncated();
      throw new WireError('payload-malformed', `byte ${this.at} of the payload is 0xc1`);
    }
    let length = this.textBytes();
    if (length < 0) length = this.binaryBytes();
    if (length < 0) length = this.#fixedBytes(head);
    if (length > this.end - this.at) throw this.truncated();
    this.at += length;
  }

  /** Bytes of a value of neither text nor binary, its first one included. */
  #fixedBytes(head: number): number {
    if (head < BIN_8) return 1; // nil, false, true
    if (head >= EXT_8 && head < FLOAT_32) {
      const width = 1 << (head - EXT_8);
      return 2 + width + this.#length(width); // type and data
    }
    if (head === FLOAT_32) return 5;
    if (head === FLOAT_64) return 9;
    return head < FIXEXT_1 ? 1 + (1 << ((head - UINT_8) & 3)) : 2 + (1 << (head - FIXEXT_1));
  }

  /** What stands here in a few words, for the reader of an error. */
  describe(): string {
    const start = this.at;
    try {
      const items = this.array();
      if (items >= 0) return `a list of ${items}`;
      const pairs = this.map();
      if (pairs >= 0) return `a map of ${pairs}`;
      const text = this.text(40);
      if (text !== null) return `the text ${JSON.stringify(text)}`;
      const length = this.textBytes();
      if (length >= 0) return `a text of ${length} bytes`;
      const isFloat = this.atFloat;
      const number = this.number();
      if (number !== null) return isFloat ? `the float ${number}` : `${number}`;
      const truth = this.bool();
      if (truth !== null) return `${truth}`;
      if (this.nil()) return 'nil';
      const binary = this.binaryBytes();
      return binary >= 0 ? `binary of ${binary} bytes` : 'an extension or nothing';
    } finally {
      this.at = start;
    }
  }

  /** The error for a payload that ends too early. */
  truncated(): WireError {
    return new WireError('payload-malformed', `the payload's ${this.end} bytes end inside a value`);
  }

  /** Demands that nothing follows. */
  finish(): void {
    if (this.at === this.end) return;
    const text = `${this.end - this.at} of the payload's ${this.end} bytes follow its value`;
    throw new WireError('payload-malformed', text);
  }
}

/**
 * Reads a payload that is one value, all or nothing; what `read` makes of it must hold none of its bytes.
 * @throws {WireError} as the reader's, and with the fault's code where the value is not what it should be
 */
export function readWhole<T>(reader: Reader, payload: Uint8Array, read: (reader: Reader) => T): T {
  reader.open(payload);
  try {
    const value = read(reader);
    reader.finish();
    return value;
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    reader.at = 0;
    reader.skip(); // bytes that end too early are that before they are anything else
    reader.finish();
    throw new WireError(fault.code, fault.text);
  } finally {
    reader.close();
  }
}
