// Watches one worker over its HTTP: whether it answers, what models it lists, and its contract descriptor where that is asked for. One round at a
// time, each question bounded. What is learned is told when it differs; what follows from it is the registry's.
import { createHash } from 'node:crypto';
import { ask, type HttpParts, statusText, WorkerHttpError } from './registry-http.js';
import { type ModelCard, readModels } from './registry-models.js';

/** What is known of a worker. */
export interface WorkerFacts {
  readonly healthy: boolean;
  /** Why it is not; null while it is, and before the first answer. */
  readonly healthFault: string | null;
  /** What its `/v1/models` listed last; null before the first list. */
  readonly cards: readonly ModelCard[] | null;
  /** Its published descriptor; undefined while there is none, or none is asked for. */
  readonly descriptor: unknown;
  /** Why there is none; null otherwise. */
  readonly descriptorFault: string | null;
}

/** What a change is about, so that a descriptor of megabytes need not be compared. */
export type FactChange = 'health' | 'models' | 'descriptor' | 'descriptor-fault';

export interface WatchOptions extends HttpParts {
  readonly url: string;
  /** Whether its descriptor is asked for. */
  readonly asksDescriptor: boolean;
  readonly onChange: (change: FactChange) => void;
}

/** Time between two rounds. */
const ROUND_MS = 2000;
/** Time after which models and descriptor that are known are asked for again. */
const REFRESH_MS = 10_000;
/** Time for one answer. Lists and descriptors come from busy processes, but are small. */
const ANSWER_MS = 1500;
const HEALTH_BYTES = 65_536;
const MODELS_BYTES = 1 << 20;
const DESCRIPTOR_BYTES = 4 << 20;
/** Failures in a row that make a worker unhealthy: a busy one may be late once. One that refuses connections is gone. */
const FAILURES = 2;
const NOT_FOUND = 404;

const NOTHING: WorkerFacts = {
  healthy: false,
  healthFault: null,
  cards: null,
  descriptor: undefined,
  descriptorFault: null,
};

export class WorkerWatch {
  readonly #options: WatchOptions;
  readonly #gone = new AbortController();
  #facts = NOTHING;
  #failures = 0;
  #modelsDue = Number.NEGATIVE_INFINITY;
  #modelsText = '';
  #descriptorDue = Number.NEGATIVE_INFINITY;
  #descriptorHash = '';
  #stopTimer: () => void = () => undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  get facts(): WorkerFacts {
    return this.#facts;
  }

  /** Begins to watch; resolves after the first round. */
  start(): Promise<void> {
    this.#round = this.#watch();
    return this.#round;
  }

  /** Ends it; nothing is told any more. Resolves when nothing of it is under way. */
  async close(): Promise<void> {
    this.#stopTimer();
    this.#gone.abort();
    await this.#round;
  }

  async #watch(): Promise<void> {
    await this.#askHealth();
    // One that does not answer is not asked more, but for the descriptor that decides how it is added.
    if (this.#facts.healthy) await this.#askModels();
    if (this.#facts.healthy) await this.#askDescriptor();
    if (this.#gone.signal.aborted) return;
    this.#stopTimer = this.#options.clock.after(ROUND_MS, () => {
      this.#round = this.#watch();
    });
  }

  async #askHealth(): Promise<void> {
    const url = `${this.#options.url}/health`;
    try {
      const { status } = await this.#getHealth(url);
      if (status < 200 || status > 299) throw new WorkerHttpError('http-status', statusText(url, status));
      this.#failures = 0;
      if (this.#facts.healthy) return;
      // It may be another process now.
      this.#modelsDue = Number.NEGATIVE_INFINITY;
      this.#descriptorDue = Number.NEGATIVE_INFINITY;
      this.#learn('health', { healthy: true, healthFault: null });
    } catch (error) {
      this.#failures++;
      const { code, message } = error as WorkerHttpError;
      if (this.#facts.healthy && code !== 'http-refused' && this.#failures < FAILURES) return;
      if (this.#facts.healthy || this.#facts.healthFault !== message) {
        this.#learn('health', { healthy: false, healthFault: message });
      }
    }
  }

  /** An idle connection may end just as it is used: then there is another question at once. */
  async #getHealth(url: string): ReturnType<typeof ask> {
    try {
      return await this.#get(url, HEALTH_BYTES);
    } catch (error) {
      if ((error as WorkerHttpError).code !== 'http-unreachable') throw error;
      return this.#get(url, HEALTH_BYTES);
    }
  }

  async #askModels(): Promise<void> {
    const { clock, url } = this.#options;
    if (clock.now() < this.#modelsDue) return;
    try {
      const { status, text } = await this.#get(`${url}/v1/models`, MODELS_BYTES);
      const cards = status === 200 ? readModels(text) : null;
      if (cards === null) return; // what was known stays, and it is asked again with the next round
      this.#modelsDue = clock.now() + REFRESH_MS;
      const known = JSON.stringify(cards);
      if (known === this.#modelsText) return;
      this.#modelsText = known;
      this.#learn('models', { cards });
    } catch {
      // likewise
    }
  }

  async #askDescriptor(): Promise<void> {
    const { clock, url, asksDescriptor } = this.#options;
    if (!asksDescriptor || clock.now() < this.#descriptorDue) return;
    const place = `${url}/moonroute/descriptor`;
    try {
      const { status, text } = await this.#get(place, DESCRIPTOR_BYTES);
      if (status === NOT_FOUND) {
        // The worker answers and has none: that is news, also where it had one.
        this.#descriptorHash = '';
        this.#lacks(`the worker publishes no contract: ${statusText(place, status)}`);
        return;
      }
      if (status !== 200) throw new WorkerHttpError('http-status', statusText(place, status));
      const descriptor = parsed(text, place);
      this.#descriptorDue = clock.now() + REFRESH_MS;
      const hash = createHash('sha256').update(text).digest('base64');
      if (hash === this.#descriptorHash) return;
      this.#descriptorHash = hash;
      this.#learn('descriptor', { descriptor, descriptorFault: null });
    } catch (error) {
      // One that is known stays: the worker has not taken it back.
      if (this.#facts.descriptor === undefined) this.#lacks((error as Error).message);
    }
  }

  #lacks(fault: string): void {
    if (this.#facts.descriptor !== undefined)
      this.#learn('descriptor', { descriptor: undefined, descriptorFault: fault });
    else if (this.#facts.descriptorFault !== fault) this.#learn('descriptor-fault', { descriptorFault: fault });
  }

  #learn(change: FactChange, facts: Partial<WorkerFacts>): void {
    if (this.#gone.signal.aborted) return;
    this.#facts = { ...this.#facts, ...facts };
    this.#options.onChange(change);
  }

  #get(url: string, bytes: number): ReturnType<typeof ask> {
    return ask(this.#options, { url, body: null, time: ANSWER_MS, bytes, signal: this.#gone.signal });
  }
}

/** @throws WorkerHttpError `http-body` */
function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new WorkerHttpError('http-body', `${place} answers with something that is no JSON`);
  }
}
