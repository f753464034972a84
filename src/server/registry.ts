// The workers of the server: who they are, whether they answer, what they serve. It keeps router and live streams told of them; nobody else adds or
// removes workers there.
import { readFile, stat } from 'node:fs/promises';
import { MoonrouteError } from '../errors.js';
import { type Clock, systemClock } from '../live/clock.js';
import type { LiveStreams } from '../live/live-streams.js';
import type { PlaneStreams } from '../live/plane/route/plane-streams.js';
import type { Router } from '../router/router.js';
import type { WorkerId } from '../router/worker-info.js';
import type { ServerConfig } from './config.js';
import { MOST_RANKS } from './config-router.js';
import { planeIdOf } from './plane.js';
import { pinned, type Resolve, systemResolve } from './registry-address.js';
import { firstModel, ListedNames, type ModelNames, sortModels } from './registry-models.js';
import { checkSpec } from './registry-spec.js';
import { type FactChange, type WorkerFacts, WorkerWatch } from './registry-watch.js';
import type { RegisteredWorker, ServerLog, WorkerRegistry, WorkerSpec } from './types.js';

/** What a registry is made with. */
export interface RegistryOptions {
  readonly router: Router;
  readonly live: LiveStreams;
  /** Default none. */
  readonly plane?: PlaneStreams | null;
  readonly config: Pick<ServerConfig, 'model' | 'registration'>;
  readonly log: ServerLog;
  /** Default the platform's. */
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
  readonly resolve?: Resolve;
}

/** Workers that a registry holds, those that are being added among them. */
export const MAX_WORKERS = 1024;
const MAX_CONTRACT_BYTES = 4 << 20;
/** Workers of a configuration that are added at the same time. */
const ADDS_AT_ONCE = 32;
/** Names that a line of the log shows. */
const NAMES_SHOWN = 8;
const NO_MODELS: ModelNames = { models: [], adapters: [] };

/** Makes one without workers: `reload` adds those of the configuration. @throws ConfigError `network` */
export function createRegistry(options: RegistryOptions): WorkerRegistry {
  return new Registry(options);
}

/** A worker that is being added. */
interface Attempt {
  readonly ranks: number;
}

/** A worker with what is known of it. */
interface Entry {
  readonly spec: WorkerSpec;
  /** As it was given, to see whether a reload changes it. */
  readonly given: string;
  configured: boolean;
  readonly watch: WorkerWatch;
  /** The descriptor of the configuration or of the registration; undefined where the worker is asked, or has none. */
  readonly descriptor: unknown;
  /** Told to the router. */
  inRouter: boolean;
  names: ModelNames;
  /** It lists models, and the one that is served is not among them. */
  foreign: boolean;
  /** Somebody wants it drained. */
  drained: boolean;
  /** The router was told that it drains. */
  draining: boolean;
}

class Registry implements WorkerRegistry {
  readonly #router: Router;
  readonly #live: LiveStreams;
  readonly #plane: PlaneStreams | null;
  readonly #options: RegistryOptions;
  readonly #log: ServerLog;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** Of each worker that is being added, the latest attempt. */
  readonly #adding = new Map<string, Attempt>();
  /** Ranks of the workers that a reload is about to add: nobody else is given their room. */
  #booked: ReadonlyMap<string, number> = new Map();
  readonly #entering = new Set<Entry>();
  #model: string | null;
  #views: ReadonlyMap<string, RegisteredWorker> | null = null;
  #list: readonly RegisteredWorker[] = [];
  #names = new ListedNames();
  #reloading: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#router = options.router;
    this.#live = options.live;
    this.#plane = options.plane ?? null;
    this.#log = options.log;
    this.#clock = options.clock ?? systemClock;
    this.#model = options.config.model;
  }

  list(): readonly RegisteredWorker[] {
    this.#look();
    return this.#list;
  }

  get(id: WorkerId): RegisteredWorker | null {
    return this.#look().get(String(id)) ?? null;
  }

  knows(model: string): 'model' | 'adapter' | null {
    return model === this.#model ? 'model' : this.#names.kindOf(model);
  }

  listedBy(model: string): readonly string[] | null {
    return this.#names.listedBy(model);
  }

  async add(given: WorkerSpec, configured = false): Promise<RegisteredWorker> {
    const checked = checkSpec(given, configured);
    this.#refuseTwice(checked);
    this.#refuseFull([checked], new Set());
    return this.#add(checked, configured);
  }

  /** Adds one that is checked, and that there is room for. */
  async #add(checked: WorkerSpec, configured: boolean): Promise<RegisteredWorker> {
    const { id } = checked;
    if (this.#closed) throw new MoonrouteError('registry-closed', 'the registry is closed; no worker can be added.');
    this.#refusePlane(checked);
    const attempt: Attempt = { ranks: checked.dpRanks.size };
    this.#adding.set(id, attempt);
    try {
      const spec = configured ? checked : await this.#pinned(checked);
      const { descriptor, text } = await contractOf(spec);
      if (this.#closed || this.#adding.get(id) !== attempt) throw overtaken(id);
      const description = JSON.stringify([spec, text]);
      const there = this.#entries.get(id);
      if (there?.given === description) {
        there.configured = configured;
        this.#changed();
        return this.get(id)!;
      }
      await this.#enter({ spec, given: description, configured, descriptor }, attempt);
    } finally {
      if (this.#adding.get(id) === attempt) this.#adding.delete(id);
    }
    const view = this.get(id);
    if (view === null) throw overtaken(id);
    return view;
  }

  remove(id: WorkerId): boolean {
    const key = String(id);
    const isAdding = this.#adding.delete(key);
    const entry = this.#entries.get(key);
    if (entry === undefined) return isAdding;
    this.#entries.delete(key);
    void entry.watch.close();
    this.#forgetStreams(entry.spec);
    this.#settleModels();
    this.#log.info({ worker: key }, 'worker removed');
    return true;
  }

  setDraining(id: WorkerId, draining: boolean): boolean {
    const entry = this.#entries.get(String(id));
    if (entry === undefined) return false;
    entry.drained = draining;
    this.#tellDraining(entry);
    return true;
  }

  reload(specs: readonly WorkerSpec[], signal?: AbortSignal): ReturnType<WorkerRegistry['reload']> {
    const reload = this.#reloading.then(() => this.#reload(specs, signal ?? new AbortController().signal));
    this.#reloading = reload.catch(() => undefined);
    return reload;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#adding.clear();
    const entries = [...this.#entries.values(), ...this.#entering];
    await Promise.all(entries.map(({ watch }) => watch.close()));
    await this.#reloading;
  }

  // ---- adding ----

  /** Watches a worker, and tells router and streams of it after the first look: so its contract and adapters are known from the start. */
  async #enter(entered: Pick<Entry, 'spec' | 'given' | 'configured' | 'descriptor'>, attempt: Attempt): Promise<void> {
    const { spec } = entered;
    const entry: Entry = {
      ...entered,
      watch: new WorkerWatch({
        fetch: this.#options.fetch ?? fetch,
        clock: this.#clock,
        url: spec.url,
        asksDescriptor: spec.contract === 'endpoint',
        onChange: (change) => this.#onChange(entry, change),
      }),
      inRouter: false,
      names: NO_MODELS,
      foreign: false,
      drained: this.#entries.get(spec.id)?.drained ?? false,
      draining: false,
    };
    this.#entering.add(entry);
    await entry.watch.start();
    this.#entering.delete(entry);
    if (this.#closed || this.#adding.get(spec.id) !== attempt) {
      await entry.watch.close();
      throw overtaken(spec.id);
    }
    const before = this.#entries.get(spec.id);
    this.#entries.set(spec.id, entry);
    this.#settleModels();
    try {
      // Without events there are no streams that would replace those of before.
      const isLeft = (name: 'events' | 'plane') => before?.spec[name] != null && spec[name] == null;
      if (before !== undefined && (isLeft('events') || isLeft('plane'))) this.#forgetStreams(before.spec);
      this.#tellRouter(entry, true);
    } catch (error) {
      if (before === undefined) this.#entries.delete(spec.id);
      else this.#entries.set(spec.id, before);
      void entry.watch.close();
      this.#settleModels();
      throw error;
    }
    void before?.watch.close();
    this.#log.info(
      {
        worker: spec.id,
        url: spec.url,
        configured: entry.configured,
        healthy: entry.watch.facts.healthy,
        noContract: lackOf(spec, entry.watch.facts),
      },
      before === undefined ? 'worker added' : 'worker replaced',
    );
  }

  #forgetStreams({ id, plane }: WorkerSpec): void {
    if (plane == null || this.#plane === null) this.#live.removeWorker(id);
    else this.#plane.removeWorker(id);
  }

  /** Refuses a worker of an event plane where there is none: one that a reload brings, before the restart that its plane needs, as well. */
  #refusePlane({ id, plane }: WorkerSpec): void {
    if (plane == null || this.#plane !== null) return;
    throw new MoonrouteError(
      'worker-spec',
      `worker ${id}: plane is given, and this router has no event plane; configure eventPlane and restart, or give the worker's events.`,
    );
  }

  #refuseTwice(spec: WorkerSpec): void {
    const planeId = planeIdOf(spec);
    if (planeId === null) return;
    const other = [...this.#entries.values()].find(
      (entry) => entry.spec.id !== spec.id && planeIdOf(entry.spec) === planeId,
    );
    if (other === undefined) return;
    throw new MoonrouteError(
      'worker-spec',
      `worker ${spec.id}: plane.workerId ${planeId} is that of worker ${other.spec.id}; give each its own publisher's.`,
    );
  }

  /**
   * Refuses workers that there is no room for beside those that are there or on their way; before anything changes, and before they are asked.
   * @param leaving workers that make room
   */
  #refuseFull(specs: readonly WorkerSpec[], leaving: ReadonlySet<string>): void {
    const ranks = new Map<string, number>();
    for (const [id, { spec }] of this.#entries) if (!leaving.has(id)) ranks.set(id, spec.dpRanks.size);
    const coming = [...[...this.#adding].map(([id, { ranks }]) => [id, ranks] as const), ...this.#booked];
    for (const [id, size] of coming) ranks.set(id, Math.max(size, ranks.get(id) ?? 0));
    for (const { id, dpRanks } of specs) ranks.set(id, dpRanks.size);
    const who = specs.length === 1 ? `worker ${specs[0]!.id}` : 'these workers';
    if (ranks.size > MAX_WORKERS) {
      throw new MoonrouteError(
        'too-many-workers',
        `with ${who} there would be ${ranks.size} workers, and at most ${MAX_WORKERS} can be. Remove workers that have left, or split the pool.`,
      );
    }
    const all = [...ranks.values()].reduce((sum, size) => sum + size, 0);
    const room = this.#router.stats().index.ranks;
    if (all <= room) return;
    throw new MoonrouteError(
      'router-full',
      `with ${who} there would be ${all} worker ranks, and this router has room for ${room}. Remove workers that have left; ${
        all <= MOST_RANKS
          ? 'or restart with them in the configuration, for the room is made at start, for twice the ranks that it names.'
          : `or split the pool, for no router has room for more than ${MOST_RANKS}.`
      }`,
    );
  }

  #pinned(spec: WorkerSpec): Promise<WorkerSpec> {
    const entries = this.#entries;
    return pinned(spec, {
      networks: this.#options.config.registration.networks,
      *configured() {
        for (const { spec, configured } of entries.values()) if (configured) yield spec;
      },
      resolve: this.#options.resolve ?? systemResolve,
    });
  }

  async #reload(
    specs: readonly WorkerSpec[],
    signal: AbortSignal,
  ): Promise<{ added: number; removed: number; changed: number }> {
    // All are looked at before anything changes.
    const checked = specs.map((spec) => checkSpec(spec, true));
    const ids = new Set(checked.map(({ id }) => id));
    if (ids.size < checked.length) {
      const twice = checked.find(({ id }, i) => checked.findIndex((other) => other.id === id) < i)!;
      throw new MoonrouteError('worker-spec', `worker ${twice.id} is configured twice; give each its own id.`);
    }
    await eachOf(checked, contractOf);
    this.#refuseAbandoned(signal);
    const entries = [...this.#entries.values()];
    const leaving = new Set(
      entries.filter(({ configured, spec }) => configured && !ids.has(spec.id)).map(({ spec }) => spec.id),
    );
    this.#refuseFull(checked, leaving);
    this.#booked = new Map(checked.map(({ id, dpRanks }) => [id, dpRanks.size]));
    const abandon = (): void => this.#abandonAdds();
    signal.addEventListener('abort', abandon);
    try {
      return await this.#replaceConfigured(checked, leaving, signal);
    } finally {
      signal.removeEventListener('abort', abandon);
      this.#booked = new Map();
    }
  }

  async #replaceConfigured(
    specs: readonly WorkerSpec[],
    leaving: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<{ added: number; removed: number; changed: number }> {
    const outcome = { added: 0, removed: 0, changed: 0 };
    for (const id of leaving) if (this.remove(id)) outcome.removed++;
    const faults: Error[] = [];
    const add = async (spec: WorkerSpec): Promise<void> => {
      if (this.#closed || signal.aborted) return;
      const before = this.#entries.get(spec.id);
      try {
        await this.#add(spec, true);
      } catch (error) {
        if (this.#closed || signal.aborted) return;
        this.#log.error({ worker: spec.id, code: (error as MoonrouteError).code }, (error as Error).message);
        faults.push(error as Error);
        return;
      }
      if (before === undefined) outcome.added++;
      else if (this.#entries.get(spec.id) !== before) outcome.changed++;
    };
    // Those that lose ranks go first, and make room for the others.
    const sizeNow = (id: string): number => this.#entries.get(id)?.spec.dpRanks.size ?? 0;
    const shrinking = new Set(specs.filter(({ id, dpRanks }) => dpRanks.size < sizeNow(id)));
    const others = specs.filter((spec) => !shrinking.has(spec));
    await eachOf([...shrinking], add);
    await eachOf(others, add);
    this.#refuseAbandoned(signal);
    if (faults.length > 0) {
      const { message } = faults[0]!;
      const words = `${faults.length} of ${specs.length} workers could not be added; of the first: ${message}`;
      throw new MoonrouteError('reload-incomplete', words, { cause: faults[0] });
    }
    return outcome;
  }

  /** Ends what a reload is adding; nobody waits for the answers of those workers any more. */
  #abandonAdds(): void {
    for (const id of this.#booked.keys()) this.#adding.delete(id);
    for (const { spec, watch } of this.#entering) if (this.#booked.has(spec.id)) void watch.close();
  }

  #refuseAbandoned({ aborted }: AbortSignal): void {
    if (!aborted && !this.#closed) return;
    throw new MoonrouteError('reload-abandoned', 'the reload was abandoned, for the server ends.');
  }

  // ---- what workers turn out to be ----

  #onChange(entry: Entry, change: FactChange): void {
    if (!entry.inRouter) return; // `#enter` looks at everything itself
    const { id } = entry.spec;
    const { healthy, healthFault, descriptorFault } = entry.watch.facts;
    if (change === 'health') {
      if (healthy) this.#log.info({ worker: id }, 'worker answers');
      else this.#log.warn({ worker: id }, `worker does not answer: ${healthFault}`);
      this.#tellDraining(entry);
    } else if (change === 'models') {
      this.#settleModels();
    } else if (change === 'descriptor') {
      this.#log.info({ worker: id }, descriptorFault ?? 'worker publishes another contract');
      // What the streams brought under the other contract taught nothing, or wrong things: they begin anew.
      this.#retell(entry, true);
    }
    this.#changed();
  }

  /** Sorts what workers list into names of the model and adapters, and tells the router of workers where that changed. */
  #settleModels(): void {
    const entries = [...this.#entries.values()];
    const { model } = this.#options.config;
    const first = (): string | null => {
      const names = entries.map(({ watch }) => (watch.facts.cards === null ? null : firstModel(watch.facts.cards)));
      return names.find((name) => name !== null) ?? null;
    };
    const isListed = entries.some(({ watch }) => watch.facts.cards?.some(({ id }) => id === this.#model));
    this.#model = model ?? (isListed ? this.#model : first());
    const listedNames = new ListedNames();
    for (const entry of entries) {
      const { cards } = entry.watch.facts;
      const listed = cards === null ? NO_MODELS : sortModels(cards, this.#model);
      const foreign = cards !== null && listed.models.length === 0;
      // What another model's worker lists is none of ours.
      const names = foreign ? NO_MODELS : listed;
      const { adapters } = entry.names;
      const stays =
        adapters.length === names.adapters.length && adapters.every((name, i) => name === names.adapters[i]);
      if (foreign && !entry.foreign) {
        this.#log.warn({ worker: entry.spec.id }, `worker does not list the model ${this.#model}: it gets no requests`);
      }
      entry.foreign = foreign;
      entry.names = names;
      listedNames.add(entry.spec.id, names);
      if (!entry.inRouter) continue;
      if (stays) this.#tellDraining(entry);
      else this.#retell(entry, false);
    }
    this.#takeNames(listedNames);
    this.#changed();
  }

  #takeNames(names: ListedNames): void {
    const before = new Set(this.#names.disputed());
    const disputed = names.disputed().filter((name) => !before.has(name));
    this.#names = names;
    if (disputed.length === 0) return;
    this.#log.warn(
      { count: disputed.length, names: disputed.slice(0, NAMES_SHOWN) },
      'workers disagree whether these names are the model or an adapter: such requests go to workers that list them, without shared credit',
    );
  }

  /** Whether it can be given requests. */
  #serves({ watch, foreign }: Entry): boolean {
    return watch.facts.healthy && !foreign;
  }

  #tellDraining(entry: Entry): void {
    const draining = entry.drained || !this.#serves(entry);
    // Each telling costs the router as much as it has workers.
    if (entry.inRouter && draining !== entry.draining) this.#router.setDraining(entry.spec.id, draining);
    entry.draining = draining;
    this.#changed();
  }

  #retell(entry: Entry, anew: boolean): void {
    try {
      this.#tellRouter(entry, anew);
    } catch (error) {
      const { code, message } = error as MoonrouteError;
      this.#log.error({ worker: entry.spec.id, code }, `worker can't be told to the router: ${message}`);
    }
  }

  /** @param anew its streams begin anew, too */
  #tellRouter(entry: Entry, anew: boolean): void {
    const { id, events, replay, topic, dpRanks, contract, plane } = entry.spec;
    const descriptor = contract === 'endpoint' ? entry.watch.facts.descriptor : entry.descriptor;
    const { adapters } = entry.names;
    const draining = entry.drained || !this.#serves(entry);
    const planeId = planeIdOf(entry.spec);
    const info = { id, dpRanks, adapters, draining, planeId, ...(descriptor === undefined ? {} : { descriptor }) };
    if (anew && plane != null && planeId !== null && this.#plane !== null) this.#plane.addWorker({ ...info, planeId });
    else if (anew && events !== null) this.#live.addWorker({ ...info, events, replay, topic });
    else this.#router.addWorker(info);
    entry.inRouter = true;
    entry.draining = draining;
    this.#changed();
  }

  // ---- how they look ----

  #changed(): void {
    this.#views = null;
  }

  #look(): ReadonlyMap<string, RegisteredWorker> {
    if (this.#views !== null) return this.#views;
    const faults = new Map<string, string | null>();
    for (const { id, ranks } of this.#router.workers()) {
      const out = ranks.find(({ admission }) => admission !== 'admitted');
      faults.set(String(id), out === undefined ? null : (out.admissionText ?? out.admission));
    }
    const views = new Map<string, RegisteredWorker>();
    for (const [id, entry] of this.#entries) {
      const { spec, configured, watch } = entry;
      const { models, adapters } = entry.names;
      const fault = faults.get(id) ?? null;
      views.set(id, {
        ...spec,
        configured,
        healthy: this.#serves(entry),
        adapters,
        models,
        contractFault: fault === null ? null : (lackOf(spec, watch.facts) ?? fault),
      });
    }
    this.#list = [...views.values()];
    this.#views = views;
    return views;
  }
}

/** Why there is no descriptor at all, which says more than the router can; null where there is one. */
function lackOf({ contract }: WorkerSpec, { descriptor, descriptorFault, healthFault }: WorkerFacts): string | null {
  if (contract === null) return 'no contract was given. Give one inline, as a file, or by the descriptor endpoint.';
  if (contract !== 'endpoint' || descriptor !== undefined) return null;
  return descriptorFault ?? `the worker was not asked for its contract yet: ${healthFault ?? 'it starts'}`;
}

/** The descriptor that was given, and a text that changes with it. @throws MoonrouteError `worker-spec` */
async function contractOf({ id, contract }: WorkerSpec): Promise<{ descriptor: unknown; text: string }> {
  if (contract === null || contract === 'endpoint') return { descriptor: undefined, text: '' };
  if ('inline' in contract) return { descriptor: contract.inline, text: '' }; // the spec holds it
  const { file } = contract;
  try {
    const { size } = await stat(file);
    if (size > MAX_CONTRACT_BYTES) throw new Error(`it is larger than ${MAX_CONTRACT_BYTES} bytes`);
    const text = await readFile(file, 'utf8');
    return { descriptor: JSON.parse(text), text };
  } catch (error) {
    throw new MoonrouteError('worker-spec', `worker ${id}: its contract file ${file}: ${(error as Error).message}.`);
  }
}

/** Does it with each, so many at once. The first fault ends it. */
async function eachOf<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
  const rest = items.values();
  const hand = async (): Promise<void> => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(ADDS_AT_ONCE, items.length) }, hand));
}

function overtaken(id: string): MoonrouteError {
  return new MoonrouteError(
    'worker-overtaken',
    `worker ${id} was removed or added again, or the server ended, before it was added.`,
  );
}
