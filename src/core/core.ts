// One instance of the WebAssembly core behind typed calls. This folder alone knows pointers: what goes in is copied to the core's
// fixed input area, what comes out is read from views that never detach, since the memory never grows.

import type { HashRule } from '../contract/descriptor.js';
import { type BuildName, type CoreExports, globalOf, instantiateBuild } from './builds.js';
import { Derivation } from './derivation.js';
import { type DigestRecords, RECORD_WORDS, sameDigest } from './digest-records.js';
import type { ExtraKeys } from './engine-hash.js';
import { compiledModule, compileModules } from './modules.js';
import type { HashSeed, Numbers } from './numbers.js';
import { encodePlan, type Plan } from './plan.js';
import type { IndexedBlocks } from './prefix-types.js';
import { type CoreStats, readStats } from './stats.js';

/** One stored event as the core learns it from arrays. */
export interface LearnEvent {
  /** External hash of the block before the first, null at a root. */
  readonly parent: bigint | null;
  /** Low 64 bits of each block's engine hash. */
  readonly lows: BigUint64Array;
  /** The whole 32-byte digests back to back, where the event carries them. */
  readonly digests: Uint8Array | null;
  /** A cache namespace is part of the blocks' local hashes. */
  readonly salted: boolean;
}

/** One stored event as the core learns it from the reader's memory, where its blocks have been hashed. */
export interface ReadEvent {
  /** Its hashes are 32-byte digests. */
  readonly wholeDigests: boolean;
  /** Index of the first hash, and of the first local hash. */
  readonly hashesAt: number;
  /** Writes four words: the parent's external hash in two halves, the number of blocks (at most `most`), whether there is a parent. */
  writeHeader(to: Uint32Array, at: number, most: number): number;
}

/** A list of them, each with what was said about it besides. */
export type ReadEvents = readonly { readonly event: ReadEvent }[];

/** What became of a store payload. */
export type StoreOutcome =
  | {
      readonly outcome: 'applied';
      readonly events: number;
      readonly objects: number;
      readonly foreignTenant: number;
      readonly foreignKey: number;
      /** Events among them that cleared everything. */
      readonly clears: number;
      /** Stored and removed events, those of foreign objects among them. */
      readonly saidStored: number;
      readonly saidRemoved: number;
    }
  | { readonly outcome: 'malformed'; readonly index: number; readonly reason: MalformedReason }
  | { readonly outcome: 'unreadable' };

const MALFORMED = [
  '',
  'not-a-map',
  'bad-tenant',
  'no-key',
  'bare-prefix',
  'bad-digest',
  'bad-medium',
  'bad-type',
] as const;
/** Why a relevant store event could not be used. */
export type MalformedReason = Exclude<(typeof MALFORMED)[number], ''>;

/** Why a walk ended: the request did, no edge was known, or the edge contradicts another. */
export type WalkEnd = 'end' | 'missing' | 'conflict';
const WALK_ENDS: readonly WalkEnd[] = ['end', 'missing', 'conflict'];

/** How a hit came about. Blocks are those of the edges that were walked, counted from 0. */
export interface CoreExplanation {
  readonly hit: number;
  readonly walked: number;
  readonly stopped: WalkEnd;
  /** For each group that kept a later endpoint from being reusable: the first block found lacking. */
  readonly blocked: readonly {
    readonly group: number;
    readonly block: number;
    /** The block's digest in hex, null while only its low 64 bits are known. */
    readonly digest: string | null;
    readonly ambiguous: boolean;
    /** Ids of the group's prefixes whose object is not resident. */
    readonly missing: readonly number[];
  }[];
}

/** What is resident of one store group. An object in two media counts once in `objects`. */
export interface GroupCensus {
  readonly group: number;
  /** Digests of which every required object is resident. */
  readonly complete: number;
  readonly objects: number;
  readonly cpu: number;
  readonly disk: number;
  readonly unknown: number;
}

/** Blocks of a prompt that are hashed before the first look whether they are known. */
const FIRST_PART = 128;
/** Of a stored event as it is learned. */
const HEADER_BYTES = 16;
const DIGEST_WORDS = 8;
/** Of an event staged by `applyPayload` (assembly/objects.ts). */
export const STAGED_BYTES = 40;
// Which staged records are placed (assembly/reconcile.ts)
const ALL = 0;
const WITH_EDGE = 1;
const WITHOUT_EDGE = 2;
// assembly/cells.ts
const DIGESTS_CELL = 2;
const MEMBERS_CELL = 3;

/** Objects known without their messages' bytes: those of every digest under each of a run of prefixes. */
export interface CoreObjects {
  readonly removes: boolean;
  /** Bits: 1 cpu, 2 disk, 4 unknown. Of a store exactly one. */
  readonly media: number;
  /** Prefix ids, `first` … `end` − 1. */
  readonly first: number;
  readonly end: number;
  /** Eight words a digest: its first 24 bytes, then its low 64 bits, the low word first. */
  readonly digests: Uint32Array;
  /** The first digest, and how many. */
  readonly at: number;
  readonly count: number;
}

/** The residency core: learned edges, resident objects, lookups. Not safe to share between threads. */
export class Core {
  /** Name of the build it is an instance of. */
  readonly build: string;
  readonly #exports: CoreExports;
  readonly #input: Uint8Array;
  readonly #inputWords: Uint32Array;
  readonly #inputLongs: BigUint64Array;
  readonly #requestLongs: BigUint64Array;
  readonly #requestWords: Uint32Array;
  readonly #result: Uint8Array;
  readonly #resultWords: Uint32Array;
  readonly #why: Uint32Array;
  readonly #cells: Uint32Array;
  readonly #counters: BigUint64Array;
  readonly #stage: number; // offset in #input
  readonly #eventBlocks: number;
  /** Digests and objects that find room. */
  readonly #caps: { readonly digests: number; readonly members: number };
  #groups = 0;
  #derivation: Derivation | null = null;

  private constructor(build: string, exports: CoreExports) {
    this.build = build;
    this.#exports = exports;
    const at = (name: string) => globalOf(exports, name);
    const { buffer } = exports.memory;
    const inputBytes = at('INPUT_BYTES');
    this.#input = new Uint8Array(buffer, at('INPUT'), inputBytes);
    this.#inputWords = new Uint32Array(buffer, at('INPUT'), inputBytes / 4);
    this.#inputLongs = new BigUint64Array(buffer, at('INPUT'), inputBytes / 8);
    this.#requestLongs = new BigUint64Array(buffer, at('REQUEST'), at('REQUEST_BLOCKS'));
    this.#requestWords = new Uint32Array(buffer, at('REQUEST'), at('REQUEST_BLOCKS') * 2);
    this.#result = new Uint8Array(buffer, at('RESULT'), 2048);
    this.#resultWords = new Uint32Array(buffer, at('RESULT'), 512);
    this.#why = new Uint32Array(buffer, at('WHY'), 64);
    this.#cells = new Uint32Array(buffer, at('CELLS'), 64);
    this.#counters = new BigUint64Array(buffer, at('COUNTERS'), 64);
    this.#stage = at('STAGE') - at('INPUT');
    this.#eventBlocks = at('EVENT_BLOCKS');
    this.#caps = { digests: at('DIGEST_CAP'), members: at('MEMBER_CAP') || Number.POSITIVE_INFINITY };
  }

  /** Compiles (once a process, beside the program) and instantiates a build. */
  static async load(build: BuildName): Promise<Core> {
    await compileModules([build]);
    return Core.fromModule(build, compiledModule(build));
  }

  /** Instantiates a compiled build at once. */
  static fromModule(build: string, module: WebAssembly.Module): Core {
    return new Core(build, instantiateBuild(module));
  }

  /** The raw exports, for benchmarks and for tests that read the core's memory. */
  get exports(): CoreExports {
    return this.#exports;
  }

  /** Most blocks of one lookup; later ones are not looked at. */
  get requestBlocks(): number {
    return this.#requestLongs.length;
  }

  /** Most digests that can be resident. */
  get digestCap(): number {
    return this.#caps.digests;
  }

  /** Digests that are resident. */
  get digests(): number {
    return this.#cells[DIGESTS_CELL]!;
  }

  /** Most blocks of one stored event; later ones are not learned. */
  get eventBlocks(): number {
    return this.#eventBlocks;
  }

  /**
   * Takes over a contract's plan and starts empty; `rule` is needed where the plan has derived edges. `seed` varies the hash tables and the keys of
   * derived edges; fix it only for repeatable counters.
   */
  configure(plan: Plan, seed: bigint = randomSeed(), rule?: HashRule): void {
    const bytes = encodePlan(plan, seed);
    if (bytes.length > this.#input.length)
      throw new RangeError(`the contract's plan of ${bytes.length} bytes does not fit the core's input`);
    this.#input.set(bytes);
    if (!this.#exports.configure()) throw new RangeError(`the contract does not fit the core's ${this.build} build`);
    this.#groups = plan.groups;
    const { derived } = plan;
    this.#derivation = derived && rule ? new Derivation(this.#exports, rule, derived.blockSize, seed) : null;
  }

  /**
   * Hashes the whole blocks of `tokens` into the request area; returns how many there are (at most `requestBlocks`; none of a block that does
   * not fit the input area, about a million tokens).
   */
  hashTokens(tokens: Uint32Array, blockSize: number, seed: HashSeed): number {
    const blocks = Math.min(Math.floor(tokens.length / blockSize), this.requestBlocks);
    const atOnce = Math.floor(this.#inputWords.length / blockSize);
    if (atOnce === 0) return 0;
    for (let first = 0; first < blocks; first += atOnce) {
      this.#hashPart(tokens, first, Math.min(atOnce, blocks - first), blockSize, seed);
    }
    return blocks;
  }

  #hashPart(tokens: Uint32Array, first: number, blocks: number, blockSize: number, seed: HashSeed): void {
    this.#inputWords.set(tokens.subarray(first * blockSize, (first + blocks) * blockSize));
    this.#exports.hashBlocks(blocks, blockSize * 4, seed.low, seed.high, first);
  }

  /** Hit, in blocks, of a prompt of `tokenCount` tokens that starts with `tokens`. It is hashed in growing parts, and only as far as its blocks are known. */
  lookupTokens(tokens: Uint32Array, tokenCount: number, blockSize: number, seed: HashSeed): number {
    const blocks = Math.min(Math.floor(tokens.length / blockSize), this.requestBlocks);
    const atOnce = Math.floor(this.#inputWords.length / blockSize);
    if (atOnce === 0) return 0;
    let hashed = 0;
    while (hashed < blocks) {
      const part = Math.min(Math.max(hashed, FIRST_PART), blocks - hashed, atOnce);
      this.#hashPart(tokens, hashed, part, blockSize, seed);
      hashed += part;
      if (hashed < blocks && this.#exports.reach(hashed) < hashed) break;
    }
    return this.#exports.lookup(hashed, tokenCount);
  }

  /** Hit, in hash blocks, of a prompt of `tokenCount` tokens that starts with `tokens`, along derived edges; they are made as far as they may count. */
  lookupDerived(tokens: Uint32Array, tokenCount: number, extraKeys: ExtraKeys): number {
    return this.#derivation!.lookup(tokens, tokenCount, extraKeys);
  }

  /** Makes those edges; returns the blocks to explain. */
  prepareDerived(tokens: Uint32Array, extraKeys: ExtraKeys): number {
    return this.#derivation!.prepare(tokens, extraKeys);
  }

  /** See `Derivation.digestBehind`. */
  digestBehind(...asked: Parameters<Derivation['digestBehind']>): Uint8Array | null {
    return this.#derivation!.digestBehind(...asked);
  }

  /** Puts local hashes into the request area; returns how many found room. */
  loadLocals(locals: BigUint64Array): number {
    const blocks = Math.min(locals.length, this.requestBlocks);
    this.#requestLongs.set(blocks === locals.length ? locals : locals.subarray(0, blocks));
    return blocks;
  }

  /** Learns the blocks whose local hashes stand in the request area; returns how many were learned or confirmed. */
  learn({ parent, lows, digests, salted }: LearnEvent): number {
    const blocks = Math.min(lows.length, this.#eventBlocks);
    this.#inputLongs[0] = parent ?? 0n;
    this.#inputWords[2] = blocks;
    this.#inputWords[3] = parent === null ? 0 : 1;
    if (digests === null) this.#inputLongs.set(blocks === lows.length ? lows : lows.subarray(0, blocks), 2);
    else this.#input.set(digests.subarray(0, blocks * 32), HEADER_BYTES);
    return this.#exports.learn(1, salted ? 1 : 0, digests === null ? 0 : 1);
  }

  /** Learns the blocks of one stored event that is decoded and hashed already; of more than `eventBlocks` the first ones. */
  learnBlocks({ lows, locals, at, count, hasParent, parentLow, parentHigh }: IndexedBlocks, salted: boolean): number {
    const blocks = Math.min(count, this.#eventBlocks);
    const words = this.#inputWords;
    words[0] = parentLow;
    words[1] = parentHigh;
    words[2] = blocks;
    words[3] = hasParent ? 1 : 0;
    copyWords(lows, at * 2, words, HEADER_BYTES / 4, blocks * 2);
    copyWords(locals, at * 2, this.#requestWords, 0, blocks * 2);
    return this.#exports.learn(1, salted ? 1 : 0, 0);
  }

  /** Applies decoded objects. */
  applyObjects({ removes, media, first, end, digests, at, count }: CoreObjects): void {
    const atOnce = this.#inputWords.length / DIGEST_WORDS;
    for (let from = at; from < at + count; from += atOnce) {
      const part = Math.min(at + count - from, atOnce);
      copyWords(digests, from * DIGEST_WORDS, this.#inputWords, 0, part * DIGEST_WORDS);
      this.#exports.applyDigests(part, first, end, removes ? 1 : 0, media);
    }
  }

  /**
   * Learns events `from` … `to` of a list, which stand one behind the other in `numbers` (hashes and local hashes), are of one form and have
   * together at most `eventBlocks` blocks; or a single one of any size. Returns the blocks learned or confirmed.
   */
  learnRead(numbers: Numbers, events: ReadEvents, from: number, to: number, salted: boolean): number {
    const { hashesAt, wholeDigests } = events[from]!.event;
    const blocks = this.#placeEvents(numbers, events, from, to);
    copyWords(numbers.locals, hashesAt * 2, this.#requestWords, 0, blocks * 2);
    return this.#exports.learn(to - from, salted ? 1 : 0, wholeDigests ? 1 : 0);
  }

  /** Ends the credit of what was learned about `count` blocks from index `first` on: their publisher contradicts itself about them. */
  distrust(numbers: Numbers, first: number, count: number, wholeDigests: boolean): void {
    for (let at = first; at < first + count; at += this.#eventBlocks) {
      const blocks = Math.min(first + count - at, this.#eventBlocks);
      this.#inputWords[2] = blocks;
      this.#placeChildren(numbers, at, blocks, wholeDigests, HEADER_BYTES);
      this.#exports.distrust(wholeDigests ? 1 : 0);
    }
  }

  /** The same of blocks that are decoded already. */
  distrustBlocks({ lows, at, count }: Pick<IndexedBlocks, 'lows' | 'at' | 'count'>): void {
    for (let from = at; from < at + count; from += this.#eventBlocks) {
      const blocks = Math.min(at + count - from, this.#eventBlocks);
      this.#inputWords[2] = blocks;
      copyWords(lows, from * 2, this.#inputWords, HEADER_BYTES / 4, blocks * 2);
      this.#exports.distrust(0);
    }
  }

  /** Lays out headers and children (assembly/edges.ts); returns the blocks of all events. */
  #placeEvents(numbers: Numbers, events: ReadEvents, from: number, to: number): number {
    const { hashesAt, wholeDigests } = events[from]!.event;
    const words = this.#inputWords;
    const most = this.#eventBlocks;
    let blocks = 0;
    for (let i = from; i < to; i++) blocks += events[i]!.event.writeHeader(words, (i - from) * 4, most);
    this.#placeChildren(numbers, hashesAt, blocks, wholeDigests, (to - from) * HEADER_BYTES);
    return blocks;
  }

  #placeChildren(numbers: Numbers, first: number, blocks: number, wholeDigests: boolean, at: number): void {
    if (wholeDigests) this.#input.set(numbers.digests.subarray(first * 32, (first + blocks) * 32), at);
    else copyWords(numbers.lows, first * 2, this.#inputWords, at / 4, blocks * 2);
  }

  /** Applies one store batch from its MessagePack payload (assembly/README.md, "Store messages"). */
  applyPayload(payload: Uint8Array): StoreOutcome {
    if (payload.length > this.#stage) {
      this.#exports.clearResidency(0);
      return { outcome: 'unreadable' };
    }
    this.#input.set(payload);
    const outcome = this.#exports.applyMessage(payload.length);
    const said = this.#resultWords;
    if (outcome === 0)
      return {
        outcome: 'applied',
        events: said[3]!,
        objects: said[4]!,
        foreignTenant: said[5]!,
        foreignKey: said[6]!,
        clears: said[7]!,
        saidStored: said[8]!,
        saidRemoved: said[9]!,
      };
    if (outcome === 1) return { outcome: 'malformed', index: said[1]!, reason: MALFORMED[said[2]!] as MalformedReason };
    return { outcome: 'unreadable' };
  }

  /** Events that the payload applied last has left staged, good until the next call: for `reapply`. */
  stagedEvents(events: number): Uint8Array {
    return this.#input.subarray(this.#stage, this.#stage + events * STAGED_BYTES);
  }

  /** Applies events once more that were staged before, under the same contract; at most as many as a message may have. */
  reapply(staged: Uint8Array): void {
    this.#input.set(staged, this.#stage);
    this.#exports.reapply(staged.length / STAGED_BYTES);
  }

  /**
   * Replaces residency by the listed objects, in medium unknown; where there is no room for all, digests with edges come first, and never a part
   * of one. Returns how many objects are resident now.
   */
  replaceResidency(listed: DigestRecords): number {
    const { digests, members } = this.#caps;
    const fits = listed.digests <= digests && listed.objects <= members;
    this.#exports.clearResidency(fits ? 1 : 0);
    if (fits) this.#place(listed, ALL);
    else {
      this.#place(listed, WITH_EDGE);
      this.#place(listed, WITHOUT_EDGE);
    }
    return this.#cells[MEMBERS_CELL]!;
  }

  /**
   * Has the memory brought that `replaceResidency` will write for records `first` … `end`; changes nothing. A core writes some of it for the
   * first time ever, which costs several times the placing.
   */
  warm(words: Uint32Array, first: number, end: number): void {
    const room = this.#stagedRecords;
    for (let from = first; from < end; from += room) {
      const to = Math.min(end, from + room);
      this.#stageRecords(words, from, to);
      this.#exports.warm(to - from, from);
    }
  }

  get #stagedRecords(): number {
    return Math.floor((this.#inputWords.length - this.#stage / 4) / RECORD_WORDS);
  }

  #stageRecords(words: Uint32Array, from: number, to: number): void {
    this.#inputWords.set(words.subarray(from * RECORD_WORDS, to * RECORD_WORDS), this.#stage / 4);
  }

  #place({ words, count }: DigestRecords, which: number): void {
    const room = this.#stagedRecords;
    for (let first = 0; first < count; ) {
      let last = Math.min(count, first + room);
      // A digest's records must stand in one piece; it has at most sixteen, a piece has room for many more.
      while (last < count && sameDigest(words, last - 1, last)) last--;
      this.#stageRecords(words, first, last);
      this.#exports.reconcile(last - first, which);
      first = last;
    }
  }

  /** Hit, in blocks, of a prompt of `tokens` tokens whose `blocks` local hashes stand in the request area. */
  lookup(blocks: number, tokens: number): number {
    return this.#exports.lookup(blocks, tokens);
  }

  /** The same hit, touching nothing, with what stood in the way of more; along learned edges, or along derived ones (in hash blocks). */
  explain(blocks: number, tokens: number, along: 'learned' | 'derived' = 'learned'): CoreExplanation {
    const hit = this.#exports.explain(blocks, tokens, along === 'derived' ? 1 : 0);
    const walked = this.#resultWords[0]!;
    const stopped = WALK_ENDS[this.#resultWords[1]!]!;
    const blocked = [];
    for (let group = 0; group < this.#groups; group++) {
      const block = this.#why[group]! - 1;
      if (block < 0) continue;
      const state = this.#exports.blockState(block);
      const digest = state & 1 ? hexOf(this.#result.subarray(0, 32)) : null;
      const count = this.#exports.missing(block, group);
      const missing = [...new Uint16Array(this.#result.buffer, this.#result.byteOffset, count)];
      blocked.push({ group, block, digest, ambiguous: (state & 4) !== 0, missing });
    }
    return { hit, walked, stopped, blocked };
  }

  /** Moves at most `budget` edges of the path just looked up next to each other, for the next lookup's sake. */
  compact(budget: number): number {
    return this.#exports.compact(budget);
  }

  /** Forgets all objects; edges stay. */
  clearResidency(): void {
    this.#exports.clearResidency(0);
  }

  /** What is resident, by store group. Reads every digest: for people who look, not for hot paths. */
  census(): GroupCensus[] {
    this.#exports.census();
    return Array.from({ length: this.#groups }, (_, group) => {
      const [complete, objects, cpu, disk, unknown] = this.#resultWords.subarray(group * 5) as unknown as [
        number,
        number,
        number,
        number,
        number,
      ];
      return { group, complete, objects, cpu, disk, unknown };
    });
  }

  stats(): CoreStats {
    const cap = (name: string) => globalOf(this.#exports, name);
    return {
      ...readStats(this.#cells, this.#counters),
      caps: {
        edges: cap('EDGE_CAP'),
        digests: cap('DIGEST_CAP'),
        members: cap('MEMBER_CAP') || null,
        ambiguous: cap('AMBIGUOUS_CAP'),
      },
      memoryBytes: this.#exports.memory.buffer.byteLength,
    };
  }
}

/** Up to so many words are copied one by one: cheaper than making a view. */
const FEW_WORDS = 64;

function copyWords(from: Uint32Array, at: number, to: Uint32Array, toAt: number, words: number): void {
  if (words > FEW_WORDS) to.set(from.subarray(at, at + words), toAt);
  else for (let i = 0; i < words; i++) to[toAt + i] = from[at + i]!;
}

function randomSeed(): bigint {
  return crypto.getRandomValues(new BigUint64Array(1))[0]!;
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
