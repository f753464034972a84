// Texts that come again and again (media, kinds, adapter names) as one string each, found by their bytes without making a new one.
// A direct-mapped table of bounded size: whatever maps to a taken place replaces what was there.

const PLACES = 512;
/** Longer texts are decoded each time. */
const MAX_BYTES = 256;

interface Entry {
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** Decodes UTF-8, remembering. */
export class TextTable {
  readonly #entries: (Entry | undefined)[] = new Array(PLACES).fill(undefined);
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  /** The text of `bytes[from …from + length)`, null when that is no UTF-8. */
  of(bytes: Uint8Array, from: number, length: number): string | null {
    if (length === 0) return '';
    if (length > MAX_BYTES) return this.#decode(bytes, from, length);
    const place =
      (length + bytes[from]! * 7 + bytes[from + (length >> 1)]! * 31 + bytes[from + length - 1]! * 127) % PLACES;
    const known = this.#entries[place];
    if (known !== undefined && sameBytes(known.bytes, bytes, from, length)) return known.text;
    const text = this.#decode(bytes, from, length);
    if (text !== null) this.#entries[place] = { bytes: bytes.slice(from, from + length), text };
    return text;
  }

  #decode(bytes: Uint8Array, from: number, length: number): string | null {
    try {
      return this.#utf8.decode(bytes.subarray(from, from + length));
    } catch {
      return null;
    }
  }
}

/** Whether `known` are the `length` bytes that start at `from`. */
export function sameBytes(known: Uint8Array, bytes: Uint8Array, from: number, length: number): boolean {
  if (known.length !== length) return false;
  for (let i = 0; i < length; i++) if (known[i] !== bytes[from + i]) return false;
  return true;
}
