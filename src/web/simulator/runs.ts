// The runs that the page keeps: the last few, with their settings, results and pictures, as far as they have come.
import type { SimPicture } from '../../sim/observed/types.js';
import type { CurveReport, SimResult, SimRun } from '../../sim/report-types.js';
import type { Settings } from './messages.js';
import { PAGE_SETTINGS } from './settings-scenarios.js';
import { differences } from './settings-words.js';
import { sameTrace, type TraceName } from './trace-file.js';

/** Each holds its observations in the worker: some tens of MB for a hundred thousand requests. */
const RUNS_KEPT = 6;

export type RunState = 'running' | 'finished' | 'cancelled' | 'failed';

/** How far a run is. */
export interface Standing {
  readonly simulation: number;
  readonly simulations: number;
  readonly label: string;
  readonly part: number | null;
  readonly requests: number;
}

export interface Run {
  readonly number: number;
  readonly settings: Settings;
  trace: TraceName | null;
  /** What is new in it, in words. */
  readonly words: string;
  state: RunState;
  standing: Standing | null;
  /** Null until its first simulation is complete. */
  result: SimResult | null;
  /** By simulation; of the one that runs, as far as it is. */
  readonly pictures: SimPicture[];
  curve: CurveReport | null;
  /** The worker still has it, so that it can be asked about requests. */
  alive: boolean;
}

/** Completed simulations of a run. */
export const simulationsOf = (run: Run): readonly SimRun[] => run.result?.runs ?? [];

export class Runs {
  readonly list: Run[] = [];
  #made = 0;

  /** A new run; the oldest leaves where there are too many. */
  add(settings: Settings, trace: TraceName | null): { readonly run: Run; readonly left: readonly Run[] } {
    const before = this.list.at(-1);
    const run: Run = {
      number: ++this.#made,
      settings,
      trace,
      words: wordsOf(before, settings, trace),
      state: 'running',
      standing: null,
      result: null,
      pictures: [],
      curve: null,
      alive: true,
    };
    this.list.push(run);
    return { run, left: this.list.splice(0, Math.max(0, this.list.length - RUNS_KEPT)) };
  }

  of(number: number): Run | null {
    return this.list.find((run) => run.number === number) ?? null;
  }

  remove(run: Run): void {
    this.list.splice(this.list.indexOf(run), 1);
  }
}

function firstWords(settings: Settings, trace: TraceName | null): string {
  const words = differences(PAGE_SETTINGS, settings);
  if (trace !== null) words.unshift(`trace ${trace.name}`);
  return words.length === 0 ? "the page's defaults" : words.join('; ');
}

function wordsOf(before: Run | undefined, settings: Settings, trace: TraceName | null): string {
  if (before === undefined) return firstWords(settings, trace);
  const words = differences(before.settings, settings);
  if (!sameTrace(before.trace, trace)) words.unshift(`trace ${trace?.name ?? 'built-in workload'}`);
  return words.length === 0 ? `as run ${before.number}` : words.join('; ');
}
