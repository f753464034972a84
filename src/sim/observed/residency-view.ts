// What one place held between two times, by family: two readings of the log, one that finds the families worth a line, one that draws them.
import type { Families } from './families.js';
import { CAME, CLEARED, EVICTED, RESTORED, type ResidencyLog } from './residency-log.js';
import type { ResidencyRow } from './types.js';

export interface ResidencyQuestion {
  /** A worker, or `STORE`. */
  readonly place: number;
  readonly from: number;
  readonly to: number;
  readonly columns: number;
  /** Most families that get a row. */
  readonly families: number;
}

export interface ResidencyView {
  readonly total: ResidencyRow;
  readonly families: readonly ResidencyRow[];
  readonly familiesLeftOut: number;
}

/** A row while it is drawn. */
interface Line {
  now: number;
  readonly row: ResidencyRow;
}

const ALL = -1;

export function residencyView(log: ResidencyLog, families: Families, question: ResidencyQuestion): ResidencyView {
  const weights = weightsOf(log, families.count, question);
  const seen: number[] = [];
  for (let family = 0; family < weights.length; family++) if (weights[family]! > 0) seen.push(family);
  const chosen = seen.sort((a, b) => weights[b]! - weights[a]! || a - b).slice(0, question.families);
  const lines = chosen.map((family) =>
    lineOf(family, families.firstRequest[family]!, families.requests[family]!, question.columns),
  );
  const requests = families.requests.subarray(0, families.count).reduce((sum, count) => sum + count, 0);
  const total = lineOf(ALL, ALL, requests, question.columns);
  draw(log, question, total, new Map(chosen.map((family, i) => [family, lines[i]!])));
  return {
    total: total.row,
    families: lines.map(({ row }) => row),
    familiesLeftOut: seen.length - chosen.length,
  };
}

/** By family: the most that was held in the view, and all that moved in it. */
function weightsOf(log: ResidencyLog, families: number, { place, from, to }: ResidencyQuestion): Float64Array {
  const held = new Int32Array(families);
  const peak = new Int32Array(families);
  const moved = new Float64Array(families);
  let inView = false;
  for (let i = 0; i < log.count; i++) {
    if (log.place[i] !== place) continue;
    if (log.time[i]! > to) break;
    if (!inView && log.time[i]! >= from) {
      peak.set(held);
      inView = true;
    }
    const kind = log.kind[i]!;
    const family = log.family[i]!;
    if (kind === CLEARED) held.fill(0);
    else if (family >= 0) {
      held[family]! += changeOf(kind, log.blocks[i]!);
      if (inView) {
        moved[family]! += log.blocks[i]!;
        peak[family] = Math.max(peak[family]!, held[family]!);
      }
    }
  }
  if (!inView) peak.set(held);
  for (let family = 0; family < families; family++) moved[family]! += peak[family]!;
  return moved;
}

function draw(
  log: ResidencyLog,
  { place, from, to, columns }: ResidencyQuestion,
  total: Line,
  byFamily: ReadonlyMap<number, Line>,
): void {
  const lines = [total, ...byFamily.values()];
  const width = (to - from) / columns;
  let column = 0;
  const turnTo = (next: number): void => {
    if (next > column) for (const { now, row } of lines) row.held.fill(now, column, next);
    column = Math.max(column, next);
  };
  for (let i = 0; i < log.count; i++) {
    if (log.place[i] !== place) continue;
    const time = log.time[i]!;
    if (time > to) break;
    const kind = log.kind[i]!;
    const blocks = log.blocks[i]!;
    const inView = time >= from;
    if (inView) turnTo(Math.min(columns - 1, Math.floor((time - from) / width)));
    if (kind === CLEARED) {
      for (const line of lines) line.now = 0;
      continue;
    }
    for (const line of [total, byFamily.get(log.family[i]!)]) {
      if (line === undefined) continue;
      line.now += changeOf(kind, blocks);
      if (!inView) continue;
      const { stored, fetched, evicted } = line.row;
      (kind === CAME ? stored : kind === EVICTED ? evicted : fetched)[column]! += blocks;
    }
  }
  turnTo(columns);
}

/** How many blocks more a place holds. */
function changeOf(kind: number, blocks: number): number {
  if (kind === EVICTED) return -blocks;
  return kind === CAME || kind === RESTORED ? blocks : 0;
}

function lineOf(family: number, firstRequest: number, requests: number, columns: number): Line {
  const column = (): Float64Array => new Float64Array(columns);
  return {
    now: 0,
    row: { family, firstRequest, requests, held: column(), stored: column(), fetched: column(), evicted: column() },
  };
}
