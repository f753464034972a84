// Names on the wire and addresses of planes: models never share a name, and what is no rank or no address is told from what is.
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { readAddress, readAddresses } from '../src/live/plane/transport/address.js';
import { openPlanePublisher, openPlaneSubscriber } from '../src/live/plane/transport/index.js';
import { planeNames } from '../src/live/plane/transport/names.js';
import { readReply } from '../src/live/plane/transport/nats-pull.js';
import { streamLimits } from '../src/live/plane/transport/options.js';

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.code;
    throw error;
  }
  return 'taken';
}

test("a model's name is made safe, and two models never share one", () => {
  const names = planeNames('org/Model-7B_v1.2 é=');
  assert.is(names.model, 'org=2FModel-7B_v1=2E2=20=C3=A9=3D');
  assert.is(names.stream, `MOONROUTE_${names.model}`);
  const rank = { workerId: 18446744073709551615n, dpRank: 3 };
  assert.is(names.events(rank), `moonroute.${names.model}.events.18446744073709551615.3`);
  assert.is(names.recover(rank), `moonroute.${names.model}.recover.18446744073709551615.3`);
  assert.is(names.topic(rank), `moonroute.${names.model}.18446744073709551615.3`);
  assert.is(names.load, `moonroute.${names.model}.load`);
  assert.equal(names.rankOfSubject(names.events(rank)), rank);
  assert.equal(names.rankOfTopic(names.topic(rank)), rank);
  const models = ['a', 'a.b', 'a=2Eb', 'a b', 'A', 'a/b', 'a*b', 'a>b'];
  assert.is(new Set(models.map((model) => planeNames(model).stream)).size, models.length);
  assert.is(
    refusal(() => planeNames('')),
    'plane-model',
  );
  assert.is(
    refusal(() => planeNames('x'.repeat(201))),
    'plane-model',
  );
  assert.is(
    refusal(() => planeNames('/'.repeat(67))),
    'plane-model',
  );
});

test('what is no rank is none', () => {
  const names = planeNames('m');
  for (const tail of [
    '',
    '1',
    '1.',
    '.1',
    '1.2.3',
    '-1.0',
    '01.0',
    '1.00',
    '1e3.0',
    ' 1.0',
    '18446744073709551616.0',
    '1.4294967296',
    'load',
  ]) {
    assert.is(names.rankOfSubject(`moonroute.m.events.${tail}`), null, tail);
    assert.is(names.rankOfTopic(`moonroute.m.${tail}`), null, tail);
  }
  assert.is(names.rankOfSubject('moonroute.n.events.1.0'), null);
  assert.is(names.rankOfTopic('moonroute.n.1.0'), null);
});

test('addresses are read', () => {
  assert.equal(readAddress('tcp://[::1]:5600'), { kind: 'zmq', host: '::1', port: 5600, recoverPort: 5601 });
  assert.equal(readAddress('tcp://*:5600?recover=7'), { kind: 'zmq', host: '*', port: 5600, recoverPort: 7 });
  assert.equal(readAddress('tcp://h:0'), { kind: 'zmq', host: 'h', port: 0, recoverPort: 0 });
  const bare = { kind: 'nats', user: null, password: null, token: null, tls: false };
  assert.equal(readAddress('nats://h'), { ...bare, servers: ['h:4222'], shown: 'nats://h:4222' });
  assert.equal(readAddresses(['nats://t%40k@a:1', 'nats://t%40k@[::1]:2/']), {
    ...bare,
    servers: ['a:1', '[::1]:2'],
    token: 't@k',
    shown: 'nats://a:1,nats://[::1]:2',
  });
  assert.equal(readAddress('tls://u:p%3A%2F@h,tls://u:p%3A%2F@i'), {
    ...bare,
    servers: ['h:4222', 'i:4222'],
    user: 'u',
    password: 'p:/',
    tls: true,
    shown: 'tls://h:4222,tls://i:4222',
  });
});

for (const [what, urls] of [
  ['nothing', []],
  ['another scheme', 'http://h:1'],
  ['no scheme', 'h:4222'],
  ['no host', 'nats://:4222'],
  ['a path', 'nats://h/x'],
  ['a query', 'nats://h?x=1'],
  ['a bad escape', 'nats://%zz@h'],
  ['a bad port', 'nats://h:99999'],
  ['both kinds', ['nats://h', 'tcp://h:1']],
  ['other credentials', ['nats://a@h', 'nats://b@h']],
  ['other schemes', ['nats://h', 'tls://h']],
  ['no port', 'tcp://h'],
  ['a large port', 'tcp://h:65536'],
  ['no port beside it', 'tcp://h:65535'],
  ['a path of ZMQ', 'tcp://h:1/x'],
  ['another query of ZMQ', 'tcp://h:1?replay=2'],
] as const) {
  test(`an address is refused: ${what}`, () => {
    assert.is(
      refusal(() => readAddresses(urls)),
      'plane-url',
    );
  });
}

test('a refusal does not show credentials', () => {
  try {
    readAddress('nats://user:secret@h/x');
    assert.unreachable();
  } catch (error) {
    assert.not.match((error as Error).message, /secret|user/);
  }
});

test("a stream's limits are whole numbers", () => {
  assert.is(streamLimits({ maxAge: 100 }).maxAge, 100);
  for (const limits of [
    { maxAge: 0 },
    { maxAge: 99 },
    { maxBytes: 1.5 },
    { maxMessages: -1 },
    { storage: 'tape' as 'file' },
  ]) {
    assert.is(
      refusal(() => streamLimits(limits)),
      'plane-stream',
    );
  }
});

test('what is wrong is told before anything is opened', async () => {
  const code = async (opening: Promise<unknown>) => opening.then(String, (error: ConfigError) => error.code);
  assert.is(await code(openPlanePublisher('amqp://h', { model: 'm', ranks: [] })), 'plane-url');
  assert.is(await code(openPlanePublisher('tcp://127.0.0.1:0', { model: '', ranks: [] })), 'plane-model');
  assert.is(await code(openPlaneSubscriber('tcp://*:5', { model: 'm' })), 'endpoint');
  assert.is(await code(openPlaneSubscriber('tcp://h:5', { model: 'm', loadPeers: ['tcp://h'] })), 'endpoint');
  assert.is(await code(openPlaneSubscriber('nats://h', { model: 'm', stream: { maxAge: -1 } })), 'plane-stream');
});

for (const [code, url, name] of [
  ['nats-missing', 'nats://127.0.0.1:1', '@nats-io/'],
  ['zeromq-missing', 'tcp://127.0.0.1:0', 'zeromq'],
] as const) {
  test(`${code}: where the optional packages are not installed, it says what to install`, () => {
    const hook = `export const resolve = (what, context, next) => {
      if (what.startsWith(${JSON.stringify(name)})) throw new Error('no such package');
      return next(what, context);
    };`;
    const { status, stdout, stderr } = spawnSync(process.execPath, [
      ...['--input-type=module', '--eval'],
      `import { register } from 'node:module';
      register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));
      const { openPlanePublisher } = await import('./build/js/src/live/plane/transport/index.js');
      await openPlanePublisher(${JSON.stringify(url)}, { model: 'm', ranks: [] }).catch(({ code, message }) =>
        console.log(code, message),
      );`,
    ]);
    assert.is(status, 0, String(stderr));
    assert.ok(String(stdout).startsWith(`${code} `), String(stdout));
    assert.match(String(stdout), /can't be loaded: no such package. Install (it|them) \(npm install .+\)/);
  });
}

test("places are read from a message's reply subject, of older servers and of newer ones", () => {
  const places = { streamSequence: 31, consumerSequence: 7 };
  assert.equal(readReply('$JS.ACK.S.c.1.31.7.1700000000.0'), places);
  assert.equal(readReply('$JS.ACK._.hash.S.c.1.31.7.1700000000.0'), places);
  assert.equal(readReply('$JS.ACK.hub.hash.S.c.1.31.7.1700000000.0.random'), places);
  for (const reply of ['', '_INBOX.x', '$JS.ACK.S.c.1.31.7', '$JS.ACK.S.c.1.x.7.1.0', '$JS.ACK.S.c.1.0.7.1.0']) {
    assert.is(readReply(reply), null, reply);
  }
});

test.run();
