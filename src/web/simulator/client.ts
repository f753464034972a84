// The page's side of its worker: starts it from the page's own text, asks, and brings each answer to who asked. A worker that dies is said, and another
// takes its place; what it kept of earlier runs is lost then, so their questions are refused.
import type {
  DecisionAccount,
  RequestOrder,
  RequestRow,
  SimPicture,
  SimPlace,
  TimelineView,
} from '../../sim/observed/types.js';
import type { Answer, Ask, Settings } from './messages.js';

/** What is said of a run without having been asked. */
export type RunAnswer = Exclude<Answer, { readonly ask: number }>;
type Asked = Extract<Ask, { readonly ask: number }>;
type Reply = Extract<Answer, { readonly ask: number }>;
/** A question before it has its number. */
type Question<T> = T extends Asked ? Omit<T, 'ask'> : never;

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

export interface ClientOptions {
  /** Address of the worker's script. */
  readonly source: string;
  readonly hear: (said: RunAnswer) => void;
  /** The worker died; every run that it kept is gone. */
  readonly died: (text: string) => void;
}

export class Client {
  readonly #options: ClientOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #asked = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  run(run: number, settings: Settings, trace: File | null): void {
    this.#post({ kind: 'run', run, settings, trace });
  }

  cancel(run: number): void {
    this.#post({ kind: 'cancel', run });
  }

  /** Ends the worker as it stands; whatever it kept is gone. Another begins with the next question. */
  endAtOnce(): void {
    this.#stop();
  }

  forget(run: number): void {
    if (this.#worker !== null) this.#post({ kind: 'forget', run });
  }

  async requests(
    run: number,
    simulation: number,
    order: RequestOrder,
    from: number,
    count: number,
  ): Promise<{ rows: readonly RequestRow[]; total: number }> {
    return this.#ask<'requests'>({ kind: 'requests', run, simulation, order, from, count });
  }

  async timeline(
    run: number,
    simulation: number,
    place: SimPlace,
    from: number,
    to: number,
    columns: number,
    families: number,
  ): Promise<TimelineView> {
    return (await this.#ask<'timeline'>({ kind: 'timeline', run, simulation, place, from, to, columns, families }))
      .view;
  }

  /** Simulates again up to the request; `signal` ends that. */
  async decision(run: number, simulation: number, request: number, signal: AbortSignal): Promise<DecisionAccount> {
    const answer = this.#ask<'decision'>({ kind: 'decision', run, simulation, request });
    const question = this.#asked;
    signal.addEventListener('abort', () => this.#waiting.has(question) && this.#post({ kind: 'withdraw', question }));
    return (await answer).account;
  }

  async picture(run: number, simulation: number): Promise<SimPicture> {
    return (await this.#ask<'picture'>({ kind: 'picture', run, simulation })).picture;
  }

  async export(run: number, form: 'json' | 'csv'): Promise<string> {
    return (await this.#ask<'export'>({ kind: 'export', run, form })).text;
  }

  #ask<Kind extends Reply['kind']>(question: Question<Asked>): Promise<Extract<Reply, { readonly kind: Kind }>> {
    const ask = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(ask, { resolve: resolve as Waiting['resolve'], reject });
      this.#post({ ...question, ask } as Ask);
    });
  }

  #post(ask: Ask): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage(ask);
  }

  #start(): Worker {
    const worker = new Worker(this.#options.source);
    worker.addEventListener('message', ({ data }: MessageEvent<Answer>) => this.#hear(data));
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      this.#die(event.message);
    });
    worker.addEventListener('messageerror', () => this.#die('a message could not be read'));
    return worker;
  }

  #hear(said: Answer): void {
    if (!('ask' in said)) {
      this.#options.hear(said);
      return;
    }
    const waiting = this.#waiting.get(said.ask);
    this.#waiting.delete(said.ask);
    if (said.kind === 'refused') waiting?.reject(new Error(said.text));
    else waiting?.resolve(said);
  }

  #die(text: string): void {
    this.#stop();
    this.#options.died(text);
  }

  #stop(): void {
    this.#worker?.terminate();
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new Error('The worker ended before it answered.'));
  }
}
