// A rate learned per rank, and for all ranks together, as time per unit: times add up where rates don't. Each is a ratio of decayed sums,
// time over units, so that a large request counts more than a small one and no single division by a small number carries weight.
//
// Belief of a rank: its own pace where it has ENOUGH observations; below that its own in part, weight / ENOUGH, and the fleet's for the
// rest; the fleet's own in the same way before the prior. So the prior is gone, not merely small, once the fleet has seen enough, however
// wrong it was.
//
// Wild values: an observation counts as at most BAND times faster or slower than what was believed before it, and its units always count
// in full. One that is worlds apart moves the belief a little; a row of them moves the band with it, so any truth within the limits is found.
// A ratio of sums leans to its slow parts: a rate that falls is found in tens of observations, one that rises takes some half-lives.
//
// Old evidence: it halves with every half-life of the rank's own observations. It also fades, evenly to nothing, while the rank is silent
// and the others teach. A rank that was slow once is not chosen, so it could never show that it is slow no more: it must become unknown
// again, like the fleet, to be tried.
import { expOfNegative } from './exp.js';

/** Decayed observations with which a belief needs no other beside it; with a shorter half-life, that many. */
export const ENOUGH = 8;
/** How far an observation may lie from what is believed, as a factor. */
export const BAND = 8;
/** Half-lives of observations, of every other rank on average, through which the evidence of a silent rank fades. */
export const SILENCE = 4;

/** What is believed at first, and the limits of all that can be believed: units a second. */
export interface RateRange {
  readonly prior: number;
  readonly least: number;
  readonly most: number;
}

const MS = 1000;

/** One rate for every rank. Memory is fixed at the start: five numbers a rank. */
export class LearnedRate {
  // By rank; the last slot is the fleet's.
  readonly #units: Float64Array;
  readonly #time: Float64Array;
  readonly #weight: Float64Array;
  /** Time over units; nothing where the weight is 0. */
  readonly #pace: Float64Array;
  /** Number of its last lesson, of all ranks' lessons. */
  readonly #lastLesson: Float64Array;
  #lessons = 0;
  /** Ranks that have taught and were not forgotten. */
  #teachers = 0;
  readonly #fleet: number;
  /** What is believed of a rank that has shown nothing. */
  #fleetPace: number;
  readonly #priorPace: number;
  readonly #fastest: number;
  readonly #slowest: number;
  readonly #kept: number;
  readonly #enough: number;
  readonly #silence: number;

  /**
   * @param ranks whole, 1 or more
   * @param halfLife in observations, 1 or more
   */
  constructor(ranks: number, { prior, least, most }: RateRange, halfLife: number) {
    this.#units = new Float64Array(ranks + 1);
    this.#time = new Float64Array(ranks + 1);
    this.#weight = new Float64Array(ranks + 1);
    this.#pace = new Float64Array(ranks + 1);
    this.#lastLesson = new Float64Array(ranks);
    this.#fleet = ranks;
    this.#priorPace = MS / prior;
    this.#fleetPace = this.#priorPace;
    this.#fastest = MS / most;
    this.#slowest = MS / least;
    this.#kept = expOfNegative(-Math.LN2 / halfLife);
    // Weight tends to 1 / (1 - 2^(-1/h)), which is above h: a rank that gets its share of requests reaches it.
    this.#enough = Math.min(ENOUGH, halfLife);
    this.#silence = SILENCE * halfLife;
  }

  /** Milliseconds a unit, as believed of the rank. */
  paceOf(rank: number): number {
    return this.#blend(this.#pace[rank]!, this.weightOf(rank), this.#fleetPace);
  }

  /** Units a second, as believed of the rank. */
  rateOf(rank: number): number {
    return MS / this.paceOf(rank);
  }

  /** The rank's own observations, older ones counting less: at most about 1.44 half-lives. */
  weightOf(rank: number): number {
    return this.#weight[rank]! * this.#standing(rank);
  }

  /**
   * Adds an observation: so many units, above 0, in so many milliseconds, 0 or more.
   * @returns whether it lay outside of the rank's band, and counted as its edge
   */
  learn(rank: number, units: number, time: number): boolean {
    if (this.#weight[rank] === 0) this.#teachers++;
    const clamped = this.#add(rank, this.#standing(rank), this.paceOf(rank), units, time);
    this.#add(this.#fleet, 1, this.#fleetPace, units, time);
    this.#fleetPace = this.#blend(this.#pace[this.#fleet]!, this.#weight[this.#fleet]!, this.#priorPace);
    this.#lastLesson[rank] = ++this.#lessons;
    return clamped;
  }

  /** Nothing is known of the rank itself any more. What it taught the fleet stays. */
  forget(rank: number): void {
    if (this.#weight[rank]! > 0) this.#teachers--;
    this.#units[rank] = 0;
    this.#time[rank] = 0;
    this.#weight[rank] = 0;
  }

  #blend(own: number, weight: number, otherwise: number): number {
    const share = Math.min(1, weight / this.#enough);
    return share * own + (1 - share) * otherwise;
  }

  /** The part of the rank's evidence that has not faded in silence. */
  #standing(rank: number): number {
    const missed = (this.#lessons - this.#lastLesson[rank]!) / Math.max(1, this.#teachers);
    return Math.max(0, 1 - missed / this.#silence);
  }

  #add(slot: number, standing: number, believed: number, units: number, time: number): boolean {
    const pace = time / units;
    const least = Math.max(this.#fastest, believed / BAND);
    const most = Math.min(this.#slowest, believed * BAND);
    const counted = Math.min(most, Math.max(least, pace));
    const kept = standing * this.#kept;
    this.#units[slot] = kept * this.#units[slot]! + units;
    this.#time[slot] = kept * this.#time[slot]! + counted * units;
    this.#weight[slot] = kept * this.#weight[slot]! + 1;
    this.#pace[slot] = this.#time[slot]! / this.#units[slot]!;
    return counted !== pace;
  }
}
