// Every wrong or contradictory setting is refused: by its path, with the value seen (never a secret) and what to write instead.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { type ConfigPlace, checkConfig } from '../src/server/config.js';

/** The refusal that a document must end in. */
function refusal(given: unknown, place?: ConfigPlace): ConfigError {
  try {
    checkConfig(given, place);
  } catch (error) {
    assert.instance(error, ConfigError);
    return error as ConfigError;
  }
  throw new Error(`expected a ConfigError for ${JSON.stringify(given)}`);
}

const KEY = 'sk-verysecretkey';
const Z85 = 'Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID';
const MASTER = { events: 'tcp://10.0.0.9:5557', http: 'http://10.0.0.9:9003' };
const WORKER = { id: 'a', url: 'http://10.0.0.5:8000' };
const store = (more: object = {}) => ({ type: 'mooncake-store', masters: [MASTER], ...more });
const withWorker = (more: object) => ({ workers: [{ ...WORKER, ...more }] });

// A document, the code, and the whole text.
const refusals: readonly (readonly [unknown, string, string])[] = [
  [null, 'config-document', 'the configuration is null; give one JSON object.'],
  [[], 'config-document', 'the configuration is an array of 0; give one JSON object.'],
  ['{}', 'config-document', 'the configuration is "{}"; give one JSON object.'],
  // Names
  [
    { listen: { prot: 1 } },
    'unknown-setting',
    'unknown setting "listen.prot"; the settings of listen are host, port. Is listen.port meant?',
  ],
  [
    { workers: [{ ...WORKER, event: 'tcp://a:1' }] },
    'unknown-setting',
    'unknown setting "workers.0.event"; the settings of workers.0 are id, url, events, replay, topic, dpRanks, contract, plane. Is workers.0.events meant?',
  ],
  [
    { workers: [{ ...WORKER, contract: { path: 'x' } }] },
    'unknown-setting',
    'unknown setting "workers.0.contract.path"; the settings of workers.0.contract are file, inline.',
  ],
  [
    { router: { sharedCacheMultiplier: 0.5 } },
    'unknown-setting',
    'unknown setting "router.sharedCacheMultiplier"; the settings of router are overlapScoreCredit, overlapScoreCreditDecay, prefillLoadScale, decodeActiveRequestWeight, hostCacheHitWeight, diskCacheHitWeight, useKvEvents, useRemoteIndexer, loadAware, routerTtlSecs, temperature, seed.',
  ],
  // Values
  [{ model: 5 }, 'model', "model is 5; give a model's name."],
  [{ model: ' ' }, 'model', 'model is " "; give a model\'s name.'],
  [{ listen: 8080 }, 'listen', 'listen is 8080; give an object.'],
  [
    { listen: { port: 70_000 } },
    'listen-port',
    'listen.port is 70000; give a whole number from 0 to 65535 (0 takes any that is free).',
  ],
  [
    { listen: { port: '80' } },
    'listen-port',
    'listen.port is "80"; give a whole number from 0 to 65535 (0 takes any that is free).',
  ],
  [{ listen: { host: '' } }, 'listen-host', 'listen.host is ""; give a host name or address.'],
  [{ policy: 'best' }, 'policy', 'policy is "best"; give one of kv, ttft, round-robin, random, least-loaded.'],
  [{ blockSize: 0 }, 'block-size', 'blockSize is 0; give a whole number from 1 to 65536.'],
  [{ strictContracts: 'yes' }, 'strict-contracts', 'strictContracts is "yes"; give true or false.'],
  [{ role: 'router' }, 'role', 'role is "router"; give one of aggregated, prefill, decode.'],
  [{ workers: {} }, 'workers', 'workers is an object; give a list of workers.'],
  [
    { workers: [{ url: WORKER.url }] },
    'workers-id',
    "workers.0.id is missing; give a worker's name without spaces or control characters.",
  ],
  [
    withWorker({ id: 'a b' }),
    'workers-id',
    'workers.0.id is "a b"; give a worker\'s name without spaces or control characters.',
  ],
  [
    { workers: [{ id: 'a' }] },
    'workers-url',
    'workers.0.url is missing; give http://HOST:PORT without a path, user or query.',
  ],
  ...['https://a:1', 'http://a:1/v1', 'http://user:pass@a:1', 'http://a:1?x', 'a:1', 'file:///etc/passwd'].map(
    (url) =>
      [
        withWorker({ url }),
        'workers-url',
        `workers.0.url is "${url.replace('user:pass', '…')}"; give http://HOST:PORT without a path, user or query.`,
      ] as const,
  ),
  [
    withWorker({ url: 'http://a:70000' }),
    'address',
    'workers.0.url is "http://a:70000"; give http://HOST:PORT with a port from 1 to 65535.',
  ],
  [
    withWorker({ events: '10.0.0.5:5557' }),
    'workers-events',
    'workers.0.events is "10.0.0.5:5557"; give tcp://HOST:PORT (an IPv6 address in brackets), or ipc:///path.',
  ],
  [
    withWorker({ events: 'tcp://*:5557' }),
    'workers-events',
    'workers.0.events is "tcp://*:5557"; give tcp://HOST:PORT (an IPv6 address in brackets), or ipc:///path.',
  ],
  [
    withWorker({ events: 'tcp://a:0' }),
    'endpoint',
    'workers.0.events is "tcp://a:0"; give tcp://HOST:PORT with a port from 1 to 65535, or ipc:///path.',
  ],
  [
    withWorker({ dpRanks: { size: 0 } }),
    'workers-dp-ranks-size',
    'workers.0.dpRanks.size is 0; give a whole number from 1 to 1024.',
  ],
  [
    withWorker({ contract: 'file' }),
    'workers-contract',
    'workers.0.contract is "file"; give "endpoint", {"file": NAME}, {"inline": {…}}, or null.',
  ],
  [
    withWorker({ contract: { inline: 7 } }),
    'workers-contract-inline',
    'workers.0.contract.inline is 7; give a descriptor (an object).',
  ],
  [
    withWorker({ contract: { file: 'a.json', inline: {} } }),
    'setting-excluded',
    'workers.0.contract.inline excludes what stands beside it; of file, inline give one.',
  ],
  [
    withWorker({ events: 5557 }),
    'workers-events',
    'workers.0.events is 5557; give tcp://HOST:PORT (an IPv6 address in brackets), or ipc:///path; a list with one for each rank; or null.',
  ],
  [
    withWorker({ events: ['tcp://a:1', 5557] }),
    'workers-events',
    'workers.0.events.1 is 5557; give tcp://HOST:PORT (an IPv6 address in brackets), or ipc:///path.',
  ],
  [
    { registration: { networks: ['10.0.0.5'] } },
    'registration-networks',
    'registration.networks.0 is "10.0.0.5"; give a network like 10.0.0.0/8 or fd00::/8.',
  ],
  [
    { registration: { networks: ['10.0.0.0/33'] } },
    'network',
    'registration.networks.0 is "10.0.0.0/33"; give a network like 10.0.0.0/8 or fd00::/8.',
  ],
  [{ salt: { mode: 'off' } }, 'salt-mode', 'salt.mode is "off"; give one of prefixed, raw.'],
  [{ tokenizer: {} }, 'tokenizer-file', 'tokenizer.file is missing; give the name of a file.'],
  [
    { tokenizer: { file: 't.json', timeout: 0 } },
    'tokenizer-timeout',
    'tokenizer.timeout is 0; give a whole number from 1 to 86400000 (milliseconds).',
  ],
  [
    { limits: { bodyBytes: 1 } },
    'limits-body-bytes',
    'limits.bodyBytes is 1; give a whole number from 1024 to 1073741824.',
  ],
  [
    { limits: { drainTime: 1.5 } },
    'limits-drain-time',
    'limits.drainTime is 1.5; give a whole number from 0 to 86400000 (milliseconds).',
  ],
  [
    { log: { level: 'loud' } },
    'log-level',
    'log.level is "loud"; give one of trace, debug, info, warn, error, fatal, silent.',
  ],
  // Secrets: never shown
  [
    { auth: { clientKeys: [`${KEY} `] } },
    'auth-client-keys',
    'auth.clientKeys.0 is a text of 17 characters; give a key of printable characters without spaces.',
  ],
  [{ auth: { adminKeys: KEY } }, 'auth-admin-keys', 'auth.adminKeys is a text of 16 characters; give a list of keys.'],
  [
    { auth: { clientKeys: [{ env: 'MY-KEY' }] } },
    'auth-client-keys-env',
    'auth.clientKeys.0.env is a text of 6 characters; give the name of an environment variable.',
  ],
  [
    { auth: { clientKeys: [{ env: 'ROUTER_KEY' }] } },
    'config-secret',
    'auth.clientKeys.0 is to come from the environment variable ROUTER_KEY, which is not set; let it hold a key of printable characters without spaces.',
  ],
  [
    { curve: { serverKey: Z85, publicKey: Z85, secretKey: KEY } },
    'curve-secret-key',
    'curve.secretKey is a text of 16 characters; give a CURVE key of 40 characters (Z85).',
  ],
  [
    { curve: { serverKey: Z85, publicKey: Z85 } },
    'curve-secret-key',
    'curve.secretKey is missing; give a CURVE key of 40 characters (Z85), or {"env": NAME} with the name of an environment variable that holds it.',
  ],
  [
    { auth: { clientKeys: ['one', KEY], adminKeys: [KEY] } },
    'key-twice',
    "auth.adminKeys.0 is a client's key too, so that clients could administer; give administrators a key of their own.",
  ],
  // The router's own, in the field's words
  [
    { sharedCache: { type: 'hicache' } },
    'hicache-not-supported',
    'shared_cache_type=hicache is not supported: use none or mooncake-store (sharedCache.type)',
  ],
  [
    { sharedCache: { type: 'redis' } },
    'unknown-shared-cache-type',
    'unknown shared_cache_type: "redis"; use none or mooncake-store (sharedCache.type)',
  ],
  [
    { sharedCache: store({ multiplier: 1.5 }) },
    'shared-cache-multiplier',
    'shared_cache_multiplier must be between 0 and 1: sharedCache.multiplier is 1.5 (sharedCache.multiplier)',
  ],
  [
    { router: { hostCacheHitWeight: 2 } },
    'host-cache-hit-weight',
    'host_cache_hit_weight must be between 0 and 1: router.hostCacheHitWeight is 2 (router.hostCacheHitWeight)',
  ],
  [
    { router: { overlapScoreCredit: '1' } },
    'overlap-score-credit',
    'overlap_score_credit must be a finite number, 0 or more: router.overlapScoreCredit is "1" (router.overlapScoreCredit)',
  ],
  [
    { router: { seed: -1 } },
    'seed',
    'seed must be a whole number between 0 and 4294967295: router.seed is -1 (router.seed)',
  ],
  [
    { router: { useRemoteIndexer: true } },
    'remote-indexer-not-supported',
    'use_remote_indexer=true is not supported: a router has its own index. Set useRemoteIndexer to false.',
  ],
  [
    { router: { loadAware: true }, policy: 'ttft' },
    'load-aware-policy',
    'load_aware routes by load alone, and the policy is ttft. Use kv or least-loaded, or set loadAware to false.',
  ],
  // The five of a Mooncake store
  [
    { sharedCache: store(), router: { useRemoteIndexer: true } },
    'mooncake-store-remote-indexer',
    'shared_cache_type=mooncake-store requires use_remote_indexer=false: router.useRemoteIndexer is true. Set router.useRemoteIndexer to false.',
  ],
  [
    { sharedCache: store(), router: { useKvEvents: false } },
    'mooncake-store-kv-events',
    'shared_cache_type=mooncake-store requires use_kv_events=true: router.useKvEvents is false. Set router.useKvEvents to true, or sharedCache.type to none.',
  ],
  [
    { sharedCache: store(), router: { overlapScoreCredit: 0 } },
    'mooncake-store-overlap-score-credit',
    'shared_cache_type=mooncake-store requires overlap_score_credit > 0: router.overlapScoreCredit is 0. Set router.overlapScoreCredit above 0, or sharedCache.type to none.',
  ],
  [
    { sharedCache: store(), router: { loadAware: true } },
    'mooncake-store-load-aware',
    '--shared-cache-type=mooncake-store is incompatible with --load-aware: router.loadAware is true. Set router.loadAware to false, or sharedCache.type to none.',
  ],
  [
    { sharedCache: { type: 'mooncake-store' } },
    'mooncake-store-endpoint',
    "mooncake-store requires DYN_MOONCAKE_KV_EVENTS_ENDPOINT: sharedCache.masters names none. Set that variable to tcp://HOST:PORT of the master's event socket, or name the master in sharedCache.masters.",
  ],
  // Contradictions of the service
  [
    { sharedCache: store({ tenant: 'team-a' }) },
    'tenant-not-supported',
    'sharedCache.tenant is "team-a", and vLLM\'s connector stores under default alone; leave it out, or set it to default.',
  ],
  [
    { sharedCache: { masters: [MASTER] } },
    'masters-without-type',
    'sharedCache.masters names 1, and sharedCache.type is "none"; set sharedCache.type to mooncake-store (--shared-cache-type), or leave the masters out.',
  ],
  [
    { sharedCache: store({ hashing: 'guessed' }) },
    'shared-cache-hashing',
    'sharedCache.hashing is "guessed"; give one of learned, derived, both.',
  ],
  [
    { sharedCache: store({ hashing: 'derived', trustSeed: 1 }) },
    'shared-cache-trust-seed',
    'sharedCache.trustSeed is 1; give true or false.',
  ],
  [
    { sharedCache: store({ trustSeed: true }) },
    'trust-seed-learned',
    'sharedCache.trustSeed is true, and sharedCache.hashing is "learned", which makes no hashes by a seed; set sharedCache.hashing to derived or both (--hashing), or leave trustSeed out.',
  ],
  [
    { sharedCache: store({ allowUnverifiedContract: 'yes' }) },
    'shared-cache-allow-unverified-contract',
    'sharedCache.allowUnverifiedContract is "yes"; give true or false.',
  ],
  [
    { sharedCache: { allowUnverifiedContract: true } },
    'unverified-without-type',
    'sharedCache.allowUnverifiedContract is true, and sharedCache.type is "none", where no contract counts; set sharedCache.type to mooncake-store (--shared-cache-type), or leave it out.',
  ],
  [
    { sharedCache: { hashing: 'derived' } },
    'hashing-without-type',
    'sharedCache.hashing is "derived", and sharedCache.type is "none", where no hash is asked for; set sharedCache.type to mooncake-store (--shared-cache-type), or leave hashing out.',
  ],
  [
    { sharedCache: store({ masters: [MASTER, { events: 'tcp://10.0.0.8:5557' }] }) },
    'master-http',
    'sharedCache.masters.1.http is null, and which of several masters serves is asked over HTTP; give http://HOST:PORT of its admin port.',
  ],
  [
    { sharedCache: store({ masters: [{ http: MASTER.http }] }) },
    'shared-cache-masters-events',
    'sharedCache.masters.0.events is missing; give tcp://HOST:PORT (an IPv6 address in brackets), or ipc:///path.',
  ],
  [
    { workers: [WORKER, { ...WORKER, url: 'http://10.0.0.6:8000' }] },
    'worker-id-twice',
    'workers.1.id is "a", which another worker has; give each its own.',
  ],
  [
    withWorker({ replay: 'tcp://10.0.0.5:5558' }),
    'replay-without-events',
    "workers.0.replay is given, and workers.0.events is null; give the events' endpoint too, or leave replay out.",
  ],
  [
    withWorker({ events: ['tcp://a:1', 'tcp://a:2'], dpRanks: { size: 3 } }),
    'endpoints-per-rank',
    "workers.0.events has 2 endpoints for 3 ranks (dpRanks.size); give one each, or rank 0's alone.",
  ],
  [
    withWorker({ events: 'tcp://a:65535', dpRanks: { size: 2 } }),
    'endpoints-per-rank',
    'workers.0.events is "tcp://a:65535", from which no ports of ranks 0 to 1 follow (port + rank); give a list with one endpoint each.',
  ],
  [
    { workers: [0, 1].map((n) => ({ ...WORKER, id: `w${n}`, dpRanks: { size: 600 } })) },
    'too-many-ranks',
    'workers have 1200 data-parallel ranks together, and one router knows 1024; share them out among several.',
  ],
  [
    { listen: { host: '0.0.0.0' } },
    'open-to-all',
    "listen.host is '0.0.0.0' and auth.clientKeys is empty: everybody who reaches it could use it. Give auth.clientKeys, or listen on 127.0.0.1.",
  ],
];

for (const [given, code, message] of refusals) {
  test(`${JSON.stringify(given).slice(0, 100)}: ${code}`, () => {
    const error = refusal(given);
    assert.is(error.message, message);
    assert.is(error.code, code);
    assert.not.ok(error.message.includes(KEY));
  });
}

test('a variable that holds no key is refused without showing it', () => {
  const given = { auth: { clientKeys: [{ env: 'ROUTER_KEY' }] } };
  const { message } = refusal(given, { env: { ROUTER_KEY: `${KEY}\n` } });
  assert.match(message, 'ROUTER_KEY, which holds 17 other characters; let it hold a key of printable');
  assert.match(refusal(given, { env: { ROUTER_KEY: '' } }).message, 'which is empty');
});

test('a value from a flag or a variable is named as such', () => {
  const origins = new Map([
    ['listen.port', 'MOONROUTE_PORT'],
    ['sharedCache.type', '--shared-cache-type'],
  ]);
  assert.match(
    refusal({ listen: { port: 'x' } }, { origins }).message,
    'listen.port is "x" (from MOONROUTE_PORT); give a whole number',
  );
  assert.match(
    refusal({ sharedCache: { type: 'redis' } }, { origins }).message,
    'use none or mooncake-store (sharedCache.type, from --shared-cache-type)',
  );
});

test('of several contradictions of a Mooncake store the first in the order of the field is reported', () => {
  const router = { useRemoteIndexer: true, useKvEvents: false, overlapScoreCredit: 0, loadAware: true };
  const sharedCache = { type: 'mooncake-store' };
  const codes = [
    'mooncake-store-remote-indexer',
    'mooncake-store-kv-events',
    'mooncake-store-overlap-score-credit',
    'mooncake-store-load-aware',
  ];
  for (const [at, name] of Object.keys(router).entries()) {
    const later = Object.fromEntries(Object.entries(router).slice(at));
    assert.is(refusal({ sharedCache, router: later }).code, codes[at], name);
  }
});

test('whatever is given, a configuration or a ConfigError of bounded length', () => {
  const property = (given: unknown) => {
    try {
      checkConfig(given);
    } catch (error) {
      assert.instance(error, ConfigError);
      assert.ok((error as Error).message.length < 2000);
    }
  };
  const rooms = Object.keys(checkConfig({}));
  fc.assert(fc.property(fc.anything({ withNullPrototype: true }), property), { numRuns: 200 });
  fc.assert(fc.property(fc.dictionary(fc.constantFrom(...rooms), fc.jsonValue()), property), { numRuns: 500 });
  const long = 'x'.repeat(1_000_000);
  for (const given of [{ [long]: 1 }, { model: long }, { sharedCache: { type: long } }, withWorker({ id: long })]) {
    property(given);
  }
});

test.run();
