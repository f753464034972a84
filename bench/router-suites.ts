// What a whole decision costs: prompt hashed, both caches looked up, every rank priced, a lease opened and completed.
import { readFileSync } from 'node:fs';
import { Router, validateContract } from '../src/index.js';
import { Sample } from './harness.js';
import type { Effort, Row } from './suites.js';

const BLOCK = 16;
const WARM = 500;
const DECISIONS_A_TURN = 200;

const CASES = [
  { ranks: 8, blocks: 1_000, policy: 'kv' },
  { ranks: 64, blocks: 1_000, policy: 'kv' },
  { ranks: 64, blocks: 1_000, policy: 'ttft' },
  { ranks: 1_024, blocks: 1_000, policy: 'kv' },
  { ranks: 64, blocks: 62, policy: 'kv' },
] as const;

/** Decisions of which no worker and no store knows the prompt: every step is taken, and every "no" gets its reason. */
export async function decisionSuite(effort: Effort): Promise<Row[]> {
  const contract = validateContract(JSON.parse(readFileSync('examples/contract.json', 'utf8')));
  const rows: Row[] = [];
  for (const { ranks, blocks, policy } of CASES) {
    const settings = { sharedCacheType: 'mooncake-store' } as const;
    const router = await Router.create({ settings, policy, blockSize: BLOCK, index: { ranks } });
    for (let id = 0; id < ranks; id++) router.addWorker({ id, contract });
    const tokens = Uint32Array.from({ length: blocks * BLOCK + 1 }, (_, i) => i);
    let now = 0;
    const decide = () => {
      const started = performance.now();
      router.route({ tokens, textOnly: true, now: now++ }).lease.complete(now);
      return performance.now() - started;
    };
    for (let i = 0; i < WARM; i++) decide();
    const core = new Sample(Array.from({ length: effort.turns * DECISIONS_A_TURN }, decide));
    rows.push({
      suite: `decision of ${policy} among ${ranks} ranks, ${tokens.length} tokens`,
      core,
      rival: null,
      ratio: null,
      aim: null,
      met: null,
      note: `p99 ${(core.at(0.99) * 1e3).toFixed(0)} µs`,
    });
    router.dispose();
  }
  return rows;
}
