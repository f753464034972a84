// Feedback (design.md 6): where engines repeatedly report fewer cached tokens than were credited, that prefix is not credited for a while.
//
// A prefix is known by marks at a few of its blocks (prefix-marks.ts). A report that is short strikes the first mark past what was cached,
// a full one takes back one strike, and a mark with strikes enough is withheld: a minute at first, longer each time it is soon needed
// again. So a prefix is withheld where for a while more reports are short than full, and a full one between does not hide a rank that
// restores nothing. Marks may be mistaken for one another, which only costs the other prefix its credit for as long.
//
// `limitFor` only says how far credit may go. A router whose hit is longer looks up again with the prompt cut to so many blocks, so what
// is credited then is still proven by evidence: sliding windows and states may allow no end at just that block.
//
// Times are milliseconds of one clock. Where it jumps, a mark stays withheld for no longer than it was to be, before or after, and where a
// single time is wild nothing ends for those that follow.
import { checkTime, checkWhole } from './option-checks.js';
import { fingerprint, hashWords, markCount, markPosition } from './prefix-marks.js';

/** Longest time between the first and the last strike that are counted together, and after a withholding for the next to come "soon". */
const MEMORY = 3_600_000;
/** Different positions of withheld marks: the fingerprints that `limitFor` makes at most. */
const MAX_POSITIONS = 64;
const MAX_STRIKES = 100;
const MAX_MARKS = 65_536;

/** How feedback is taken. */
export interface FeedbackOptions {
  /** Short reports, less the full ones since, until a mark is withheld: 1 … 100. Default 3. */
  readonly strikes?: number;
  /** How long it is withheld at first, in milliseconds, 1 or more. Default 60,000. */
  readonly withholdFor?: number;
  /** How long at most, in milliseconds; not below `withholdFor`. Default 600,000, or `withholdFor` where that is longer. */
  readonly withholdAtMost?: number;
  /** Marks with strikes that are remembered, 1 … 65,536; the least recently reported one goes. Default 4,096. */
  readonly maxMarks?: number;
}

/** Names a credited prefix in its report. Holds nothing of the prompt, so it may live as long as the request. */
export interface PrefixMarks {
  /** End of the credited prefix, in blocks. */
  readonly blocks: number;
  /** One a mark, by position. */
  readonly fingerprints: Float64Array;
  /** Of the feedback that they were made for: after `forget` they mean nothing. */
  readonly generation: number;
}

/** Use now, and counts since the feedback was made. */
export interface FeedbackStats {
  /** Marks that are remembered. */
  readonly marks: number;
  /** Marks withheld now. */
  readonly withheld: number;
  /** Short reports. */
  readonly strikes: number;
  /** Times that a mark was withheld. */
  readonly withholdings: number;
  /** Lookups that were limited. */
  readonly limited: number;
  /** Reports from before `forget`, or with a number or time that can't be meant. */
  readonly ignored: number;
}

/** A mark that was struck. */
interface Mark {
  readonly position: number;
  /** When it was struck since it was last withheld, but for strikes that were taken back; the oldest first. */
  strikes: number[];
  /** Fewest blocks that were cached at a strike. */
  shortest: number;
  /** Start of the last withholding. */
  since: number;
  /** Length of the last withholding, 0 before the first. */
  length: number;
  /** Was withheld, and no full report came since: one strike withholds it again. */
  onProbation: boolean;
}

/** When marks at a position may be withheld: after `from` and before `until`, as far from each start as its withholding is long. */
interface Watch {
  readonly from: number;
  readonly until: number;
}

/** Remembers which prefixes are restored less than credited. */
export class Feedback {
  readonly #strikesToWithhold: number;
  readonly #withholdFor: number;
  readonly #withholdAtMost: number;
  readonly #maxMarks: number;
  /** By fingerprint, the least recently reported first. */
  readonly #marks = new Map<number, Mark>();
  /** Positions where marks were withheld, the least recently withheld first. */
  readonly #positions = new Map<number, Watch>();
  #generation = 0;
  readonly #counts = { strikes: 0, withholdings: 0, limited: 0, ignored: 0 };

  /** @throws {ConfigError} `feedback-strikes`, `feedback-withhold-for`, `feedback-withhold-at-most`, `feedback-max-marks` */
  constructor({ strikes = 3, withholdFor = 60_000, withholdAtMost, maxMarks = 4096 }: FeedbackOptions = {}) {
    checkWhole('feedback', 'strikes', strikes, MAX_STRIKES);
    checkTime('feedback', 'withholdFor', withholdFor, 1);
    const atMost = withholdAtMost ?? Math.max(600_000, withholdFor);
    checkTime('feedback', 'withholdAtMost', atMost, withholdFor);
    checkWhole('feedback', 'maxMarks', maxMarks, MAX_MARKS);
    this.#strikesToWithhold = strikes;
    this.#withholdFor = withholdFor;
    this.#withholdAtMost = atMost;
    this.#maxMarks = maxMarks;
  }

  /**
   * Marks of a prefix that gets shared credit, for its report.
   * @param localHashes of the prompt; only read now
   * @param blocks end of the credited prefix: at most the hashes given
   */
  marksOf(localHashes: BigUint64Array, blocks: number): PrefixMarks {
    const words = hashWords(localHashes);
    const fingerprints = new Float64Array(markCount(blocks));
    for (let i = 0; i < fingerprints.length; i++) fingerprints[i] = fingerprint(words, markPosition(i, blocks));
    return { blocks, fingerprints, generation: this.#generation };
  }

  /**
   * What an engine said of a credited prompt, at its end.
   * @param creditedTokens to the end of the credited prefix, local and shared ones together
   * @param cachedTokens that the engine found or restored, from the prompt's start
   */
  report(marks: PrefixMarks, creditedTokens: number, cachedTokens: number, blockSize: number, now: number): void {
    if (marks.generation !== this.#generation || !(cachedTokens >= 0) || !Number.isFinite(now)) {
      this.#counts.ignored++;
      return;
    }
    // Less than a block short is no fault: an engine computes at least the last token itself.
    const isShort = creditedTokens - cachedTokens >= blockSize;
    const cachedBlocks = Math.floor(cachedTokens / blockSize);
    const proven = isShort ? cachedBlocks : marks.blocks;
    for (let i = 0; i < marks.fingerprints.length; i++) {
      const position = markPosition(i, marks.blocks);
      if (position > proven) {
        this.#strike(marks.fingerprints[i]!, position, cachedBlocks, now);
        return;
      }
      this.#takeBack(marks.fingerprints[i]!, now);
    }
  }

  /**
   * The most blocks of the prompt that may be credited, of the `blocks` that a lookup found: all, or what was cached at the worst report of
   * the first withheld mark in them.
   */
  limitFor(localHashes: BigUint64Array, blocks: number, now: number): number {
    let words: Uint32Array | null = null;
    let first = blocks + 1;
    let limit = blocks;
    for (const [position, watch] of this.#positions) {
      if (position >= first || !isOn(watch, now)) continue;
      words ??= hashWords(localHashes);
      const mark = this.#marks.get(fingerprint(words, position));
      if (mark === undefined || !this.#isWithheld(mark, now)) continue;
      first = position;
      limit = mark.shortest;
    }
    if (limit < blocks) this.#counts.limited++;
    return limit;
  }

  /** Everything goes, and reports on what was credited before change nothing: the contract is another one. */
  forget(): void {
    this.#generation++;
    this.#marks.clear();
    this.#positions.clear();
  }

  /** Looks at every mark: not for hot paths. */
  stats(now: number): FeedbackStats {
    let withheld = 0;
    for (const mark of this.#marks.values()) if (this.#isWithheld(mark, now)) withheld++;
    return { marks: this.#marks.size, withheld, ...this.#counts };
  }

  #strike(key: number, position: number, cachedBlocks: number, now: number): void {
    this.#counts.strikes++;
    const mark = this.#marks.get(key) ?? newMark(position);
    this.#touch(key, mark);
    if (this.#isWithheld(mark, now)) {
      // Credited before it was withheld: says how short it is, and nothing of what comes after.
      mark.shortest = Math.min(mark.shortest, cachedBlocks);
      return;
    }
    mark.strikes = remembered(mark.strikes, now);
    const isFirst = mark.strikes.length === 0 && !mark.onProbation;
    mark.shortest = isFirst ? cachedBlocks : Math.min(mark.shortest, cachedBlocks);
    mark.strikes.push(now);
    if (mark.onProbation || mark.strikes.length >= this.#strikesToWithhold) this.#withhold(mark, now);
  }

  /**
   * A full report: one strike less, and the end of a probation. The end of a withholding is remembered, for the length of the next; one that
   * is in force goes on.
   */
  #takeBack(key: number, now: number): void {
    const mark = this.#marks.get(key);
    if (mark === undefined) return;
    mark.strikes = remembered(mark.strikes, now).slice(1);
    mark.onProbation = false;
    if (mark.strikes.length === 0 && mark.length === 0) {
      this.#marks.delete(key);
      return;
    }
    this.#touch(key, mark);
  }

  #touch(key: number, mark: Mark): void {
    this.#marks.delete(key);
    this.#marks.set(key, mark);
    if (this.#marks.size <= this.#maxMarks) return;
    const [oldest] = this.#marks.keys();
    this.#marks.delete(oldest!);
  }

  #withhold(mark: Mark, now: number): void {
    const isSoon = mark.length > 0 && Math.abs(now - (mark.since + mark.length)) <= MEMORY;
    mark.length = isSoon ? Math.min(mark.length * 2, this.#withholdAtMost) : this.#withholdFor;
    mark.since = now;
    mark.strikes = [];
    mark.onProbation = true;
    this.#watch(mark, now);
    this.#counts.withholdings++;
  }

  /** Has lookups look at the position. Where there are too many, one whose end has come makes room, else the least recently withheld. */
  #watch({ position, since, length }: Mark, now: number): void {
    const positions = this.#positions;
    const before = positions.get(position) ?? { from: since, until: since };
    positions.delete(position);
    if (positions.size === MAX_POSITIONS) {
      const all = [...positions.keys()];
      positions.delete(all.find((other) => !isOn(positions.get(other)!, now)) ?? all[0]!);
    }
    positions.set(position, {
      from: Math.min(before.from, since - length),
      until: Math.max(before.until, since + length),
    });
  }

  #isWithheld({ position, since, length }: Mark, now: number): boolean {
    return Math.abs(now - since) < length && this.#positions.has(position);
  }
}

/** Strikes that still count. */
function remembered(strikes: readonly number[], now: number): number[] {
  return strikes.filter((at) => Math.abs(now - at) <= MEMORY);
}

function isOn({ from, until }: Watch, now: number): boolean {
  return now > from && now < until;
}

function newMark(position: number): Mark {
  return { position, strikes: [], shortest: 0, since: 0, length: 0, onProbation: false };
}
