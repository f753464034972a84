// Holds a key list against what an earlier one and the events since make expect. A key of which the stream is not sure (gone from one medium of
// perhaps several) is not judged.
import type { DriftEvidence } from './evidence.js';
import type { KeyFate } from './master-tally.js';

export class DriftJudge {
  readonly #before: ReadonlySet<string>;
  readonly #fates: ReadonlyMap<string, KeyFate>;
  readonly #expected: number;
  #seen = 0;
  #unannounced = 0;

  /**
   * @param before keys of the earlier list
   * @param fates what the stream said since, and of keys that it covers at most what was said before
   */
  constructor(before: ReadonlySet<string>, fates: ReadonlyMap<string, KeyFate>) {
    this.#before = before;
    this.#fates = fates;
    let expected = before.size;
    for (const [key, fate] of fates) {
      if (before.has(key)) expected--;
      if (fate === 'there') expected++;
    }
    this.#expected = expected;
  }

  /** Takes one key of the list; each stands in it once. */
  take(key: string): void {
    const fate = this.#fates.get(key);
    if (fate === 'unsure') return;
    if (fate === 'there' || (fate === undefined && this.#before.has(key))) this.#seen++;
    else this.#unannounced++;
  }

  result(): DriftEvidence {
    const missing = this.#expected - this.#seen;
    return { missing, unannounced: this.#unannounced, judged: this.#expected + this.#unannounced, unjudged: null };
  }
}

export function unjudged(why: string): DriftEvidence {
  return { missing: 0, unannounced: 0, judged: 0, unjudged: why };
}
