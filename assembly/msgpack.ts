// A MessagePack reader over linear memory: a cursor, an end, and a verdict that stays once the bytes are bad. It never reads past the
// end: headers are read whole only because the input has guard bytes behind it, and every length is held against what is left
// before it is believed. It allocates nothing and does not recurse, so depth costs nothing.
let at: usize = 0;
let end: usize = 0;
let bad: bool = false;
let textAt: usize = 0; // the last text read
let textLength: u32 = 0;

export function open(from: usize, length: u32): void {
  at = from;
  end = from + length;
  bad = false;
}
/** True while everything read so far was well-formed and inside the input. */
@inline export function good(): bool { return !bad && at <= end; }
@inline export function atEnd(): bool { return at == end; }
/** Where the next value starts, for a caller that reads the plainest values by itself … */
@inline export function position(): usize { return at; }
@inline export function limit(): usize { return end; }
/** … and hands the cursor back. A position behind the end makes the verdict bad. */
@inline export function seek(to: usize): void { at = to; }
@inline export function lastText(): usize { return textAt; }
@inline export function lastLength(): u32 { return textLength; }
@inline function head(): u32 { return <u32>load<u8>(at); }
@inline function big16(from: usize): u32 { return <u32>bswap<u16>(load<u16>(from)); }
@inline function big32(from: usize): u32 { return bswap<u32>(load<u32>(from)); }
@inline function left(): u32 { return at < end ? <u32>(end - at) : 0; }
/** Moves over a header of `header` bytes and `body` more. */
@inline function pass(header: u32, body: u32): void {
  const rest = left();
  if (header > rest || body > rest - header) bad = true;
  else at += <usize>header + body;
}

/** Skips one value of any type and depth. */
export function skip(): void {
  let values: u64 = 1;
  while (values) {
    if (bad || at >= end) {
      bad = true;
      return;
    }
    values--;
    const tag = head();
    if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) at++;
    else if ((tag & 0xe0) == 0xa0) pass(1, tag & 31);
    else if ((tag & 0xf0) == 0x80) {
      at++;
      values += <u64>((tag & 15) * 2);
    } else if ((tag & 0xf0) == 0x90) {
      at++;
      values += <u64>(tag & 15);
    } else {
      switch (tag) {
        case 0xcc: case 0xd0: pass(2, 0); break;
        case 0xcd: case 0xd1: pass(3, 0); break;
        case 0xca: case 0xce: case 0xd2: pass(5, 0); break;
        case 0xcb: case 0xcf: case 0xd3: pass(9, 0); break;
        case 0xc4: case 0xd9: pass(2, <u32>load<u8>(at, 1)); break;
        case 0xc5: case 0xda: pass(3, big16(at + 1)); break;
        case 0xc6: case 0xdb: pass(5, big32(at + 1)); break;
        case 0xc7: pass(3, <u32>load<u8>(at, 1)); break;
        case 0xc8: pass(4, big16(at + 1)); break;
        case 0xc9: pass(6, big32(at + 1)); break;
        case 0xd4: pass(3, 0); break;
        case 0xd5: pass(4, 0); break;
        case 0xd6: pass(6, 0); break;
        case 0xd7: pass(10, 0); break;
        case 0xd8: pass(18, 0); break;
        case 0xdc: values += <u64>big16(at + 1); pass(3, 0); break;
        case 0xdd: values += <u64>big32(at + 1); pass(5, 0); break;
        case 0xde: values += <u64>big16(at + 1) * 2; pass(3, 0); break;
        case 0xdf: values += <u64>big32(at + 1) * 2; pass(5, 0); break;
        default: bad = true; return;
      }
    }
  }
}
/** Length of the array that starts here, -1 when something else does (nothing is read then). */
export function array(): i64 {
  const tag = at < end ? head() : 0xc1;
  if ((tag & 0xf0) == 0x90) {
    at++;
    return <i64>(tag & 15);
  }
  return sized(tag, 0xdc);
}
/** Number of pairs of the map that starts here, -1 when something else does. */
export function map(): i64 {
  const tag = at < end ? head() : 0xc1;
  if ((tag & 0xf0) == 0x80) {
    at++;
    return <i64>(tag & 15);
  }
  return sized(tag, 0xde);
}
@inline function sized(tag: u32, first: u32): i64 {
  if (tag != first && tag != first + 1) return -1;
  const size = tag == first ? <i64>big16(at + 1) : <i64>big32(at + 1);
  pass(tag == first ? 3 : 5, 0);
  return size;
}
/** Reads the text that starts here into lastText/lastLength; false when something else starts here (nothing is read then). */
@inline export function text(): bool {
  const tag = at < end ? head() : 0xc1;
  let header: u32;
  if ((tag & 0xe0) == 0xa0) {
    header = 1;
    textLength = tag & 31;
  } else if (tag == 0xd9) {
    header = 2;
    textLength = <u32>load<u8>(at, 1);
  } else if (tag == 0xda) {
    header = 3;
    textLength = big16(at + 1);
  } else if (tag == 0xdb) {
    header = 5;
    textLength = big32(at + 1);
  } else return false;
  textAt = at + header;
  pass(header, textLength);
  return true;
}
/** True, and read, when nil starts here. */
@inline export function nil(): bool {
  if (at >= end || head() != 0xc0) return false;
  at++;
  return true;
}
/** True when an integer starts here (nothing is read). */
@inline export function integer(): bool {
  const tag = at < end ? head() : 0xc1;
  return tag < 0x80 || tag >= 0xe0 || (tag >= 0xcc && tag <= 0xd3);
}
