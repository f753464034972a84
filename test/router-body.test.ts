// A request's own object beside what the caller says of it: they must agree on salt and adapter, since the engine hashes what the object says
// and the router looks up what the caller says. An object may be anything that a client sent, and never makes a decision fail.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { proveTextOnly } from '../src/events/request.js';
import type { RouteRequest } from '../src/router/prompt.js';
import { RouterPool } from './support/router-pool.js';

const TAGGED = 'dynamo-cache-salt:tenant';
const LORA = { loraName: 'adapter', allowed: ['lora'] };
const SALT = { cacheSalt: 'tenant' };
const proven = <T extends object>(body: T): T => {
  proveTextOnly(body);
  return body;
};
const getter = (field: string) => Object.defineProperty({}, field, { get: () => 'tenant' });

interface Row {
  readonly name: string;
  readonly body: object;
  readonly request?: RouteRequest;
  /** The field that the reason names; null where the request is credited. */
  readonly field: string | null;
}

const rows: readonly Row[] = [
  { name: 'nothing said', body: {}, field: null },
  { name: 'nothing said of the request’s salt', body: {}, request: SALT, field: null },
  { name: 'the same salt', body: { cache_salt: 'tenant' }, request: SALT, field: null },
  { name: 'the same salt as the engine is told it', body: { cache_salt: TAGGED }, request: SALT, field: null },
  { name: 'a salt that is nil', body: { cache_salt: null }, field: null },
  { name: 'an empty salt', body: { cache_salt: '' }, request: { cacheSalt: null }, field: null },
  { name: 'a salt that the request does not give', body: { cache_salt: 'tenant' }, field: 'cache_salt' },
  { name: 'another salt', body: { cache_salt: 'other' }, request: SALT, field: 'cache_salt' },
  { name: 'a tag without a salt', body: { cache_salt: 'dynamo-cache-salt:' }, field: 'cache_salt' },
  { name: 'the name of nothing', body: { cache_salt: 'dynamo-cache-salt:undefined' }, field: 'cache_salt' },
  { name: 'a salt that is no text', body: { cache_salt: 7 }, request: SALT, field: 'cache_salt' },
  { name: 'an inherited salt', body: Object.create({ cache_salt: 'other' }) as object, field: 'cache_salt' },
  { name: 'a salt that a getter makes', body: getter('cache_salt'), request: SALT, field: 'cache_salt' },
  { name: 'the same adapter', body: { lora_name: 'adapter', model: 'base' }, request: LORA, field: null },
  { name: 'an adapter that the request does not give', body: { lora_name: 'adapter' }, field: 'lora_name' },
  { name: 'another adapter', body: { lora_name: 'other' }, request: LORA, field: 'lora_name' },
  { name: 'an adapter that is no text', body: { lora_name: ['adapter'] }, request: LORA, field: 'lora_name' },
  { name: 'the base model', body: { model: 'base' }, field: null },
  { name: 'an adapter as the model', body: { model: 'adapter' }, request: LORA, field: null },
  { name: 'an adapter as the model, not given', body: { model: 'adapter' }, field: 'model' },
  { name: 'the base model, and an adapter given', body: { model: 'base' }, request: LORA, field: 'model' },
  { name: 'another adapter as the model', body: { model: 'other' }, request: LORA, field: 'model' },
];

for (const { name, body, request = {}, field } of rows) {
  test(`${name}: ${field === null ? 'credited' : `no credit, for its ${field}`}`, async () => {
    const pool = await RouterPool.shared(1);
    pool.add('lora', { adapters: ['adapter', 'other'] });
    const prompt = pool.prompt(1, 6);
    const fields = { cache_salt: request.cacheSalt ?? null, lora_name: request.loraName ?? null };
    pool.announce('lora', prompt, { fields });
    pool.store(prompt);
    pool.evict('lora', prompt);
    assert.is(pool.route(prompt, request).blocks.shared, 6, 'without its object');
    const { blocks, sharedReason } = pool.route(prompt, { ...request, body: proven(body) });
    assert.is(blocks.shared, field === null ? 6 : 0);
    assert.is(sharedReason?.code, field === null ? undefined : 'body-disagrees');
    if (field !== null) assert.ok(sharedReason!.text.includes(`the body's ${field} `), sharedReason!.text);
  });
}

test('the reason shows nothing of what a client wrote', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  const { sharedReason } = pool.route(prompt, { body: proven({ cache_salt: 'their secret' }) });
  assert.not(sharedReason!.text.includes('secret'));
});

test('an object that throws when it is looked at proves nothing, and the request is served', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  const fail = () => {
    throw new Error('trap');
  };
  const traps: ProxyHandler<object>[] = [{ getOwnPropertyDescriptor: fail }, { getPrototypeOf: fail }];
  for (const trap of traps) {
    const { blocks, sharedReason, reasons } = pool.route(prompt, {
      body: proven(new Proxy({}, trap)),
      explain: true,
    });
    assert.equal([blocks.shared, sharedReason?.code, reasons![0]!.code], [0, 'not-proven', 'not-proven']);
  }
  assert.is(pool.router.stats().decisions.zeroCredit['not-proven'], traps.length);
});

test.run();
