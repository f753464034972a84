// Runs and curves as CSV (RFC 4180): one row for each policy and sweep point, or for each capacity; raw numbers, no units in cells. A cell
// is empty where nothing was measured.
import { FIGURES } from './report-figures.js';
import type { CurveReport, SimRun } from './report-types.js';

type Cell = string | number | boolean | null;

interface Column {
  readonly key: string;
  readonly of: (run: SimRun) => Cell;
}

const COLUMNS: readonly Column[] = [
  { key: 'trace', of: ({ trace }) => trace },
  { key: 'policy', of: ({ policy }) => policy },
  { key: 'sweep', of: ({ point }) => point?.axis ?? null },
  { key: 'sweep_value', of: ({ point }) => point?.value ?? null },
  { key: 'partial', of: ({ partial }) => partial },
  { key: 'workers', of: ({ config }) => config.workers.count },
  { key: 'gpu_blocks', of: ({ config }) => config.workers.gpuBlocks },
  { key: 'store_dram_bytes', of: ({ config }) => config.store.dramBytes },
  { key: 'store_ssd_bytes', of: ({ config }) => config.store.ssdBytes },
  { key: 'block_size', of: ({ config }) => config.blockSize },
  { key: 'speedup', of: ({ config }) => config.speedup },
  { key: 'seed', of: ({ config }) => config.seed },
  ...FIGURES.flatMap(({ figures }) => figures).map(({ key, of }) => ({ key, of: ({ report }: SimRun) => of(report) })),
];

/** All runs, with a header. */
export function runsCsv(runs: readonly SimRun[]): string {
  return csvText([COLUMNS.map(({ key }) => key), ...runs.map((run) => COLUMNS.map(({ of }) => of(run)))]);
}

/** Capacity curves at round sizes, with a header; the last row of each trace is without a limit. */
export const curvesCsv = (curves: readonly CurveReport[]): string =>
  csvText([
    ['trace', 'capacity_bytes', 'capacity_ids', 'hits', 'share', 'partial'],
    ...curves.flatMap(({ trace, points, partial }) =>
      points.map(({ bytes, capacity, hits, share }) => [trace, bytes, capacity, hits, share, partial]),
    ),
  ]);

/** Rows of cells as text; every line ends in a line feed. */
export const csvText = (rows: readonly (readonly Cell[])[]): string =>
  rows.map((row) => `${row.map(cellText).join(',')}\n`).join('');

function cellText(cell: Cell): string {
  if (cell === null) return '';
  const text = String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
