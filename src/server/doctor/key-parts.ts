// What stands in the prefix of a key, part by part, and which part tells two prefixes apart:
// `[cache prefix@]model@tp_rank:N@pcpN@dcpN@pp_rank:N[@group:N]` (spec/mooncake-events.md 8). It is read from the right, for models may have an `@`.
import { editDistance } from './edit-distance.js';

/** The parts by the names that a person knows them under, in the order in which they are said. */
const PART_NAMES = ['cache prefix', 'model', 'tp_rank', 'pcp', 'dcp', 'pp_rank', 'group'] as const;
export type PartName = (typeof PART_NAMES)[number];
export type KeyParts = Readonly<Record<PartName, string>>;

/** One part that differs: what stands in the seen prefix, and in the required one. */
export interface PartDifference {
  readonly part: PartName;
  readonly seen: string;
  readonly required: string;
}

const PREFIX = /^(?:(.*)@)?([^@]*)@tp_rank:(\d+)@pcp(\d+)@dcp(\d+)@pp_rank:(\d+)(?:@group:(\d+))?$/s;

/** Null for prefixes that no vLLM connector writes. */
export function keyParts(prefix: string): KeyParts | null {
  const match = PREFIX.exec(prefix);
  if (match === null) return null;
  const [, cachePrefix = '', model = '', tp = '', pcp = '', dcp = '', pp = '', group = ''] = match;
  return { 'cache prefix': cachePrefix, model, tp_rank: tp, pcp, dcp, pp_rank: pp, group };
}

/** What differs, in the order of the parts. */
export function differences(seen: KeyParts, required: KeyParts): PartDifference[] {
  return PART_NAMES.filter((part) => seen[part] !== required[part]).map((part) => ({
    part,
    seen: seen[part],
    required: required[part],
  }));
}

/** A seen prefix and the required one that is least different. */
export interface Nearest {
  readonly required: string;
  readonly distance: number;
  /** Null where one of the two is no connector's prefix. */
  readonly differences: readonly PartDifference[] | null;
}

/** The nearest required prefix: with the fewest parts that differ, then by edit distance. Null where none is required. */
export function nearestPrefix(seen: string, required: readonly string[]): Nearest | null {
  const parts = keyParts(seen);
  let best: Nearest | null = null;
  let bestParts = Number.POSITIVE_INFINITY;
  for (const candidate of required) {
    const other = keyParts(candidate);
    const apart = parts === null || other === null ? null : differences(parts, other);
    const partsApart = apart?.length ?? PART_NAMES.length + 1;
    if (partsApart > bestParts) continue;
    const distance = editDistance(seen, candidate);
    if (best !== null && partsApart === bestParts && distance >= best.distance) continue;
    best = { required: candidate, distance, differences: apart };
    bestParts = partsApart;
  }
  return best;
}
