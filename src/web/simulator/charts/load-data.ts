// Busy shares of workers over time as a grid of cells, and how many requests wait. Pure.
import type { SimPicture, WorkerSeries } from '../../../sim/observed/types.js';
import { countText, NOTHING, shareText, timeText } from '../../../sim/report-format.js';
import { type Columns, columnsOf, lastOf, passed, sumOf } from './columns.js';
import { type Table, thinned } from './table.js';

export interface Heat {
  readonly columns: Columns;
  /** First column that is drawn, and how many. */
  readonly first: number;
  readonly width: number;
  /** Workers that make one row. */
  readonly merged: number;
  readonly rows: number;
  readonly workers: number;
  /** Busy share of each cell, row by row; NaN where no time has passed. */
  readonly busy: Float32Array;
}

export function heatOf(picture: SimPicture, from: number, to: number, mostColumns: number, mostRows: number): Heat {
  const { series } = picture;
  const { workers, buckets } = series;
  const columns = columnsOf(picture, from, to, mostColumns);
  const merged = Math.max(1, Math.ceil(workers.length / mostRows));
  const rows = Math.ceil(workers.length / merged);
  const first = Math.max(0, Math.min(columns.count, Math.floor(from / columns.step)));
  const width = Math.max(0, Math.min(columns.count, Math.ceil(to / columns.step)) - first);
  const busy = new Float32Array(rows * width);
  const end = Math.min(buckets, (first + width) * columns.merged);
  workers.forEach((worker, i) => {
    const row = Math.floor(i / merged) * width;
    for (let bucket = first * columns.merged; bucket < end; bucket++)
      busy[row + Math.floor(bucket / columns.merged) - first]! += worker.busy[bucket]!;
  });
  for (let row = 0; row < rows; row++) {
    const count = Math.min(merged, workers.length - row * merged);
    for (let c = 0; c < width; c++) {
      const time = passed(columns, first + c) * count;
      busy[row * width + c] = time > 0 ? Math.min(1, busy[row * width + c]! / time) : Number.NaN;
    }
  }
  return { columns, first, width, merged, rows, workers: workers.length, busy };
}

/** "worker 3", "workers 8–15". */
export function rowName({ merged, workers }: Pick<Heat, 'merged' | 'workers'>, row: number): string {
  const [from, to] = [row * merged, Math.min(workers, (row + 1) * merged) - 1];
  return from === to ? `worker ${from}` : `workers ${from}–${to}`;
}

/** Rows that get a label: at most `most`, at round distances. */
export function labelledRows(rows: number, most: number): number[] {
  let step = 1;
  while (rows / step > Math.max(1, most)) step *= 2;
  return Array.from({ length: Math.ceil(rows / step) }, (_, i) => i * step);
}

interface Level {
  readonly running: number;
  readonly waiting: number;
  readonly resident: number;
}

/** Of some workers together, at the end of a column. */
function levelsOf(workers: readonly WorkerSeries[], column: number, { merged }: Columns, buckets: number): Level {
  const of = (key: 'running' | 'waiting' | 'resident') =>
    workers.reduce((sum, worker) => sum + lastOf(worker[key], column, merged, buckets), 0);
  return { running: of('running'), waiting: of('waiting'), resident: of('resident') };
}

/** What is known of a row (null: of all workers) in a column. */
export function loadReading(picture: SimPicture, heat: Heat, column: number, row: number | null): string {
  const { columns, merged, width, busy, rows } = heat;
  const { workers, buckets } = picture.series;
  const some = row === null ? workers : workers.slice(row * merged, (row + 1) * merged);
  const { running, waiting, resident } = levelsOf(some, column, columns, buckets);
  const cells = row === null ? Array.from({ length: rows }, (_, i) => i) : [row];
  const shares = cells.map((each) => busy[each * width + column - heat.first]!);
  const sizes = cells.map((each) => Math.min(merged, workers.length - each * merged));
  const share = shares.reduce((sum, each, i) => sum + each * sizes[i]!, 0) / sizes.reduce((sum, size) => sum + size, 0);
  const from = column * columns.step;
  const when = `${timeText(from)} to ${timeText(Math.min(from + columns.step, Math.max(from, columns.end)))}`;
  const who = row === null ? `all ${workers.length} workers` : rowName(heat, row);
  const mean = some.length > 1 ? ' (mean)' : '';
  return `${who}, ${when}: busy ${Number.isNaN(share) ? NOTHING : shareText(share)}${mean}; at its end ${countText(running)} running, ${countText(waiting)} waiting, ${countText(resident)} blocks on GPU`;
}

export interface WaitLine {
  /** Milliseconds at which columns end. */
  readonly at: readonly number[];
  readonly waiting: readonly number[];
}

/** Requests that wait at all workers together. */
export function waitLine(picture: SimPicture, from: number, to: number, most: number): WaitLine {
  const columns = columnsOf(picture, from, to, most);
  const { workers, buckets } = picture.series;
  const places = Array.from({ length: columns.count }, (_, i) => i);
  return {
    at: places.map((i) => Math.min((i + 1) * columns.step, columns.end)),
    waiting: places.map((i) =>
      workers.reduce((sum, { waiting }) => sum + lastOf(waiting, i, columns.merged, buckets), 0),
    ),
  };
}

/** Busy share of each worker over the whole run. */
export function loadOf({ series, now }: SimPicture): number[] {
  const { step, buckets, workers } = series;
  const time = Math.min(now, buckets * step);
  return workers.map(({ busy }) => (time > 0 ? Math.min(1, sumOf(busy, 0, buckets, buckets) / time) : 0));
}

/** "8 workers: busy 61.00 % on the whole; worker 3 most (80.00 %), worker 5 least (40.00 %)". */
export function loadSummary(picture: SimPicture): string {
  const loads = loadOf(picture);
  if (loads.length === 0) return 'No workers.';
  const mean = loads.reduce((sum, busy) => sum + busy, 0) / loads.length;
  let [most, least] = [0, 0];
  loads.forEach((busy, i) => {
    if (busy > loads[most]!) most = i;
    if (busy < loads[least]!) least = i;
  });
  const text = `${loads.length === 1 ? '1 worker' : `${countText(loads.length)} workers`}: busy ${shareText(mean)} of the time`;
  if (loads.length === 1) return text;
  return `${text}; worker ${most} most (${shareText(loads[most]!)}), worker ${least} least (${shareText(loads[least]!)})`;
}

const mostOf = (values: Float64Array, buckets: number): number =>
  values.subarray(0, buckets).reduce((most, each) => Math.max(most, each), 0);

export function loadTable(list: readonly { readonly label: string; readonly picture: SimPicture }[]): Table {
  const named = list.length > 1;
  const rows = list.flatMap(({ label, picture }) =>
    loadOf(picture).map((busy, i) => [
      `worker ${i}`,
      ...(named ? [label] : []),
      shareText(busy),
      countText(mostOf(picture.series.workers[i]!.waiting, picture.series.buckets)),
    ]),
  );
  return { head: ['worker', ...(named ? ['run'] : []), 'busy', 'most waiting'], rows: thinned(rows) };
}
