// Whether a router keeps a shared cache and whether its credit enters a decision, end to end through `Router.create`: every role, with and
// without conditional disaggregation, for every built-in policy and every set of declared inputs; then what else forbids it, and the
// settings that are refused. `router-roles` has the rule by itself.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import type { PolicyOption } from '../src/router/policies.js';
import type { PolicyCandidate } from '../src/router/policy-custom.js';
import type { BuiltInPolicy, PolicyInput, Role } from '../src/router/roles.js';
import { Router } from '../src/router/router.js';
import type { RouterOptions } from '../src/router/router-options.js';
import { RouterPool } from './support/router-pool.js';

const roles: readonly (readonly [Role, boolean])[] = [
  ['aggregated', false],
  ['aggregated', true],
  ['prefill', false],
  ['prefill', true],
  ['decode', false],
  ['decode', true],
];

const yes = 'yes';
const inputs = 'policy-does-not-read';
const role = 'decode-role';

/** Columns as in `roles`. */
const table: readonly (readonly [BuiltInPolicy | readonly PolicyInput[], ...string[]])[] = [
  ['kv', yes, yes, yes, yes, role, yes],
  ['ttft', yes, yes, yes, yes, role, yes],
  ['round-robin', inputs, inputs, inputs, inputs, inputs, inputs],
  ['random', inputs, inputs, inputs, inputs, inputs, inputs],
  ['least-loaded', inputs, inputs, inputs, inputs, inputs, inputs],
  [[], inputs, inputs, inputs, inputs, inputs, inputs],
  [['gpu-cache'], inputs, inputs, inputs, inputs, inputs, inputs],
  [['load'], inputs, inputs, inputs, inputs, inputs, inputs],
  [['gpu-cache', 'load'], inputs, inputs, inputs, inputs, inputs, inputs],
  [['shared-cache'], yes, yes, yes, yes, yes, yes],
  [['gpu-cache', 'shared-cache'], yes, yes, yes, yes, yes, yes],
  [['shared-cache', 'load'], yes, yes, yes, yes, yes, yes],
  [['gpu-cache', 'shared-cache', 'load'], yes, yes, yes, yes, yes, yes],
];

/** A policy that declares these inputs and prices by what it may know of the store. */
function declaring(declared: readonly PolicyInput[]): PolicyOption {
  return { name: 'declared', inputs: declared, cost: ({ blocks }: PolicyCandidate) => 100 - blocks.shared };
}

/** Of two workers the store's part is credited to the one under the contract in force: its price before and after the store filled. */
async function pricesWithStore(options: RouterOptions): Promise<{ pool: RouterPool; before: number; after: number }> {
  const pool = await RouterPool.shared(1, options);
  const prompt = pool.prompt(1, 10);
  const price = () => {
    const { cost, lease } = pool.route(prompt);
    lease.complete(0);
    return cost;
  };
  // Load to take credit from: on a decode router the credit is taken from decode blocks, elsewhere from prefill.
  pool.announce(0, prompt);
  pool.evict(0, prompt);
  const before = price();
  pool.store(prompt);
  return { pool, before, after: price() };
}

for (const [policy, ...verdicts] of table) {
  for (const [at, [role, conditionalDisaggregation]] of roles.entries()) {
    const expected = verdicts[at]!;
    const name = typeof policy === 'string' ? policy : `declared [${policy.join(', ')}]`;
    const words = conditionalDisaggregation ? 'conditional disaggregation' : 'no conditional disaggregation';
    test(`${name}, ${role}, ${words}: ${expected}`, async () => {
      const options = {
        role,
        conditionalDisaggregation,
        policy: typeof policy === 'string' ? policy : declaring(policy),
      };
      const { pool, before, after } = await pricesWithStore(options);
      const { cache } = pool.router.stats();
      const decision = pool.route(pool.prompt(1, 10));
      assert.is(cache !== null, expected === yes);
      assert.is(pool.router.contract !== null, expected === yes);
      assert.is(decision.sharedReason?.code ?? yes, expected);
      assert.is(decision.blocks.shared, expected === yes ? 10 : 0);
      // Round-robin's price is a turn, which says nothing of what is held.
      if (policy !== 'round-robin') assert.is(after < before, expected === yes, `${before} → ${after}`);
    });
  }
}

test('a decode router: by decode load alone, and with conditional disaggregation by what is left of it after credit', async () => {
  for (const [conditionalDisaggregation, expected] of [
    [false, { form: 'prefill', prefill: 0, decode: 11, credit: 0 }],
    [true, { form: 'decode', prefill: 0, decode: 1, credit: 10 }],
  ] as const) {
    const pool = await RouterPool.shared(1, { role: 'decode', conditionalDisaggregation });
    const prompt = pool.prompt(1, 10);
    pool.announce(0, prompt);
    const { terms } = pool.route(prompt);
    assert.is(terms?.kind, 'cost');
    if (terms?.kind !== 'cost') return;
    const { form, prefill, decode, credit } = terms;
    assert.equal({ form, prefill, decode, credit: credit.total }, expected);
    assert.is(pool.router.workers()[0]!.ranks[0]!.load.prefillTokens, 0, 'its prefill is not tracked');
  }
});

test('ttft on a decode router has no first token to estimate: it prices as kv does', async () => {
  for (const [role, kind] of [
    ['aggregated', 'time'],
    ['prefill', 'time'],
    ['decode', 'cost'],
  ] as const) {
    const pool = await RouterPool.shared(1, { policy: 'ttft', role, conditionalDisaggregation: true });
    const decision = pool.route(pool.prompt(1, 3));
    assert.equal([decision.policy, decision.terms?.kind], ['ttft', kind]);
  }
});

const others: readonly (readonly [string, RouterOptions, string])[] = [
  ['no shared cache is set', { settings: { sharedCacheType: 'none' } }, 'shared-cache-off'],
  ['the model is speculative', { speculative: true }, 'speculative'],
  ['shared blocks are worth nothing to kv', { settings: { sharedCacheMultiplier: 0 } }, 'multiplier-zero'],
  [
    'nor to ttft on a decode router, which prices like kv',
    { settings: { sharedCacheMultiplier: 0 }, policy: 'ttft', role: 'decode', conditionalDisaggregation: true },
    'multiplier-zero',
  ],
];

for (const [name, options, code] of others) {
  test(`no shared cache: ${name}: ${code}`, async () => {
    const pool = await RouterPool.shared(1, options);
    assert.is(pool.router.stats().cache, null);
    assert.is(pool.route(pool.prompt(1, 3)).sharedReason?.code, code);
  });
}

test('ttft weighs nothing: it reads the shared cache whatever the multiplier', async () => {
  const pool = await RouterPool.shared(1, { policy: 'ttft', settings: { sharedCacheMultiplier: 0 } });
  const prompt = pool.prompt(1, 100);
  pool.offload(0, prompt);
  assert.is(pool.route(prompt).blocks.shared, 100);
});

test('without GPU events nothing of workers is read, and a decision says so', async () => {
  const pool = await RouterPool.open({ settings: { useKvEvents: false } });
  pool.add(0);
  const prompt = pool.prompt(1, 3);
  assert.is(pool.announce(0, prompt).fate, 'gpu-events-off');
  const { candidates } = pool.route(prompt, { explain: true });
  assert.is(candidates![0]!.zero.device?.code, 'gpu-events-off');
});

const mooncake = { sharedCacheType: 'mooncake-store' } as const;
/** The five refusals of spec/kv-events.md 7.3 by their texts, then the blank endpoint of 6.4. */
const refusals: readonly (readonly [RouterOptions['settings'] & object, string, string])[] = [
  [
    { ...mooncake, useRemoteIndexer: true },
    'mooncake-store-remote-indexer',
    'shared_cache_type=mooncake-store requires use_remote_indexer=false',
  ],
  [
    { ...mooncake, useKvEvents: false },
    'mooncake-store-kv-events',
    'shared_cache_type=mooncake-store requires use_kv_events=true',
  ],
  [
    { ...mooncake, overlapScoreCredit: 0 },
    'mooncake-store-overlap-score-credit',
    'shared_cache_type=mooncake-store requires overlap_score_credit > 0',
  ],
  [
    { ...mooncake, loadAware: true },
    'mooncake-store-load-aware',
    '--shared-cache-type=mooncake-store is incompatible with --load-aware',
  ],
  [{ sharedCacheType: 'redis' as 'none' }, 'unknown-shared-cache-type', 'unknown shared_cache_type: "redis"'],
  [
    { ...mooncake, mooncakeKvEventsEndpoint: '  ' },
    'mooncake-store-endpoint',
    'mooncake-store requires DYN_MOONCAKE_KV_EVENTS_ENDPOINT',
  ],
  [{ sharedCacheType: 'hicache' as 'none' }, 'hicache-not-supported', 'shared_cache_type=hicache is not supported'],
  [
    { ...mooncake, sharedCacheMultiplier: 1.5 },
    'shared-cache-multiplier',
    'shared_cache_multiplier must be between 0 and 1',
  ],
];

for (const [settings, code, text] of refusals) {
  test(`refused at start: ${text}`, async () => {
    const error = await Router.create({ settings }).then(
      () => null,
      (error: unknown) => error,
    );
    assert.instance(error, ConfigError);
    assert.is((error as ConfigError).code, code);
    assert.ok((error as ConfigError).message.startsWith(text), (error as ConfigError).message);
  });
}

test.run();
