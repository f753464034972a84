// When a router reads the shared cache: every role, with and without conditional disaggregation, for every built-in policy and every
// set of declared inputs, as a table; then what else forbids it, in all combinations, and which reason is given.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BUILT_IN_INPUTS, type ReadingFacts, type Role, readsSharedCache } from '../src/router/roles.js';

const base: ReadingFacts = {
  role: 'aggregated',
  conditionalDisaggregation: false,
  policy: 'kv',
  gpuEvents: true,
  speculative: false,
  sharedCacheType: 'mooncake-store',
  sharedCacheMultiplier: 0.5,
};

/** `yes`, or why not. */
function verdict(facts: ReadingFacts): string {
  const reading = readsSharedCache(facts);
  return reading.reads ? 'yes' : reading.code;
}

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

// Columns as in `roles`: aggregated, prefill, decode, each without and with conditional disaggregation.
const table: readonly (readonly [ReadingFacts['policy'], ...string[]])[] = [
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

/** Each cell of the table: the facts and the verdict. */
function* cells(): Generator<readonly [ReadingFacts, string]> {
  for (const [policy, ...verdicts] of table) {
    assert.is(verdicts.length, roles.length);
    for (const [at, [role, conditionalDisaggregation]] of roles.entries()) {
      yield [{ ...base, policy, role, conditionalDisaggregation }, verdicts[at]!];
    }
  }
}

test('the table has every built-in policy, every set of declared inputs, every role and setting', () => {
  const named = table.flatMap(([policy]) => (typeof policy === 'string' ? [policy] : []));
  assert.equal(named.sort(), Object.keys(BUILT_IN_INPUTS).sort());
  const sets = table.flatMap(([policy]) => (typeof policy === 'string' ? [] : [[...policy].sort().join()]));
  assert.is(new Set(sets).size, 2 ** 3);
  assert.is([...cells()].length, 13 * 6);
});

for (const [facts, expected] of cells()) {
  const policy = typeof facts.policy === 'string' ? facts.policy : `declared [${facts.policy.join(', ')}]`;
  const disaggregation = facts.conditionalDisaggregation
    ? 'conditional disaggregation'
    : 'no conditional disaggregation';
  test(`${policy}, ${facts.role}, ${disaggregation}: ${expected}`, () => {
    assert.is(verdict(facts), expected);
  });
}

// What forbids the cache by itself, and the reasons that go before it.
const blockers: readonly (readonly [string, Partial<ReadingFacts>, readonly string[]])[] = [
  ['shared-cache-off', { sharedCacheType: 'none' }, []],
  ['gpu-events-off', { gpuEvents: false }, ['shared-cache-off', inputs, role]],
  ['speculative', { speculative: true }, ['shared-cache-off', inputs, role, 'gpu-events-off']],
];

test('no shared cache, no GPU events or a speculative model forbid it in every cell, alone and together', () => {
  let combinations = 0;
  for (const [facts, expected] of cells()) {
    for (let mask = 1; mask < 2 ** blockers.length; mask++) {
      const present = blockers.filter((_, bit) => (mask >> bit) & 1);
      const blocked: ReadingFacts = Object.assign({ ...facts }, ...present.map(([, change]) => change));
      const all = [...present.map(([code]) => code), ...(expected === yes ? [] : [expected])];
      const first = all.find((code) => {
        const before = blockers.find(([name]) => name === code)?.[2] ?? ['shared-cache-off'];
        return !before.some((other) => all.includes(other));
      });
      assert.is(verdict(blocked), first);
      combinations++;
    }
  }
  assert.is(combinations, 13 * 6 * 7);
});

test('a multiplier of 0 forbids it where the cost decides (kv, and ttft on a decode router), and is the last reason', () => {
  for (const [facts, expected] of cells()) {
    const worthless = { ...facts, sharedCacheMultiplier: 0 };
    const byCost = facts.policy === 'kv' || (facts.policy === 'ttft' && facts.role === 'decode');
    assert.is(verdict(worthless), byCost && expected === yes ? 'multiplier-zero' : expected);
    assert.is(verdict({ ...worthless, speculative: true }), expected === yes ? 'speculative' : expected);
  }
});

test('every no says what to do', () => {
  const texts = new Map<string, string>();
  const facts: readonly Partial<ReadingFacts>[] = [
    { sharedCacheType: 'none' },
    { policy: 'random' },
    { role: 'decode' },
    { gpuEvents: false },
    { speculative: true },
    { sharedCacheMultiplier: 0 },
  ];
  for (const change of facts) {
    const reading = readsSharedCache({ ...base, ...change });
    if (!reading.reads) texts.set(reading.code, reading.text);
  }
  assert.equal(Object.fromEntries(texts), {
    'shared-cache-off': 'no shared cache is set; set shared_cache_type to mooncake-store',
    'policy-does-not-read':
      'the policy does not read the shared cache; use kv or ttft, or declare the input shared-cache',
    'decode-role':
      'decode workers receive prompts that are computed already, so built-in policies route them by load; turn on conditional disaggregation to let them prefill',
    'gpu-events-off':
      'GPU events are off, and without them no block of the store can be recognised; set use_kv_events to true',
    speculative: 'the model decodes speculatively (Eagle), for which no restart point is proven; nothing is to be done',
    'multiplier-zero': 'the cost gives shared blocks no worth; set shared_cache_multiplier above 0',
  });
});

test.run();
