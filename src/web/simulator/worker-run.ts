// One run as the worker keeps it: what was asked for, what came of it, and what was observed of each of its simulations.
import { type DecisionQuestion, explainDecision } from '../../sim/observed/explain.js';
import { ObservedRun } from '../../sim/observed/observed-run.js';
import type { DecisionAccount } from '../../sim/observed/types.js';
import { curvesCsv, runsCsv } from '../../sim/report-csv.js';
import { resultJson } from '../../sim/report-json.js';
import type { SimResult } from '../../sim/report-types.js';
import { type RunOptions, runAll, Stop } from '../../sim/run-all.js';
import { runOf } from '../../sim/settings/from-texts.js';
import type { RunPlan } from '../../sim/settings/plan.js';
import { openBytes, type TraceInput, workloadInput } from '../../sim/trace-input.js';
import type { TraceOptions } from '../../sim/traces/read.js';
import type { TraceRequest } from '../../sim/traces/types.js';
import type { SimConfig } from '../../sim/types.js';
import type { Settings } from './messages.js';

/** One simulation of a run. */
interface Simulation {
  readonly config: SimConfig;
  /** Null when it was dropped. */
  observed: ObservedRun | null;
  ended: boolean;
}

export class KeptRun {
  readonly number: number;
  readonly plan: RunPlan;
  readonly stop = new Stop();
  /** Null until it has ended. */
  result: SimResult | null = null;
  readonly #input: TraceInput;
  readonly #simulations: Simulation[] = [];

  /** @throws what `runOf` refuses */
  constructor(number: number, settings: Settings, trace: File | null) {
    this.number = number;
    this.plan = runOf(settings, trace !== null);
    this.#input = trace === null ? workloadInput(this.plan.workload!) : fileInput(trace, this.plan.trace);
  }

  /** Bytes of what was observed. */
  get bytes(): number {
    return this.#simulations.reduce((sum, { observed }) => sum + (observed?.bytes ?? 0), 0);
  }

  async run(options: Pick<RunOptions, 'breath' | 'tell' | 'ran'>): Promise<SimResult> {
    this.result = await runAll({
      ...this.plan,
      ...options,
      inputs: [this.#input],
      // Pages always show the curve, which comes with the first pass; what they export has it only where it was asked for.
      curve: true,
      stop: this.stop,
      watch: ({ config }) => {
        const observed = new ObservedRun();
        this.#simulations.push({ config, observed, ended: false });
        return observed;
      },
      ran: (number, result) => {
        const simulation = this.#simulations[number];
        if (simulation !== undefined) simulation.ended = true;
        options.ran?.(number, result);
      },
    });
    return this.result;
  }

  /** What was observed of a simulation; a text that says why there is nothing. */
  observed(simulation: number): ObservedRun | string {
    const found = this.#simulations[simulation];
    if (found === undefined) return 'this simulation has not begun';
    return (
      found.observed ?? 'this simulation is kept as its figures only, for want of memory: run it again to look into it'
    );
  }

  hasEnded(simulation: number): boolean {
    return this.#simulations[simulation]?.ended === true;
  }

  /** Drops what was observed of its earliest simulation that has ended; false where there is none. */
  dropOne(): boolean {
    const first = this.#simulations.find(({ observed, ended }) => observed !== null && ended);
    if (first === undefined) return false;
    first.observed = null;
    return true;
  }

  /** Why a request went where it went; a text that says why that can't be said. */
  async decision(
    simulation: number,
    request: number,
    options: Pick<DecisionQuestion, 'signal' | 'breath'>,
  ): Promise<DecisionAccount | string> {
    const observed = this.observed(simulation);
    if (typeof observed === 'string') return observed;
    const row = observed.row(request);
    const turn = observed.decisionsOf(request);
    if (row === null || turn === 0)
      return `request ${request} was not routed: it has not come yet, or it is larger than a worker's GPU`;
    const { config, ended } = this.#simulations[simulation]!;
    // A run that was cut short saw no more than so many.
    const limit = ended ? observed.reads : this.plan.limit;
    const open = async (): Promise<AsyncIterable<TraceRequest>> => firstOf(await this.#input.open(), limit);
    return (
      (await explainDecision({ config, open, row, turn, ...options })) ??
      `request ${request} did not come again where the trace was read again: has its file changed?`
    );
  }

  /** What the command prints for the same settings; a text that says why there is nothing yet. */
  exported(form: 'json' | 'csv'): { readonly text: string } | string {
    if (this.result === null) return 'the run has not ended: export it then, or cancel it first';
    const { curve, curveOnly } = this.plan;
    const { curves, runs } = this.result;
    if (form === 'csv') return { text: curveOnly ? curvesCsv(curves) : runsCsv(runs) };
    return { text: resultJson({ ...this.result, curves: curve ? curves : [] }) };
  }
}

/** A file, read as often as is needed. */
const fileInput = (file: File, options: TraceOptions): TraceInput => ({
  name: file.name,
  open: async () =>
    openBytes({ name: file.name, source: file.stream(), size: file.size, close: () => undefined }, options),
});

async function* firstOf(
  { requests, close }: Awaited<ReturnType<TraceInput['open']>>,
  most: number,
): AsyncGenerator<TraceRequest> {
  let count = 0;
  try {
    for await (const request of requests) {
      if (count++ >= most) return;
      yield request;
    }
  } finally {
    close();
  }
}
