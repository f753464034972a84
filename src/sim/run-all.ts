// Runs the planned simulations one after the other over each trace, and gathers what was read on the way. The first pass over a trace also
// yields its facts and its capacity curve, so that neither costs a pass of its own.
//
// There is no clock in here and nothing of a platform: who runs it hands in when to breathe, and how.
import { MoonrouteError } from '../errors.js';
import { CapacityCurve } from './curve.js';
import type { SimObserver } from './observed/observer.js';
import { curveReport } from './report-curve.js';
import type { CurveReport, SimResult, SimRun, TraceFacts } from './report-types.js';
import { type SimBreath, simulate } from './simulate.js';
import { type PlannedRun, runText } from './sweep.js';
import type { OpenTrace, TraceInput } from './trace-input.js';
import type { TraceRequest } from './traces/types.js';
import type { SimConfig } from './types.js';

/** Where one run is. */
export interface Standing {
  /** Part of its trace, 0 … 1; null where its end is not known. */
  readonly part: number | null;
  readonly requests: number;
  /** Milliseconds of the trace's clock since its first arrival. */
  readonly at: number;
}

/** Asks running simulations to end with what they have; `onStop` is called when that is asked. */
export class Stop {
  #requested = false;
  onStop: () => void = () => undefined;

  get requested(): boolean {
    return this.#requested;
  }

  request(): void {
    this.#requested = true;
    this.onStop();
  }
}

export interface RunOptions {
  readonly inputs: readonly TraceInput[];
  readonly runs: readonly PlannedRun[];
  /** Gives block sizes of the curve. */
  readonly base: SimConfig;
  /** Whether a capacity curve is wanted; without runs it is all there is. */
  readonly curve: boolean;
  /** Requests taken of each trace. */
  readonly limit: number;
  readonly stop: Stop;
  readonly breath: SimBreath;
  readonly tell: (label: string, run: number, runs: number, standing: Standing) => void;
  /** Who watches a run; asked before it begins. */
  readonly watch?: (run: PlannedRun, number: number, input: TraceInput) => SimObserver | undefined;
  /** A run is complete, or cut short: it is the last of those that are found so far. */
  readonly ran?: (number: number, result: SimResult) => void;
}

/**
 * All runs over all traces. A stop ends the requests, so that those under way still complete and what is reported adds up.
 * @throws MoonrouteError `trace-empty`, and what the reader and the simulator throw
 */
export async function runAll(options: RunOptions): Promise<SimResult> {
  const { inputs, runs, stop, tell, watch, ran } = options;
  const [traces, done, curves]: [TraceFacts[], SimRun[], CurveReport[]] = [[], [], []];
  const total = inputs.length * Math.max(1, runs.length);
  let partial = false;
  const found = (): SimResult => ({ partial, traces: [...traces], runs: [...done], curves: [...curves] });
  for (const [place, input] of inputs.entries()) {
    const plan: readonly (PlannedRun | null)[] = runs.length > 0 ? runs : [null];
    for (const [step, run] of plan.entries()) {
      if (stop.requested) {
        partial = true;
        break;
      }
      const label = run === null ? 'capacity curve' : runText(run);
      const number = place * plan.length + step;
      const pass = new Pass(await input.open(), options, step === 0 && options.curve, (standing) =>
        tell(label, number, total, standing),
      );
      stop.onStop = () => pass.close();
      const report =
        run === null
          ? await pass.exhaust()
          : await simulate(run.config, pass.requests(), {
              progress: pass.tell,
              breath: pass.breath,
              observer: watch?.(run, number, input),
            });
      partial ||= pass.cut;
      if (pass.count === 0) {
        if (pass.cut) break;
        throw new MoonrouteError('trace-empty', `${input.name} holds no request${pass.oddities()}`);
      }
      if (step === 0) traces.push(pass.facts(input.name));
      if (report !== null && run !== null) done.push({ ...run, trace: input.name, partial: pass.cut, report });
      if (step === 0 && pass.curve !== null && pass.curve.references > 0) {
        const subject = { trace: input.name, idTokens: pass.idTokens!, partial: pass.cut };
        curves.push(curveReport(pass.curve, subject, options.base));
      }
      ran?.(number, found());
    }
  }
  return found();
}

/** One reading of one trace. */
class Pass {
  readonly #open: OpenTrace;
  readonly #options: RunOptions;
  readonly #show: (standing: Standing) => void;
  readonly curve: CapacityCurve | null;
  count = 0;
  /** Whether a stop ended it before its trace did. */
  cut = false;
  idTokens: number | null = null;
  #promptTokens = 0;
  #outputTokens = 0;
  #greatestId = -1;
  #firstAt = 0;
  #lastAt = 0;

  constructor(open: OpenTrace, options: RunOptions, curve: boolean, show: (standing: Standing) => void) {
    this.#open = open;
    this.#options = options;
    this.#show = show;
    this.curve = curve ? new CapacityCurve() : null;
  }

  readonly tell = (): void => {
    const read = this.#open.part();
    const { limit } = this.#options;
    const part = limit === Number.POSITIVE_INFINITY ? read : Math.max(read ?? 0, this.count / limit);
    this.#show({ part, requests: this.count, at: this.#lastAt - this.#firstAt });
  };

  /** Tells where it is, and lets all else have its turn. */
  readonly breath: SimBreath = {
    due: () => this.#options.breath.due(),
    take: () => {
      this.tell();
      return this.#options.breath.take();
    },
  };

  close(): void {
    this.#open.close();
  }

  /** Reads to the end without a simulation. */
  async exhaust(): Promise<null> {
    for await (const _ of this.requests()) if (this.breath.due()) await this.breath.take();
    return null;
  }

  async *requests(): AsyncGenerator<TraceRequest> {
    const { limit, stop } = this.#options;
    try {
      for await (const request of this.#open.requests) {
        if (stop.requested) {
          this.cut = true;
          return;
        }
        this.#see(request);
        yield request;
        if (this.count >= limit) return;
      }
      if (stop.requested) this.cut = true;
    } catch (error) {
      // A closed source ends with an error of its own.
      if (!stop.requested) throw error;
      this.cut = true;
    } finally {
      this.close();
    }
  }

  #see({ at, inputTokens, outputTokens, hashIds, idTokens }: TraceRequest): void {
    if (this.count === 0) this.#firstAt = at;
    this.#lastAt = Math.max(this.#lastAt, at);
    this.count++;
    this.#promptTokens += inputTokens;
    this.#outputTokens += outputTokens;
    if (hashIds === null) return;
    this.idTokens ??= idTokens;
    for (const id of hashIds) if (id > this.#greatestId) this.#greatestId = id;
    this.curve?.add(hashIds);
  }

  /** The reader's first oddity, for an error that has nothing better to say. */
  oddities(): string {
    const first = this.#open.report?.warnings[0];
    return first === undefined ? '' : `: ${first.count} ${first.text}`;
  }

  facts(name: string): TraceFacts {
    const report = this.#open.report;
    return {
      name,
      format: report?.format ?? null,
      gzip: report?.gzip ?? false,
      requests: this.count,
      skipped: report?.skipped ?? 0,
      promptTokens: this.#promptTokens,
      outputTokens: this.#outputTokens,
      idTokens: this.idTokens,
      distinctIds: this.#greatestId + 1,
      span: Math.max(0, this.#lastAt - this.#firstAt),
      warnings: report?.warnings ?? [],
    };
  }
}
