// Z85 (ZeroMQ RFC 32), the text form of CURVE keys: five characters, most significant first, for four bytes, big endian.
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#';
const BASE = 85;
const CHARACTERS = 5;
const BYTES = 4;

/** The bytes of a text; null when it is none of Z85. */
export function decodeZ85(text: string): Uint8Array | null {
  if (text.length % CHARACTERS !== 0) return null;
  const bytes = new Uint8Array((text.length / CHARACTERS) * BYTES);
  const view = new DataView(bytes.buffer);
  for (let group = 0; group < text.length / CHARACTERS; group++) {
    let value = 0;
    for (const character of text.slice(group * CHARACTERS, (group + 1) * CHARACTERS)) {
      const digit = DIGITS.indexOf(character);
      if (digit < 0) return null;
      value = value * BASE + digit;
    }
    if (value >= 2 ** 32) return null;
    view.setUint32(group * BYTES, value);
  }
  return bytes;
}
