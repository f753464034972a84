// Counters that others count, read at collect time, so that they never go down. A source may begin anew (a worker is replaced, the cache's core is
// made for another contract): then what it had counted is kept as a base. A worker may go: then its counts move to `(removed)`, so that sums over
// workers stay, and its series ends. Pure.

/** A value with its labels, in the order of the family's names. */
export interface Sample {
  readonly labels: readonly string[];
  readonly value: number;
}

/** Stands for all workers that are gone. */
export const REMOVED = '(removed)';

interface Series {
  readonly labels: readonly string[];
  /** What earlier lives of the source had counted. */
  base: number;
  raw: number;
}

/** The series of one counter. */
export class MonotoneSeries {
  readonly #series = new Map<string, Series>();
  readonly #ofWorkers: boolean;
  readonly #ranked: boolean;

  /** @param names of the labels; series with `worker` end with it */
  constructor(names: readonly string[]) {
    this.#ofWorkers = names[0] === 'worker';
    this.#ranked = names[1] === 'dp_rank';
  }

  /** Takes what the sources say now, and gives what is to be shown. */
  read(samples: Iterable<Sample>): Sample[] {
    const now = summed(samples);
    for (const [key, { labels, value }] of now) {
      const series = this.#at(key, labels);
      if (value < series.raw) series.base += series.raw;
      series.raw = value;
    }
    if (this.#ofWorkers) this.#fold(now);
    return [...this.#series.values()].map(({ labels, base, raw }) => ({ labels, value: base + raw }));
  }

  #fold(now: ReadonlyMap<string, Sample>): void {
    for (const [key, { labels, base, raw }] of [...this.#series]) {
      if (now.has(key) || labels[0] === REMOVED) continue;
      this.#series.delete(key);
      const kept = this.#ranked ? [REMOVED, '', ...labels.slice(2)] : [REMOVED, ...labels.slice(1)];
      this.#at(keyOf(kept), kept).base += base + raw;
    }
  }

  #at(key: string, labels: readonly string[]): Series {
    const series = this.#series.get(key) ?? { labels, base: 0, raw: 0 };
    this.#series.set(key, series);
    return series;
  }
}

/** Samples by their labels; those of the same labels are one. */
export function summed(samples: Iterable<Sample>): Map<string, Sample> {
  const sums = new Map<string, Sample>();
  for (const sample of samples) {
    const key = keyOf(sample.labels);
    const known = sums.get(key);
    sums.set(key, known === undefined ? sample : { labels: sample.labels, value: known.value + sample.value });
  }
  return sums;
}

function keyOf(labels: readonly string[]): string {
  return labels.join('\0');
}
