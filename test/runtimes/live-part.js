// One process of a pool that is killed without warning (live-kill.test.ts): a master that holds objects from its start, as after a restored snapshot; a
// worker; or a router that says its credit for a prompt whenever that changes. Arguments: the part, and its settings as JSON.

import { SimulatedMaster, SimulatedWorker } from '../../build/js/src/fleet/index.js';
import { Router } from '../../build/js/src/index.js';
import { LiveStreams } from '../../build/js/src/live/index.js';

const [part, json] = process.argv.slice(2);
const settings = JSON.parse(json);

if (part === 'master') {
  const { keys, ...options } = settings;
  const master = await SimulatedMaster.start({ generation: 'A', ...options });
  for (const key of keys) master.putEnd(key);
  await master.flushed();
  console.log(JSON.stringify({ events: master.eventsEndpoint, http: master.httpUrl }));
} else if (part === 'worker') {
  const worker = await SimulatedWorker.start({ tp: 2, latency: { timeScale: 0 }, ...settings });
  const [events] = worker.eventsEndpoints;
  const [replay] = worker.replayEndpoints;
  // Its GPU forgets at once: what counts is what only the store holds.
  setInterval(() => worker.evict(1_000_000), 20);
  console.log(JSON.stringify({ id: worker.id, url: worker.httpUrl, events, replay, descriptor: worker.descriptor }));
} else {
  const { workers, masters, tokens } = settings;
  const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' }, index: { bytes: 4 << 20 } });
  LiveStreams.open(router, { workers, store: { masters, keeper: { pollEvery: 500 } } });
  let last = '';
  setInterval(() => {
    const { blocks, lease } = router.route({ tokens, textOnly: true });
    lease.cancel(0);
    const line = JSON.stringify({ device: blocks.device, shared: blocks.shared });
    if (line !== last) console.log(line);
    last = line;
  }, 10);
}
