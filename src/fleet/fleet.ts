// Several simulated workers and the simulated master that they share, wired together in one process: what a router would see of a real pool, with
// the truth at hand. Nothing of it computes; it says so wherever it is asked.
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError } from '../errors.js';
import { type ChurnIntervals, type ChurnKind, ChurnSchedule } from './fleet-churn.js';
import { SimulatedMaster, type SimulatedMasterOptions } from './master.js';
import type { SharedStore } from './worker/shared-store.js';
import { SimulatedWorker, type WorkerOptions, type WorkerStatus } from './worker.js';

/** What a fleet consists of, where it listens, and what happens to it by itself. */
export interface FleetOptions {
  /** Workers: how many alike, or each one's own options. */
  readonly workers?: number | readonly WorkerOptions[];
  /** What all workers have, unless their own options say otherwise. Their store is the fleet's master. */
  readonly worker?: Omit<WorkerOptions, 'id' | 'store' | 'httpPort' | 'eventsPort' | 'replayPort'>;
  readonly master?: Partial<SimulatedMasterOptions>;
  /** A second master that can take over. */
  readonly standby?: boolean;
  /**
   * The first of the ports that the fleet uses in a row: events and HTTP of the leader and of the standby, then for each worker HTTP, the events of
   * its ranks, and their replays. 0, the default, for any that are free.
   */
  readonly basePort?: number;
  /** What happens by itself. */
  readonly churn?: ChurnIntervals;
  readonly seed?: number;
  /** Hears what happened by itself. */
  readonly onChurn?: (kind: ChurnKind, what: string) => void;
}

/** A router's view of where everything is. */
export interface FleetEndpoints {
  readonly simulated: true;
  readonly workers: readonly {
    readonly id: string;
    readonly http: string;
    readonly events: readonly string[];
    readonly replay: readonly string[];
  }[];
  readonly masters: readonly {
    readonly role: 'leader' | 'standby';
    readonly events: string;
    readonly http: string;
    readonly generation: 'A' | 'B' | 'C';
  }[];
}

/** How a fleet stands, with the truth that a router does not see. */
export interface FleetStatus {
  readonly simulated: true;
  readonly workers: readonly WorkerStatus[];
  /** Readable objects of the store. */
  readonly objects: number;
  /** Messages and events that the serving master has published; null while none serves. */
  readonly published: { readonly batches: number; readonly events: number; readonly dropped: number } | null;
  readonly churn: Readonly<Record<string, number>>;
}

/** Most workers: each has sockets and threads of its own. */
const MAX_WORKERS = 64;
/** Longest pause between two looks at what is due, so that a fleet ends soon after it is told to. */
const LONGEST_PAUSE_MS = 100;
/** Parts of a worker's blocks, and of the store's objects, that churn evicts at once. */
const GPU_EVICTION_PART = 10;
const REMOVED_TOGETHER = 8;
/** Ports of the masters, two each. */
const MASTER_PORTS = 4;

/** Simulated workers and the simulated store that they share. Make one with `Fleet.start`. */
export class Fleet {
  readonly workers: readonly SimulatedWorker[];
  /** The master that led when the fleet began, and the standby if there is one. */
  readonly masters: readonly SimulatedMaster[];
  readonly #churn: ChurnSchedule;
  readonly #onChurn: (kind: ChurnKind, what: string) => void;
  readonly #counts: Record<string, number> = {};
  readonly #closing = new AbortController();
  readonly #churning: Promise<void>;

  private constructor(
    workers: readonly SimulatedWorker[],
    masters: readonly SimulatedMaster[],
    churn: ChurnSchedule,
    onChurn: FleetOptions['onChurn'],
  ) {
    this.workers = workers;
    this.masters = masters;
    this.#churn = churn;
    this.#onChurn = onChurn ?? (() => undefined);
    this.#churning = this.#live();
  }

  /**
   * Starts masters, then workers.
   * @throws ConfigError `fleet-workers`, `churn`, those of `SimulatedMaster.start` and `SimulatedWorker.start`; nothing stays open then
   */
  static async start(options: FleetOptions = {}): Promise<Fleet> {
    const asked = workerOptions(options);
    const { basePort = 0, standby = false, seed = 1 } = options;
    const churn = new ChurnSchedule(options.churn ?? {}, seed, Date.now());
    if (options.churn?.failover !== undefined && !standby)
      throw new ConfigError('churn', 'failover needs a standby; ask for one');
    const masters: SimulatedMaster[] = [];
    const workers: SimulatedWorker[] = [];
    try {
      for (let index = 0; index < (standby ? 2 : 1); index++) {
        const role = index === 0 ? 'leader' : 'standby';
        const [eventsPort, httpPort] = basePort === 0 ? [0, 0] : [basePort + 2 * index, basePort + 2 * index + 1];
        const ports = { eventsPort, httpPort, ...(standby ? ({ role } as const) : {}) };
        masters.push(await SimulatedMaster.start({ generation: 'C', ...options.master, ...ports }));
      }
      if (masters[1] !== undefined) masters[1].observeLeader(masters[0]!);
      const store = storeOf(masters);
      let port = basePort === 0 ? 0 : basePort + MASTER_PORTS;
      for (const [index, own] of asked.entries()) {
        const { dp = 1 } = own;
        const ports = port === 0 ? {} : { httpPort: port, eventsPort: port + 1, replayPort: port + 1 + dp };
        const replay = own.replayPort === null ? { replayPort: null } : {};
        workers.push(await SimulatedWorker.start({ id: `worker-${index}`, ...ports, ...own, ...replay, store }));
        if (port !== 0) port += 1 + 2 * dp;
      }
      return new Fleet(workers, masters, churn, options.onChurn);
    } catch (error) {
      await closeAll(workers, masters);
      throw error;
    }
  }

  /** The master that serves now; null while none does. */
  get master(): SimulatedMaster | null {
    return this.masters.find(({ serving }) => serving) ?? null;
  }

  endpoints(): FleetEndpoints {
    return {
      simulated: true,
      workers: this.workers.map((worker) => ({
        id: worker.id,
        http: worker.httpUrl,
        events: worker.eventsEndpoints,
        replay: worker.replayEndpoints,
      })),
      masters: this.masters.map((master) => ({
        role: master.role,
        events: master.eventsEndpoint,
        http: master.httpUrl,
        generation: master.generation,
      })),
    };
  }

  status(): FleetStatus {
    const { master } = this;
    const counts = master?.counts ?? null;
    return {
      simulated: true,
      workers: this.workers.map((worker) => worker.status()),
      objects: master?.truth().size ?? 0,
      published:
        counts === null
          ? null
          : { batches: counts.publishedBatches, events: counts.publishedEvents, dropped: counts.droppedEvents },
      churn: { ...this.#counts },
    };
  }

  /** The standby takes over with what the leader had. @throws ConfigError `fleet-standby` without one */
  async failover(): Promise<void> {
    const from = this.masters.find(({ role }) => role === 'leader');
    const to = this.masters.find(({ role }) => role === 'standby');
    if (from === undefined || to === undefined)
      throw new ConfigError('fleet-standby', 'there is no standby that could take over; start the fleet with one');
    await SimulatedMaster.failover(from, to);
  }

  /** Ends everything. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#churning;
    await closeAll(this.workers, this.masters);
  }

  // ---- what happens by itself ----

  async #live(): Promise<void> {
    const { signal } = this.#closing;
    for (let { next } = this.#churn; next !== null && !signal.aborted; next = this.#churn.next) {
      const pause = Math.min(LONGEST_PAUSE_MS, Math.max(0, next - Date.now()));
      await wait(pause, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      for (const kind of this.#churn.take(Date.now())) {
        const what = await this.#happen(kind).catch((error: Error) => `${kind} failed: ${error.message}`);
        if (what === null) continue;
        this.#counts[kind] = (this.#counts[kind] ?? 0) + 1;
        this.#onChurn(kind, what);
      }
    }
  }

  /** Lets it happen. What it came to, or null when it could not be. */
  async #happen(kind: ChurnKind): Promise<string | null> {
    const worker = this.workers[this.#churn.pick(this.workers.length)]!;
    const dpRank = this.#churn.pick(worker.dp);
    const { master } = this;
    if (!worker.alive) await worker.revive(); // its last restart found its ports taken
    switch (kind) {
      case 'gpu-evict': {
        const held = worker.contents(dpRank).reduce((sum, { size }) => sum + size, 0);
        const evicted = worker.evict(Math.ceil(held / GPU_EVICTION_PART), dpRank);
        return evicted === 0 ? null : `${worker.id} evicted ${evicted} blocks`;
      }
      case 'gpu-clear':
        return worker.clear(dpRank) ? `${worker.id} forgot its blocks` : null;
      case 'lose-message':
        worker.loseNext(1, 'network', dpRank);
        return `${worker.id} loses its next message`;
      case 'worker-restart':
        await worker.restart();
        return `${worker.id} restarted`;
      case 'failover':
        await this.failover();
        return `${this.master?.httpUrl ?? 'nobody'} leads now`;
      default:
        return master === null ? null : this.#happenToStore(kind, master);
    }
  }

  async #happenToStore(kind: ChurnKind, master: SimulatedMaster): Promise<string | null> {
    switch (kind) {
      case 'store-evict': {
        const evicted = master.evict().length;
        return evicted === 0 ? null : `the store evicted ${evicted} objects`;
      }
      case 'store-remove':
      case 'store-batch-remove': {
        const keys = this.#someKeys(master, kind === 'store-remove' ? 1 : REMOVED_TOGETHER);
        if (keys.length === 0) return null;
        if (kind === 'store-batch-remove')
          return `${master.batchRemove(keys, { force: true })} objects were removed together`;
        return master.remove(keys[0]!, { force: true }) === 'removed' ? `${keys[0]} was removed` : null;
      }
      case 'store-clear':
        return `all ${master.removeAll({ force: true })} objects were removed`;
      case 'master-restart':
        await master.restart();
        return 'the master restarted with an empty store';
      default:
        return null;
    }
  }

  #someKeys(master: SimulatedMaster, count: number): string[] {
    const keys = [...master.truth()];
    if (keys.length === 0) return [];
    return Array.from({ length: Math.min(count, keys.length) }, () => keys[this.#churn.pick(keys.length)]!);
  }
}

/** The store that the workers see: whichever master serves. While none does, nothing is there and nothing is taken. */
export function storeOf(masters: readonly SimulatedMaster[]): SharedStore {
  const serving = () => masters.find((master) => master.serving);
  return {
    has: (key) => serving()?.read(key) ?? false,
    put: (key, bytes) => serving()?.putEnd(key, 'cpu', bytes) === 'stored',
  };
}

function workerOptions({ workers = 2, worker = {} }: FleetOptions): WorkerOptions[] {
  const count = typeof workers === 'number' ? workers : workers.length;
  if (!Number.isInteger(count) || count < 1 || count > MAX_WORKERS)
    throw new ConfigError('fleet-workers', `a fleet of ${count} workers; give 1 to ${MAX_WORKERS}`);
  if (typeof workers === 'number') return Array.from({ length: count }, () => ({ ...worker }));
  return workers.map((own) => ({ ...worker, ...own }));
}

async function closeAll(workers: readonly SimulatedWorker[], masters: readonly SimulatedMaster[]): Promise<void> {
  for (const worker of workers) await worker.close();
  for (const master of masters) await master.close();
}
