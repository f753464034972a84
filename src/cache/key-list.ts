// KeyList: the master's key list (`GET /get_all_keys`, one key a line) as it comes from the network, made ready for a reconcile. No text and no
// object a key: bytes are judged where they are, and what is ours is grouped by digest on the way (key-runs.ts). The work is cut into slices,
// so that a list of any length never keeps a decision waiting. It has no clock: whoever feeds it decides when to yield.
import type { DigestRecords } from '../core/digest-records.js';
import { DIGEST_DIGITS } from './key-digest.js';
import type { KeyPrefixes } from './key-prefixes.js';
import { KeyRuns } from './key-runs.js';

/** Bytes of the longest line that is looked at; a longer one is foreign: no prefix of a contract has more than 4,096. */
export const LINE_BYTES = 16_384;
/**
 * Digests that a list may hold, for each one that the core has room for. A list above it is void; so the most memory is three times (runs, and a
 * merge of them) 44 bytes for each. Runs not merged yet name a digest more than once, so a list that fits the core needs a part of this.
 */
export const LISTED_DIGESTS = 4;
/** Records that `prepareSome` handles unless told otherwise: 0.5 ms here, 2 ms on a machine that is slow and busy. */
export const PREPARE_RECORDS = 16_384;
/** To warm memory for one counts as so many: each may have three pages brought. */
const WARMED = 64;

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const AT = 0x40;

/** What a list is collected for. */
export interface KeyListScope {
  readonly prefixes: KeyPrefixes;
  /** Digests that the core has room for. */
  readonly digestCap: number;
  /** Makes the core's memory ready for records `first` … `end` (`Core.warm`). */
  warm(words: Uint32Array, first: number, end: number): void;
}

/** A key list. Made by `SharedCache.beginKeyList`; good under the contract that was in force then. */
export class KeyList {
  /** Keys that are of no prefix of the contract, and keys that are but without a digest. */
  foreign = 0;
  malformed = 0;
  /** What it was collected for; null where nothing can be. */
  readonly scope: KeyListScope | null;
  readonly #runs = new KeyRuns();
  readonly #line = new Uint8Array(LINE_BYTES);
  readonly #lineView = new DataView(this.#line.buffer);
  #held = 0; // bytes in #line of a line whose end has not come
  #skipping = false; // so far in a line that is too long
  #ended = false;
  #grouped = false;
  #warmed = 0; // records
  #void: string | null = null;

  constructor(scope: KeyListScope | null) {
    this.scope = scope;
  }

  /** Why the list can't count, null while it can. */
  get voided(): string | null {
    return this.#void;
  }

  /**
   * Takes the next bytes of the list, cut anywhere; they are not kept. Costs about 0.5 µs a key: hand in 64 KiB at a time rather than megabytes.
   * What comes after `end` is ignored.
   */
  add(chunk: Uint8Array): void {
    if (this.#ended || this.#void !== null) return;
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
    let from = 0;
    while (from < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, from);
      const to = newline < 0 ? chunk.length : newline;
      if (newline >= 0 && this.#held === 0 && !this.#skipping && to - from <= LINE_BYTES)
        this.#judgeLine(chunk, view, from, to);
      else {
        this.#hold(chunk, from, to);
        if (newline >= 0) this.#endLine();
      }
      from = to + 1;
    }
    this.#runs.keepPace();
  }

  /** The list is complete: a last line counts though nothing ended it. */
  end(): void {
    if (this.#ended) return;
    if (this.#held > 0) this.#endLine();
    this.#ended = true;
    if (this.#void === null) this.#runs.finish();
  }

  /**
   * After `end`: sorts and merges what was collected and readies the core's memory for it, about `budget` records at a time. True when nothing is
   * left to do (at once for a list that is void); until then call it again, after whatever else is waiting.
   */
  prepareSome(budget: number = PREPARE_RECORDS): boolean {
    if (this.scope === null || this.#void !== null) return true;
    if (!this.#ended) return false;
    if (!this.#grouped) {
      this.#grouped = this.#runs.work(budget);
      return false;
    }
    const { words, count } = this.#runs.result;
    const first = this.#warmed;
    this.#warmed = Math.min(count, first + Math.ceil(budget / WARMED));
    this.scope.warm(words, first, this.#warmed);
    return this.#warmed === count;
  }

  /** Ends the list; sorts and merges what is left in one go. */
  prepare(): DigestRecords {
    this.end();
    while (!this.#grouped) this.#grouped = this.#runs.work(Number.POSITIVE_INFINITY);
    return this.#runs.result;
  }

  /** Takes one key as text. For lists that somebody has in memory anyway. */
  addKey(key: string): void {
    if (this.#ended || this.#void !== null) return;
    const { read, written } = encoder.encodeInto(key, this.#line);
    if (read < key.length) this.foreign++;
    else this.#judge(this.#line, this.#lineView, 0, written);
  }

  /** The list does not count, and gives back what it holds. */
  voidFor(reason: string): void {
    this.#void ??= reason;
    this.#runs.drop();
  }

  /** Keeps part of a line, unless that becomes too long. */
  #hold(chunk: Uint8Array, from: number, to: number): void {
    if (this.#skipping) return;
    if (this.#held + to - from > LINE_BYTES) {
      this.foreign++;
      this.#skipping = true;
      this.#held = 0;
      return;
    }
    this.#line.set(chunk.subarray(from, to), this.#held);
    this.#held += to - from;
  }

  /** The line in parts is whole. */
  #endLine(): void {
    if (!this.#skipping) this.#judgeLine(this.#line, this.#lineView, 0, this.#held);
    this.#skipping = false;
    this.#held = 0;
  }

  #judgeLine(bytes: Uint8Array, view: DataView, from: number, to: number): void {
    this.#judge(bytes, view, from, to > from && bytes[to - 1] === RETURN ? to - 1 : to);
  }

  /** One key: prefix `@` digest. */
  #judge(bytes: Uint8Array, view: DataView, from: number, to: number): void {
    if (this.scope === null || this.#void !== null) return;
    const { prefixes, digestCap } = this.scope;
    const digest = to - DIGEST_DIGITS;
    if (digest > from && bytes[digest - 1] === AT) {
      const prefix = prefixes.find(view, from, digest - 1 - from);
      if (prefix >= 0 && this.#runs.add(bytes, digest, prefix)) {
        if (!this.#runs.full) return;
        this.#runs.settle();
        this.#runs.keepPace();
        if (this.#runs.records > digestCap * LISTED_DIGESTS) this.voidFor('too-many-keys');
        return;
      }
    }
    // No object. What stands before the last '@' says whose key it is.
    let at = to - 1;
    while (at >= from && bytes[at] !== AT) at--;
    if (at < from || prefixes.find(view, from, at - from) < 0) this.foreign++;
    else this.malformed++;
  }
}

const encoder = new TextEncoder();
