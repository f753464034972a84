// A router with its HTTP app in a process of its own, over workers elsewhere: what a test of its memory and sockets looks at from outside. The argument
// is its configuration as JSON; each line on standard input is answered with a line that says how it stands, after a collection of garbage.
import { createInterface } from 'node:readline';
import { LiveStreams } from '../../src/live/live-streams.js';
import { Router } from '../../src/router/router.js';
import { createApp, listen } from '../../src/server/app.js';
import type { ConfigInput } from '../../src/server/config.js';
import { Activity } from '../../src/server/http/activity.js';
import { createRegistry } from '../../src/server/registry.js';
import type { Service } from '../../src/server/types.js';
import { configOf, PlainPrompts } from './server-pool.js';

/** How it stands. */
export interface ProcessStanding {
  readonly url: string;
  /** Bytes of the heap and of buffers. */
  readonly heap: number;
  readonly buffers: number;
  /** Sockets that are open, listening ones too. */
  readonly sockets: number;
  readonly timers: number;
  readonly openLeases: number;
  readonly active: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
}

const config = configOf(JSON.parse(process.argv[2]!) as ConfigInput);
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const router = await Router.create({ index: { bytes: 16 << 20 } });
const live = LiveStreams.open(router);
const registry = createRegistry({ router, live, config, log: silent });
await registry.reload(config.workers);
const prompts = new PlainPrompts(registry);
prompts.reported = () => undefined;
const activity = new Activity();
const outcomes: Record<string, number> = {};
const faults: Record<string, number> = {};
const count = (counts: Record<string, number>, name: string) => {
  counts[name] = (counts[name] ?? 0) + 1;
};
const service: Service = {
  ...{ config, router, live, registry, prompts, log: silent, activity },
  observers: [{ ended: ({ outcome }) => count(outcomes, outcome), fault: (code) => count(faults, code) }],
  notReady: () => null,
  drain: (ms) => activity.drain(ms),
  get active() {
    return activity.active;
  },
};
const listening = await listen(createApp(service), config, silent);

const { gc } = globalThis as { gc?: () => void };
const say = () => {
  for (let i = 0; i < 3; i++) gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  const standing: ProcessStanding = {
    url: listening.url,
    heap: heapUsed,
    buffers: arrayBuffers,
    sockets: resources.filter((name) => name.startsWith('TCP')).length,
    timers: resources.filter((name) => name === 'Timeout').length,
    openLeases: router.stats().leases.open,
    active: activity.active,
    outcomes,
    faults,
  };
  console.log(JSON.stringify(standing));
};
say();
createInterface({ input: process.stdin })
  .on('line', say)
  .on('close', () => process.exit(0));
