// Key prefixes by their bytes: a small hash table, so that a key from the network needs no text. Prefixes come from a validated contract, keys
// from anyone: a key that hashes like a prefix costs one comparison.

const WORD_BYTES = 4;
const MULTIPLIER = 0x9e3779b1; // 2^32 divided by the golden ratio, made odd
const PLACES_A_PREFIX = 4;

/** Ids of prefixes, which are their positions in the list. */
export class KeyPrefixes {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #starts: Uint32Array;
  readonly #lengths: Uint32Array;
  /** By hash: id + 1, 0 = none. */
  readonly #table: Uint16Array;
  readonly #mask: number;

  constructor(texts: readonly string[]) {
    const encoded = texts.map((text) => new TextEncoder().encode(text));
    this.#bytes = new Uint8Array(encoded.reduce((sum, { length }) => sum + length, 0));
    this.#view = new DataView(this.#bytes.buffer);
    this.#starts = new Uint32Array(encoded.length);
    this.#lengths = Uint32Array.from(encoded, ({ length }) => length);
    let places = 1;
    while (places < encoded.length * PLACES_A_PREFIX) places *= 2;
    this.#table = new Uint16Array(places);
    this.#mask = places - 1;
    let start = 0;
    for (const [id, bytes] of encoded.entries()) {
      this.#bytes.set(bytes, start);
      this.#starts[id] = start;
      let place = hashOf(this.#view, start, bytes.length) & this.#mask;
      while (this.#table[place] !== 0) place = (place + 1) & this.#mask;
      this.#table[place] = id + 1;
      start += bytes.length;
    }
  }

  /** The id of the prefix that is bytes `from` … `from + length` of the view, −1 where there is none. */
  find(view: DataView, from: number, length: number): number {
    let place = hashOf(view, from, length) & this.#mask;
    for (let entry = this.#table[place]!; entry !== 0; entry = this.#table[place]!) {
      const id = entry - 1;
      if (this.#lengths[id] === length && equal(this.#view, this.#starts[id]!, view, from, length)) return id;
      place = (place + 1) & this.#mask;
    }
    return -1;
  }
}

function hashOf(view: DataView, from: number, length: number): number {
  let hash = length;
  let at = from;
  const words = from + length - (length % WORD_BYTES);
  for (; at < words; at += WORD_BYTES) hash = mix(hash ^ view.getUint32(at, true));
  for (; at < from + length; at++) hash = mix(hash ^ view.getUint8(at));
  return hash;
}
function mix(hash: number): number {
  const product = Math.imul(hash, MULTIPLIER);
  return product ^ (product >>> 15);
}

function equal(a: DataView, aFrom: number, b: DataView, bFrom: number, length: number): boolean {
  const words = length - (length % WORD_BYTES);
  let at = 0;
  for (; at < words; at += WORD_BYTES) if (a.getUint32(aFrom + at) !== b.getUint32(bFrom + at)) return false;
  for (; at < length; at++) if (a.getUint8(aFrom + at) !== b.getUint8(bFrom + at)) return false;
  return true;
}
