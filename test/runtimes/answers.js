// Runs prepared cases through moonroute's public entry, in whatever JavaScript engine loads this. Returns the cases that went wrong, and how
// many had a hit; contracts that validation refuses are left out.
export async function answers(moonroute, cases) {
  const { SharedCache, validateContract, WorkerEvents } = moonroute;
  const cache = await SharedCache.create();
  const workers = new WorkerEvents();
  const source = { workerId: 1, dpRank: 0 };
  const bytes = (frames) => frames.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  const wrong = [];
  let checked = 0;
  let withHit = 0;
  for (const { name, descriptor, worker, store, tokens, blockSize, loraName, expected } of cases) {
    let contract;
    try {
      contract = validateContract(descriptor);
    } catch {
      continue; // a refusal: the rules have a test of their own
    }
    cache.updateContract(null);
    cache.updateContract(contract, [source]);
    workers.forget(source.workerId);
    for (const frames of worker) {
      for (const event of workers.read(source.workerId, bytes(frames)).events) {
        if (event.kind === 'stored') cache.observeStored(source, event);
      }
    }
    for (const frames of store) cache.applyStoreMessage(bytes(frames));
    const prompt = Uint32Array.from(tokens);
    const hits = cache.lookup({ tokens: prompt, tokenCount: prompt.length, blockSize, eligible: true, loraName });
    checked++;
    if (hits.tokens > 0) withHit++;
    if (hits.tokens !== expected) wrong.push(`${name}: ${hits.tokens}, expected ${expected}`);
  }
  return { checked, withHit, wrong };
}
