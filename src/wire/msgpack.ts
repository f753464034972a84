// MessagePack from strangers. @msgpack/msgpack allocates what a header promises before it has seen the elements, so a few
// bytes can ask for gigabytes; and it gives up on a map key that is no text. Here a payload is first walked without
// allocating: every length must fit what follows, nesting and the number of values that cost memory are bounded. Only
// then is it decoded, with every map key that the reader does not know folded into one. Encoding: the MessagePack
// specification; limits are ours.
import { Decoder, type DecoderOptions, ExtData } from '@msgpack/msgpack';
import { WireError } from '../errors.js';

/** What stands in a decoded map for keys that are not among the reader's names: other texts, numbers, anything else. */
export const UNKNOWN_KEY = '?';

/** Bounds of one payload. */
export interface MsgpackLimits {
  /** Most bytes. */
  readonly bytes: number;
  /** Most containers inside each other. */
  readonly depth: number;
  /** Most arrays, maps, texts, binaries and extensions together: the values that cost memory of their own. */
  readonly objects: number;
}

/**
 * A decoder for payloads whose maps are read by the given key `names` alone. It returns plain values: 64-bit integers are
 * bigints and shorter ones numbers, text is a string, binary a Uint8Array view of the payload, extensions are ExtData,
 * maps are objects; of a repeated key the last counts.
 * @throws {WireError} from the decoder: `payload-too-large`, `payload-malformed` (not exactly one value),
 * `payload-too-complex` (nested too deeply, or too many values), `payload-text` (text that is no UTF-8).
 */
export function boundedDecoder(names: readonly string[], limits: MsgpackLimits): (payload: Uint8Array) => unknown {
  const decoder = new Decoder({
    useBigInt64: true,
    keyDecoder: nameDecoder(names),
    mapKeyConverter: (key) => (typeof key === 'string' ? key : UNKNOWN_KEY),
    // Extensions mean nothing here. The default codec would turn some into dates and fail on others.
    extensionCodec: { tryToEncode: () => null, decode: (data, type) => new ExtData(type, data) },
  });
  const open = new Float64Array(limits.depth);
  return (payload) => {
    checkStructure(payload, limits, open);
    return decoder.decode(payload);
  };
}

/** Finds known names by their bytes; whatever else stands there, `__proto__` included, becomes UNKNOWN_KEY. */
function nameDecoder(names: readonly string[]): NonNullable<DecoderOptions['keyDecoder']> {
  const byLength: { name: string; bytes: Uint8Array }[][] = [];
  for (const name of names) {
    const bytes = new TextEncoder().encode(name);
    byLength[bytes.length] ??= [];
    byLength[bytes.length]!.push({ name, bytes });
  }
  return {
    canBeCached: () => true,
    decode(source, offset, length) {
      for (const { name, bytes } of byLength[length] ?? []) {
        let same = 0;
        while (same < length && bytes[same] === source[offset + same]) same++;
        if (same === length) return name;
      }
      return UNKNOWN_KEY;
    },
  };
}

// First bytes that bound a kind of value.
const RESERVED = 0xc1;
const BIN_8 = 0xc4;
const FLOAT_32 = 0xca;
const FIXEXT_1 = 0xd4;
const STR_8 = 0xd9;
const ARRAY_16 = 0xdc;
const MAP_16 = 0xde;
/** From 0xc0: bytes of a value's fixed part behind its first byte (an extension's type included). */
// biome-ignore format: one line for each eight first bytes
const FIXED_BYTES = [
  0, 0, 0, 0, 0, 0, 0, 1, //  nil, reserved, false, true, bin 8–32, ext 8
  1, 1, 4, 8, 1, 2, 4, 8, //  ext 16–32, float 32–64, uint 8–64
  1, 2, 4, 8, 2, 3, 5, 9, //  int 8–64, fixext 1–8
  17, 0, 0, 0, 0, 0, 0, 0, // fixext 16, str 8–32, array 16–32, map 16–32
];
/** From 0xc0: bytes of the length that stands first behind the first byte. */
// biome-ignore format: one line for each eight first bytes
const LENGTH_BYTES = [
  0, 0, 0, 0, 1, 2, 4, 1,
  2, 4, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 4, 2, 4, 2, 4,
];

/** Walks the payload: one value and nothing behind it, within the limits. `open` holds a number for each open container. */
function checkStructure(bytes: Uint8Array, limits: MsgpackLimits, open: Float64Array): void {
  const end = bytes.length;
  if (end > limits.bytes) {
    throw new WireError('payload-too-large', `the payload has ${end} bytes, at most ${limits.bytes} are read`);
  }
  let at = 0;
  let depth = 0;
  let objects = 0;
  let left = 1; // values still to come in the innermost container
  for (;;) {
    while (left === 0 && depth > 0) left = open[--depth]!;
    if (left === 0) break;
    if (at >= end) throw truncated(end);
    left--;
    const head = bytes[at++]!;
    if (head < 0x80 || head >= 0xe0) continue; // small integer
    let size = 0; // bytes of text, binary or extension; values of a container
    let container = false;
    if (head < 0xc0) {
      container = head < 0xa0;
      size = head < 0x90 ? (head & 0x0f) * 2 : head < 0xa0 ? head & 0x0f : head & 0x1f;
    } else {
      if (head === RESERVED) throw new WireError('payload-malformed', `byte ${at - 1} of the payload is 0xc1`);
      const lengthBytes = LENGTH_BYTES[head - 0xc0]!;
      const fixed = FIXED_BYTES[head - 0xc0]!;
      if (lengthBytes + fixed > end - at) throw truncated(end);
      for (let i = 0; i < lengthBytes; i++) size = size * 0x100 + bytes[at + i]!;
      at += lengthBytes + fixed;
      container = head >= ARRAY_16;
      if (head >= MAP_16) size *= 2;
      if (head < BIN_8 || (head >= FLOAT_32 && head < FIXEXT_1)) continue; // nil, bool, number
    }
    if (size > end - at) throw truncated(end);
    if (++objects > limits.objects) {
      throw new WireError('payload-too-complex', `the payload holds more than ${limits.objects} values`);
    }
    if (!container) {
      if (isText(head)) checkText(bytes.subarray(at, at + size));
      at += size;
      continue;
    }
    if (depth === limits.depth) {
      throw new WireError('payload-too-complex', `the payload nests deeper than ${limits.depth} containers`);
    }
    open[depth++] = left;
    left = size;
  }
  if (at !== end) {
    throw new WireError('payload-malformed', `${end - at} of the payload's ${end} bytes follow its value`);
  }
}

function isText(head: number): boolean {
  return (head & 0xe0) === 0xa0 || (head >= STR_8 && head < ARRAY_16);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The decoder makes some text of any bytes, and drops a byte order mark at the start of a long one. Names must not come to read alike in such
 * ways, so neither is taken.
 */
function checkText(bytes: Uint8Array): void {
  if (bytes.every((byte) => byte < 0x80)) return;
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  try {
    if (utf8.decode(bytes) !== '' && !marked) return;
  } catch {
    // no UTF-8
  }
  throw new WireError('payload-text', 'the payload holds a text that is no UTF-8 or starts with a byte order mark');
}

function truncated(end: number): WireError {
  return new WireError('payload-malformed', `the payload's ${end} bytes end inside a value`);
}
