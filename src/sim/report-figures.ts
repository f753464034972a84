// The figures of a report: one list, in reading order, that the text table, the CSV and the page all show. Each is worked out from a
// SimReport alone.
import { bytesText, countText, NOTHING, rateText, shareText, shortNumber, timeText } from './report-format.js';
import type { SimReport } from './types.js';

export type FigureUnit = 'share' | 'ms' | 'bytes' | 'bytes-per-second' | 'count' | 'number';

export interface Figure {
  /** Its column in CSV; stable. */
  readonly key: string;
  readonly label: string;
  readonly unit: FigureUnit;
  /** Null where nothing was measured. */
  readonly of: (report: SimReport) => number | null;
}

export interface FigureSection {
  readonly title: string;
  readonly figures: readonly Figure[];
}

const UNIT_TEXTS: Readonly<Record<FigureUnit, (value: number) => string>> = {
  share: shareText,
  ms: timeText,
  bytes: bytesText,
  'bytes-per-second': rateText,
  count: countText,
  number: (value) => (value >= 1000 ? countText(value) : shortNumber(value)),
};

/** A figure of a report for people. */
export function figureText({ of, unit }: Figure, report: SimReport): string {
  const value = of(report);
  return value === null ? NOTHING : UNIT_TEXTS[unit](value);
}

const ratio = (part: number, whole: number): number | null => (whole > 0 ? part / whole : null);
const perSecond = (amount: number, { duration }: SimReport): number | null => ratio(amount * 1000, duration);

/** Full prompt blocks that were not computed, of all. */
export const hitShare = ({ blocks }: SimReport): number | null =>
  ratio(blocks.gpu + blocks.dram + blocks.ssd, blocks.full);

const blocksOf = (key: string, label: string, part: (report: SimReport) => number): Figure => ({
  key,
  label,
  unit: 'share',
  of: (report) => ratio(part(report), report.blocks.full),
});

const percentiles = (name: 'ttft' | 'latency'): Figure[] =>
  (['p50', 'p90', 'p99', 'mean'] as const).map((part) => ({
    key: `${name}_${part}_ms`,
    label: part,
    unit: 'ms',
    of: (report) => report[name][part],
  }));

const counted = (key: string, label: string, of: Figure['of'], unit: FigureUnit = 'count'): Figure => ({
  key,
  label,
  unit,
  of,
});

export const FIGURES: readonly FigureSection[] = [
  {
    title: 'Requests',
    figures: [
      counted('requests', 'arrived', ({ requests }) => requests),
      counted('completed', 'completed', ({ completed }) => completed),
      counted('refused', 'refused: larger than a GPU', ({ refused }) => refused),
      counted('prompt_tokens', 'prompt tokens', ({ tokens }) => tokens.prompt),
      counted('cached_tokens', 'cached', ({ tokens }) => tokens.cached),
      counted('computed_tokens', 'computed', ({ tokens }) => tokens.computed),
      counted('generated_tokens', 'generated tokens', ({ tokens }) => tokens.generated),
    ],
  },
  {
    title: 'Full prompt blocks',
    figures: [
      { key: 'hit_share', label: 'hit', unit: 'share', of: hitShare },
      blocksOf('gpu_share', 'GPU', ({ blocks }) => blocks.gpu),
      blocksOf('dram_share', 'store memory', ({ blocks }) => blocks.dram),
      blocksOf('ssd_share', 'store SSD', ({ blocks }) => blocks.ssd),
      blocksOf('computed_share', 'computed', ({ blocks }) => blocks.computed),
      blocksOf('reachable_share', 'reachable by any routing', ({ reachableBlocks }) => reachableBlocks),
      blocksOf('ceiling_share', 'one cache without limit', ({ ceilingBlocks }) => ceilingBlocks),
    ],
  },
  { title: 'Time to first token', figures: percentiles('ttft') },
  { title: 'Latency', figures: percentiles('latency') },
  {
    title: 'Throughput',
    figures: [
      counted('duration_ms', 'duration', ({ duration }) => duration, 'ms'),
      counted('requests_per_second', 'requests/s', (report) => perSecond(report.completed, report), 'number'),
      counted(
        'prompt_tokens_per_second',
        'prompt tokens/s',
        (report) => perSecond(report.tokens.prompt, report),
        'number',
      ),
      counted(
        'generated_tokens_per_second',
        'generated tokens/s',
        (report) => perSecond(report.tokens.generated, report),
        'number',
      ),
      counted('imbalance', 'load imbalance (most / mean)', ({ imbalance }) => imbalance, 'number'),
    ],
  },
  {
    title: 'Store',
    figures: [
      counted('fetched_bytes', 'fetched', ({ store }) => store.fetchedBytes, 'bytes'),
      counted(
        'fetch_mean_bytes_per_second',
        'fetch, mean',
        (report) => perSecond(report.store.fetchedBytes, report),
        'bytes-per-second',
      ),
      counted(
        'fetch_peak_bytes_per_second',
        'fetch, busiest second',
        ({ store }) => store.peakFetch,
        'bytes-per-second',
      ),
      counted('put_bytes', 'put', ({ store }) => store.putBytes, 'bytes'),
      counted('dram_peak_bytes', 'most in memory', ({ store }) => store.dramPeakBytes, 'bytes'),
      counted('ssd_peak_bytes', 'most on SSD', ({ store }) => store.ssdPeakBytes, 'bytes'),
      counted('store_evicted_blocks', 'blocks evicted', ({ store }) => store.evictedBlocks),
    ],
  },
  {
    title: "Router's shared credit",
    figures: [
      counted('credited', 'decisions that credited', ({ credit }) => credit.credited),
      counted('credit_right', 'right', ({ credit }) => credit.right),
      counted('credit_short', 'short', ({ credit }) => credit.short),
      counted('credit_short_blocks', 'short, blocks', ({ credit }) => credit.shortBlocks),
      counted('credit_stale', 'stale', ({ credit }) => credit.stale),
      counted('credit_stale_blocks', 'stale, blocks', ({ credit }) => credit.staleBlocks),
    ],
  },
  {
    title: "Router's own caps",
    figures: [
      counted('router_index_evictions', 'GPU index evictions', ({ router }) => router.indexEvictions),
      counted('router_edge_evictions', 'hash edges evicted', ({ router }) => router.edgeEvictions),
      counted('router_digest_evictions', 'digests evicted', ({ router }) => router.digestEvictions),
      counted('router_clears', 'clears', ({ router }) => router.clears),
      counted('messages', 'event messages', ({ router }) => router.messages),
      counted('lost_messages', 'lost on the way', ({ router }) => router.lostMessages),
    ],
  },
];

const byKey = new Map(FIGURES.flatMap(({ figures }) => figures).map((figure) => [figure.key, figure]));

/** A figure by its key. */
export function figureOf(key: string): Figure {
  const figure = byKey.get(key);
  if (figure === undefined) throw new RangeError(`no figure is called ${key}`);
  return figure;
}

/** Reasons for zero shared credit with their counts, the commonest first. */
export const zeroReasons = ({ credit }: SimReport): [code: string, decisions: number][] =>
  Object.entries(credit.zero).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
