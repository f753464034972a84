// The price of a candidate as a sum that adds up: what there is to compute, what cached blocks take off it, and what else weighs. Pure.
import type { CandidateView, Decision } from '../../../router/decision.js';
import type { PolicyTerms } from '../../../router/policy.js';
import { shortNumber } from '../../../sim/report-format.js';

export type Unit = 'blocks' | 'ms';

/** A line of the sum. Credits are negative. */
export interface Term {
  readonly key: string;
  readonly name: string;
  /** What it means, for who asks. */
  readonly hint: string;
  readonly value: number;
  /** How it is drawn: as part of the price, or as what was taken off. */
  readonly kind: 'part' | 'credit';
}

export interface Sum {
  readonly unit: Unit;
  readonly terms: readonly Term[];
  /** Equal to the sum of the terms. */
  readonly total: number;
}

/** What the sum of a `cost` is made with besides its terms. */
export interface SumFacts {
  /** Tokens the candidate had yet to compute for others, and those of the prompt; with `blockSize` they tell what credit was too much. */
  readonly prefillTokens: number;
  readonly promptTokens: number;
  readonly blockSize: number | null;
}

/** Null for a policy without terms. */
export function sumOf(terms: PolicyTerms | null, facts: SumFacts): Sum | null {
  if (terms === null) return null;
  return terms.kind === 'time' ? timeSum(terms) : costSum(terms, facts);
}

function timeSum({ queue, fetch, prefill, time }: Extract<PolicyTerms, { kind: 'time' }>): Sum {
  const part = (key: string, name: string, hint: string, value: number): Term => ({
    key,
    name,
    hint,
    value,
    kind: 'part',
  });
  return {
    unit: 'ms',
    terms: [
      part('queue', 'Queue', 'computing the prompts that are ahead', queue),
      part('fetch', 'Fetch', 'restoring the credited blocks from the store', fetch),
      part('prefill', 'Prefill', 'computing what nobody has cached', prefill),
    ],
    total: time,
  };
}

function costSum(terms: Extract<PolicyTerms, { kind: 'cost' }>, facts: SumFacts): Sum {
  const { overlap, credit, prefill, decode, active, cost, form } = terms;
  const inDecode = form === 'decode';
  const left = inDecode ? decode : prefill;
  const before = beforeCredit(left, credit.total, inDecode ? null : facts);
  const tier = (key: string, name: string, value: number, blocks: number): Term => ({
    key,
    name,
    hint: `blocks there, worth ${shortNumber(blocks > 0 ? value / blocks : 0)} each`,
    value: -value,
    kind: 'credit',
  });
  const list: Term[] = [
    {
      key: 'before',
      name: inDecode ? 'Decode load' : 'To compute',
      hint: inDecode
        ? 'blocks held while decoding'
        : 'this prompt, and the prompts that wait or run there, as if nothing were cached',
      value: before,
      kind: 'part',
    },
    tier('device', '− on its GPU', credit.device, overlap.device),
    tier('host', '− in its host memory', credit.host, overlap.host),
    tier('disk', '− on its disk', credit.disk, overlap.disk),
    tier('shared', '− in the store', credit.shared, credit.sharedBlocks),
    // Credit never makes the load negative; what it would have, is given back here.
    {
      key: 'unused',
      name: 'Credit beyond the load',
      hint: 'credit that exceeds what there is to compute counts nothing',
      value: left - (before - credit.total),
      kind: 'part',
    },
  ];
  if (!inDecode)
    list.push({
      key: 'decode',
      name: 'Decode load',
      hint: 'blocks that decoding holds there, this request included',
      value: decode,
      kind: 'part',
    });
  list.push({ key: 'active', name: 'Active requests', hint: 'requests there, weighted', value: active, kind: 'part' });
  const always = new Set(['before', 'decode']);
  return {
    unit: 'blocks',
    terms: list.filter(({ key, value }) => always.has(key) || Math.abs(value) > 1e-9),
    total: cost,
  };
}

/**
 * The load before credit. With something left of it, it is what is left plus the credit. With nothing left, credit was as much or more: told by the
 * tokens, where a block's size is known.
 */
function beforeCredit(left: number, credit: number, facts: SumFacts | null): number {
  if (left > 0 || facts === null || facts.blockSize === null) return left + credit;
  return Math.min(credit, (facts.prefillTokens + facts.promptTokens) / facts.blockSize);
}

// ---- drawn ----

/** A piece of a bar; `from` and `to` are parts of the bar's scale, 0 … 1. */
export interface Piece {
  readonly key: string;
  readonly kind: 'part' | 'credit';
  readonly from: number;
  readonly to: number;
}

/** How long the longest of the bars is: the price and what was taken off. */
export function barScale(sums: readonly (Sum | null)[]): number {
  return Math.max(
    1e-9,
    ...sums.map((sum) => (sum === null ? 0 : pieceSizes(sum).reduce((all, { size }) => all + size, 0))),
  );
}

/** A sum as one bar: first what is left of the load and the other parts, which make the price, then, hatched, what credits took off. */
export function piecesOf(sum: Sum, scale: number): Piece[] {
  let at = 0;
  return pieceSizes(sum).map(({ key, kind, size }) => {
    const piece = { key, kind, from: at / scale, to: (at + size) / scale };
    at += size;
    return piece;
  });
}

function pieceSizes({ terms }: Sum): { key: string; kind: 'part' | 'credit'; size: number }[] {
  const unused = terms.find(({ key }) => key === 'unused')?.value ?? 0;
  const credits = terms.filter(({ kind }) => kind === 'credit');
  const off = credits.reduce((all, { value }) => all - value, 0);
  // Of credit beyond the load only what counted is drawn.
  const counted = off > 0 ? (off - unused) / off : 0;
  const parts = terms
    .filter(({ kind, key }) => kind === 'part' && key !== 'unused')
    .map(({ key, value }) => ({ key, kind: 'part' as const, size: key === 'before' ? value - (off - unused) : value }));
  const drawn = credits.map(({ key, value }) => ({ key, kind: 'credit' as const, size: -value * counted }));
  return [...parts, ...drawn].filter(({ size }) => size > 0);
}

// ---- side by side ----

export interface Compared {
  readonly key: string;
  readonly kind: Term['kind'];
  readonly name: string;
  readonly hint: string;
  readonly chosen: number;
  readonly other: number | null;
}

/** Term by term; a term that one of them lacks is 0 there. */
export function compared(chosen: Sum, other: Sum | null): Compared[] {
  const names = [...chosen.terms];
  for (const term of other?.terms ?? []) {
    if (names.some(({ key }) => key === term.key)) continue;
    // In the order of the sum, not at its end.
    const before = other!.terms.slice(0, other!.terms.indexOf(term)).map(({ key }) => key);
    const place = names.findLastIndex(({ key }) => before.includes(key));
    names.splice(place + 1, 0, term);
  }
  const valueIn = (sum: Sum, key: string) => sum.terms.find((term) => term.key === key)?.value ?? 0;
  return names.map(({ key, kind, name, hint }) => ({
    key,
    kind,
    name,
    hint,
    chosen: valueIn(chosen, key),
    other: other === null ? null : valueIn(other, key),
  }));
}

/** The candidate that a rank is; undefined where candidates weren't told. */
export function candidateOf(
  { candidates }: Pick<Decision, 'candidates'>,
  rank: number | undefined,
): CandidateView | undefined {
  return candidates?.find((each) => each.rank === rank);
}
