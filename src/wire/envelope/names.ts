// Names of fields and variants, found in a payload by their bytes. One list of names for each kind of map; a name's number is its place in the list.
import { KnownText } from '../texts.js';

/** Stands for a name that the reader does not know; such fields are passed over. */
export const UNKNOWN = -1;

const utf8 = new TextEncoder();

export class Names {
  readonly #byLength: { known: KnownText; index: number }[][] = [];

  constructor(names: readonly string[]) {
    for (const [index, name] of names.entries()) {
      const bytes = utf8.encode(name);
      this.#byLength[bytes.length] ??= [];
      this.#byLength[bytes.length]!.push({ known: new KnownText(name, bytes), index });
    }
  }

  /** Which name stands in the `length` bytes at `from`, UNKNOWN for none of them. */
  find(payload: DataView, from: number, length: number): number {
    const candidates = this.#byLength[length];
    if (candidates === undefined) return UNKNOWN;
    for (const { known, index } of candidates) if (known.is(payload, from, length)) return index;
    return UNKNOWN;
  }
}
