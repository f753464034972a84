// What happens to a fleet by itself when nobody orders it: evictions, removals, clears and restarts at random times, from a seed. Pure: it says
// what is due at a time, and the fleet does it.
import { ConfigError } from '../errors.js';
import { SeededRandom } from '../sim/random.js';

/** What may happen; what each does stands in `CHURN_TEXTS`. */
export type ChurnKind =
  | 'gpu-evict'
  | 'gpu-clear'
  | 'store-evict'
  | 'store-remove'
  | 'store-batch-remove'
  | 'store-clear'
  | 'lose-message'
  | 'worker-restart'
  | 'master-restart'
  | 'failover';

export const CHURN_TEXTS: Readonly<Record<ChurnKind, string>> = {
  'gpu-evict': 'a worker evicts a tenth of its blocks',
  'gpu-clear': 'a worker forgets all its blocks, unless it is busy',
  'store-evict': 'the store evicts some objects',
  'store-remove': 'one object is removed',
  'store-batch-remove': 'some objects are removed together, which generation A does not announce',
  'store-clear': 'everything is removed, which generation A does not announce',
  'lose-message': 'the next message of a worker is lost',
  'worker-restart': 'a worker dies and starts again',
  'master-restart': 'the master dies and starts again with an empty store',
  failover: 'the standby takes over (needs --standby)',
};

/** Mean milliseconds between two of a kind. */
export type ChurnIntervals = Readonly<Partial<Record<ChurnKind, number>>>;

/** Shortest mean, so that a fleet does not do nothing else. */
const SHORTEST_MS = 10;

export class ChurnSchedule {
  readonly #random: SeededRandom;
  readonly #due: { readonly kind: ChurnKind; readonly meanMs: number; at: number }[];

  /** @throws ConfigError `churn` */
  constructor(intervals: ChurnIntervals, seed: number, now: number) {
    this.#random = new SeededRandom(seed);
    this.#due = Object.entries(intervals).map(([kind, meanMs]) => {
      if (!Object.hasOwn(CHURN_TEXTS, kind))
        throw new ConfigError('churn', `"${kind}" never happens; choose of ${Object.keys(CHURN_TEXTS).join(', ')}`);
      if (!(meanMs >= SHORTEST_MS))
        throw new ConfigError('churn', `${kind} every ${meanMs} ms; give ${SHORTEST_MS} ms or more`);
      return { kind: kind as ChurnKind, meanMs, at: now + this.#gap(meanMs) };
    });
  }

  /** When the next is due; null when nothing ever is. */
  get next(): number | null {
    return this.#due.length === 0 ? null : Math.min(...this.#due.map(({ at }) => at));
  }

  /** What is due by `now`, each kind once at most. */
  take(now: number): ChurnKind[] {
    const due = this.#due.filter(({ at }) => at <= now);
    for (const one of due) one.at = now + this.#gap(one.meanMs);
    return due.map(({ kind }) => kind);
  }

  /** One of so many. */
  pick(count: number): number {
    return this.#random.int(count);
  }

  /** Between half and one and a half times the mean. */
  #gap(meanMs: number): number {
    return meanMs / 2 + this.#random.int(Math.ceil(meanMs) + 1);
  }
}
