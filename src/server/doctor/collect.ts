// The collector: opens every socket that the configuration names, asks every HTTP, listens for a while, and hands over what was seen. It judges
// nothing; that is checks/.
import { randomUUID } from 'node:crypto';
import type { Contract } from '../../contract/descriptor.js';
import { ConfigError, MoonrouteError } from '../../errors.js';
import { WorkerEvents } from '../../events/worker-events.js';
import { type Clock, systemClock } from '../../live/clock.js';
import type { CurveOptions } from '../../live/zmtp/socket.js';
import { planeSubscriber } from '../plane.js';
import { smallPrompt } from './completion.js';
import type { DoctorTarget, Evidence, PlaneRankEvidence, StoreEvidence } from './evidence.js';
import { MasterWatch } from './master-watch.js';
import type { CollectParts, Tokenises } from './parts.js';
import { pause } from './pause.js';
import { askPlane } from './plane-ask.js';
import { requiredPrefixes } from './required-prefixes.js';
import { WorkerWatch } from './worker-watch.js';

export interface CollectOptions {
  /** Listens for so long. Questions before and after add their own bounded times. */
  readonly seconds: number;
  /** Sends a small completion to every rank. */
  readonly probe?: boolean;
  readonly local?: Tokenises | null;
  readonly curve?: CurveOptions | null;
  /** Ends the listening early; what is asked at the end is still asked. */
  readonly signal?: AbortSignal;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
}

/** Least and most seconds. */
export const SECONDS = { least: 0.5, most: 3600 } as const;
/** Time for what a completion announces, in the engine's events and in the store's, to arrive. */
const AFTER_PROBE_MS = 1000;
/** Workers that compute a small completion at the same time. */
const AT_ONCE = 8;

/**
 * Collects.
 * @throws ConfigError `doctor-seconds`, `endpoint`, `live-endpoints`, `curve-keys`; nothing stays open then
 */
export async function collectEvidence(target: DoctorTarget, options: CollectOptions): Promise<Evidence> {
  const { seconds, probe = false, local = null, curve = null, clock = systemClock } = options;
  if (!(seconds >= SECONDS.least && seconds <= SECONDS.most)) {
    throw new ConfigError(
      'doctor-seconds',
      `it is to listen for ${seconds} s; give ${SECONDS.least} to ${SECONDS.most}`,
    );
  }
  const enough = options.signal ?? new AbortController().signal;
  const over = new AbortController();
  const parts: CollectParts = { fetch: options.fetch ?? fetch, clock, curve, signal: over.signal };
  const watches = new Watches(target, parts);
  try {
    const until = clock.now() + seconds * 1000;
    await Promise.all([watches.askWorkers(local), watches.beginMasters()]);
    if (probe) {
      await watches.complete(enough);
      await pause(clock, AFTER_PROBE_MS, enough);
    }
    await pause(clock, until - clock.now(), enough);
    return await watches.evidence(seconds);
  } finally {
    over.abort();
    watches.close();
  }
}

/** Everything that is watched. */
class Watches {
  readonly #target: DoctorTarget;
  readonly #workers: WorkerWatch[] = [];
  readonly #masters: MasterWatch[] = [];

  constructor(target: DoctorTarget, parts: CollectParts) {
    this.#target = target;
    const events = new WorkerEvents();
    try {
      for (const spec of target.workers) this.#workers.push(new WorkerWatch(spec, events, parts));
      if (target.sharedCache.type === 'none') return;
      for (const endpoint of target.sharedCache.masters) this.#masters.push(new MasterWatch(endpoint, parts));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async askWorkers(local: Tokenises | null): Promise<void> {
    const { model, sharedCache } = this.#target;
    await Promise.all(this.#workers.map((worker) => worker.ask(model, sharedCache.hashing, local)));
  }

  async beginMasters(): Promise<void> {
    await Promise.all(this.#masters.map((master) => master.begin()));
  }

  /** Sends the small completions, to a few workers at a time: a pool that is busy is not made much busier. */
  async complete(enough: AbortSignal): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.settled()));
    const spans = this.#contracts.map(({ lcmBlockSize }) => lcmBlockSize);
    const prompt = smallPrompt(Math.max(this.#target.blockSize, ...spans), randomUUID());
    for (let at = 0; at < this.#workers.length && !enough.aborted; at += AT_ONCE) {
      const some = this.#workers.slice(at, at + AT_ONCE);
      await Promise.all(some.map((worker) => worker.complete(this.#target.model, prompt)));
    }
  }

  async evidence(seconds: number): Promise<Evidence> {
    const store = this.#target.sharedCache.type === 'none' ? null : await this.#store();
    const workers = await Promise.all(this.#workers.map((worker) => worker.evidence()));
    return { target: this.#target, seconds, workers, store, plane: await this.#plane() };
  }

  close(): void {
    for (const watch of [...this.#workers, ...this.#masters]) watch.close();
  }

  async #plane(): Promise<readonly PlaneRankEvidence[]> {
    const { eventPlane = null, model, workers } = this.#target;
    if (eventPlane === null || workers.every(({ plane }) => plane == null)) return [];
    return askPlane(await planeSubscriber(eventPlane, model!, false), workers);
  }

  async #store(): Promise<StoreEvidence> {
    const serving = this.#masters.find((master) => master.lists);
    const required = requiredPrefixes(this.#contracts);
    const hashes = (): bigint[] => this.#workers.flatMap((worker) => worker.hashes);
    let keysFault: string | null = serving === undefined ? 'no master serves over HTTP' : null;
    const listed = await serving?.list(required, hashes).catch((error: unknown) => {
      if (!(error instanceof MoonrouteError)) throw error;
      keysFault = error.message;
      return null;
    });
    const masters = await Promise.all(this.#masters.map((master) => master.evidence()));
    return { masters, keys: listed?.keys ?? null, keysFault, drift: listed?.drift ?? null };
  }

  get #contracts(): Contract[] {
    return this.#workers.map(({ contract }) => contract).filter((contract) => contract !== null);
  }
}
