// A whole server over a simulated fleet, with its metrics and console, and a way to send it requests: what tests of those pages look at.
import { Fleet, type FleetOptions } from '../../src/fleet/fleet.js';
import { type ConfigInput, checkConfig } from '../../src/server/config.js';
import { type RunningService, startService } from '../../src/server/service.js';
import type { ServerLog } from '../../src/server/types.js';
import { complete, until } from './fleet-worker.js';

const silent: ServerLog = { debug() {}, info() {}, warn() {}, error() {} };

export class ServiceOverFleet {
  private constructor(
    readonly fleet: Fleet,
    readonly running: RunningService,
  ) {}

  /**
   * Starts everything and waits until workers are healthy, streams connected and the store reconciled.
   * @param unlisted the fleet's last workers that the router is not told of
   * @param underContract false where no contract will be in force, and so nothing is reconciled
   */
  static async start(
    fleetOptions: FleetOptions = {},
    { sharedCache, ...config }: ConfigInput = {},
    unlisted = 0,
    underContract = true,
  ): Promise<ServiceOverFleet> {
    const fleet = await Fleet.start({ workers: 3, ...fleetOptions, worker: { tp: 2, ...fleetOptions.worker } });
    try {
      const settings = settingsOf(fleet, unlisted);
      const document = { ...settings, ...config, sharedCache: { ...settings.sharedCache, ...sharedCache } };
      const running = await startService(checkConfig(document), { log: silent });
      const { live, registry } = running.service;
      await until('workers and store', () => {
        const { workers, store } = live.status();
        const heard = workers.length > 0 && workers.every(({ connected, replay }) => connected && replay !== 'running');
        const reconciled = !underContract || (store?.reconciled ?? 0) > 0;
        return heard && reconciled && registry.list().every(({ healthy }) => healthy);
      });
      return new ServiceOverFleet(fleet, running);
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  get url(): string {
    return this.running.url;
  }

  /** Sends a prompt of so many tokens through the router; prompts of one name begin alike. */
  async ask(name: number, tokens: number, fields: Readonly<Record<string, unknown>> = {}) {
    const prompt = Array.from({ length: tokens }, (_, i) => ((name * 7919 + i) % 50_000) + 1);
    return complete(this.url, prompt, fields);
  }

  /** Waits until the router has heard all that workers and store have said. */
  async heard(): Promise<void> {
    const { live } = this.running.service;
    const master = this.fleet.master;
    await master?.flushed();
    for (const worker of this.fleet.workers) await worker.flushed();
    await until('everything to be heard', () => {
      const { workers, store } = live.status();
      const next = new Map(
        this.fleet.workers.flatMap((worker) =>
          worker.status().ranks.map(({ dpRank, nextSequence }) => [`${worker.id}/${dpRank}`, BigInt(nextSequence)]),
        ),
      );
      const all = workers.every(
        ({ id, dpRank, lastSequence }) => (lastSequence ?? -1n) + 1n === next.get(`${id}/${dpRank}`),
      );
      return all && (master === null || store?.lastSequence === BigInt(master.lastSequence));
    });
  }

  async close(): Promise<void> {
    await this.running.close();
    await this.fleet.close();
  }
}

function settingsOf(fleet: Fleet, unlisted: number): ConfigInput {
  const { workers: all, masters } = fleet.endpoints();
  const workers = all.slice(0, all.length - unlisted);
  return {
    listen: { port: 0 },
    workers: workers.map(({ id, http, events, replay }) => ({
      id,
      url: http,
      events: [...events],
      replay: [...replay],
      contract: 'endpoint',
      dpRanks: { start: 0, size: events.length },
    })),
    sharedCache: { type: 'mooncake-store', masters: masters.map(({ events, http }) => ({ events, http })) },
    limits: { drainTime: 1000 },
  };
}
