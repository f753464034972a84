// Small phrases that several checks speak in.

import type { HashRule } from '../../contract/descriptor.js';
import { UNSET_SEED } from '../../contract/hash-rule.js';
import type { RankEvidence, WorkerEvidence } from './evidence.js';

/** How the store is called as a subject. */
export const STORE = 'store';

export function rankName({ spec }: WorkerEvidence, { dpRank }: RankEvidence): string {
  return spec.dpRanks.size === 1 ? spec.id : `${spec.id} rank ${dpRank}`;
}

/** How engines hash: `sha256 and PYTHONHASHSEED=0`. */
export function ruleText({ algorithm, seed }: HashRule): string {
  return `${algorithm} and ${seed === UNSET_SEED ? 'an unset PYTHONHASHSEED' : `PYTHONHASHSEED=${seed}`}`;
}

/** `3 events`, `1 event`. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en-GB')} ${n === 1 ? one : many}`;
}

/** The most frequent first: `7 extra-key-unknown, 2 multimodal`. */
export function tallyText(tally: Readonly<Record<string, number>>, most = 3): string {
  const entries = Object.entries(tally).sort(([, a], [, b]) => b - a);
  const shown = entries.slice(0, most).map(([code, n]) => `${n.toLocaleString('en-GB')} ${code}`);
  return [...shown, ...(entries.length > most ? [`${entries.length - most} more`] : [])].join(', ');
}

export function listText(items: readonly string[], most = 4): string {
  const shown = items.slice(0, most).join(', ');
  return items.length > most ? `${shown} and ${items.length - most} more` : shown;
}

export function sumOf(tally: Readonly<Record<string, number>>): number {
  return Object.values(tally).reduce((sum, n) => sum + n, 0);
}

/** Tallies of several ranks as one. */
export function addTallies(tallies: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const tally of tallies) for (const [code, n] of Object.entries(tally)) sum[code] = (sum[code] ?? 0) + n;
  return sum;
}

/** `12 %`, and never 100 % of what is not all, nor 0 % of what is not nothing. */
export function shareText(part: number, whole: number): string {
  const percent = Math.round((part / whole) * 100);
  return `${part === whole ? 100 : part === 0 ? 0 : Math.min(99, Math.max(1, percent))} %`;
}
