// The capacity curve of a trace for people: hits at round sizes in bytes, and a table with a bar of characters.
//
// What it says: how often ONE cache would hit that sees every prompt, keeps ids by LRU and has no workers, GPU caches, delays or router.
// For full attention it bounds what a store of that size can give. Blocks are counted by the bytes of the model's full-attention groups;
// windows and states, which a store keeps only at the ends of prompts, are left out, so that it stays a bound. Every id counts as one
// whole block, a prompt's partial tail included: the rule under which shares of published traces are given.
import type { CapacityCurve } from './curve.js';
import { bytesText, countText, shareText } from './report-format.js';
import type { CurvePart, CurveReport } from './report-types.js';
import type { GroupModel, SimConfig } from './types.js';

/** Corners that a report keeps for its chart. */
const MOST_CORNERS = 200;
const BAR_CHARACTERS = 40;

/** The rule of the curve in two sentences. */
export const CURVE_NOTE =
  'One LRU cache that sees every prompt, in one pass over the trace: no workers, no delays, and what GPUs hold would come on top. A bound for a store of that size alone, not a simulation of one; every id counts as a whole block.';

/** Bytes of one block of `blockSize` tokens, of full-attention groups alone; of all groups where there is none. */
export function blockBytes(groups: readonly GroupModel[]): number {
  const full = groups.filter(({ kind }) => kind === 'full_attention');
  return (full.length > 0 ? full : groups).reduce((sum, { bytesPerBlock }) => sum + bytesPerBlock, 0);
}

/** Sizes in steps of 1, 2, 5 from `least` up to below `most`, in whole numbers. */
export function roundSizes(least: number, most: number): number[] {
  const sizes: number[] = [];
  for (let decade = 1; decade < most; decade *= 10)
    for (const step of [1, 2, 5]) if (step * decade >= least && step * decade < most) sizes.push(step * decade);
  return sizes;
}

export interface CurveSubject {
  readonly trace: string;
  /** Tokens that one id stands for. */
  readonly idTokens: number;
  readonly partial: boolean;
}

/** The curve at round sizes, at the size of the configured store's memory, and without a limit. */
export function curveReport(
  curve: CapacityCurve,
  { trace, idTokens, partial }: CurveSubject,
  { groups, blockSize, store }: SimConfig,
): CurveReport {
  const bytesPerId = (blockBytes(groups) * idTokens) / blockSize;
  const part = (capacity: number, hits: number): CurvePart => ({
    capacity,
    bytes: capacity * bytesPerId,
    hits,
    share: curve.references > 0 ? hits / curve.references : 0,
  });
  const limit = curve.distinct * bytesPerId;
  const sizes = new Set(roundSizes(Math.max(1, limit / 2000), limit));
  if (store.dramBytes > 0 && store.dramBytes < limit) sizes.add(store.dramBytes);
  const points = [...sizes]
    .sort((a, b) => a - b)
    .map((bytes) => ({ ...part(Math.floor(bytes / bytesPerId), curve.hitsAt(Math.floor(bytes / bytesPerId))), bytes }));
  points.push(part(curve.distinct, curve.hitsAt(curve.distinct)));
  return {
    trace,
    idTokens,
    bytesPerId,
    references: curve.references,
    distinct: curve.distinct,
    points,
    corners: curve.points(MOST_CORNERS).map(({ capacity, hits }) => part(capacity, hits)),
    partial,
  };
}

/** The curve as lines of text. */
export function curveText({ trace, idTokens, bytesPerId, references, distinct, points, partial }: CurveReport): string {
  const rows = points.map(({ bytes, share }, i) => [
    i === points.length - 1 ? `unlimited (${bytesText(bytes)})` : bytesText(bytes),
    shareText(share),
    '█'.repeat(Math.round(share * BAR_CHARACTERS)),
  ]);
  const width = Math.max(...rows.map(([size]) => size!.length));
  return [
    `${trace}: capacity curve${partial ? ' (partial)' : ''}`,
    `  ${countText(references)} references to ${countText(distinct)} ids of ${idTokens} tokens, ${bytesText(bytesPerId)} each`,
    ...rows.map(([size, share, bar]) => `  ${size!.padStart(width)}  ${share!.padStart(8)}  ${bar}`.trimEnd()),
    `  ${CURVE_NOTE}`,
    '',
  ].join('\n');
}
