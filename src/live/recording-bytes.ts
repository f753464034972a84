// Texts of recordings and captures to bytes, in any JavaScript engine: base64 (RFC 4648, padded) and lowercase hexadecimal digits.

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const PAD = '=';
/** What stands for no digit: above every digit's value, and so are all values that are or-ed with it. */
const NONE = 0xff;

/** Values by character code; codes past the table are no digits either. */
function valuesOf(digits: string): Uint8Array {
  const values = new Uint8Array(0x80).fill(NONE);
  for (let value = 0; value < digits.length; value++) values[digits.charCodeAt(value)] = value;
  return values;
}

const BASE64_VALUES = valuesOf(BASE64);
const HEX_VALUES = valuesOf('0123456789abcdef');

/** The bytes of a padded base64 text; null when it is none. */
export function bytesOfBase64(text: string): Uint8Array | null {
  const { length } = text;
  if (length % 4 !== 0) return null;
  const padding = text.endsWith(PAD + PAD) ? 2 : text.endsWith(PAD) ? 1 : 0;
  const bytes = new Uint8Array((length / 4) * 3 - padding);
  const digits = length - padding;
  let seen = 0;
  let at = 0;
  const value = (place: number): number => (place < digits ? (BASE64_VALUES[text.charCodeAt(place)] ?? NONE) : 0);
  for (let place = 0; place < length; place += 4) {
    const a = value(place);
    const b = value(place + 1);
    const c = value(place + 2);
    const d = value(place + 3);
    seen |= a | b | c | d;
    // Writes past the end, which padding leaves out, have no effect.
    bytes[at++] = (a << 2) | (b >> 4);
    bytes[at++] = (b << 4) | (c >> 2);
    bytes[at++] = (c << 6) | d;
  }
  return seen < BASE64.length ? bytes : null;
}

/** The bytes of a text of lowercase hexadecimal digits; null when it is none. */
export function bytesOfHex(text: string): Uint8Array | null {
  if (text.length % 2 !== 0) return null;
  const bytes = new Uint8Array(text.length / 2);
  let seen = 0;
  for (let at = 0; at < bytes.length; at++) {
    const high = HEX_VALUES[text.charCodeAt(2 * at)] ?? NONE;
    const low = HEX_VALUES[text.charCodeAt(2 * at + 1)] ?? NONE;
    seen |= high | low;
    bytes[at] = (high << 4) | low;
  }
  return seen < 16 ? bytes : null;
}
