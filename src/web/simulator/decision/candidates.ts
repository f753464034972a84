// All candidates of a decision, as rows that can be ordered by any column. Pure.
import type { CandidateView, Decision } from '../../../router/decision.js';
import { zeroWords } from '../../console/words.js';
import { amountText, capital } from './sentences.js';
import type { Unit } from './sums.js';

/** Candidates that are listed; of a thousand the rest are counted. */
export const MAX_CANDIDATES = 200;

export interface CandidateColumn {
  readonly key: string;
  readonly head: string;
  /** Unit, below the head. */
  readonly unit: string;
  value(candidate: CandidateView): number | null;
}

const TERMS: Readonly<Record<Unit, readonly (readonly [key: string, head: string])[]>> = {
  blocks: [
    ['prefill', 'Prefill'],
    ['decode', 'Decode'],
    ['active', 'Active'],
  ],
  ms: [
    ['queue', 'Queue'],
    ['fetch', 'Fetch'],
    ['prefill', 'Prefill'],
  ],
};

export function columnsOf(unit: Unit | null, costUnit: string): CandidateColumn[] {
  const term = (key: string) => (candidate: CandidateView) =>
    candidate.terms === null ? null : ((candidate.terms as unknown as Record<string, number>)[key] ?? null);
  const terms =
    unit === null ? [] : TERMS[unit].map(([key, head]) => ({ key: `term-${key}`, head, unit, value: term(key) }));
  return [
    { key: 'worker', head: 'Worker', unit: '', value: ({ rank }) => rank },
    { key: 'cost', head: 'Price', unit: costUnit === 'none' ? '' : costUnit, value: ({ cost }) => cost },
    ...terms,
    { key: 'gpu', head: 'On GPU', unit: 'blocks', value: ({ blocks }) => blocks.device },
    { key: 'store', head: 'From store', unit: 'blocks', value: ({ blocks }) => blocks.shared },
    { key: 'requests', head: 'Requests', unit: 'active', value: ({ load }) => load.activeRequests },
    { key: 'tokens', head: 'To prefill', unit: 'tokens', value: ({ load }) => load.prefillTokens },
    { key: 'held', head: 'Decoding', unit: 'blocks', value: ({ load }) => load.decodeBlocks },
  ];
}

/** In order of a column; what has no value comes last either way, and equals stay by number. */
export function sorted(
  candidates: readonly CandidateView[],
  column: CandidateColumn,
  descending: boolean,
): CandidateView[] {
  const sign = descending ? -1 : 1;
  return [...candidates].sort((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null) || a.rank - b.rank;
    return sign * (x - y) || a.rank - b.rank;
  });
}

export const cellText = (value: number | null): string => (value === null ? '–' : amountText(value));

/** What it was to the decision, in a word or two. */
export function roleOf(candidate: CandidateView, decision: Pick<Decision, 'rank' | 'runnerUp'>): string {
  if (candidate.rank === decision.rank) return 'chosen';
  if (candidate.rank === decision.runnerUp?.rank) return 'runner-up';
  return candidate.notEligible === null ? '' : 'not eligible';
}

/** Why it is not eligible, and why the store gives it nothing. */
export function noteOf(candidate: CandidateView): string {
  const notes: string[] = [];
  if (candidate.notEligible !== null) notes.push(`not eligible: ${candidate.notEligible.text}`);
  if (candidate.zero.shared !== null) notes.push(`no store credit: ${zeroWords(candidate.zero.shared.code)}`);
  return capital(notes.join('; '));
}
