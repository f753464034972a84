// MessagePack into one buffer that is kept and grows: integers in their shortest form, as the field's own writers choose it.
import { WireError } from '../../errors.js';
import { MAX_WRITTEN_BYTES } from './limits.js';

const FIRST_BYTES = 64 * 1024;
/** Room beyond the most bytes of a payload: what is asked for before a value's own size is known. */
const SLACK = 4096;
/** Texts up to this long are written in place, with room for three bytes a character. */
const SHORT_TEXT = 1024;
const WORD = 0x1_0000_0000;
export const MAX_UINT64 = 0xffff_ffff_ffff_ffffn;
const MIN_INT64 = -0x8000_0000_0000_0000n;

const utf8 = new TextEncoder();

export class Writer {
  at = 0;
  bytes = new Uint8Array(FIRST_BYTES);
  view = new DataView(this.bytes.buffer);
  readonly #most: number;

  constructor(most = MAX_WRITTEN_BYTES) {
    this.#most = most;
  }

  start(): void {
    this.at = 0;
  }

  /** A copy of what was written since `start`. @throws {WireError} `payload-too-large` */
  take(): Uint8Array {
    if (this.at > this.#most) throw this.#tooLarge();
    return this.bytes.slice(0, this.at);
  }

  /** Makes room. @throws {WireError} `payload-too-large` */
  need(bytes: number): void {
    const wanted = this.at + bytes;
    if (wanted <= this.bytes.length) return;
    const most = this.#most + SLACK;
    if (wanted > most) throw this.#tooLarge();
    const grown = new Uint8Array(Math.min(most, Math.max(wanted, this.bytes.length * 2)));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
  }

  #tooLarge(): WireError {
    return new WireError(
      'payload-too-large',
      `the payload would have more than ${this.#most} bytes; write fewer events`,
    );
  }

  nil(): void {
    this.#byte(0xc0);
  }

  bool(value: boolean): void {
    this.#byte(value ? 0xc3 : 0xc2);
  }

  #byte(value: number): void {
    this.need(1);
    this.bytes[this.at++] = value;
  }

  /** Bytes that are MessagePack already. */
  raw(bytes: Uint8Array): void {
    this.need(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  array(items: number): void {
    this.#counted(items, 0x90, 0xdc);
  }

  map(pairs: number): void {
    this.#counted(pairs, 0x80, 0xde);
  }

  /** The header of a list or map whose count is not known yet; `setCount` at its place fills it in. */
  wideHeader(isMap: boolean): void {
    this.need(5);
    this.#sized32(isMap ? 0xdf : 0xdd, 0);
  }

  setCount(header: number, count: number): void {
    this.view.setUint32(header + 1, count);
  }

  #counted(count: number, short: number, wide: number): void {
    this.need(5);
    if (count < 16) this.bytes[this.at++] = short | count;
    else if (count < 0x1_0000) this.#sized16(wide, count);
    else this.#sized32(wide + 1, count);
  }

  #sized16(head: number, value: number): void {
    this.bytes[this.at] = head;
    this.view.setUint16(this.at + 1, value);
    this.at += 3;
  }

  #sized32(head: number, value: number): void {
    this.bytes[this.at] = head;
    this.view.setUint32(this.at + 1, value);
    this.at += 5;
  }

  /** An unsigned 64-bit integer by its halves. */
  uint64(low: number, high: number): void {
    this.need(9);
    if (high === 0) {
      if (low < 0x80) this.bytes[this.at++] = low;
      else if (low < 0x100) {
        this.bytes[this.at] = 0xcc;
        this.bytes[this.at + 1] = low;
        this.at += 2;
      } else if (low < 0x1_0000) this.#sized16(0xcd, low);
      else this.#sized32(0xce, low);
      return;
    }
    this.bytes[this.at] = 0xcf;
    this.view.setUint32(this.at + 1, high);
    this.view.setUint32(this.at + 5, low);
    this.at += 9;
  }

  /** @throws {WireError} `unwritable` beyond 64 bits */
  big(value: bigint): void {
    if (value < MIN_INT64 || value > MAX_UINT64) throw unwritable(`${value} has more than 64 bits`);
    if (value >= 0n) this.uint64(Number(value & 0xffff_ffffn), Number(value >> 32n));
    else if (value >= BigInt(Number.MIN_SAFE_INTEGER)) this.number(Number(value));
    else {
      this.need(9);
      this.bytes[this.at] = 0xd3;
      this.view.setBigInt64(this.at + 1, value);
      this.at += 9;
    }
  }

  /** An unsigned 64-bit field. @throws {WireError} `unwritable` */
  unsigned(value: bigint, field: string): void {
    if (value < 0n || value > MAX_UINT64) throw unwritable(`${field} ${value} is no unsigned 64-bit integer`);
    this.big(value);
  }

  /** An unsigned 32-bit field. @throws {WireError} `unwritable` */
  uint32(value: number, field: string): void {
    if (value >>> 0 !== value) throw unwritable(`${field} ${value} is no unsigned 32-bit integer`);
    this.uint64(value, 0);
  }

  /** A number: whole ones as integers, others as floats of 64 bits. */
  number(value: number): void {
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
      if (value >= 0) {
        this.uint64(value >>> 0, Math.floor(value / WORD));
        return;
      }
      this.#negative(value);
      return;
    }
    this.float64(value);
  }

  float64(value: number): void {
    this.need(9);
    this.bytes[this.at] = 0xcb;
    this.view.setFloat64(this.at + 1, value);
    this.at += 9;
  }

  #negative(value: number): void {
    this.need(9);
    if (value >= -32) this.bytes[this.at++] = value & 0xff;
    else if (value >= -0x80) {
      this.bytes[this.at] = 0xd0;
      this.view.setInt8(this.at + 1, value);
      this.at += 2;
    } else if (value >= -0x8000) this.#sized16(0xd1, value);
    else if (value >= -0x8000_0000) this.#sized32(0xd2, value);
    else {
      this.bytes[this.at] = 0xd3;
      this.view.setBigInt64(this.at + 1, BigInt(value));
      this.at += 9;
    }
  }

  text(text: string): void {
    if (text.length > SHORT_TEXT) {
      const encoded = utf8.encode(text);
      this.need(5 + encoded.length);
      this.#textHeader(encoded.length);
      this.raw(encoded);
      return;
    }
    // Written behind the widest header that it can need, then moved to its own.
    const most = text.length * 3;
    this.need(5 + most);
    const start = this.at;
    const { written } = utf8.encodeInto(text, this.bytes.subarray(start + 5, start + 5 + most));
    this.#textHeader(written);
    this.bytes.copyWithin(this.at, start + 5, start + 5 + written);
    this.at += written;
  }

  #textHeader(length: number): void {
    if (length < 32) this.bytes[this.at++] = 0xa0 | length;
    else if (length < 0x100) {
      this.bytes[this.at] = 0xd9;
      this.bytes[this.at + 1] = length;
      this.at += 2;
    } else if (length < 0x1_0000) this.#sized16(0xda, length);
    else this.#sized32(0xdb, length);
  }

  binary(value: Uint8Array): void {
    this.need(5 + value.length);
    if (value.length < 0x100) {
      this.bytes[this.at] = 0xc4;
      this.bytes[this.at + 1] = value.length;
      this.at += 2;
    } else if (value.length < 0x1_0000) this.#sized16(0xc5, value.length);
    else this.#sized32(0xc6, value.length);
    this.bytes.set(value, this.at);
    this.at += value.length;
  }
}

export function unwritable(text: string): WireError {
  return new WireError('unwritable', text);
}
