// The settings of spec/kv-events.md 7.3: defaults, ranges at and past every limit, and each refusal by its text word for word.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { multiplierFor, type RouterSettingsInput, validateSettings } from '../src/router/settings.js';

/** The refusal that `work` must end in. */
function refusal(work: () => unknown): ConfigError {
  try {
    work();
  } catch (error) {
    assert.instance(error, ConfigError);
    return error as ConfigError;
  }
  throw new Error('expected a ConfigError');
}

/** The refusal of settings of any shape. */
function refused(given: unknown): ConfigError {
  return refusal(() => validateSettings(given as RouterSettingsInput));
}

/** Asserts code and whole text. */
function assertRefused(given: unknown, code: string, message: string): void {
  const error = refused(given);
  assert.is(error.message, message);
  assert.is(error.code, code);
}

const defaults = {
  overlapScoreCredit: 1,
  overlapScoreCreditDecay: 0,
  prefillLoadScale: 1,
  decodeActiveRequestWeight: 0,
  hostCacheHitWeight: 0.75,
  diskCacheHitWeight: 0.25,
  sharedCacheMultiplier: 0,
  sharedCacheType: 'none',
  mooncakeKvEventsEndpoint: null,
  useKvEvents: true,
  useRemoteIndexer: false,
  loadAware: false,
  routerTtlSecs: 120,
  temperature: 0,
  seed: 0,
};

test('the defaults are those of 7.3, frozen', () => {
  for (const given of [undefined, {}, Object.fromEntries(Object.keys(defaults).map((name) => [name, undefined]))]) {
    const settings = validateSettings(given);
    assert.equal(settings, defaults);
    assert.ok(Object.isFrozen(settings));
  }
});

test('the multiplier is 0.5 when a shared cache type is set and no value given', () => {
  const multiplier = (given: RouterSettingsInput) => validateSettings(given).sharedCacheMultiplier;
  assert.is(multiplier({ sharedCacheType: 'mooncake-store' }), 0.5);
  assert.is(multiplier({ sharedCacheType: 'mooncake-store', sharedCacheMultiplier: undefined }), 0.5);
  assert.is(multiplier({ sharedCacheType: 'none' }), 0);
  assert.is(multiplier({ sharedCacheType: 'mooncake-store', sharedCacheMultiplier: 0 }), 0);
  assert.is(multiplier({ sharedCacheType: 'mooncake-store', sharedCacheMultiplier: 0.25 }), 0.25);
  assert.is(multiplier({ sharedCacheMultiplier: 0.25 }), 0.25);
});

const unit = 'between 0 and 1';
const notNegative = 'a finite number, 0 or more';
const seed = 'a whole number between 0 and 4294967295';

// Name, as the command line spells it, range, values within, values outside and how an error shows them.
type NumberRow = readonly [string, string, string, readonly number[], readonly (readonly [unknown, string])[]];
const outsideUnit = [[-0.001, '-0.001'] as const, [1.001, '1.001'] as const];
const numbers: readonly NumberRow[] = [
  ['overlapScoreCredit', 'overlap_score_credit', notNegative, [0, 0.5, 1, 2], [[-1, '-1']]],
  ['overlapScoreCreditDecay', 'overlap_score_credit_decay', notNegative, [0, 4], [[-0.1, '-0.1']]],
  ['prefillLoadScale', 'prefill_load_scale', notNegative, [0, 3], [[-1, '-1']]],
  ['decodeActiveRequestWeight', 'decode_active_request_weight', notNegative, [0, 3], [[-1, '-1']]],
  ['hostCacheHitWeight', 'host_cache_hit_weight', unit, [0, 0.5, 1], outsideUnit],
  ['diskCacheHitWeight', 'disk_cache_hit_weight', unit, [0, 0.5, 1], outsideUnit],
  ['sharedCacheMultiplier', 'shared_cache_multiplier', unit, [0, 0.5, 1], outsideUnit],
  ['routerTtlSecs', 'router_ttl_secs', notNegative, [0, 0.5, 86400], [[-1, '-1']]],
  ['temperature', 'temperature', notNegative, [0, 0.5, 100], [[-0.5, '-0.5']]],
  [
    'seed',
    'seed',
    seed,
    [0, 1, 4294967295],
    [
      [-1, '-1'],
      [0.5, '0.5'],
      [4294967296, '4294967296'],
    ],
  ],
];
const noNumbers = [
  [Number.NaN, 'NaN'],
  [Number.POSITIVE_INFINITY, 'Infinity'],
  [Number.NEGATIVE_INFINITY, '-Infinity'],
  ['0.5', '"0.5"'],
  [null, 'null'],
  [true, 'true'],
  [1n, 'a bigint'],
  [[1], 'an array of 1'],
  [{}, 'an object'],
] as const;

for (const [name, spelt, range, inside, outside] of numbers) {
  test(`${name}: ${range}`, () => {
    for (const value of inside) assert.is(Reflect.get(validateSettings({ [name]: value }), name), value);
    for (const [value, shown] of [...outside, ...noNumbers]) {
      assertRefused({ [name]: value }, spelt.replaceAll('_', '-'), `${spelt} must be ${range}: ${name} is ${shown}`);
    }
  });
}

for (const [name, spelt] of [
  ['useKvEvents', 'use_kv_events'],
  ['useRemoteIndexer', 'use_remote_indexer'],
  ['loadAware', 'load_aware'],
] as const) {
  test(`${name}: true or false`, () => {
    for (const value of [true, false]) assert.is(validateSettings({ [name]: value })[name], value);
    const message = `${spelt} must be true or false: ${name} is "false"`;
    assertRefused({ [name]: 'false' }, spelt.replaceAll('_', '-'), message);
    assert.is(refused({ [name]: 0 }).code, spelt.replaceAll('_', '-'));
  });
}

test("the multiplier's range error is that of 7.3", () => {
  assert.ok(
    refused({ sharedCacheMultiplier: 2 }).message.startsWith('shared_cache_multiplier must be between 0 and 1'),
  );
});

test('an unknown shared cache type is refused by name', () => {
  for (const [value, shown] of [
    ['redis', '"redis"'],
    ['', '""'],
    ['Mooncake-Store', '"Mooncake-Store"'],
    ['HICACHE', '"HICACHE"'],
    [null, 'null'],
    [1, '1'],
  ] as const) {
    const message = `unknown shared_cache_type: ${shown}; use none or mooncake-store`;
    assertRefused({ sharedCacheType: value }, 'unknown-shared-cache-type', message);
  }
  const long = refused({ sharedCacheType: 'x'.repeat(1_000_000) });
  assert.ok(long.message.length < 200);
});

test('hicache is refused as not supported', () => {
  assertRefused(
    { sharedCacheType: 'hicache' },
    'hicache-not-supported',
    'shared_cache_type=hicache is not supported: use none or mooncake-store',
  );
});

// The contradictions of a Mooncake store in their order: what is given, code, text of 7.3 (the last: of 6.4), what was seen.
const conflicts = [
  [
    { useRemoteIndexer: true },
    'mooncake-store-remote-indexer',
    'shared_cache_type=mooncake-store requires use_remote_indexer=false',
    'useRemoteIndexer is true',
  ],
  [
    { useKvEvents: false },
    'mooncake-store-kv-events',
    'shared_cache_type=mooncake-store requires use_kv_events=true',
    'useKvEvents is false',
  ],
  [
    { overlapScoreCredit: 0 },
    'mooncake-store-overlap-score-credit',
    'shared_cache_type=mooncake-store requires overlap_score_credit > 0',
    'overlapScoreCredit is 0',
  ],
  [
    { loadAware: true },
    'mooncake-store-load-aware',
    '--shared-cache-type=mooncake-store is incompatible with --load-aware',
    'loadAware is true',
  ],
  [
    { mooncakeKvEventsEndpoint: '' },
    'mooncake-store-endpoint',
    'mooncake-store requires DYN_MOONCAKE_KV_EVENTS_ENDPOINT',
    'mooncakeKvEventsEndpoint is ""',
  ],
] as const;

for (const [given, code, text, seen] of conflicts) {
  test(`${text}`, () => {
    assertRefused({ sharedCacheType: 'mooncake-store', ...given }, code, `${text}: ${seen}`);
    validateSettings(given);
    validateSettings({ sharedCacheType: 'none', ...given });
  });
}

test('of several contradictions the first in the order of 7.3 is reported', () => {
  for (const [at, [given, code]] of conflicts.entries()) {
    for (const [later] of conflicts.slice(at)) {
      assert.is(refused({ sharedCacheType: 'mooncake-store', ...later, ...given }).code, code);
    }
  }
});

test('an endpoint may be left out, where the caller hands in the messages; a given one must not be blank', () => {
  const endpoint = (value: string | null | undefined) =>
    validateSettings({ sharedCacheType: 'mooncake-store', mooncakeKvEventsEndpoint: value }).mooncakeKvEventsEndpoint;
  assert.is(endpoint(undefined), null);
  assert.is(endpoint(null), null);
  assert.is(endpoint('tcp://master:5557'), 'tcp://master:5557');
  for (const blank of ['', ' ', '\t\n', '\u00a0']) {
    assert.is(refusal(() => endpoint(blank)).code, 'mooncake-store-endpoint');
  }
  assertRefused(
    { mooncakeKvEventsEndpoint: 5557 },
    'mooncake-kv-events-endpoint',
    'mooncake_kv_events_endpoint must be a text: mooncakeKvEventsEndpoint is 5557',
  );
});

test('an unknown setting is refused by name, and so is a snake-case one', () => {
  for (const name of ['overlap_score_credit', 'hostcachehitweight', 'toString', '__proto__']) {
    const given = Object.defineProperty({}, name, { value: 1, enumerable: true });
    const error = refused(given);
    assert.is(error.code, 'unknown-setting');
    assert.ok(error.message.startsWith(`unknown router setting "${name}"; the settings are overlapScoreCredit, `));
  }
});

test('settings that are no object are refused', () => {
  for (const given of [null, 5, 'kv', [], () => ({})]) assert.is(refused(given).code, 'malformed-settings');
});

test('a request overrides the multiplier within its range', () => {
  const settings = validateSettings({ sharedCacheType: 'mooncake-store' });
  assert.is(multiplierFor(settings), 0.5);
  assert.is(multiplierFor(settings, undefined), 0.5);
  for (const value of [0, 0.25, 1]) assert.is(multiplierFor(settings, value), value);
  for (const value of [-0.1, 1.1, Number.NaN, '1']) {
    const error = refusal(() => multiplierFor(settings, value as number));
    assert.is(error.code, 'shared-cache-multiplier');
    assert.match(error.message, 'shared_cache_multiplier must be between 0 and 1: ');
  }
});

test('any value gives settings or a ConfigError', () => {
  const property = (given: unknown) => {
    try {
      validateSettings(given as RouterSettingsInput);
    } catch (error) {
      assert.instance(error, ConfigError);
    }
  };
  const oneSetting = fc.dictionary(fc.constantFrom(...Object.keys(defaults)), fc.anything({ withBigInt: true }));
  fc.assert(fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), property), { numRuns: 300 });
  fc.assert(fc.property(oneSetting, property), { numRuns: 300 });
});

test.run();
