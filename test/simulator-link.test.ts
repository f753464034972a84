// What the simulator's page puts into its address and reads from it, how it names differences, and the hash by which it knows a trace again.
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { refusalOf } from '../src/web/simulator/settings-check.js';
import { hashOf, linkedIn } from '../src/web/simulator/settings-hash.js';
import { PAGE_SETTINGS, SCENARIOS, withScenario } from '../src/web/simulator/settings-scenarios.js';
import { differences } from '../src/web/simulator/settings-words.js';
import { Sha256 } from '../src/web/simulator/sha256.js';
import { otherThan } from '../src/web/simulator/trace-file.js';

test('a link reads as it is written, and comes back as it was', () => {
  const settings = { policy: 'kv,ttft', workers: '8', store: '2TB', restart: 'store@2min,worker:3@60s', mix: 'chat=1' };
  const hash = hashOf(settings, null);
  assert.is(hash, '#policy=kv,ttft&workers=8&store=2TB&restart=store@2min,worker:3@60s&mix=chat=1');
  assert.equal(linkedIn(hash), { settings, trace: null, unknown: [] });
});

test('characters that part an address are kept apart', () => {
  const settings = { columns: 'time=a&b,input=50% #1' };
  assert.equal(linkedIn(hashOf(settings, null))?.settings, settings);
});

test('a trace goes along by name, size and hash', () => {
  const trace = { name: 'my trace.jsonl', size: 245, sha256: 'ab'.repeat(32) };
  assert.equal(linkedIn(hashOf({ policy: 'kv' }, trace))?.trace, trace);
  assert.equal(linkedIn(hashOf({}, { ...trace, sha256: null }))?.trace, { ...trace, sha256: null });
});

test('what no option is, is named and left out; what is no link, is none', () => {
  assert.equal(linkedIn('#workers=3&bogus=1&json=true'), {
    settings: { workers: '3' },
    trace: null,
    unknown: ['bogus', 'json'],
  });
  for (const text of ['', '#', '#answer', `#store=${'1'.repeat(20_000)}`]) assert.is(linkedIn(text), null);
  assert.equal(linkedIn('#store=%E0%A4%A&workers=2')?.settings, { workers: '2' });
});

test('another trace is told by size, then by hash, and never by name', () => {
  const wanted = { name: 'a', size: 10, sha256: 'aa' };
  assert.is(otherThan(wanted, { ...wanted, name: 'b' }), null);
  assert.match(otherThan(wanted, { ...wanted, size: 11 })!, /another file/);
  assert.match(otherThan(wanted, { ...wanted, sha256: 'bb' })!, /other content/);
});

test('differences are said in words, defaults included', () => {
  assert.equal(differences({ store: '2TB' }, { store: '500GB', requests: '1000' }), [
    'requests 5000 → 1000',
    'store memory 2 TB → 500 GB',
  ]);
  assert.equal(differences({ workers: '8' }, {}), []);
});

test('refusals are those of the command, at the option that is to blame', () => {
  assert.equal([...refusalOf(PAGE_SETTINGS, false)], []);
  assert.match(refusalOf({ policy: 'kv', workers: '0' }, false).get('workers')!, /from 1 to 1024/);
  assert.match(refusalOf({ policy: 'kv', store: '20' }, false).get('store')!, /no size/);
  assert.match(refusalOf({ policy: 'kv', requests: '5' }, true).get('requests')!, /built-in workload/);
  assert.match(refusalOf({}, false).get('policy')!, /Choose a policy/);
});

SCENARIOS.forEach(({ name }, place) => {
  test(`scenario "${name}" runs, and none of another stays`, () => {
    const settings = withScenario({ ...PAGE_SETTINGS, loss: '50%', seed: '7' }, place, { span: 600_000 });
    assert.equal([...refusalOf(settings, false)], []);
    assert.is(settings['loss'], name === 'Lossy events' ? '2%' : undefined);
    assert.is(settings['seed'], place === 0 ? undefined : '7');
  });
});

test('the hash is SHA-256, however the bytes come', () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 10_000]) {
    const bytes = randomBytes(length);
    const hash = new Sha256();
    for (let from = 0; from < length; from += 37) hash.add(bytes.subarray(from, from + 37));
    assert.is(hash.end(), createHash('sha256').update(bytes).digest('hex'), `${length} bytes`);
  }
});

test.run();
