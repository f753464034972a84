// A whole decision from token ids: prompt hashed, both caches looked up, 64 workers priced, a lease opened and completed. Every worker holds the prompt
// to another depth, the store holds all of it.

import { blockHashes } from '../../src/core/local-hash.js';
import { indexedBlocks } from '../../src/core/prefix-types.js';
import { Router } from '../../src/router/router.js';
import { writeSequence } from '../../src/wire/frames.js';
import { PlainRouter } from '../rivals/plain-router.js';
import type { Contest, TimedSuite } from '../suite.js';
import { sessionChain, workerBatch } from '../worker-workload.js';
import { BLOCK, rivalOptions, TABLE_SEED } from '../workload.js';
import { contractOf, storePayloads } from './worker-contenders.js';

const SIZES = [64, 256, 512, 1_024, 2_048, 6_144];
const LONGEST = 6_144;
const WORKERS = 64;
const STEP_BLOCKS = 96; // a 64th of the longest prompt
const MULTIPLIER = 0.5;

async function contests(): Promise<(size: number) => Contest> {
  const options = rivalOptions(LONGEST);
  const router = await Router.create({
    settings: { sharedCacheType: 'mooncake-store', sharedCacheMultiplier: MULTIPLIER, seed: 1 },
    blockSize: BLOCK,
    index: { ranks: WORKERS, tableSeed: TABLE_SEED },
    cache: { tableSeed: TABLE_SEED },
  });
  const rival = await PlainRouter.create(WORKERS, options, MULTIPLIER);
  const contract = contractOf(options);
  const { tokens, hashes } = sessionChain(0, LONGEST / STEP_BLOCKS, STEP_BLOCKS);
  const locals = blockHashes(tokens, BLOCK);
  const payloads = Array.from({ length: LONGEST / STEP_BLOCKS }, (_, step) =>
    workerBatch({ events: 1, blocksPerEvent: STEP_BLOCKS, form: 'map', step }),
  );
  for (let worker = 0; worker < WORKERS; worker++) router.addWorker({ id: worker, contract });
  for (let worker = 0; worker < WORKERS; worker++)
    // Worker w holds w + 1 steps.
    for (let step = 0; step <= worker; step++) {
      router.onWorkerMessage(worker, [new Uint8Array(0), writeSequence(BigInt(step)), payloads[step]!]);
      const [first, end] = [step * STEP_BLOCKS, (step + 1) * STEP_BLOCKS];
      const parent = first === 0 ? null : hashes[first - 1]!;
      rival.index.stored(worker, 'device', indexedBlocks(parent, hashes.slice(first, end), locals.slice(first, end)));
    }
  rival.store.learn({ parent: null, salted: false, locals, children: hashes });
  storePayloads(hashes).forEach((payload, i) => {
    router.onStoreMessage([new Uint8Array(0), writeSequence(BigInt(i)), payload]);
    rival.store.applyBatch(payload);
  });
  return (size) => {
    const prompt = tokens.slice(0, Math.min(size * BLOCK + 1, tokens.length));
    let now = 0;
    const ours = () => {
      const decision = router.route({ tokens: prompt, textOnly: true, now: now++ });
      decision.lease.complete(now);
      return decision;
    };
    const theirs = () => {
      const decision = rival.route(prompt);
      rival.complete(decision.lease);
      return decision;
    };
    return {
      a: { items: 1, run: ours },
      b: { items: 1, run: theirs },
      check() {
        const [mine, other] = [ours(), theirs()];
        if (mine.blocks.device !== other.device || mine.blocks.shared !== other.shared)
          throw new Error(
            `the contenders disagree: ${mine.blocks.device} + ${mine.blocks.shared} and ${other.device} + ${other.shared} blocks`,
          );
      },
      counters() {
        const before = router.stats().cache?.core;
        ours();
        const after = router.stats().cache?.core;
        if (before === undefined || before === null || after === undefined || after === null)
          throw new Error('the router keeps no cache');
        return { walkedBlocks: after.walkedBlocks - before.walkedBlocks, runs: after.runs - before.runs };
      },
    };
  };
}

export const decisionSuites: readonly TimedSuite[] = [
  {
    ...{ kind: 'time', name: 'decision', title: 'a decision among 64 workers, from token ids', unit: 'decision' },
    ...{ rival: 'hash-wasm + bit masks in Maps + nested Maps', sizeOf: 'blocks', sizes: SIZES },
    ...{ quickSizes: [1_024], make: contests },
  },
];
