// Entry for Deno: a router with live streams, as in Node. Says on standard output, line by line as JSON, how they stand, whenever that changes.
// Argument: { contract, worker: { id, events, replay }, masters, prompt }.
import * as moonroute from '../../build/js/src/index.js';
import { LiveStreams } from '../../build/js/src/live/index.js';

const { contract, worker, masters, prompt } = JSON.parse(Deno.args[0]);
const router = await moonroute.Router.create({
  settings: { sharedCacheType: 'mooncake-store' },
  index: { bytes: 4 << 20 },
});
const live = LiveStreams.open(router, {
  workers: [{ ...worker, descriptor: contract }],
  store: { masters, keeper: { pollEvery: 150 } },
});
let last = '';
setInterval(() => {
  const { blocks, lease } = router.route({ tokens: Uint32Array.from(prompt), textOnly: true });
  lease.cancel(0);
  const { workers, store } = live.status();
  const line = JSON.stringify({
    shared: blocks.shared,
    device: blocks.device,
    gaps: workers[0].counts.gaps,
    replayed: workers[0].counts.replayed,
    restarts: workers[0].counts.restarts,
    losses: Object.keys(store.losses).length,
    reconciled: store.reconciled > 0,
  });
  if (line !== last) console.log(line);
  last = line;
}, 10);
