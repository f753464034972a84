// The KV events of a worker and a real Mooncake master's messages go in, a decision comes out. Run with `node examples/router.js`.
import { Router } from 'moonroute';
import { file, recorded } from './recorded.js';

const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' }, policy: 'kv', blockSize: 16 });
// Each worker says once which objects of the store its model needs: its contract.
const descriptor = JSON.parse(file('contract.json'));
for (const id of ['worker-0', 'worker-1']) router.addWorker({ id, descriptor });

// Frames as the sockets bring them (moonroute/live reads those for you). What is wrong with them is counted, never thrown.
for (const frames of recorded('worker.jsonl')) router.onWorkerMessage('worker-0', frames);
for (const frames of recorded('store.jsonl')) router.onStoreMessage(frames);
router.workerStreamLost('worker-0'); // it restarts: its GPU is empty, what it put into the store is still there for everybody

// textOnly: the caller has proven that the prompt is plain text. Without that nothing of the store is counted on.
const tokens = Uint32Array.from({ length: 65 }, (_, i) => i);
const { worker, blocks, lease } = router.route({ tokens, textOnly: true, now: Date.now() });
console.log(`${worker.id}: of ${blocks.request} blocks ${blocks.device} on its GPU, ${blocks.shared} in the store`);
lease.admitted(Date.now()); // then progress(), and at the end complete(), fail() or cancel(): so load and rates are known
lease.complete(Date.now(), { cachedTokens: 64 }); // what the engine said of the prompt
