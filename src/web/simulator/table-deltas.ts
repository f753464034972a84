// A figure beside the same figure of another run: the difference in the way in which people say it, and whether it is for the better.
import type { Figure } from '../../sim/report-figures.js';
import { shortNumber } from '../../sim/report-format.js';
import type { SimReport } from '../../sim/types.js';

/** Figures of which more is better, and less; of the others neither is. */
const MORE = new Set(['hit_share', 'completed', 'generated_tokens_per_second', 'requests_per_second', 'credit_right']);
const LESS = /^(?:ttft|latency)_|^(?:computed_share|imbalance|credit_short|credit_stale|refused|computed_tokens)$/;

/** Differences below it are said to be none: percentage points, or percent. */
const LEAST = 0.05;

export interface Delta {
  readonly text: string;
  readonly verdict: 'better' | 'worse' | 'other' | 'same';
}

/** Null where one of them has no value. */
export function deltaOf(figure: Figure, report: SimReport, base: SimReport): Delta | null {
  const [now, before] = [figure.of(report), figure.of(base)];
  if (now === null || before === null) return null;
  const share = figure.unit === 'share';
  if (!share && before === 0) return now === 0 ? { text: '=', verdict: 'same' } : null;
  const change = 100 * (share ? now - before : now / before - 1);
  if (Math.abs(change) < LEAST) return { text: '=', verdict: 'same' };
  const text =
    !share && change > 400
      ? `×${shortNumber(now / before)}`
      : `${change > 0 ? '+' : '−'}${shortNumber(Number(Math.abs(change).toFixed(1)))} ${share ? 'pp' : '%'}`;
  return { text, verdict: verdictOf(figure.key, change > 0) };
}

function verdictOf(key: string, more: boolean): Delta['verdict'] {
  if (MORE.has(key)) return more ? 'better' : 'worse';
  if (LESS.test(key)) return more ? 'worse' : 'better';
  return 'other';
}
