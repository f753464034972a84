// Which cache namespace an engine's external hash belongs to, as far as its publisher has told: a stored event without a salt
// inherits the namespace of its parent block, and a hash that was told of two namespaces, or once with and once without, is
// ambiguous from then on (spec/kv-events.md 1.11).
//
// Publishers are strangers, so everything here is bounded, by ageing in halves: what is told goes to the current half; when
// that is full, the previous half is dropped and the current one takes its place; what is asked for in the previous half moves
// to the current one. So the least recently used entries go first, roughly, and nothing is ever rehashed. A hash that has aged
// away is a hash of which nothing is known, which is safe; a namespace that nobody told would not be.
//
// A half is one Int32Array, allocated with its first entry, so that a fleet without salts pays nothing. Open addressing, at
// most half of the slots are used; by default a half has 262,144 slots of 16 bytes (4 MiB), and names of at most 8 MiB:
//
//   word | 0                 | 1             | 2              | 3
//        | id of the life    | hash, low     | hash, high     | number of the namespace, 0 = free slot
//
// Words of hashes are signed here: V8 keeps an unsigned one beyond 31 bits as an object wherever a call is not inlined.

import { ConfigError } from '../errors.js';

const SLOT_WORDS = 4;
const LOW = 1;
const HIGH = 2;
const NAME = 3;

/** Longest namespace that is remembered, in UTF-16 units; hashes of a longer one become ambiguous. */
const MAX_NAMESPACE_UNITS = 4096;

/** Bounds of a table; each at least 1. */
export interface NamespaceLimits {
  /** Hashes that one half remembers. */
  readonly hashes: number;
  /** Namespaces that one half names. */
  readonly namespaces: number;
  /** UTF-16 units of one half's namespaces together. */
  readonly units: number;
  /** Ambiguous hashes that one life remembers; with more the whole life is ambiguous. */
  readonly ambiguous: number;
  /** Lives that can be told apart; later ones are ambiguous as a whole. */
  readonly lives: number;
}

const DEFAULT_LIMITS: { -readonly [name in keyof NamespaceLimits]: number } = {
  hashes: 131_072,
  namespaces: 65_535,
  units: 4 * 1024 * 1024,
  ambiguous: 1024,
  lives: 0x7fff_ffff,
};

/** Most that a limit may be. */
const MOST: NamespaceLimits = {
  hashes: 16_777_216,
  namespaces: 1_048_576,
  units: 64 * 1024 * 1024,
  ambiguous: 65_536,
  lives: DEFAULT_LIMITS.lives,
};

/** The limits that were given, the others by default. @throws ConfigError `limits-…` by name. */
function checkedLimits(given: { readonly [name in keyof NamespaceLimits]?: number | undefined }): NamespaceLimits {
  const limits = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(DEFAULT_LIMITS) as (keyof NamespaceLimits)[]) {
    const value = given[name];
    if (value !== undefined) limits[name] = checkedLimit(name, value, MOST[name]);
  }
  return limits;
}

/** A limit that is a whole number from 1 to `most`. @throws ConfigError `limits-…` by name. */
export function checkedLimit(name: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new ConfigError(`limits-${name}`, `limits.${name} is ${value}; give a whole number from 1 to ${most}.`);
}

/** What a table holds and what has happened to it. */
export interface NamespaceStats {
  /** Hashes remembered now, those of lives that are over included until they age away. */
  readonly hashes: number;
  /** Namespaces remembered now. */
  readonly namespaces: number;
  /** Hashes that have become ambiguous so far, and lives that were so from their start. */
  readonly ambiguous: number;
  /** Hashes forgotten so far to keep the bounds. */
  readonly aged: number;
}

/** The answer for a hash whose namespace is contradictory. */
export const AMBIGUOUS: unique symbol = Symbol('ambiguous namespace');

/** One life of a publisher: from its start, or its last clear, to the next. Ambiguous hashes are kept here, apart from ageing. */
class Life {
  readonly id: number;
  /** Whether a hash of this life was ever remembered. */
  tagged = false;
  /** Whether every hash of this life is ambiguous. */
  allAmbiguous = false;
  /** The high words of ambiguous hashes, by low word. */
  readonly #ambiguous = new Map<number, number[]>();
  #count = 0;

  constructor(id: number) {
    this.id = id;
  }

  isAmbiguous(low: number, high: number): boolean {
    if (this.allAmbiguous || this.#count === 0) return this.allAmbiguous;
    return this.#ambiguous.get(low)?.includes(high) ?? false;
  }

  /** Adds a hash that is not yet ambiguous. */
  addAmbiguous(low: number, high: number, limit: number): void {
    if (this.#count === limit) {
      this.allAmbiguous = true;
      this.#ambiguous.clear();
      return;
    }
    const highs = this.#ambiguous.get(low);
    if (highs) highs.push(high);
    else this.#ambiguous.set(low, [high]);
    this.#count++;
  }
}

/** The type only: lives are made by their table, which numbers them. */
export type { Life };

/** One of the two generations of entries: (life, hash) → namespace. */
class Half {
  size = 0;
  /** Namespaces by their number, from 1 on. */
  readonly #names: string[] = [''];
  readonly #numbers = new Map<string, number>();
  #units = 0;
  #lastNumber = 0;
  #slots = new Int32Array(0);
  readonly #limits: NamespaceLimits;
  readonly #seed: number;
  readonly #words: number;

  constructor(limits: NamespaceLimits, seed: number) {
    this.#limits = limits;
    this.#seed = seed;
    // The next power of two from twice as many slots as hashes.
    this.#words = SLOT_WORDS << (32 - Math.clz32(2 * limits.hashes - 1));
  }

  /** Where the entry stands, −1 when it is not here. `mixed` is the key's mix. */
  locate(mixed: number, life: number, low: number, high: number): number {
    if (this.size === 0) return -1;
    const slots = this.#slots;
    for (let at = this.#home(mixed); slots[at + NAME] !== 0; at = this.#after(at)) {
      if (slots[at + LOW] === low && slots[at + HIGH] === high && slots[at] === life) return at;
    }
    return -1;
  }

  nameAt(at: number): string {
    return this.#names[this.#slots[at + NAME]!]!;
  }

  /** Whether an entry of this namespace can be added; always so in an empty half. */
  hasRoomFor(name: string): boolean {
    if (this.size === this.#limits.hashes) return false;
    if (this.#numberOf(name) !== 0) return true;
    return this.#numbers.size < this.#limits.namespaces && this.#units + name.length <= this.#limits.units;
  }

  /** Adds an entry that is not here and has room. */
  add(mixed: number, life: number, low: number, high: number, name: string): void {
    if (this.#slots.length === 0) this.#slots = new Int32Array(this.#words);
    const slots = this.#slots;
    let at = this.#home(mixed);
    while (slots[at + NAME] !== 0) at = this.#after(at);
    slots[at] = life;
    slots[at + LOW] = low;
    slots[at + HIGH] = high;
    slots[at + NAME] = this.#numberOf(name) || this.#intern(name);
    this.size++;
  }

  /** Removes the entry at `at`; entries behind it that probing reaches through it move up. */
  removeAt(at: number): void {
    const slots = this.#slots;
    let hole = at;
    for (let next = this.#after(at); slots[next + NAME] !== 0; next = this.#after(next)) {
      const home = this.#home(mix(this.#seed, slots[next]!, slots[next + LOW]!, slots[next + HIGH]!));
      if (this.#distance(home, next) < this.#distance(hole, next)) continue;
      slots.copyWithin(hole, next, next + SLOT_WORDS);
      hole = next;
    }
    slots[hole + NAME] = 0;
    this.size--;
  }

  clear(): void {
    this.#slots.fill(0);
    this.#names.length = 1;
    this.#numbers.clear();
    this.#units = 0;
    this.size = 0;
  }

  /** The half's own copy of a namespace. Equal texts that are one object compare at once, however long. */
  ownCopy(name: string): string | undefined {
    const number = this.#numberOf(name);
    return number === 0 ? undefined : this.#names[number];
  }

  names(): Iterable<string> {
    return this.#numbers.keys();
  }

  /** The namespace's number, 0 when it has none. Neighbours mostly have the same. */
  #numberOf(name: string): number {
    if (this.#names[this.#lastNumber] === name) return this.#lastNumber;
    const number = this.#numbers.get(name) ?? 0;
    if (number !== 0) this.#lastNumber = number;
    return number;
  }

  #intern(name: string): number {
    const number = this.#names.push(name) - 1;
    this.#numbers.set(name, number);
    this.#units += name.length;
    this.#lastNumber = number;
    return number;
  }

  #home(mixed: number): number {
    return (mixed * SLOT_WORDS) & (this.#words - 1);
  }

  #after(at: number): number {
    return (at + SLOT_WORDS) & (this.#words - 1);
  }

  #distance(from: number, to: number): number {
    return (to - from) & (this.#words - 1);
  }
}

/**
 * Namespaces of hashes, for all publishers. Hashes come as little-endian pairs of unsigned words: hash i of a list is
 * `words[at + 2 * i]` (low) and `words[at + 2 * i + 1]` (high). A life serves only the table that made it.
 */
export class NamespaceTable {
  readonly #limits: NamespaceLimits;
  readonly #longest: number;
  readonly #seed: number;
  #current: Half;
  #previous: Half;
  #lives = 0;
  #ambiguous = 0;
  #aged = 0;

  /** @param seed 32 bits that vary where entries lie, so that no publisher can crowd them; fix it only in tests */
  constructor(limits: Partial<NamespaceLimits> = {}, seed: number = randomSeed()) {
    this.#limits = checkedLimits(limits);
    this.#longest = Math.min(MAX_NAMESPACE_UNITS, this.#limits.units);
    this.#seed = seed;
    this.#current = new Half(this.#limits, seed);
    this.#previous = new Half(this.#limits, seed);
  }

  /** A new life, of which nothing is known. To forget a publisher, or all that it stored, is to take a new life for it. */
  newLife(): Life {
    const life = new Life(this.#lives + 1);
    if (this.#lives < this.#limits.lives) this.#lives++;
    else {
      life.allAmbiguous = true; // no id is left to tell it from others
      this.#ambiguous++;
    }
    return life;
  }

  /** Whether nothing is remembered: no hash has a namespace, and none has ever become ambiguous. */
  get empty(): boolean {
    return this.#current.size === 0 && this.#previous.size === 0 && this.#ambiguous === 0;
  }

  /** The hash's namespace; null when none is known. */
  find(life: Life, low: number, high: number): string | null | typeof AMBIGUOUS {
    return life.isAmbiguous(low | 0, high | 0) ? AMBIGUOUS : this.#recall(life, low | 0, high | 0);
  }

  /**
   * Takes in a stored event's `count` hashes and returns whether one of them is ambiguous, now or since before. Of a store
   * without a namespace (null or empty) hashes are not remembered; those that have one become ambiguous.
   */
  tag(life: Life, words: Uint32Array, at: number, count: number, namespace: string | null): boolean {
    const name = namespace
      ? (this.#current.ownCopy(namespace) ?? this.#previous.ownCopy(namespace) ?? namespace)
      : null;
    let ambiguous = false;
    for (let i = at; i < at + 2 * count; i += 2) {
      if (this.#tagOne(life, words[i]! | 0, words[i + 1]! | 0, name)) ambiguous = true;
    }
    return ambiguous;
  }

  /** Forgets a removed event's `count` hashes, except that ambiguous ones stay so. */
  remove(life: Life, words: Uint32Array, at: number, count: number): void {
    if (!life.tagged) return;
    for (let i = at; i < at + 2 * count; i += 2) this.#forget(life, words[i]! | 0, words[i + 1]! | 0);
  }

  stats(): NamespaceStats {
    return {
      hashes: this.#current.size + this.#previous.size,
      namespaces: new Set([...this.#current.names(), ...this.#previous.names()]).size,
      ambiguous: this.#ambiguous,
      aged: this.#aged,
    };
  }

  /** Returns whether the hash is ambiguous. */
  #tagOne(life: Life, low: number, high: number, name: string | null): boolean {
    if (life.isAmbiguous(low, high)) return true;
    const known = this.#recall(life, low, high);
    if (known === name) return false;
    if (known === null && name !== null && name.length <= this.#longest) {
      life.tagged = true;
      this.#remember(mix(this.#seed, life.id, low, high), life.id, low, high, name);
      return false;
    }
    this.#forget(life, low, high);
    life.addAmbiguous(low, high, this.#limits.ambiguous);
    this.#ambiguous++;
    return true;
  }

  /** The namespace of a hash that is not ambiguous; one found in the previous half moves to the current one. */
  #recall(life: Life, low: number, high: number): string | null {
    if (!life.tagged) return null;
    const mixed = mix(this.#seed, life.id, low, high);
    const at = this.#current.locate(mixed, life.id, low, high);
    if (at >= 0) return this.#current.nameAt(at);
    const before = this.#previous.locate(mixed, life.id, low, high);
    if (before < 0) return null;
    const name = this.#previous.nameAt(before);
    this.#previous.removeAt(before);
    this.#remember(mixed, life.id, low, high, name);
    return name;
  }

  #remember(mixed: number, life: number, low: number, high: number, name: string): void {
    if (!this.#current.hasRoomFor(name)) this.#age();
    this.#current.add(mixed, life, low, high, name);
  }

  #age(): void {
    this.#aged += this.#previous.size;
    [this.#current, this.#previous] = [this.#previous, this.#current];
    this.#current.clear();
  }

  #forget(life: Life, low: number, high: number): void {
    const mixed = mix(this.#seed, life.id, low, high);
    for (const half of [this.#current, this.#previous]) {
      const at = half.locate(mixed, life.id, low, high);
      if (at >= 0) half.removeAt(at);
    }
  }
}

/** 32 bits in which a key's 96 bits and the seed are spread evenly. */
function mix(seed: number, life: number, low: number, high: number): number {
  return scramble(scramble(scramble(seed ^ life) ^ low) ^ high);
}

/** lowbias32 of Chris Wellons' hash-prospector (public domain): a bijection of 32 bits. */
function scramble(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x7feb_352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846c_a68b);
  return mixed ^ (mixed >>> 16);
}

function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}
