// Drives one engine in real time: a step, the time that it takes, then what came of it. The only place where engines meet a clock.
import { Engine, type EngineOptions, type Output, type StepResult } from './engine.js';
import type { EngineRequest } from './engine-run.js';
import type { KvEvent } from './kv-events.js';
import { type LatencyModel, stepMs } from './latency.js';

/** Hears the tokens of one request. */
export type OutputListener = (output: Output) => void;

export class EngineLoop {
  readonly engine: Engine;
  readonly #latency: LatencyModel;
  readonly #onEvents: (events: readonly KvEvent[]) => void;
  readonly #listeners = new Map<number, OutputListener>();
  #timer: NodeJS.Timeout | null = null;
  #stepping = false;
  #stopped = false;
  /** Steps done. */
  steps = 0;

  /** @param onEvents takes the events of a step, when there are any */
  constructor(options: EngineOptions, latency: LatencyModel, onEvents: (events: readonly KvEvent[]) => void) {
    this.engine = new Engine(options);
    this.#latency = latency;
    this.#onEvents = onEvents;
  }

  /** Requests that run or wait. */
  get load(): number {
    return this.engine.running + this.engine.waiting;
  }

  /** Takes a request in. @throws what `Engine.submit` throws */
  submit(request: EngineRequest, listener: OutputListener): number {
    const run = this.engine.submit(request);
    this.#listeners.set(run, listener);
    this.#next();
    return run;
  }

  /** Stops a request. False when it has finished. */
  abort(run: number): boolean {
    this.#listeners.delete(run);
    return this.engine.abort(run);
  }

  /** Forgets all blocks; false while requests run. */
  clear(): boolean {
    const cleared = this.engine.clear();
    this.#publish(this.engine.takeEvents());
    return cleared;
  }

  /** Evicts blocks. Returns how many. */
  evict(blocks: number): number {
    const evicted = this.engine.evict(blocks);
    this.#publish(this.engine.takeEvents());
    return evicted;
  }

  /** Ends at once; no listener is called any more. */
  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#listeners.clear();
  }

  /** Begins the next step, unless one is under way. The pause before the first lets requests of one moment share it. */
  #next(): void {
    if (this.#stepping || this.#stopped || !this.engine.busy) return;
    this.#stepping = true;
    setImmediate(() => this.#step());
  }

  #step(): void {
    if (this.#stopped) return;
    const result = this.engine.step();
    this.steps++;
    const ms = stepMs(result, this.#latency);
    if (ms === 0) this.#end(result);
    else this.#timer = setTimeout(() => this.#end(result), ms);
  }

  #end({ events, outputs }: StepResult): void {
    this.#stepping = false;
    this.#publish(events);
    for (const output of outputs) {
      const listener = this.#listeners.get(output.run);
      if (output.finished) this.#listeners.delete(output.run);
      listener?.(output);
    }
    this.#next();
  }

  #publish(events: readonly KvEvent[]): void {
    if (events.length > 0 && !this.#stopped) this.#onEvents(events);
  }
}
