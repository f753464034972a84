// How two contenders are timed: in short turns, one right after the other, so that a slow moment of the machine hits both, and most turns fit between
// two interruptions by other programs; who goes first alternates, so that neither always finds the other's leavings in the caches. First both run
// until their times are stable. What is kept of a round of five turns each is the ratio of the two least times: other programs, and collections,
// only ever add. The times alone mean little.

/** One contender. */
export interface Side {
  /** The work that is timed. */
  run(): void;
  /** Blocks, objects or events that one `run` handles. */
  readonly items: number;
  /** Work before each `run` that is not timed. */
  prepare?(): void;
}

export interface TurnOptions {
  /** Least time of one side's turn, unless one run takes longer. */
  readonly turnMs: number;
  /** Time for all rounds after the warm-up; the least number of rounds is made whatever they take. */
  readonly budgetMs: number;
  readonly leastRounds: number;
  readonly mostRounds: number;
  readonly mostWarmUpMs: number;
  /** A planted slow-down: A takes so many times as long. Default 1. */
  readonly slowDown?: number;
}

/** What was timed, in nanoseconds an item, turn by turn. */
export interface Turns {
  readonly a: readonly number[];
  readonly b: readonly number[] | null;
  /** B's least time over A's, round by round: above 1 where A is the faster. */
  readonly ratios: readonly number[] | null;
}

/** Times are stable when the last turns' sum is within this part of the sum of those before. */
const STABLE = 0.05;
const STABLE_TURNS = 3;
const TURNS_A_ROUND = 5;
/** A turn lasts so many ticks of the clock, so that the clock's steps are at most 2 % of it … */
const TICKS_A_TURN = 50;
/** … where preparing comes between the runs, at most 10 %: there the sum of many runs is taken. */
const TICKS_OF_PREPARED = 10;
const MOST_RUNS = 1 << 20;
const LEAST_RUN_MS = 1e-6;
const NS_A_MS = 1e6;

/** The smallest step of the clock, in milliseconds: browsers make it coarse. */
export function clockStep(): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 20; i++) {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    least = Math.min(least, now - start);
  }
  return least;
}

/** One side with the number of runs that fill a turn. */
class Contender {
  readonly #side: Side;
  readonly #turnMs: number;
  readonly #step: number;
  readonly #slowDown: number;
  #runs = 1;

  constructor(side: Side, turnMs: number, step: number, slowDown: number) {
    this.#side = side;
    this.#turnMs = turnMs;
    this.#step = step;
    this.#slowDown = slowDown;
  }

  /** Nanoseconds an item. */
  turn(): number {
    const side = this.#side;
    const runs = this.#runs;
    const started = performance.now();
    const took = side.prepare === undefined ? this.#together() : this.#oneByOne();
    // For the next turn: runs get faster while the engine compiles. Preparing takes time as well.
    const wanted =
      side.prepare === undefined
        ? runsFor(Math.max(this.#turnMs, TICKS_A_TURN * this.#step), took / runs)
        : Math.max(
            runsFor(this.#turnMs, (performance.now() - started) / runs),
            runsFor(TICKS_OF_PREPARED * this.#step, took / runs),
          );
    this.#runs = Math.min(MOST_RUNS, wanted);
    // A clock that has not moved has still told that it took less than a step.
    return (Math.max(took, this.#step / 2) * NS_A_MS) / (runs * side.items);
  }

  #together(): number {
    const side = this.#side;
    const started = performance.now();
    for (let i = 0; i < this.#runs; i++) side.run();
    return this.#slowed(started);
  }

  #oneByOne(): number {
    const side = this.#side;
    let took = 0;
    for (let i = 0; i < this.#runs; i++) {
      side.prepare!();
      const started = performance.now();
      side.run();
      took += this.#slowed(started);
    }
    return took;
  }

  /** Time since then, after waiting for the planted slow-down. */
  #slowed(started: number): number {
    const took = performance.now() - started;
    if (this.#slowDown === 1) return took;
    const end = started + took * this.#slowDown;
    let now = performance.now();
    while (now < end) now = performance.now();
    return now - started;
  }
}

function runsFor(ms: number, perRun: number): number {
  return Math.max(1, Math.ceil(ms / Math.max(perRun, LEAST_RUN_MS)));
}

/** Runs A, and B where there is one, until the budget is used. */
export function takeTurns(a: Side, b: Side | null, options: TurnOptions): Turns {
  const step = clockStep();
  const ours = new Contender(a, options.turnMs, step, options.slowDown ?? 1);
  const theirs = b === null ? null : new Contender(b, options.turnMs, step, 1);
  warmUp(ours, theirs, options.mostWarmUpMs);
  const timesA: number[] = [];
  const timesB: number[] = [];
  const ratios: number[] = [];
  const started = performance.now();
  for (
    let round = 0;
    round < options.leastRounds || (round < options.mostRounds && performance.now() - started < options.budgetMs);
    round++
  ) {
    let [leastA, leastB] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let turn = 0; turn < TURNS_A_ROUND; turn++) {
      const bFirst = (round + turn) % 2 === 1;
      if (theirs !== null && bFirst) timesB.push(theirs.turn());
      timesA.push(ours.turn());
      if (theirs !== null && !bFirst) timesB.push(theirs.turn());
      leastA = Math.min(leastA, timesA.at(-1)!);
      leastB = Math.min(leastB, timesB.at(-1) ?? leastB);
    }
    ratios.push(leastB / leastA);
  }
  return theirs === null ? { a: timesA, b: null, ratios: null } : { a: timesA, b: timesB, ratios };
}

function warmUp(a: Contender, b: Contender | null, mostMs: number): void {
  const timesA: number[] = [];
  const timesB: number[] = [];
  const started = performance.now();
  do {
    timesA.push(a.turn());
    if (b !== null) timesB.push(b.turn());
  } while (!(isStable(timesA) && (b === null || isStable(timesB))) && performance.now() - started < mostMs);
}

/** Whether the last turns took as long as those before them. */
export function isStable(times: readonly number[]): boolean {
  if (times.length < 2 * STABLE_TURNS) return false;
  const sum = (part: readonly number[]) => part.reduce((all, one) => all + one, 0);
  const last = sum(times.slice(-STABLE_TURNS));
  const before = sum(times.slice(-2 * STABLE_TURNS, -STABLE_TURNS));
  return Math.abs(last - before) <= STABLE * before;
}
