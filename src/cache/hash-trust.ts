// Whether the engines hash as their contract says. Derived digests may be credited to a rank only once one of its own events has agreed with one: the
// store may have been filled under another seed, and a rank that hashes otherwise could restore nothing of it. One event that disagrees ends derivation
// until the contract changes. What a hash has besides tokens is proven by itself: a release may hash LoRA requests otherwise, and plain ones not.

/** What a request's, or an event's, hashes cover: tokens, and perhaps a LoRA name or a cache salt too. As bits. */
export const PLAIN = 1;
export const LORA = 2;
export const SALT = 4;

/** Those bits for names that may be empty. */
export function kindsOf(loraName: string | null | undefined, salt: string | null | undefined): number {
  return PLAIN | (loraName ? LORA : 0) | (salt ? SALT : 0);
}

/** Proofs of one contract's admitted ranks, by publisher key. */
export class HashTrust {
  /** The caller vouches for rule and seed: no rank has to prove anything. */
  readonly #vouched: boolean;
  readonly #proven = new Map<string, number>();
  #admitted: ReadonlySet<string>;
  /** What all of them have proven; null when it must be found out anew. */
  #common: number | null = null;
  #refuted: string | null = null;

  constructor(vouched: boolean, admitted: ReadonlySet<string>) {
    this.#vouched = vouched;
    this.#admitted = admitted;
  }

  /** Which rank disagreed, and how, as a sentence; null while none has. */
  get refuted(): string | null {
    return this.#refuted;
  }

  /** Ranks that have proven something. */
  get provenRanks(): number {
    return this.#proven.size;
  }

  /** An event of an admitted rank agreed. */
  agree(rank: string, kinds: number): void {
    const before = this.#proven.get(rank) ?? 0;
    if ((before | kinds) === before) return;
    this.#proven.set(rank, before | kinds);
    this.#common = null;
  }

  /** An event disagreed. The first one is remembered. */
  refute(text: string): void {
    this.#refuted ??= text;
  }

  /** Whether the rank hashes such requests as derived. */
  proves(rank: string, kinds: number): boolean {
    if (this.#refuted !== null) return false;
    return this.#vouched || ((this.#proven.get(rank) ?? 0) & kinds) === kinds;
  }

  /** Whether all admitted ranks do; false where there are none, unless vouched for. */
  proveAll(kinds: number): boolean {
    if (this.#refuted !== null) return false;
    if (this.#vouched) return true;
    this.#common ??= this.#provenByAll();
    return (this.#common & kinds) === kinds;
  }

  /** The rank restarted: another process must prove itself anew. */
  forget(rank: string): void {
    this.#proven.delete(rank);
    this.#common = null;
  }

  /** Other ranks are admitted now; those that are not any more are forgotten. */
  admit(admitted: ReadonlySet<string>): void {
    this.#admitted = admitted;
    for (const rank of this.#proven.keys()) if (!admitted.has(rank)) this.#proven.delete(rank);
    this.#common = null;
  }

  #provenByAll(): number {
    let common = this.#admitted.size > 0 ? -1 : 0;
    for (const rank of this.#admitted) common &= this.#proven.get(rank) ?? 0;
    return common;
  }
}
