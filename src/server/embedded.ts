// What `moonroute serve` routes to when nothing is configured: a simulated fleet in this process, with what the configuration would say of it.

import type { Fleet } from '../fleet/fleet.js';
import type { ConfigInput } from './config.js';

/** The fleet that runs. */
export interface EmbeddedFleet {
  readonly fleet: Fleet;
  /** Its settings, to stand under whatever else was given. */
  readonly settings: Pick<ConfigInput, 'workers' | 'sharedCache'>;
  close(): Promise<void>;
}

const WORKERS = 4;
const TP = 2;
/** Room for the longest prompt and little more, so that prefixes leave the GPUs soon and the store is seen at work. */
const GPU_BLOCKS = 2048;
const HOST = '127.0.0.1';

/** Starts it on free ports of loopback. @throws ConfigError `zeromq-missing` where what publishes its events is not installed */
export async function startEmbedded(): Promise<EmbeddedFleet> {
  // Only here, so that a server with workers of its own carries no simulation.
  const { Fleet } = await import('../fleet/fleet.js');
  const fleet = await Fleet.start({
    workers: WORKERS,
    worker: { host: HOST, tp: TP, gpuBlocks: GPU_BLOCKS },
    master: { host: HOST },
  });
  const { workers, masters } = fleet.endpoints();
  return {
    fleet,
    settings: {
      workers: workers.map(({ id, http, events, replay }) => ({
        id,
        url: http,
        events: [...events],
        replay: [...replay],
        contract: 'endpoint',
      })),
      sharedCache: { type: 'mooncake-store', masters: masters.map(({ events, http }) => ({ events, http })) },
    },
    close: () => fleet.close(),
  };
}

/**
 * A document with the fleet's workers and store. Where the document sets the shared cache's type, that stands: with none, the store is not read.
 */
export function withFleet(
  document: Readonly<Record<string, unknown>>,
  { workers, sharedCache }: EmbeddedFleet['settings'],
): Record<string, unknown> {
  const given = (document['sharedCache'] ?? {}) as Readonly<Record<string, unknown>>;
  const read = (given['type'] ?? 'mooncake-store') === 'mooncake-store';
  return { ...document, workers, sharedCache: read ? { ...given, ...sharedCache } : given };
}
