// Contracts that were derived and that no engine has vouched for: they give nothing, with a reason of their own, unless that is allowed: in the cache, in the
// router and through the whole server; and the doctor verifies their prefixes, and nothing else, over enough of the store's keys.
import { createHash } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import {
  type Contract,
  type Descriptor,
  deriveDescriptor,
  derivedAdapterOf,
  PINNED_REVISION,
  validateContract,
} from '../src/contract/index.js';
import { Router } from '../src/router/router.js';
import { checkConfig } from '../src/server/config.js';
import { findingsOf } from '../src/server/doctor/checks/index.js';
import type { KeyEvidence, WorkerEvidence } from '../src/server/doctor/evidence.js';
import { KeyReader } from '../src/server/doctor/key-tally.js';
import { requiredPrefixes } from '../src/server/doctor/required-prefixes.js';
import { DIGESTS_ENOUGH, headOf } from '../src/server/doctor/scope-tally.js';
import { targetOf as configuredTarget } from '../src/server/doctor/target.js';
import { examine, failed, said, specOf, targetOf, withFleet } from './support/doctor.js';
import { complete, post, zeromq } from './support/fleet-worker.js';
import { contractOf, SOURCE } from './support/messages.js';
import { RouterPool } from './support/router-pool.js';
import { ServiceOverFleet } from './support/running-service.js';

/** The same contract, as if it had been derived. */
function unverified(contract: Contract): Contract {
  const descriptor: Descriptor = JSON.parse(contract.fingerprint);
  return validateContract({ ...descriptor, adapter: derivedAdapterOf(PINNED_REVISION) });
}

// ---- the cache ----

test('a cache puts no unverified contract into force, and says why; another one it does', async () => {
  const cache = await SharedCache.create();
  const query = { localHashes: new BigUint64Array(4), tokenCount: 65, blockSize: 16, eligible: true };
  cache.updateContract(unverified(contractOf({})), [SOURCE]);
  assert.is(cache.contract, null);
  assert.equal(cache.lookup(query), { blocks: 0, tokens: 0 });
  const [reason] = cache.explain(query).reasons;
  assert.is(reason!.code, 'contract-unverified');
  assert.match(
    reason!.text,
    /no engine has vouched for it\. Publish it by the worker extension, or allow it: allowUnverifiedContract\./,
  );
  cache.updateContract(contractOf({}), [SOURCE]);
  assert.is(cache.contract?.verified, true);
  assert.is(cache.explain(query).reasons[0]!.code, 'not-learned');
  cache.updateContract(unverified(contractOf({})), [SOURCE]);
  assert.is(cache.contract, null);
});

test('where it is allowed, a cache takes it', async () => {
  const cache = await SharedCache.create({ allowUnverifiedContract: true });
  cache.updateContract(unverified(contractOf({})), [SOURCE]);
  assert.is(cache.contract?.verified, false);
});

// ---- the router ----

const admissions = (pool: RouterPool) =>
  pool.router.workers().map(({ id, ranks }) => `${id}: ${ranks.map(({ admission }) => admission).join()}`);

test('a router credits under no unverified contract, with its own reason; where it is allowed, as under any', async () => {
  for (const allowed of [false, true]) {
    const pool = await RouterPool.shared(0, { cache: { allowUnverifiedContract: allowed } });
    pool.add('a', { contract: unverified(pool.contract) });
    pool.add('b', { contract: null, descriptor: JSON.parse(unverified(pool.contract).fingerprint) });
    const code = allowed ? 'admitted' : 'contract-unverified';
    assert.equal(admissions(pool), [`a: ${code}`, `b: ${code}`]);
    const prompt = pool.prompt(1, 6);
    pool.offload('a', prompt);
    const decision = pool.route(prompt, { allowed: ['b'] });
    assert.is(decision.blocks.shared, allowed ? 6 : 0);
    assert.is(decision.sharedReason?.code ?? null, allowed ? null : 'contract-unverified');
    if (!allowed) assert.match(decision.sharedReason!.text, /allowUnverifiedContract/);
    assert.is(pool.router.contract?.verified ?? null, allowed ? false : null);
  }
});

test('unverified contracts outvote nobody unless they are allowed, and then they are another contract than the verified one', async () => {
  for (const [allowed, codes] of [
    [false, ['a: admitted', 'b: contract-unverified', 'c: contract-unverified']],
    [true, ['a: contract-disagrees', 'b: admitted', 'c: admitted']],
  ] as const) {
    const pool = await RouterPool.shared(0, { cache: { allowUnverifiedContract: allowed } });
    pool.add('a');
    for (const id of ['b', 'c']) pool.add(id, { contract: unverified(pool.contract) });
    assert.equal(admissions(pool), codes);
  }
});

test('in strict mode an unverified contract is none', async () => {
  const pool = await RouterPool.shared(0, { strictContracts: true });
  pool.add('a');
  pool.add('b', { contract: unverified(pool.contract) });
  assert.equal(admissions(pool), ['a: contract-disagrees', 'b: contract-unverified']);
  assert.match(pool.router.stats().contracts.reason!, /worker b rank 0 has no supported Mooncake Store contract/);
});

test('blocks of another size are said where the contract would otherwise count', async () => {
  for (const [allowed, code] of [
    [false, 'contract-unverified'],
    [true, 'contract-invalid'],
  ] as const) {
    const pool = await RouterPool.shared(0, { cache: { allowUnverifiedContract: allowed } });
    pool.add('a', { contract: unverified(contractOf({ blockSize: 32 })) });
    assert.equal(admissions(pool), [`a: ${code}`]);
  }
});

test('the option is true or false', async () => {
  try {
    await Router.create({ cache: { allowUnverifiedContract: 'yes' as unknown as boolean } });
    assert.unreachable();
  } catch (error) {
    assert.match((error as Error).message, /allowUnverifiedContract/);
  }
});

// ---- the doctor ----

const DERIVED = deriveDescriptor(
  {
    model_type: 'gpt_oss',
    num_hidden_layers: 24,
    num_attention_heads: 64,
    num_key_value_heads: 8,
    sliding_window: 128,
  },
  { model: 'openai/tiny', cachePrefix: 'pool', tp: 2 },
);
const CONTRACT = validateContract(DERIVED);
const PREFIXES = CONTRACT.groups.flatMap(({ keyPrefixes }) => keyPrefixes);
const SIMULATED = deriveDescriptor(
  { model_type: 'llama', num_hidden_layers: 80, num_attention_heads: 64, num_key_value_heads: 8 },
  { model: 'moonroute/simulated-70b', cachePrefix: 'fleet', tp: 2 },
);

const digestOf = (n: number) => createHash('sha256').update(String(n)).digest('hex');

/** Keys of so many digests, shared out among these prefixes. */
function keysOf(prefixes: readonly string[], digests: number, first = 0): string[] {
  return Array.from({ length: digests }, (_, i) => `${prefixes[i % prefixes.length]}@${digestOf(first + i)}`);
}

/** What the doctor takes from a list of keys. */
function listOf(keys: readonly string[], contracts: readonly Contract[] = [CONTRACT]): KeyEvidence {
  const { all, main, heads } = requiredPrefixes(contracts);
  const reader = new KeyReader(all, main, [], undefined, heads);
  reader.add(new TextEncoder().encode(keys.join('\n')));
  reader.end();
  return reader.result();
}

/** What the checks say of workers with these contracts, and of such a list. */
function findings(keys: KeyEvidence | null, contracts: readonly Contract[] = [CONTRACT], allowed = false) {
  const target = targetOf([], []);
  const sharedCache = { ...target.sharedCache, type: 'mooncake-store', allowUnverifiedContract: allowed } as const;
  const workers = contracts.map(
    (contract, i) =>
      ({
        spec: { id: `w${i}`, url: 'http://h', events: null, replay: null, topic: '', dpRanks: { start: 0, size: 1 } },
        httpFault: null,
        models: null,
        contract: { contract, code: null, fault: null },
        ranks: [],
        tokenizing: [],
      }) as unknown as WorkerEvidence,
  );
  const store = { masters: [], keys, keysFault: keys === null ? 'nobody lists them' : null, drift: null };
  return findingsOf({ target: { ...target, sharedCache }, seconds: 1, workers, store });
}
const derivedLine = (keys: readonly string[]) => said(findings(listOf(keys)), 'contract-derived');

const REST = 'kinds, windows and the partial flag stay unverified';

test('the doctor: 999 digests verify nothing, 1,000 verify the prefixes and nothing else', () => {
  assert.is(DIGESTS_ENOUGH, 1000);
  assert.is(
    derivedLine(keysOf(PREFIXES, 999)),
    `skipped w0: prefixes are not verified: 999 digests under pool@tiny, and 1,000 are needed; ${REST}`,
  );
  assert.is(
    derivedLine(keysOf(PREFIXES, 1000)),
    `ok w0: prefixes are verified: the store holds exactly the 4 prefixes of the contract under pool@tiny, over 1,000 digests or more; ${REST}`,
  );
});

test('the doctor: digests count once, however many keys end in them, and what is no digest never', () => {
  const twice = keysOf(PREFIXES, 999).flatMap((key) => [key, `${PREFIXES[0]}@${key.slice(key.lastIndexOf('@') + 1)}`]);
  assert.match(derivedLine(twice), /999 digests/);
  const bad = [`${PREFIXES[0]}@${'A'.repeat(64)}`, `${PREFIXES[0]}@${'a'.repeat(63)}`, `${PREFIXES[0]}@`];
  assert.match(derivedLine([...keysOf(PREFIXES, 999), ...bad]), /999 digests/);
  assert.match(derivedLine([...keysOf(PREFIXES, 999), `${PREFIXES[0]}@${digestOf(5000)}`]), /^ok/);
});

test('the doctor: one prefix that no key has, and one that the contract does not name, contradict it', () => {
  const [, ...others] = PREFIXES;
  const missing = derivedLine(keysOf(others, 2000));
  assert.match(
    missing,
    /^failed w0: the store contradicts it under pool@tiny: 1 prefix without a key: pool@tiny@tp_rank:0@.* FIX /,
  );
  assert.match(missing, /Do not allow it as it is\.$/);
  const more = PREFIXES[0]!.replace('tp_rank:0', 'tp_rank:2');
  const keys = [...keysOf(PREFIXES, 2000), `${more}@${digestOf(0)}`];
  assert.match(derivedLine(keys), /^failed w0: .*: 1 prefix that it does not name: pool@tiny@tp_rank:2@/);
  // Under a key that is no object's, it is not seen.
  assert.match(derivedLine([...keysOf(PREFIXES, 2000), `${more}@none`]), /^ok/);
  // A third group.
  const group = PREFIXES[0]!.replace(/group:\d+/, 'group:2');
  assert.match(derivedLine([...keysOf(PREFIXES, 2000), `${group}@${digestOf(1)}`]), /^failed/);
});

test('the doctor: keys of other models and cache prefixes neither help nor harm', () => {
  const foreign = ['pool@other', 'other@tiny', 'tiny', 'pool@pool@tiny'].flatMap((head) =>
    keysOf(
      PREFIXES.map((prefix) => prefix.replace('pool@tiny', head)),
      1500,
    ),
  );
  assert.match(derivedLine([...foreign, ...keysOf(PREFIXES, 999)]), /^skipped .* 999 digests/);
  assert.match(derivedLine([...foreign, ...keysOf(PREFIXES, 1000)]), /^ok w0/);
  assert.match(derivedLine([...foreign, 'plain', `plain@${digestOf(1)}`]), /^skipped .* 0 digests/);
});

test('the doctor: of more prefixes than it keeps there are too many all the same', () => {
  const many = Array.from(
    { length: 9000 },
    (_, i) => `pool@tiny@tp_rank:${i}@pcp0@dcp0@pp_rank:0@group:0@${digestOf(i)}`,
  );
  assert.match(derivedLine(many), /^failed w0: .*2,046 prefixes that it does not name/);
  const elsewhere = many.map((key) => key.replace('pool@', 'other@'));
  assert.match(derivedLine([...elsewhere, ...keysOf(PREFIXES, 1000)]), /^ok w0/);
});

test('the doctor: one line a derived contract, with its workers, and none of others', () => {
  const line = (contracts: readonly Contract[]) =>
    said(findings(listOf(keysOf(PREFIXES, 1000), contracts), contracts), 'contract-derived');
  const simulated = validateContract(SIMULATED);
  assert.match(
    line([CONTRACT, CONTRACT, simulated]),
    /^ok w0, w1: .*\nskipped w2: .* 0 digests under fleet@simulated-70b/,
  );
  assert.equal(requiredPrefixes([contractOf({}), CONTRACT, CONTRACT]).heads, ['pool@tiny']);
  assert.is(line([contractOf({})]), 'skipped config: nothing of it is configured');
  const { groups } = DERIVED;
  const mixed = validateContract({
    ...DERIVED,
    groups: [groups[0]!, { ...groups[1]!, key_prefixes: ['other@m@group:1'] }],
  });
  assert.match(line([mixed]), /^skipped w0: its prefixes are not those of one model/);
  assert.match(said(findings(null), 'contract-derived'), /^skipped w0: nobody lists them; nothing is verified/);
});

test('the doctor: an unverified contract is a failure until it is allowed, and then is still called unverified', () => {
  const keys = listOf(keysOf(PREFIXES, 1000));
  assert.match(
    said(findings(keys), 'contract'),
    /^failed w0: the contract was derived .* FIX Load the worker extension .*sharedCache\.allowUnverifiedContract to true\.$/,
  );
  assert.match(
    said(findings(keys, [CONTRACT], true), 'contract'),
    /^ok w0: 2 groups, 4 key prefixes.*; unverified: it was derived/,
  );
  assert.not.match(said(findings(keys, [contractOf({})]), 'contract'), /unverified/);
});

test('what the doctor examines is what is configured', () => {
  for (const allowUnverifiedContract of [false, true]) {
    const sharedCache = {
      type: 'mooncake-store',
      masters: [{ events: 'tcp://10.0.0.9:5557' }],
      allowUnverifiedContract,
    };
    const { sharedCache: examined } = configuredTarget(checkConfig({ sharedCache }));
    assert.is(examined.allowUnverifiedContract, allowUnverifiedContract);
  }
});

test('the head of a prefix is its cache prefix and model', () => {
  assert.is(headOf('a@b@m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:3'), 'a@b@m');
  assert.is(headOf('m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:3'), 'm');
  assert.is(headOf('m@group:3'), null);
});

// ---- the whole server ----

if (zeromq === null && process.env['CI']) {
  test('zeromq is there', () => assert.unreachable('zeromq is not installed, and CI may not skip its tests'));
} else if (zeromq !== null) {
  for (const allowed of [false, true]) {
    test(`served with a derived contract, which is ${allowed ? '' : 'not '}allowed`, async () => {
      const fleet = { workers: 2, worker: { latency: { timeScale: 0 }, descriptor: SIMULATED } };
      const over = await ServiceOverFleet.start(
        fleet,
        { sharedCache: { allowUnverifiedContract: allowed } },
        0,
        allowed,
      );
      try {
        const prompt = Array.from({ length: 16 * 20 + 5 }, (_, i) => (i * 31) % 5000);
        const [first] = over.fleet.workers;
        // Computed by one, which then loses it: only the store has it.
        await complete(first!.httpUrl, prompt);
        await over.heard();
        first!.evict(20);
        await over.heard();
        const response = await post(`${over.url}/v1/completions`, { prompt, max_tokens: 1 });
        const text = await response.text();
        assert.is(response.status, 200, text);
        const shared = Number(/shared=(\d+)/.exec(response.headers.get('x-moonroute-cached-tokens')!)![1]);
        assert.is(shared, allowed ? 320 : 0);
        const reason = response.headers.get('x-moonroute-reason') ?? '';
        if (!allowed) assert.match(reason, 'contract-unverified');
        const { registry } = over.running.service;
        for (const { contractFault } of registry.list()) {
          if (allowed) assert.is(contractFault, null);
          else assert.match(contractFault!, /no engine has vouched for it/);
        }
      } finally {
        await over.close();
      }
    });
  }

  test('the doctor over real sockets: refused, and allowed with too few digests to verify anything', () =>
    withFleet({ workers: 1, worker: { tp: 2, descriptor: SIMULATED } }, async (fleet) => {
      const [worker] = fleet.workers;
      await complete(
        worker!.httpUrl,
        Array.from({ length: 16 * 30 }, (_, i) => i),
      );
      const target = targetOf([specOf(worker!)], fleet.masters);
      const findings = await examine(target);
      assert.equal(failed(findings), ['contract']);
      assert.match(said(findings, 'contract-derived'), /^skipped worker-0: .*: \d+ digests under fleet@simulated-70b/);
      const sharedCache = { ...target.sharedCache, allowUnverifiedContract: true };
      assert.equal(failed(await examine({ ...target, sharedCache })), []);
    }));

  test('the doctor over real sockets verifies the prefixes of a store with a thousand digests', () =>
    withFleet({ workers: 1, worker: { tp: 2, descriptor: SIMULATED } }, async (fleet) => {
      const [worker] = fleet.workers;
      for (let i = 0; i < 2; i++) {
        await complete(
          worker!.httpUrl,
          Array.from({ length: 16 * 520 }, (_, at) => (i + 1) * 10_000 + at),
        );
      }
      const findings = await examine(targetOf([specOf(worker!)], fleet.masters));
      assert.match(
        said(findings, 'contract-derived'),
        /^ok worker-0: prefixes are verified: the store holds exactly the 2 prefixes/,
      );
    }));
}

test.run();
