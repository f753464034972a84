// The shared cache by itself, on recorded bytes: a worker's KV event and a real Mooncake master's messages go in, the number of prompt
// tokens that vLLM would restore from the store comes out. Run with `node examples/shared-cache.js`.
import { SharedCache, validateContract, WorkerEvents } from 'moonroute';
import { file, recorded } from './recorded.js';

const cache = await SharedCache.create();
// The worker publishes which objects its model needs: here full attention and Mamba, two tensor-parallel ranks.
cache.updateContract(validateContract(JSON.parse(file('contract.json'))), [{ workerId: 'worker-0', dpRank: 0 }]);

// One reader for all workers: it remembers which groups and namespaces each of them has announced.
const workers = new WorkerEvents();
for (const frames of recorded('worker.jsonl')) cache.observeMessage(workers.read('worker-0', frames));

// A prompt of 65 tokens, the ids 0 … 64. The caller proves that it is plain text.
const tokens = Uint32Array.from({ length: 65 }, (_, i) => i);
const prompt = { tokens, tokenCount: tokens.length, blockSize: 16, eligible: true };
const show = (when) => {
  const { hits, reasons } = cache.explain(prompt);
  console.log(`${when}: ${hits.tokens} of ${tokens.length} tokens`);
  for (const { code, text } of reasons) console.log(`  ${code}: ${text}`);
};

show('nothing stored yet');
for (const frames of recorded('store.jsonl')) cache.applyStoreMessage(frames);
show("after the store's messages");
cache.streamLost('disconnect');
show('after the store was lost from sight');
