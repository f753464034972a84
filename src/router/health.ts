// Which ranks are out for a while because their requests failed. A worker that refuses at once has no load, so that every policy would
// send it more; out, it gets nothing, and the others keep the prompts that they hold. After its rest a rank is on trial: it may get
// requests again, a failure puts it out for twice as long, a success forgets all.
//
// Times are milliseconds of one clock, handed in. Where it jumps, a rank stays out for no longer than its rest, before or after.
import { MAX_LOAD_RANKS } from './load.js';
import { checkTime, checkWhole } from './option-checks.js';

const MAX_FAILURES = 255;

/** When a rank is out, and how long. */
export interface HealthOptions {
  /** Failures in a row until a rank is out, 1 … 255. Default 3. */
  readonly failures?: number;
  /** Its first rest, in milliseconds, 1 or more. Default 5,000. */
  readonly restFor?: number;
  /** The longest rest, in milliseconds; not below `restFor`. Default 60,000, or `restFor` where that is longer. */
  readonly restAtMost?: number;
}

/** Ranks now, and counts since the table was made. */
export interface HealthStats {
  /** Ranks that are out. */
  readonly out: number;
  /** Ranks whose rest has ended, and that have neither failed nor succeeded since. */
  readonly onTrial: number;
  readonly failures: number;
  /** Times that a rank was put out. */
  readonly rests: number;
}

/** The health of all ranks, by the compact index that the router gave them. */
export class RankHealth {
  readonly #mostFailures: number;
  readonly #restFor: number;
  readonly #restAtMost: number;
  /** Failures in a row, counted up to the most. */
  readonly #failures: Uint8Array;
  /** Start of the last rest. */
  readonly #since: Float64Array;
  /** Length of the last rest; 0 where all is forgotten. */
  readonly #rest: Float64Array;
  readonly #counts = { failures: 0, rests: 0 };

  /**
   * @param ranks most ranks: indexes are 0 … ranks − 1
   * @throws {ConfigError} `health-ranks`, `health-failures`, `health-rest-for`, `health-rest-at-most`
   */
  constructor(ranks: number, { failures = 3, restFor = 5000, restAtMost }: HealthOptions = {}) {
    checkWhole('health', 'ranks', ranks, MAX_LOAD_RANKS);
    checkWhole('health', 'failures', failures, MAX_FAILURES);
    checkTime('health', 'restFor', restFor, 1);
    const atMost = restAtMost ?? Math.max(60_000, restFor);
    checkTime('health', 'restAtMost', atMost, restFor);
    this.#mostFailures = failures;
    this.#restFor = restFor;
    this.#restAtMost = atMost;
    this.#failures = new Uint8Array(ranks);
    this.#since = new Float64Array(ranks);
    this.#rest = new Float64Array(ranks);
  }

  /** A request failed by the rank's fault. One that was sent before the rank was out and fails after it says nothing new. */
  failed(rank: number, now: number): void {
    this.#counts.failures++;
    if (this.isOut(rank, now)) return;
    if (this.#failures[rank]! < this.#mostFailures) this.#failures[rank]!++;
    if (this.#failures[rank]! < this.#mostFailures) return;
    const last = this.#rest[rank]!;
    this.#rest[rank] = last === 0 ? this.#restFor : Math.min(last * 2, this.#restAtMost);
    this.#since[rank] = now;
    this.#counts.rests++;
  }

  /** A request was served: whatever was, the rank is well. */
  succeeded(rank: number): void {
    this.forget(rank);
  }

  /** Whether the rank should get no request now. At a time that is no number, none is out. */
  isOut(rank: number, now: number): boolean {
    return Math.abs(now - this.#since[rank]!) < this.#rest[rank]!;
  }

  /** The rank is gone or has restarted: its index stands for a new one. */
  forget(rank: number): void {
    this.#failures[rank] = 0;
    this.#rest[rank] = 0;
  }

  /** Looks at every rank: not for hot paths. */
  stats(now: number): HealthStats {
    let out = 0;
    let onTrial = 0;
    for (let rank = 0; rank < this.#rest.length; rank++) {
      if (this.isOut(rank, now)) out++;
      else if (this.#rest[rank]! > 0) onTrial++;
    }
    return { out, onTrial, ...this.#counts };
  }
}
