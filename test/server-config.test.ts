// The configuration as it comes out: defaults, names and secrets resolved, the order of command line, environment and file, and the published schema.
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { Router } from '../src/router/router.js';
import { planRouter } from '../src/router/router-options.js';
import { checkConfig } from '../src/server/config.js';
import { configJsonSchema } from '../src/server/config-json-schema.js';
import { type ConfigSources, gatherConfig, loadConfig } from '../src/server/config-load.js';
import { printedConfig } from '../src/server/config-print.js';
import { routerOptionsOf } from '../src/server/config-router.js';
import { CONFIG_SETTINGS } from '../src/server/config-settings.js';

const KEY = 'sk-verysecretkey';
const Z85 = 'Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID';
const EVENTS = 'tcp://10.0.0.9:5557';
const MASTER = { events: EVENTS, http: 'http://10.0.0.9:9003' };

/** What comes of flags, variables and a file. */
function load(flags: ConfigSources['flags'], env: ConfigSources['env'] = {}, file?: unknown) {
  const read = () => new TextEncoder().encode(typeof file === 'string' ? file : JSON.stringify(file));
  return loadConfig({ flags: file === undefined ? flags : { config: '/etc/moonroute/c.json', ...flags }, env, read });
}

function refusal(work: () => unknown): ConfigError {
  try {
    work();
  } catch (error) {
    assert.instance(error, ConfigError);
    return error as ConfigError;
  }
  throw new Error('expected a ConfigError');
}

test('everything has a default', () => {
  assert.equal(checkConfig({}), {
    model: null,
    listen: { host: '127.0.0.1', port: 8080 },
    policy: 'kv',
    blockSize: 16,
    router: {
      overlapScoreCredit: 1,
      overlapScoreCreditDecay: 0,
      prefillLoadScale: 1,
      decodeActiveRequestWeight: 0,
      hostCacheHitWeight: 0.75,
      diskCacheHitWeight: 0.25,
      useKvEvents: true,
      useRemoteIndexer: false,
      loadAware: false,
      routerTtlSecs: 120,
      temperature: 0,
    },
    sharedCache: {
      type: 'none',
      multiplier: 0.5,
      masters: [],
      hashing: 'learned',
      trustSeed: false,
      allowUnverifiedContract: false,
      tenant: 'default',
      maxEvidenceAge: null,
    },
    strictContracts: false,
    role: 'aggregated',
    workers: [],
    eventPlane: null,
    registration: { networks: null },
    provenance: { route: false },
    salt: { mode: 'prefixed' },
    tokenizer: null,
    auth: { clientKeys: [], adminKeys: [] },
    curve: null,
    limits: {
      bodyBytes: 10_485_760,
      headerBytes: 16_384,
      promptTokens: 1_000_000,
      connections: 10_000,
      requestTime: 600_000,
      headerTime: 10_000,
      bodyTime: 30_000,
      drainTime: 30_000,
    },
    log: { level: 'info' },
  });
});

test("the router's defaults here are the router's own", () => {
  const { settings } = planRouter(routerOptionsOf(checkConfig({})));
  assert.equal(settings, planRouter().settings);
  const shared = checkConfig({ sharedCache: { type: 'mooncake-store', masters: [MASTER] } });
  assert.is(planRouter(routerOptionsOf(shared)).settings.sharedCacheMultiplier, 0.5);
});

test('a worker needs a name and an address, and has defaults for the rest', () => {
  const { workers } = checkConfig({ workers: [{ id: 'a', url: 'http://10.0.0.5:8000/' }] });
  assert.equal(workers, [
    {
      id: 'a',
      url: 'http://10.0.0.5:8000',
      events: null,
      replay: null,
      topic: '',
      dpRanks: { start: 0, size: 1 },
      contract: 'endpoint',
      plane: null,
    },
  ]);
});

test('the router has room for twice the configured ranks, within its bounds', async () => {
  const ranksOf = (sizes: readonly number[]) =>
    routerOptionsOf(
      checkConfig({ workers: sizes.map((size, n) => ({ id: `w${n}`, url: `http://a:${n + 1}`, dpRanks: { size } })) }),
    ).index?.ranks;
  assert.is(ranksOf([]), 64);
  assert.is(ranksOf([8, 8]), 64);
  assert.is(ranksOf([100]), 200);
  assert.is(ranksOf([1000, 24]), 1024);
  const largest = checkConfig({ workers: [{ id: 'a', url: 'http://a:1', dpRanks: { size: 1024 } }] });
  (await Router.create(routerOptionsOf(largest))).dispose();
});

test('file names are relative to the file, secrets come from variables, and neither they nor keys are printed', () => {
  const { config } = load(
    {},
    { CLIENT: KEY, CURVE: Z85 },
    {
      tokenizer: { file: 'tokenizer.json', chatTemplate: '../t.jinja' },
      workers: [
        { id: 'a', url: 'http://a:1', contract: { file: 'a.json' } },
        { id: 'b', url: 'http://b:1', contract: { inline: { schema: 1 } } },
        { id: 'c', url: 'http://c:1', contract: null },
      ],
      auth: { clientKeys: [{ env: 'CLIENT' }], adminKeys: ['another-secret'] },
      curve: { serverKey: Z85, publicKey: Z85, secretKey: { env: 'CURVE' } },
    },
  );
  assert.is(config.tokenizer?.file, '/etc/moonroute/tokenizer.json');
  assert.is(config.tokenizer?.chatTemplate, '/etc/t.jinja');
  assert.equal(
    config.workers.map(({ contract }) => contract),
    [{ file: '/etc/moonroute/a.json' }, { inline: { schema: 1 } }, null],
  );
  assert.equal(config.auth, { clientKeys: [KEY], adminKeys: ['another-secret'] });
  assert.is(config.curve?.secretKey, Z85);
  const printed = printedConfig(config) as { curve: object };
  assert.equal(printed.curve, { serverKey: Z85, publicKey: Z85, secretKey: '(hidden)' });
  for (const secret of [KEY, 'another-secret']) assert.not.ok(JSON.stringify(printed).includes(secret));
  assert.is(load({}, {}, { tokenizer: { file: '/t.json' } }).config.tokenizer?.file, '/t.json');
});

test('an address may be written as in a URL', () => {
  assert.is(checkConfig({ listen: { host: '[::1]' } }).listen.host, '::1');
  const { masters } = checkConfig({
    sharedCache: { type: 'mooncake-store', masters: [{ events: 'tcp://[fd00::9]:1', http: 'http://[fd00::9]:2/' }] },
  }).sharedCache;
  assert.equal(masters, [{ events: 'tcp://[fd00::9]:1', http: 'http://[fd00::9]:2' }]);
});

test('a printed configuration without secrets can be read again', () => {
  const config = checkConfig({
    sharedCache: { type: 'mooncake-store', masters: [MASTER] },
    workers: [{ id: 'a', url: 'http://a:1' }],
  });
  assert.equal(checkConfig(JSON.parse(JSON.stringify(printedConfig(config)))), config);
});

// ---- where settings come from ----

// For each setting: as a flag, as a variable, in the file, and how to read it off.
const settings = [
  ['host', 'MOONROUTE_HOST', '127.0.0.2', 'localhost', { listen: { host: '::1' } }, 'listen.host'],
  ['port', 'MOONROUTE_PORT', '1', '2', { listen: { port: 3 } }, 'listen.port'],
  ['policy', 'MOONROUTE_POLICY', 'ttft', 'random', { policy: 'round-robin' }, 'policy'],
  ['logLevel', 'MOONROUTE_LOG_LEVEL', 'debug', 'warn', { log: { level: 'error' } }, 'log.level'],
  [
    'sharedCacheMultiplier',
    'DYN_SHARED_CACHE_MULTIPLIER',
    '0.1',
    '0.2',
    { sharedCache: { multiplier: 0.3 } },
    'sharedCache.multiplier',
  ],
] as const;

for (const [option, variable, flag, env, file, path] of settings) {
  test(`${path}: flag before ${variable} before file before default`, () => {
    const at = (from: ReturnType<typeof load>) =>
      path.split('.').reduce<unknown>((value, name) => Reflect.get(value as object, name), from.config);
    const same = (value: unknown) => String(value);
    const inFile = path.split('.').reduce<unknown>((value, name) => Reflect.get(value as object, name), file);
    assert.is(same(at(load({ [option]: flag }, { [variable]: env }, file))), flag);
    assert.is(same(at(load({}, { [variable]: env }, file))), env);
    assert.is(at(load({}, {}, file)), inFile);
    assert.is(at(load({}, { [variable]: ' ' }, file)), inFile);
    assert.is.not(at(load({})), inFile);
  });
}

test('the shared cache as the field sets it', () => {
  const env = { DYN_SHARED_CACHE_TYPE: 'mooncake-store', DYN_MOONCAKE_KV_EVENTS_ENDPOINT: EVENTS };
  assert.equal(load({}, env).config.sharedCache, {
    type: 'mooncake-store',
    multiplier: 0.5,
    masters: [{ events: EVENTS, http: null }],
    hashing: 'learned',
    trustSeed: false,
    allowUnverifiedContract: false,
    tenant: 'default',
    maxEvidenceAge: null,
  });
  assert.is(load({ sharedCacheMultiplier: '0.25' }, env).config.sharedCache.multiplier, 0.25);
  const byFlag = load({ sharedCacheType: 'mooncake-store', master: [`${EVENTS},http=http://10.0.0.9:9003`] });
  assert.equal(byFlag.config.sharedCache.masters, [MASTER]);
  // A flag goes before the variable, and the variable before the file, whose HTTP it keeps for the same socket.
  const file = { sharedCache: { type: 'mooncake-store', masters: [MASTER] } };
  assert.equal(load({}, env, file).config.sharedCache.masters, [MASTER]);
  const other = 'tcp://10.0.0.8:5557';
  const moved = { DYN_MOONCAKE_KV_EVENTS_ENDPOINT: other };
  assert.equal(load({}, moved, file).config.sharedCache.masters, [{ events: other, http: null }]);
  assert.equal(load({ master: [EVENTS] }, moved, file).config.sharedCache.masters, [{ events: EVENTS, http: null }]);
});

test('where hashes come from: flag before variable before file, and all the way to the router', () => {
  const env = { DYN_SHARED_CACHE_TYPE: 'mooncake-store', DYN_MOONCAKE_KV_EVENTS_ENDPOINT: EVENTS };
  const hashing = { ...env, MOONROUTE_HASHING: 'derived' };
  const inFile = { sharedCache: { type: 'mooncake-store', masters: [MASTER], hashing: 'both', trustSeed: true } };
  const rows: readonly (readonly [ReturnType<typeof load>, string, boolean])[] = [
    [load({}, env), 'learned', false],
    [load({}, env, inFile), 'both', true],
    [load({}, hashing, inFile), 'derived', true],
    [load({ hashing: 'both' }, hashing), 'both', false],
    [load({ trustSeed: true }, hashing), 'derived', true],
    [load({}, { ...hashing, MOONROUTE_TRUST_SEED: 'true' }), 'derived', true],
    [load({}, { ...hashing, MOONROUTE_TRUST_SEED: 'false' }, inFile), 'derived', false],
  ];
  for (const [{ config }, mode, trust] of rows) {
    assert.is(config.sharedCache.hashing, mode);
    assert.is(config.sharedCache.trustSeed, trust);
    const { hashing, parts } = planRouter(routerOptionsOf(config));
    assert.is(hashing, mode);
    assert.is(parts.cache.trustSeed, trust);
  }
  assert.match(
    refusal(() => load({}, { ...hashing, MOONROUTE_TRUST_SEED: 'yes' })).message,
    'sharedCache.trustSeed is "yes" (from MOONROUTE_TRUST_SEED); give true or false.',
  );
});

test('contracts that no engine has vouched for: flag before variable before file, and all the way to the router', () => {
  const env = { DYN_SHARED_CACHE_TYPE: 'mooncake-store', DYN_MOONCAKE_KV_EVENTS_ENDPOINT: EVENTS };
  const variable = { ...env, MOONROUTE_ALLOW_UNVERIFIED_CONTRACT: 'false' };
  const file = { sharedCache: { type: 'mooncake-store', masters: [MASTER], allowUnverifiedContract: true } };
  for (const [{ config }, allowed] of [
    [load({}, env), false],
    [load({}, env, file), true],
    [load({}, variable, file), false],
    [load({ allowUnverifiedContract: true }, variable), true],
  ] as const) {
    assert.is(config.sharedCache.allowUnverifiedContract, allowed);
    const plan = planRouter(routerOptionsOf(config));
    assert.equal([plan.allowUnverifiedContract, plan.parts.cache.allowUnverifiedContract], [allowed, allowed]);
  }
});

test('a blank endpoint is refused where a store is set', () => {
  for (const blank of ['', '  ', '\t']) {
    const env = { DYN_MOONCAKE_KV_EVENTS_ENDPOINT: blank };
    for (const error of [
      refusal(() => load({ sharedCacheType: 'mooncake-store' }, env)),
      refusal(() => load({}, { ...env, DYN_SHARED_CACHE_TYPE: 'mooncake-store' })),
      refusal(() => load({}, env, { sharedCache: { type: 'mooncake-store', masters: [MASTER] } })),
    ]) {
      assert.is(error.code, 'mooncake-store-endpoint');
      assert.match(error.message, 'mooncake-store requires DYN_MOONCAKE_KV_EVENTS_ENDPOINT: it is ');
      assert.match(error.message, 'Set it to tcp://HOST:PORT');
    }
    assert.equal(load({}, env).notes, []);
  }
});

test('an endpoint without a shared cache is not used, and said', () => {
  const env = { DYN_MOONCAKE_KV_EVENTS_ENDPOINT: EVENTS };
  const { config, notes, empty } = load({}, env);
  assert.equal(config.sharedCache.masters, []);
  assert.match(notes[0]!, 'DYN_MOONCAKE_KV_EVENTS_ENDPOINT is set and not used');
  assert.ok(empty);
  assert.is(refusal(() => load({ master: [EVENTS] })).code, 'masters-without-type');
  assert.is(refusal(() => load({}, env, { sharedCache: { masters: [MASTER] } })).code, 'masters-without-type');
});

test('workers of the command line stand in place of those of the environment, and these of the file’s', () => {
  const file = { workers: [{ id: 'f', url: 'http://f:1' }] };
  const env = { MOONROUTE_WORKERS: 'e=http://e:1,events=tcp://e:2  e2=http://e:3' };
  const ids = (from: ReturnType<typeof load>) => from.config.workers.map(({ id }) => id);
  assert.equal(ids(load({ worker: ['a=http://a:1', 'b=http://b:1'] }, env, file)), ['a', 'b']);
  assert.equal(ids(load({}, env, file)), ['e', 'e2']);
  assert.equal(ids(load({}, {}, file)), ['f']);
  const [worker] = load({ worker: ['a=http://a:1,replay=tcp://a:3,events=tcp://a:2'] }).config.workers;
  assert.equal([worker?.events, worker?.replay], ['tcp://a:2', 'tcp://a:3']);
  for (const text of [
    'a',
    '=http://a:1',
    'a=http://a:1,event=tcp://a:2',
    'a=http://a:1,events=',
    'a=http://a:1,events=x,events=y',
  ])
    assert.match(refusal(() => load({ worker: [text] })).message, `--worker is "${text}"; give `);
  assert.match(refusal(() => load({}, { MOONROUTE_WORKERS: 'a' })).message, 'MOONROUTE_WORKERS is "a"; give ');
  const { message } = refusal(() => load({ worker: ['a=http://user:pass@a:1,x=y'] }));
  assert.not.match(message, 'pass');
});

test('a number that is none is refused by flag and variable', () => {
  assert.match(refusal(() => load({ port: '80a' })).message, 'listen.port is "80a" (from --port); give');
  assert.match(refusal(() => load({}, { MOONROUTE_PORT: '0x50' })).message, '(from MOONROUTE_PORT)');
  assert.match(refusal(() => load({ sharedCacheMultiplier: '2' })).message, 'must be between 0 and 1');
});

test('the file: from a flag or MOONROUTE_CONFIG, and unusable ones are refused by name', () => {
  const read = (text: string) => () => new TextEncoder().encode(text);
  const from = (text: string) => gatherConfig({ flags: {}, env: { MOONROUTE_CONFIG: 'c.json' }, read: read(text) });
  assert.is(from('{"policy":"ttft"}').document['policy'], 'ttft');
  assert.is(from('{}').file, resolve('c.json'));
  assert.not.ok(from('{}').empty);
  for (const [text, words] of [
    ['[]', 'holds an array of 0, not an object'],
    ['', 'is not JSON: a fault at the end of JSON input'],
    [`{"auth":{"clientKeys":["${KEY}",}`, 'is not JSON: '],
    [`${KEY}`, 'is not JSON: '],
  ] as const) {
    const error = refusal(() => from(text));
    assert.is(error.code, 'config-file');
    assert.match(error.message, `the configuration file c.json ${words}`);
    assert.not.match(error.message, KEY);
  }
  const error = refusal(() => gatherConfig({ flags: { config: '/nowhere/c.json' }, env: {} }));
  assert.match(error.message, "the configuration file /nowhere/c.json can't be read: ENOENT");
  const bytes = refusal(() => gatherConfig({ flags: { config: 'c' }, env: {}, read: () => Uint8Array.of(0xff, 0xfe) }));
  assert.is(bytes.code, 'config-file');
});

test('settings of a wrong kind in the file are refused, whatever the command line adds', () => {
  assert.match(refusal(() => load({ port: '1' }, {}, { listen: 5 })).message, 'listen is 5; give an object.');
});

test('nothing configured: no file, no worker, no master', () => {
  assert.ok(gatherConfig({ flags: { port: '0', policy: 'ttft' }, env: {} }).empty);
  assert.not.ok(gatherConfig({ flags: { worker: ['a=http://a:1'] }, env: {} }).empty);
  assert.not.ok(gatherConfig({ flags: { master: [EVENTS] }, env: {} }).empty);
});

// ---- the published schema ----

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly default?: unknown;
  readonly pattern?: string;
  readonly [more: string]: unknown;
}

/** The schema and all below it, with their paths. */
function* walk(schema: Schema, path = ''): Generator<readonly [string, Schema]> {
  yield [path, schema];
  for (const [name, below] of Object.entries(schema.properties ?? {})) yield* walk(below, `${path}.${name}`);
  for (const form of schema.anyOf ?? []) yield* walk(form, path);
  if (schema.items !== undefined) yield* walk(schema.items, `${path}.*`);
}

const published = JSON.parse(readFileSync('config.schema.json', 'utf8')) as Schema;

test('config.schema.json is up to date (node scripts/make-schema.mjs)', () => {
  assert.ok(JSON.stringify(published) === JSON.stringify(configJsonSchema()), 'run node scripts/make-schema.mjs');
});

test('it is a JSON Schema of the words that every validator knows', () => {
  const known = [
    '$schema',
    'title',
    'description',
    'default',
    'type',
    'properties',
    'additionalProperties',
    'required',
    'anyOf',
    'items',
    'enum',
    'const',
    'pattern',
    'minLength',
    'maxLength',
    'minimum',
    'maximum',
    'minItems',
    'maxItems',
  ];
  assert.is(published['$schema'], 'https://json-schema.org/draft/2020-12/schema');
  for (const [path, schema] of walk(published)) {
    for (const word of Object.keys(schema)) assert.ok(known.includes(word), `${path}: ${word}`);
    assert.ok('type' in schema || 'anyOf' in schema, path);
    if (schema.pattern !== undefined) new RegExp(schema.pattern, 'u');
    for (const name of schema.required ?? [])
      assert.ok(Object.hasOwn(schema.properties ?? {}, name), `${path}.${name}`);
    const open = path.endsWith('.inline');
    if (schema.type === 'object') assert.equal(schema.additionalProperties, open ? {} : false, path);
  }
});

test('its defaults are accepted, and are those in force', () => {
  const config = checkConfig({}) as unknown as Readonly<Record<string, unknown>>;
  const names = Object.keys(published.properties!).filter((name) => name !== '$schema');
  assert.equal(new Set(names), new Set(Object.keys(config)));
  const defaults = Object.fromEntries(names.map((name) => [name, published.properties![name]!.default]));
  assert.equal(checkConfig(defaults), config);
  assert.is(published.required, undefined);
});

test('flags and variables have places in the schema', () => {
  for (const { path, env, flag } of CONFIG_SETTINGS) {
    let at: Schema | undefined = published;
    for (const name of path!) at = at?.properties?.[name];
    assert.ok(at, `${flag} ${env}`);
  }
});

// ---- examples ----

test('every configuration in docs and examples is accepted', () => {
  const found: string[] = [];
  for (const folder of ['docs', 'examples', '.']) {
    for (const file of readdirSync(folder)) {
      const text = /\.(md|json)$/.test(file) ? readFileSync(`${folder}/${file}`, 'utf8') : '';
      const documents = file.endsWith('.json')
        ? [text]
        : [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json]) => json!);
      for (const document of documents.filter((json) => /"\$schema": ".*config\.schema\.json"/.test(json))) {
        found.push(file);
        const given = JSON.parse(document);
        const variables = [...document.matchAll(/"env": "(\w+)"/g)].map(([, name]) => [name!, `key-${name}`] as const);
        checkConfig(given, { env: Object.fromEntries(variables) });
      }
    }
  }
  assert.ok(found.includes('serve.md') && found.includes('serve.json'), found.join());
});

test.run();
