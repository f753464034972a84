// De-duplication by reference counts (spec/kv-events.md 4.2): an engine may hold a block several times, and announces each time that it enters and
// leaves. Stores always pass, since they also say what comes behind what, and whether it is eligible; a removal passes when the last reference goes.
//
// One instance a rank. All memory is reserved at start: an open-addressing table of 12 bytes a place, at most half full, with deletion by moving back
// what probing put behind. What is beyond the cap is not tracked, so its removals pass: readers may lose a block too early, and never keep one too long.
import { ConfigError } from '../../../errors.js';
import type { Tier } from '../../../events/tiers.js';
import type { ResidencyDomain } from '../../../wire/envelope/types.js';
import type { Draft } from './draft.js';

/** Blocks that are tracked: 8 M tokens at 16 a block, more than a rank's GPU holds; 12 MiB. */
export const DEFAULT_TRACKED_BLOCKS = 524_288;
const MOST_TRACKED_BLOCKS = 1 << 24;
const PLACES_A_BLOCK = 2;
/** Hashes that are made into words at a time. */
const SCRATCH_BLOCKS = 1024;
/** Up to so many a loop is cheaper than a view. */
const FEW_BLOCKS = 16;

const TIER_CODE: Readonly<Record<Tier, number>> = { device: 0, host_pinned: 1, disk: 2, external: 3 };
const OWNER_SCOPE = 4;
// A place's last word: tier and domain in its low bits, the count above. A count is never 0 there, so that 0 means free.
const SCOPE_BITS = 3;
const SCOPE_MASK = (1 << SCOPE_BITS) - 1;
const ONE = 1 << SCOPE_BITS;
/** Beyond, further stores are not counted, so that removals pass too early rather than never. */
const MOST_REFERENCES = 2 ** (32 - SCOPE_BITS) - 1;

/** Counts since it was made, and what is in use. */
export interface DedupStats {
  /** Blocks tracked now, and the most. */
  readonly tracked: number;
  readonly cap: number;
  /** Removals of blocks that did not pass, for other references were left. */
  readonly suppressed: number;
  /** Stores that were not tracked, since the table was full. */
  readonly untracked: number;
  readonly memoryBytes: number;
}

/** References of one rank, by tier, domain and external hash. */
export class RefCounts {
  readonly #cap: number;
  readonly #mask: number;
  /** Hashes as pairs of words. */
  readonly #words: Uint32Array;
  readonly #counts: Uint32Array;
  readonly #scratchLongs = new BigUint64Array(SCRATCH_BLOCKS);
  readonly #scratch = new Uint32Array(this.#scratchLongs.buffer);
  #tracked = 0;
  #suppressed = 0;
  #untracked = 0;

  /** @throws ConfigError `publish-tracked` */
  constructor(cap = DEFAULT_TRACKED_BLOCKS) {
    if (!Number.isInteger(cap) || cap < 1 || cap > MOST_TRACKED_BLOCKS) {
      throw new ConfigError(
        'publish-tracked',
        `tracked blocks is ${cap}; give a whole number from 1 to ${MOST_TRACKED_BLOCKS} (default ${DEFAULT_TRACKED_BLOCKS}).`,
      );
    }
    const places = 2 ** Math.ceil(Math.log2(cap * PLACES_A_BLOCK));
    this.#cap = cap;
    this.#mask = places - 1;
    this.#words = new Uint32Array(places * 2);
    this.#counts = new Uint32Array(places);
  }

  /** Takes an event in; what of it goes on, null when nothing does. */
  pass(draft: Draft): Draft | null {
    const { data, tier, domain } = draft;
    if (data.kind === 'cleared') {
      this.#clear(domain);
      return draft;
    }
    const scope = scopeOf(tier, domain);
    const { hashes } = data;
    if (data.kind === 'stored') {
      for (let from = 0; from < hashes.length; from += SCRATCH_BLOCKS) {
        const count = this.#read(hashes, from);
        for (let at = 0; at < count; at++) this.#add(this.#scratch[2 * at]!, this.#scratch[2 * at + 1]!, scope);
      }
      return hashes.length === 0 ? null : draft;
    }
    // Mostly all pass, so that those that do are copied only from the first on that does not.
    let passed: BigUint64Array | null = null;
    let kept = 0;
    for (let from = 0; from < hashes.length; from += SCRATCH_BLOCKS) {
      const count = this.#read(hashes, from);
      for (let at = 0; at < count; at++) {
        if (!this.#drop(this.#scratch[2 * at]!, this.#scratch[2 * at + 1]!, scope)) passed ??= hashes.slice();
        else {
          if (passed !== null) passed[kept] = hashes[from + at]!;
          kept++;
        }
      }
    }
    if (kept === 0) return null;
    return passed === null ? draft : { ...draft, data: { kind: 'removed', hashes: passed.slice(0, kept) } };
  }

  /** Forgets everything. */
  reset(): void {
    this.#clear(null);
  }

  stats(): DedupStats {
    return {
      tracked: this.#tracked,
      cap: this.#cap,
      suppressed: this.#suppressed,
      untracked: this.#untracked,
      memoryBytes: this.#words.byteLength + this.#counts.byteLength,
    };
  }

  /** Makes words of the next hashes; how many. A view of each event's own array would cost more than all that is done with it. */
  #read(hashes: BigUint64Array, from: number): number {
    const count = Math.min(SCRATCH_BLOCKS, hashes.length - from);
    if (count > FEW_BLOCKS) this.#scratchLongs.set(hashes.subarray(from, from + count));
    else for (let at = 0; at < count; at++) this.#scratchLongs[at] = hashes[from + at]!;
    return count;
  }

  #add(low: number, high: number, scope: number): void {
    const place = this.#find(low, high, scope);
    const count = this.#counts[place]!;
    if (count !== 0) {
      if (count >>> SCOPE_BITS < MOST_REFERENCES) this.#counts[place] = count + ONE;
    } else if (this.#tracked >= this.#cap) {
      this.#untracked++;
    } else {
      this.#words[2 * place] = low;
      this.#words[2 * place + 1] = high;
      this.#counts[place] = ONE | scope;
      this.#tracked++;
    }
  }

  /** One reference less; true when none is left, or none was known. */
  #drop(low: number, high: number, scope: number): boolean {
    const place = this.#find(low, high, scope);
    const count = this.#counts[place]!;
    if (count === 0) return true;
    if (count >>> SCOPE_BITS > 1) {
      this.#counts[place] = count - ONE;
      this.#suppressed++;
      return false;
    }
    this.#free(place);
    return true;
  }

  /** Where it stands, or the free place where it would. */
  #find(low: number, high: number, scope: number): number {
    let place = homeOf(low, high, scope) & this.#mask;
    for (;;) {
      const count = this.#counts[place]!;
      if (count === 0) return place;
      if (this.#words[2 * place] === low && this.#words[2 * place + 1] === high && (count & SCOPE_MASK) === scope)
        return place;
      place = (place + 1) & this.#mask;
    }
  }

  /** Frees a place; what stands behind it because it was taken moves up. */
  #free(freed: number): void {
    const words = this.#words;
    const counts = this.#counts;
    let hole = freed;
    for (let place = (hole + 1) & this.#mask; counts[place] !== 0; place = (place + 1) & this.#mask) {
      const home = homeOf(words[2 * place]!, words[2 * place + 1]!, counts[place]! & SCOPE_MASK) & this.#mask;
      // It may move where its own place does not lie between hole and place.
      if (((place - home) & this.#mask) < ((place - hole) & this.#mask)) continue;
      words[2 * hole] = words[2 * place]!;
      words[2 * hole + 1] = words[2 * place + 1]!;
      counts[hole] = counts[place]!;
      hole = place;
    }
    counts[hole] = 0;
    this.#tracked--;
  }

  /** Forgets a domain, or all of the rank. */
  #clear(domain: ResidencyDomain | null): void {
    if (this.#tracked === 0) return;
    if (domain === null) {
      this.#counts.fill(0);
      this.#tracked = 0;
      return;
    }
    const owned = domain === 'cache_owner' ? OWNER_SCOPE : 0;
    // From a free place on, so that what moves up never comes from a part that was looked at already.
    const start = this.#counts.indexOf(0);
    for (let step = 1; step <= this.#mask; ) {
      const place = (start + step) & this.#mask;
      const count = this.#counts[place]!;
      if (count !== 0 && (count & OWNER_SCOPE) === owned) this.#free(place);
      else step++;
    }
  }
}

function scopeOf(tier: Tier, domain: ResidencyDomain | null): number {
  return TIER_CODE[tier] | (domain === 'cache_owner' ? OWNER_SCOPE : 0);
}

/** Mixes all bits into the low ones (the finish of MurmurHash3, over three words). */
function homeOf(low: number, high: number, scope: number): number {
  let mixed = Math.imul(low ^ Math.imul(high, 0x85eb_ca6b), 0x9e37_79b1) + Math.imul(scope + 1, 0xc2b2_ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
