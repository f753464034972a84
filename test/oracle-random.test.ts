// The core against the brute force, on random stores and prompts of random geometries: what it credits is exactly what a router can prove, and
// never more than vLLM's worker would report. MOONROUTE_SEED=n repeats a run.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { validateContract } from '../src/contract/validate.js';
import { planOf } from '../src/core/plan.js';
import { ContractError } from '../src/errors.js';
import { randomCase, type StoreCase, visibleHit, workerHit } from './support/brute-force.js';
import { loadCore } from './support/cores.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const CASES = 8_000;
/** The store as each case begins. */
const EMPTY = { words: new Uint32Array(0), count: 0, digests: 0, objects: 0 };
console.log(`oracle-random: seed ${seed}`);

function contractOf({ hashBlock, lcm, partial, blockSize, groups }: StoreCase) {
  try {
    return validateContract(
      descriptorFromCase({
        hash_block_size: hashBlock,
        coordinator_alignment: lcm,
        partial_hash_hits: partial,
        main_event_block_size: groups.some(({ kind }) => kind === 'full_attention') ? blockSize : null,
        groups: groups.map(({ kind, blockSize: block_size, window, prefixes }, group_id) => ({
          group_id,
          kind,
          block_size,
          window,
          prefixes: Array.from({ length: prefixes }, (_, rank) => `p@m@tp_rank:${rank}@group:${group_id}`),
        })),
      }),
    );
  } catch (error) {
    if (error instanceof ContractError) return null;
    throw error;
  }
}

for (const build of ['default', 'wide'] as const) {
  test(`${build}: the brute force's answer in random cases`, async () => {
    const random = new Random(seed);
    const core = await loadCore(build);
    const counts = { cases: 0, hits: 0, partial: 0, equalToWorker: 0 };
    while (counts.cases < (build === 'default' ? CASES : CASES / 8)) {
      const store = randomCase(random);
      const contract = contractOf(store);
      if (contract === null) continue;
      core.configure(planOf(contract), 1n);
      core.replaceResidency(EMPTY);
      const { blockSize, hashBlock, tokenCount } = store;
      const digests = Array.from({ length: 1 + Math.max(0, ...store.present.map(([, , digest]) => digest)) }, () =>
        random.hex(32),
      );
      const perBlock = blockSize / hashBlock;
      const blocks = Math.floor(digests.length / perBlock);
      const locals = BigUint64Array.from({ length: Math.max(blocks, Math.floor(tokenCount / blockSize)) }, () =>
        random.bigint64(),
      );
      if (blocks > 0) {
        core.loadLocals(locals.subarray(0, blocks));
        const lows = BigUint64Array.from({ length: blocks }, (_, k) =>
          BigInt(`0x${digests[(k + 1) * perBlock - 1]!.slice(48)}`),
        );
        core.learn({ parent: null, lows, digests: null, salted: false });
      }
      for (let first = 0; first < store.present.length; first += 4096) {
        const events = store.present.slice(first, first + 4096).map(([group, rank, digest]) => ({
          event_type: 'stored',
          medium: 'cpu',
          object_key: `${contract.groups[group]!.keyPrefixes[rank]}@${digests[digest]}`,
        }));
        assert.is(core.applyPayload(encode([0, events, 0])).outcome, 'applied');
      }
      const asked = core.loadLocals(locals.subarray(0, Math.floor(tokenCount / blockSize)));
      const hit = core.lookup(asked, tokenCount) * blockSize;
      const where = () => `seed ${seed}, case ${counts.cases}: ${JSON.stringify(store)}`;
      const expected = visibleHit(store, blocks);
      if (hit !== expected) assert.unreachable(`core ${hit}, brute force ${expected}; ${where()}`);
      const worker = workerHit(store);
      if (hit > worker) assert.unreachable(`credited ${hit}, the worker reports ${worker}; ${where()}`);
      counts.cases++;
      if (hit > 0) counts.hits++;
      if (hit === worker) counts.equalToWorker++;
      if (store.partial) counts.partial++;
    }
    console.log(`  ${build}: ${JSON.stringify(counts)}`);
    assert.ok(counts.hits > counts.cases / 5 && counts.partial > counts.cases / 10);
  });
}

test.run();
