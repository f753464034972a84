// Workers as they come over HTTP: each field is checked, defaults are filled in, and what leads elsewhere is refused by name.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { MoonrouteError } from '../src/errors.js';
import { pinned } from '../src/server/registry-address.js';
import { readModels, sortModels } from '../src/server/registry-models.js';
import { checkSpec, hostOf, withHost } from '../src/server/registry-spec.js';

const MINIMAL = { id: 'w', url: 'http://10.0.0.1:8000' };

test('defaults', () => {
  assert.equal(checkSpec(MINIMAL, false), {
    ...MINIMAL,
    events: null,
    replay: null,
    topic: '',
    dpRanks: { start: 0, size: 1 },
    contract: 'endpoint',
  });
});

test('everything given stays', () => {
  const full = {
    id: 'w/1',
    url: 'http://[fd00::1]:8000',
    events: ['tcp://[fd00::1]:5557', 'tcp://host:5557'],
    replay: 'tcp://10.0.0.1:5558',
    topic: 'kv@',
    dpRanks: { start: 2, size: 2 },
    contract: { inline: { schema_version: 1 } },
  };
  assert.equal(checkSpec(full, false), full);
});

const WRONG: readonly (readonly [string, unknown, RegExp])[] = [
  ['nothing', null, /a worker is null/],
  ['a list', [], /a worker is an array/],
  ['no id', { url: MINIMAL.url }, /id is nothing/],
  ['an id with a space', { ...MINIMAL, id: 'a b' }, /id is "a b"/],
  ['a long id', { ...MINIMAL, id: 'x'.repeat(257) }, /id is/],
  ['an unknown field', { ...MINIMAL, evnets: 'tcp://a:1' }, /"evnets"; the fields are/],
  ['no url', { id: 'w' }, /url is nothing/],
  ['https', { ...MINIMAL, url: 'https://10.0.0.1' }, /give http:/],
  ['a file url', { ...MINIMAL, url: 'file:///etc/passwd' }, /give http:/],
  ['a path', { ...MINIMAL, url: 'http://10.0.0.1/x' }, /without a path/],
  ['a query', { ...MINIMAL, url: 'http://10.0.0.1/?x' }, /without a path/],
  ['an empty fragment', { ...MINIMAL, url: 'http://10.0.0.1/#' }, /without a path/],
  ['a user', { ...MINIMAL, url: 'http://me:geheim@10.0.0.1' }, /a url with a user/],
  ['no endpoint', { ...MINIMAL, events: 'http://10.0.0.1' }, /events is/],
  ['a local socket', { ...MINIMAL, events: 'ipc:///run/x' }, /give tcp:/],
  ['too few endpoints', { ...MINIMAL, events: [] }, /one for each of the 1 ranks/],
  ['replay alone', { ...MINIMAL, replay: 'tcp://10.0.0.1:1' }, /give events as well/],
  ['no topic', { ...MINIMAL, topic: 7 }, /topic is 7/],
  ['no ranks', { ...MINIMAL, dpRanks: { start: 0, size: 0 } }, /dpRanks is/],
  ['many ranks', { ...MINIMAL, dpRanks: { start: 0, size: 1025 } }, /dpRanks is/],
  ['other ranks', { ...MINIMAL, dpRanks: { from: 0 } }, /dpRanks is/],
  [
    'a file of ours',
    { ...MINIMAL, contract: { file: '/etc/passwd' } },
    /contract is an object; give "endpoint", {"inline": {…}}, or null/,
  ],
  ['two contracts', { ...MINIMAL, contract: { inline: {}, file: 'x' } }, /contract is/],
  ['a text as contract', { ...MINIMAL, contract: 'inline' }, /contract is "inline"/],
];

for (const [what, spec, expected] of WRONG) {
  test(`refused: ${what}`, () => {
    try {
      checkSpec(spec, false);
      assert.unreachable();
    } catch (error) {
      const { code, message } = error as MoonrouteError;
      assert.is(code, 'worker-spec', message);
      assert.match(message, expected);
      assert.not.match(message, /geheim/);
    }
  });
}

test('the configuration may name files and sockets of this machine', () => {
  const spec = checkSpec({ ...MINIMAL, events: 'ipc:///run/x', contract: { file: 'x.json' } }, true);
  assert.is(spec.events, 'ipc:///run/x');
  assert.equal(spec.contract, { file: 'x.json' });
});

test('hosts are read and replaced in urls and endpoints', () => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    ['http://host:8000', 'host', '10.0.0.1', 'http://10.0.0.1:8000'],
    ['http://host', 'host', 'fd00::1', 'http://[fd00::1]'],
    ['http://[fd00::1]:80', 'fd00::1', 'fd00::2', 'http://[fd00::2]:80'],
    ['tcp://host.name:5557', 'host.name', 'fd00::1', 'tcp://[fd00::1]:5557'],
    ['tcp://[fd00::1]:5557', 'fd00::1', '10.0.0.1', 'tcp://10.0.0.1:5557'],
  ];
  for (const [address, host, other, expected] of rows) {
    assert.is(hostOf(address), host);
    assert.is(withHost(address, other), expected);
  }
});

// ---- addresses ----

const NAMES: Readonly<Record<string, readonly string[]>> = {
  inside: ['10.0.0.7'],
  both: ['fd00::7', '10.0.0.7'],
  half: ['10.0.0.7', '8.8.8.8'],
  outside: ['8.8.8.8'],
  metadata: ['169.254.169.254'],
  odd: ['not an address'],
  none: [],
};
let asked: string[] = [];
const rules = (networks: readonly string[] | null, configured: readonly string[] = []) => ({
  networks,
  configured: () => configured.map((url) => checkSpec({ id: 'c', url, contract: null }, true)),
  resolve: async (host: string) => {
    asked.push(host);
    const found = NAMES[host];
    if (found === undefined) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
    return found;
  },
});

test('addresses stand in place of names, each asked for once', async () => {
  asked = [];
  const given = {
    id: 'w',
    url: 'http://inside:8000',
    events: ['tcp://inside:5557', 'tcp://both:5558'],
    replay: 'tcp://inside:5559',
    dpRanks: { start: 0, size: 2 },
  };
  const { url, events, replay } = await pinned(checkSpec(given, false), rules(['10.0.0.0/8', 'fd00::/8']));
  assert.is(url, 'http://10.0.0.7:8000');
  assert.equal(events, ['tcp://10.0.0.7:5557', 'tcp://10.0.0.7:5558']);
  assert.is(replay, 'tcp://10.0.0.7:5559');
  assert.equal(asked, ['inside', 'both']);
});

const REFUSED: readonly (readonly [string, object, RegExp])[] = [
  ['outside', { url: 'http://outside' }, /outside of url.*8\.8\.8\.8 is in none/],
  ['half of the addresses', { url: 'http://half' }, /half of url.*8\.8\.8\.8/],
  ['metadata', { url: 'http://metadata' }, /169\.254\.169\.254 is link-local/],
  ['metadata by number', { url: 'http://2852039166' }, /169\.254\.169\.254 is link-local/],
  ['metadata mapped', { url: 'http://[::ffff:a9fe:a9fe]' }, /169\.254\.169\.254 is link-local/],
  ['events elsewhere', { url: 'http://inside', events: 'tcp://outside:1' }, /outside of events/],
  [
    'replay elsewhere',
    { url: 'http://inside', events: 'tcp://inside:1', replay: 'tcp://metadata:1' },
    /metadata of replay/,
  ],
  ['an unknown name', { url: 'http://nowhere' }, /can't be resolved \(ENOTFOUND\)/],
  ['an odd answer', { url: 'http://odd' }, /can't be resolved/],
  ['no answer', { url: 'http://none' }, /has no address/],
];

for (const [what, fields, expected] of REFUSED) {
  test(`refused address: ${what}`, async () => {
    try {
      await pinned(
        checkSpec({ id: 'w', ...fields }, false),
        rules(['10.0.0.0/8', '0.0.0.0/1', '169.0.0.0/8'].slice(0, what.startsWith('metadata') ? 3 : 1)),
      );
      assert.unreachable();
    } catch (error) {
      assert.is((error as MoonrouteError).code, 'worker-address', String(error));
      assert.match((error as MoonrouteError).message, expected);
    }
  });
}

test('without networks: loopback, and the hosts of configured workers alone', async () => {
  const at = async (url: string, configured: readonly string[]) =>
    pinned(checkSpec({ id: 'w', url }, false), rules(null, configured)).then(
      (spec) => spec.url,
      (error) => (error as MoonrouteError).code,
    );
  assert.is(await at('http://127.0.0.1:1', []), 'http://127.0.0.1:1');
  assert.is(await at('http://[::1]:1', []), 'http://[::1]:1');
  assert.is(await at('http://10.0.0.7:1', []), 'worker-address');
  assert.is(await at('http://10.0.0.7:1', ['http://inside:9']), 'http://10.0.0.7:1');
  assert.is(await at('http://10.0.0.8:1', ['http://inside:9']), 'worker-address');
  assert.is(await at('http://10.0.0.8:1', ['http://gone:9', 'http://10.0.0.8:9']), 'http://10.0.0.8:1');
});

// ---- models ----

test('models and adapters are told apart', () => {
  const cards = readModels(
    JSON.stringify({
      data: [
        { id: 'base', parent: null, root: '/models/base' },
        { id: 'alias', root: '/models/base' },
        { id: 'sql', parent: 'base', root: '/adapters/sql' },
        { id: 'other', parent: null, root: '/models/other' },
        { id: 'sql' },
        null,
        7,
        {},
        { id: '' },
        { id: 5 },
        { id: 'x'.repeat(513) },
      ],
    }),
  )!;
  assert.equal(sortModels(cards, 'base'), { models: ['base', 'alias'], adapters: ['sql', 'other'] });
  assert.equal(sortModels(cards, 'elsewhere'), { models: [], adapters: ['base', 'alias', 'sql', 'other'] });
});

test('no list of models', () => {
  for (const text of ['', 'null', '{}', '{"data":{}}', '[]', '{"data":']) assert.is(readModels(text), null, text);
  assert.is(
    readModels(JSON.stringify({ data: Array.from({ length: 5000 }, (_, i) => ({ id: `m${i}` })) }))!.length,
    1024,
  );
});

test.run();
