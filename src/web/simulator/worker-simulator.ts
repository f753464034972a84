// The simulator's worker: runs what the page asks for, one run after the other, and answers questions about runs while they go on and afterwards. It knows
// no browser: who makes it hands in how to answer, the time, and how to let messages have their turn (worker.ts).
import { MoonrouteError } from '../../errors.js';
import type { ObservedRun } from '../../sim/observed/observed-run.js';
import type { SimPicture } from '../../sim/observed/types.js';
import type { SimResult } from '../../sim/report-types.js';
import { flagOf } from '../../sim/settings/refusal.js';
import type { SimBreath } from '../../sim/simulate.js';
import type { Answer, Ask } from './messages.js';
import { KeptRun } from './worker-run.js';
import { columnsOf } from './worker-transfer.js';

/** What the worker works with. */
export interface WorkerPlatform {
  readonly post: (answer: Answer, transfer: ArrayBuffer[]) => void;
  /** Milliseconds, of any beginning. */
  readonly now: () => number;
  /** Lets messages that have come be read. */
  readonly turn: () => Promise<void>;
}

/** Milliseconds of work before messages are read. */
export const BREATH_MS = 30;
/** Least milliseconds between two words about progress: ten a second. */
export const PROGRESS_MS = 100;
/** Runs whose observations are kept; of older ones only what they came to. */
export const RUNS_WITH_DETAILS = 6;
/** Bytes of all observations that are kept, besides those of the simulation that runs. */
export const MAX_DETAIL_BYTES = 384 << 20;
/** Runs that are kept at all. */
export const MAX_RUNS = 64;

type Question = Extract<Ask, { readonly ask: number }>;
type RunAsk = Extract<Ask, { readonly kind: 'run' }>;

export class SimulatorWorker {
  readonly #platform: WorkerPlatform;
  /** In the order in which they came. */
  readonly #runs = new Map<number, KeptRun>();
  /** Runs that wait for their turn and were cancelled or forgotten. */
  readonly #unwanted = new Map<number, 'cancel' | 'forget'>();
  #queue: Promise<void> = Promise.resolve();
  /** The decision that is being explained. */
  #explaining: { readonly run: number; readonly ask: number; readonly abort: AbortController } | null = null;

  constructor(platform: WorkerPlatform) {
    this.#platform = platform;
  }

  /** Takes what the page says. Answers come through `post`, some of them later. */
  take(said: Ask): void {
    switch (said.kind) {
      case 'run':
        this.#queue = this.#queue.then(() => this.#run(said));
        break;
      case 'cancel':
        this.#end(said.run, 'cancel');
        break;
      case 'forget':
        if (this.#explaining?.run === said.run) this.#explaining.abort.abort();
        this.#end(said.run, 'forget');
        this.#runs.delete(said.run);
        break;
      case 'withdraw':
        if (this.#explaining?.ask === said.question) this.#explaining.abort.abort();
        break;
      default:
        this.#answer(said);
    }
  }

  /** When all runs asked for so far have ended. */
  get idle(): Promise<void> {
    return this.#queue;
  }

  #end(number: number, how: 'cancel' | 'forget'): void {
    const run = this.#runs.get(number);
    if (run === undefined) this.#unwanted.set(number, how);
    else run.stop.request();
  }

  async #run({ run: number, settings, trace }: RunAsk): Promise<void> {
    const before = this.#unwanted.get(number);
    this.#unwanted.delete(number);
    if (before === 'forget') return;
    // A run that is forgotten while it goes on says nothing more.
    let begun = false;
    const post = (answer: Answer): void => {
      if (!begun || this.#runs.has(number)) this.#post(answer);
    };
    try {
      const run = new KeptRun(number, settings, trace);
      this.#runs.set(number, run);
      begun = true;
      this.#makeRoom();
      if (before === 'cancel') run.stop.request();
      const result = await run.run({
        breath: this.#breath(),
        tell: this.#teller(run, post),
        ran: (simulation, found) => this.#ran(run, simulation, found, post),
      });
      post({ kind: 'finished', run: number, result });
    } catch (error) {
      post({ kind: 'failed', run: number, ...refusalOf(error) });
      this.#runs.delete(number);
    }
  }

  #ran(run: KeptRun, simulation: number, result: SimResult, post: (answer: Answer) => void): void {
    const curve = simulation === 0 ? result.curves[0] : undefined;
    const observed = run.observed(simulation);
    if (typeof observed !== 'string')
      post({ kind: 'simulated', run: run.number, simulation, result, picture: observed.picture(true) });
    if (curve !== undefined) post({ kind: 'curve', run: run.number, curve });
    this.#makeRoom();
  }

  /** Tells the page how far a run is, not too often; at once when there is something to see. */
  #teller(
    run: KeptRun,
    post: (answer: Answer) => void,
  ): (
    label: string,
    simulation: number,
    simulations: number,
    standing: { part: number | null; requests: number },
  ) => void {
    let toldAt = Number.NEGATIVE_INFINITY;
    return (label, simulation, simulations, { part, requests }) => {
      const now = this.#platform.now();
      if (now - toldAt < PROGRESS_MS) return;
      toldAt = now;
      const observed = run.observed(simulation);
      const picture = typeof observed === 'string' ? null : observed.picture(false);
      post({ kind: 'progress', run: run.number, simulation, simulations, label, part, requests, picture });
    };
  }

  #breath(): SimBreath {
    const { now, turn } = this.#platform;
    let taken = now();
    return {
      due: () => now() - taken >= BREATH_MS,
      take: async () => {
        await turn();
        taken = now();
      },
    };
  }

  /** Keeps to what may be kept: the oldest goes first. */
  #makeRoom(): void {
    const runs = [...this.#runs.values()];
    for (const old of runs.slice(0, -MAX_RUNS)) this.#runs.delete(old.number);
    for (const old of runs.slice(0, -RUNS_WITH_DETAILS)) while (old.dropOne());
    for (const run of runs) while (this.#detailBytes() > MAX_DETAIL_BYTES && run.dropOne());
  }

  #detailBytes(): number {
    return [...this.#runs.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #answer(question: Question): void {
    const run = this.#runs.get(question.run);
    if (run === undefined) {
      this.#refuse(question, 'this run is not kept any more: run it again to look into it');
      return;
    }
    if (question.kind === 'decision') {
      void this.#explain(question, run);
      return;
    }
    if (question.kind === 'export') {
      const exported = run.exported(question.form);
      if (typeof exported === 'string') this.#refuse(question, exported);
      else this.#post({ kind: 'export', ask: question.ask, text: exported.text });
      return;
    }
    const observed = run.observed(question.simulation);
    if (typeof observed === 'string') this.#refuse(question, observed);
    else this.#post(lookedUp(question, observed, run.hasEnded(question.simulation)));
  }

  /** One decision at a time: a newer question takes the place of the one before. */
  async #explain(question: Extract<Ask, { readonly kind: 'decision' }>, run: KeptRun): Promise<void> {
    this.#explaining?.abort.abort();
    const abort = new AbortController();
    this.#explaining = { run: run.number, ask: question.ask, abort };
    try {
      const account = await run.decision(question.simulation, question.request, {
        signal: abort.signal,
        breath: this.#breath(),
      });
      if (typeof account === 'string') this.#refuse(question, account);
      else this.#post({ kind: 'decision', ask: question.ask, account });
    } catch (error) {
      const text = abort.signal.aborted
        ? 'another decision was asked for, or nobody waits for this one'
        : textOf(error);
      this.#refuse(question, text);
    } finally {
      if (this.#explaining?.abort === abort) this.#explaining = null;
    }
  }

  #refuse({ ask }: Question, text: string): void {
    this.#post({ kind: 'refused', ask, text });
  }

  #post(answer: Answer): void {
    this.#platform.post(answer, [...columnsOf(answer)]);
  }
}

function lookedUp(
  question: Extract<Question, { readonly kind: 'picture' | 'requests' | 'timeline' }>,
  observed: ObservedRun,
  ended: boolean,
): Answer {
  const { ask } = question;
  switch (question.kind) {
    case 'picture': {
      const picture: SimPicture = observed.picture(ended);
      return { kind: 'picture', ask, picture };
    }
    case 'requests':
      return { kind: 'requests', ask, ...observed.requests(question.order, question.from, question.count) };
    case 'timeline':
      return { kind: 'timeline', ask, view: observed.timeline(question) };
  }
}

function refusalOf(error: unknown): { readonly code: string; readonly text: string; readonly flag: string | null } {
  const code = error instanceof MoonrouteError ? error.code : 'internal';
  return { code, text: textOf(error), flag: flagOf(error) };
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
