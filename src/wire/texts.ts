// Texts that come again and again (field names, media, kinds, adapter names), known by their bytes: compared four at a time, and handed
// out as one string each without making a new one.

const WORD = 4;

/** A text and its UTF-8, to be found in payloads. */
export class KnownText {
  readonly text: string;
  readonly length: number;
  /** Bytes in words of four, the last one overlapping; shorter texts byte by byte. */
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;

  constructor(text: string, bytes: Uint8Array) {
    this.text = text;
    this.length = bytes.length;
    this.#bytes = bytes;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#words = Uint32Array.from({ length: bytes.length < WORD ? 0 : Math.ceil(bytes.length / WORD) }, (_, i) =>
      view.getUint32(Math.min(i * WORD, bytes.length - WORD)),
    );
  }

  /** Whether these are the `length` bytes that start at `from`. */
  is(payload: DataView, from: number, length: number): boolean {
    if (length !== this.length) return false;
    if (length < WORD) {
      for (let i = 0; i < length; i++) if (this.#bytes[i] !== payload.getUint8(from + i)) return false;
      return true;
    }
    const words = this.#words;
    const last = words.length - 1;
    for (let i = 0; i < last; i++) if (words[i] !== payload.getUint32(from + i * WORD)) return false;
    return words[last] === payload.getUint32(from + length - WORD);
  }
}

const PLACES = 512;
/** Longer texts are decoded each time. */
const MAX_BYTES = 256;

/** Decodes UTF-8, remembering: a direct-mapped table, where what maps to a taken place replaces what was there. */
export class TextTable {
  readonly #known: (KnownText | undefined)[] = new Array(PLACES).fill(undefined);
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  /** The text of the `length` bytes at `from`, null when they are no UTF-8. */
  of(payload: DataView, from: number, length: number): string | null {
    if (length === 0) return '';
    const place =
      (length +
        payload.getUint8(from) * 7 +
        payload.getUint8(from + (length >> 1)) * 31 +
        payload.getUint8(from + length - 1) * 127) &
      (PLACES - 1);
    const known = this.#known[place];
    if (known?.is(payload, from, length)) return known.text;
    return this.#decode(payload, from, length, place);
  }

  #decode(payload: DataView, from: number, length: number, place: number): string | null {
    const bytes = new Uint8Array(payload.buffer, payload.byteOffset + from, length).slice();
    try {
      const text = this.#utf8.decode(bytes);
      if (length <= MAX_BYTES) this.#known[place] = new KnownText(text, bytes);
      return text;
    } catch {
      return null;
    }
  }
}
