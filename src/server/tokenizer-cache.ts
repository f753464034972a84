// Tokens of prompts that workers were asked for, the ones used last. Bounded by entries and by tokens, for one prompt may be as long as ten thousand
// others. Keys are hashes: no text of a request is kept.

/** Tokens that are kept: 64 MiB. */
export const MAX_CACHED_TOKENS = 16 << 20;
/** Longest time that an answer is believed. Templates may write the date, and a worker may come back with another tokenizer. */
export const MAX_CACHED_MS = 300_000;

interface Entry {
  readonly tokens: Uint32Array;
  readonly until: number;
}

export class TokenCache {
  readonly #mostEntries: number;
  readonly #mostTokens: number;
  /** From the one that was not used for longest. */
  readonly #entries = new Map<string, Entry>();
  #tokens = 0;

  constructor(mostEntries: number, mostTokens = MAX_CACHED_TOKENS) {
    this.#mostEntries = mostEntries;
    this.#mostTokens = mostTokens;
  }

  get entries(): number {
    return this.#entries.size;
  }

  get tokens(): number {
    return this.#tokens;
  }

  /** What is kept under a key; null for nothing. The array is shared: nobody writes to it. */
  get(key: string, now: number): Uint32Array | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    this.#entries.delete(key);
    if (entry.until <= now) {
      this.#tokens -= entry.tokens.length;
      return null;
    }
    this.#entries.set(key, entry);
    return entry.tokens;
  }

  set(key: string, tokens: Uint32Array, now: number): void {
    this.delete(key);
    if (this.#mostEntries === 0 || tokens.length > this.#mostTokens) return;
    this.#entries.set(key, { tokens, until: now + MAX_CACHED_MS });
    this.#tokens += tokens.length;
    while (this.#entries.size > this.#mostEntries || this.#tokens > this.#mostTokens) {
      this.delete(this.#entries.keys().next().value!);
    }
  }

  delete(key: string): void {
    this.#tokens -= this.#entries.get(key)?.tokens.length ?? 0;
    this.#entries.delete(key);
  }

  /** Drops all whose keys begin so. */
  deleteAll(prefix: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(prefix)) this.delete(key);
  }
}
