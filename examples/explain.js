// A decision explains itself: the same prompt in four states of a pool, each time with what is credited, and the reason for what is not. The KV events of two
// workers and a real Mooncake master's messages go in as recorded bytes. Run with `node examples/explain.js`.
import { Router } from 'moonroute';
import { file, recorded } from './recorded.js';

const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' }, blockSize: 16 });
// Each worker publishes which objects its model needs: here full attention and Mamba, two tensor-parallel ranks.
const descriptor = JSON.parse(file('contract.json'));
for (const id of ['worker-0', 'worker-1']) router.addWorker({ id, descriptor });

// A prompt of 65 tokens, the ids 0 … 64. The caller proves that it is plain text, and says what time it is.
const prompt = { tokens: Uint32Array.from({ length: 65 }, (_, i) => i), textOnly: true, explain: true };
let now = 0;
const show = (when) => {
  const { worker, cost, runnerUp, blocks, sharedReason, candidates, lease } = router.route({ ...prompt, now });
  console.log(`${when}: ${worker.id}, cost ${cost}; runner-up ${runnerUp.worker.id}, cost ${runnerUp.cost}`);
  console.log(`  blocks on the GPU ${blocks.device}, from the store ${blocks.shared}, of ${blocks.request}`);
  if (sharedReason !== null) console.log(`  nothing from the store: ${sharedReason.code}`);
  for (const { worker, zero } of candidates)
    if (zero.device !== null) console.log(`  ${worker.id} has nothing on its GPU: ${zero.device.text}`);
  // The gateway reports what the engine says: it took the request, the first token came, it is done.
  lease.admitted(now + 1);
  lease.progress(1, now + 40);
  lease.complete(now + 90, { cachedTokens: (blocks.device + blocks.shared) * 16 });
  now += 100;
};

show('nobody knows the prompt');
for (const frames of recorded('worker.jsonl')) router.onWorkerMessage('worker-0', frames);
show('worker-0 holds it');
for (const frames of recorded('store.jsonl')) router.onStoreMessage(frames);
// The worker restarts: what its GPU held is gone, and what it put into the store is still there for everybody.
router.workerStreamLost('worker-0');
show('worker-0 restarted, the store holds it');
router.storeStreamLost('disconnect');
show('the store is out of sight');
router.dispose();
