// Runs as text: policies side by side, a figure a line; a sweep as one line for each of its points and policies.
import { FIGURES, figureOf, figureText, zeroReasons } from './report-figures.js';
import { bytesText, countText, NOTHING, rateText, shareText, timeText } from './report-format.js';
import type { SimRun, TraceFacts } from './report-types.js';
import { pointText, runText } from './sweep.js';
import type { EventModel, SimConfig } from './types.js';

const GAP = '  ';

/** Figures of a sweep's line. */
const SWEEP_COLUMNS: readonly (readonly [key: string, head: string])[] = [
  ['hit_share', 'hit'],
  ['gpu_share', 'GPU'],
  ['dram_share', 'memory'],
  ['ssd_share', 'SSD'],
  ['ceiling_share', 'ceiling'],
  ['ttft_p50_ms', 'TTFT p50'],
  ['ttft_p90_ms', 'p90'],
  ['ttft_p99_ms', 'p99'],
  ['generated_tokens_per_second', 'tokens/s'],
  ['fetch_mean_bytes_per_second', 'fetch'],
  ['credit_stale', 'stale'],
];

/** Lines with their columns under each other: the first `left` of them to the left, the others to the right. */
export function aligned(rows: readonly (readonly string[])[], left = 1): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, i) => (i < left ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join(GAP)
      .trimEnd(),
  );
}

/** What was read, in one line. */
export function factsText({ name, format, gzip, requests, promptTokens, outputTokens, span }: TraceFacts): string {
  const kind = format === null ? '' : ` (${format}${gzip ? ', gzip' : ''})`;
  return `${name}${kind}: ${countText(requests)} requests in ${timeText(span)}, ${countText(promptTokens)} prompt and ${countText(outputTokens)} output tokens`;
}

/** What was simulated, in a few lines. */
export function configText({
  workers,
  store,
  groups,
  blockSize,
  ranks,
  speedup,
  seed,
  events,
  restarts,
}: SimConfig): string {
  const groupTexts = groups.map(
    ({ kind, window, bytesPerBlock }) => `${kind}${window === null ? '' : ` ${window}`} ${bytesText(bytesPerBlock)}`,
  );
  const rates = `link ${rateText(store.linkBytesPerSecond)}, together ${rateText(store.totalBytesPerSecond)}`;
  const holds =
    store.dramBytes + store.ssdBytes === 0
      ? 'store: none'
      : `store: ${bytesText(store.dramBytes)} memory, ${bytesText(store.ssdBytes)} SSD, ${rates}, latency ${timeText(store.latency)}`;
  return [
    `  ${countText(workers.count)} workers of ${countText(workers.gpuBlocks)} GPU blocks, prefill ${countText(workers.prefillTokensPerSecond)} tokens/s, batch ${workers.batch}; ${holds}`,
    `  blocks of ${blockSize} tokens: ${groupTexts.join(' + ')}; ${ranks} ranks; ${eventsText(events)}; speed-up ${speedup}; seed ${seed}`,
    ...restarts.map(
      ({ at, worker }) => `  ${worker === null ? 'the store' : `worker ${worker}`} starts anew at ${timeText(at)}`,
    ),
  ].join('\n');
}

function eventsText({ delay, jitter, loss }: EventModel): string {
  const more = jitter > 0 ? ` to ${timeText(delay + jitter)}` : '';
  return `events after ${timeText(delay)}${more}${loss > 0 ? `, ${shareText(loss)} lost` : ''}`;
}

/** What a sweep varies, as a line below the configuration of its first run. */
export function sweptText(runs: readonly SimRun[]): string {
  const points = runs.flatMap(({ point }) => (point === null ? [] : [pointText(point)]));
  return `  swept: ${[...new Set(points)].join(', ')}; all else as above`;
}

/** The runs of one trace outside a sweep, side by side. */
export function policyTable(runs: readonly SimRun[]): string {
  const rows: string[][] = [['', ...runs.map(headOf)]];
  for (const { title, figures } of FIGURES) {
    rows.push([title]);
    for (const figure of figures)
      rows.push([`  ${figure.label}`, ...runs.map(({ report }) => figureText(figure, report))]);
  }
  return aligned(rows).join('\n');
}

/** The runs of one trace's sweep, a line each. */
export function sweepTable(runs: readonly SimRun[]): string {
  const head = [runs[0]?.point?.axis ?? '', 'policy', ...SWEEP_COLUMNS.map(([, text]) => text)];
  const rows = runs.map(({ point, policy, partial, report }) => [
    point === null ? NOTHING : pointText(point).slice(point.axis.length + 1),
    partial ? `${policy} (partial)` : policy,
    ...SWEEP_COLUMNS.map(([key]) => figureText(figureOf(key), report)),
  ]);
  return aligned([head, ...rows], 2).join('\n');
}

/** Why decisions credited nothing from the store, a reason a line. */
export function zeroTable(runs: readonly SimRun[]): string {
  const reasons = runs.map(({ report }) => new Map(zeroReasons(report)));
  const codes = [...new Set(reasons.flatMap((counts) => [...counts.keys()]))];
  if (codes.length === 0) return 'No decision was without shared credit.';
  const share = (run: SimRun, count: number): string =>
    run.report.requests > 0 ? ` (${shareText(count / run.report.requests)})` : '';
  const rows = codes.map((code) => [
    `  ${code}`,
    ...runs.map((run, i) => {
      const count = reasons[i]!.get(code) ?? 0;
      return `${countText(count)}${share(run, count)}`;
    }),
  ]);
  const head = ['Decisions without shared credit', ...runs.map(runText)];
  return aligned([head, ...rows]).join('\n');
}

/** Requests, busy time and hits of each worker. */
export function workerTable(run: SimRun): string {
  const rows = run.report.perWorker.map(({ requests, busy, hitBlocks }, worker) => [
    `  worker ${worker}`,
    countText(requests),
    timeText(busy),
    countText(hitBlocks),
  ]);
  return aligned([[`Workers, ${headOf(run)}`, 'requests', 'busy', 'hit blocks'], ...rows]).join('\n');
}

/** What was odd about a trace, a warning a line. */
export const warningLines = ({ name, warnings }: TraceFacts): string[] =>
  warnings.flatMap(({ code, count, firstLine, text, quotes }) => [
    `${name}: ${countText(count)} × ${code} (first in line ${firstLine}): ${text}`,
    ...quotes.map((quote) => `    ${quote}`),
  ]);

const headOf = (run: SimRun): string => (run.partial ? `${runText(run)} (partial)` : runText(run));
