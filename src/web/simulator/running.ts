// Runs as they go: begun, heard of, cancelled, ended. One run goes on at a time; a new one ends the one before it as Ctrl-C does, so that what is under way is
// still completed, and waits for that. Who is impatient ends it at once, at the price of what the worker kept.
import type { Client, RunAnswer } from './client.js';
import type { Settings } from './messages.js';
import { type Run, Runs } from './runs.js';
import type { TraceName } from './trace-file.js';

/** A trace that is read: its file, and what it is called. */
export interface ChosenTrace {
  readonly file: File;
  name: TraceName;
}

export interface RunningOptions {
  readonly client: () => Client;
  /** A run has come further; `picture` where that can be seen in charts alone. */
  readonly moved: (run: Run, what: 'standing' | 'picture' | 'results') => void;
  readonly failed: (answer: Extract<RunAnswer, { readonly kind: 'failed' }>) => void;
  /** For those who hear the page. */
  readonly say: (text: string) => void;
  /** The run has ended with all that it will have. */
  readonly ended: (run: Run) => void;
}

export class Running {
  readonly runs = new Runs();
  readonly #options: RunningOptions;
  /** The run that was asked for last, until it has ended. */
  #last: { readonly run: Run; readonly file: File | null } | null = null;
  /** Runs that were cancelled and complete what is under way. */
  readonly #ending = new Set<Run>();

  constructor(options: RunningOptions) {
    this.#options = options;
  }

  /** Whether something goes on. */
  get busy(): boolean {
    return this.#last !== null || this.#ending.size > 0;
  }

  /** The run that shows its progress; null where one before it still ends. */
  get current(): Run | null {
    return this.#ending.size > 0 ? null : (this.#last?.run ?? null);
  }

  /** The run that is waited for. */
  get endingRun(): Run | null {
    const [first] = this.#ending;
    return first ?? null;
  }

  begin(settings: Settings, trace: ChosenTrace | null): Run {
    if (this.#last !== null) this.#cancel(this.#last.run);
    const { run, left } = this.runs.add(settings, trace?.name ?? null);
    const client = this.#options.client();
    for (const old of left) client.forget(old.number);
    this.#last = { run, file: trace?.file ?? null };
    client.run(run.number, settings, this.#last.file);
    return run;
  }

  /** Ends what runs; the second time at once. Returns whether it was at once. */
  cancel(): boolean {
    if (this.#last !== null && !this.#ending.has(this.#last.run)) {
      this.#cancel(this.#last.run);
      this.#options.say('Cancelling: requests under way are completed.');
      this.#options.moved(this.#last.run, 'standing');
      return false;
    }
    if (this.#ending.size === 0) return false;
    this.#endAtOnce();
    return true;
  }

  remove(run: Run): void {
    this.#options.client().forget(run.number);
    this.runs.remove(run);
  }

  /** The worker died, and what it kept with it. */
  died(): void {
    for (const run of this.runs.list) {
      run.alive = false;
      if (run.state === 'running') run.state = 'failed';
    }
    this.#last = null;
    this.#ending.clear();
  }

  hear(answer: RunAnswer): void {
    const run = this.runs.of(answer.run);
    if (run === null) return;
    const { moved, say } = this.#options;
    if (answer.kind === 'progress') {
      const { simulation, simulations, label, part, requests, picture } = answer;
      run.standing = { simulation, simulations, label, part, requests };
      if (picture !== null) run.pictures[simulation] = picture;
      moved(run, picture === null ? 'standing' : 'picture');
    } else if (answer.kind === 'simulated') {
      run.result = answer.result;
      run.pictures[answer.simulation] = answer.picture;
      moved(run, 'results');
      if (run.standing !== null && run.standing.simulations > 1)
        say(`${run.standing.label} is complete, ${answer.simulation + 1} of ${run.standing.simulations}.`);
    } else if (answer.kind === 'curve') {
      run.curve = answer.curve;
      moved(run, 'results');
    } else if (answer.kind === 'finished') {
      run.result = answer.result;
      this.#end(run, answer.result.partial ? 'cancelled' : 'finished');
    } else {
      this.#end(run, 'failed');
      this.#options.failed(answer);
    }
  }

  #cancel(run: Run): void {
    this.#ending.add(run);
    this.#options.client().cancel(run.number);
  }

  /** What waits behind the runs that are ended begins anew, in another worker. */
  #endAtOnce(): void {
    const client = this.#options.client();
    client.endAtOnce();
    const waits = this.#last !== null && !this.#ending.has(this.#last.run) ? this.#last : null;
    for (const run of this.runs.list) run.alive = run === waits?.run;
    for (const run of this.#ending) run.state = 'cancelled';
    this.#ending.clear();
    this.#last = waits;
    if (waits !== null) client.run(waits.run.number, waits.run.settings, waits.file);
  }

  #end(run: Run, state: Run['state']): void {
    run.state = state;
    this.#ending.delete(run);
    if (this.#last?.run === run) this.#last = null;
    this.#options.moved(run, 'results');
    if (state !== 'failed') this.#options.ended(run);
  }
}
