// What the simulated store keeps and lets go: leases, pins, groups, watermarks and capacity (spec/mooncake-events.md 4, "Eviction, leases, pins"),
// tenants, writers in progress, and snapshots.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { StoreModel } from '../src/fleet/master/store-model.js';
import { LEASE_MS, SOFT_PIN_MS, type StoreModelOptions } from '../src/fleet/master/store-options.js';
import type { Announcement } from '../src/fleet/master/types.js';
import { Random } from './support/random.js';

function storeOf(options: Partial<StoreModelOptions> = {}): { store: StoreModel; said: Announcement[] } {
  const said: Announcement[] = [];
  const store = new StoreModel({ generation: 'C', ...options }, (event) => said.push(event));
  store.tick(1_000);
  return { store, said };
}

function put(store: StoreModel, ...keys: string[]): void {
  for (const key of keys) assert.is(store.putEnd(key, 'cpu', 10), 'stored');
}

test('a read grants a lease of ten seconds, in which neither Remove nor eviction takes the object', () => {
  const { store } = storeOf();
  put(store, 'a', 'b');
  assert.ok(store.read('a'));
  assert.equal(store.evict(2), ['b']);
  store.tick(1_000 + LEASE_MS - 1);
  assert.is(store.remove('a'), 'leased');
  assert.equal(store.evict(1), []);
  store.tick(1_000 + LEASE_MS);
  assert.equal(store.evict(1), ['a']);
});

test('looking grants none', () => {
  const { store } = storeOf();
  put(store, 'a');
  assert.ok(store.has('a'));
  assert.equal(store.replicas('a'), { size: 10, memory: ['segment-0'], disk: false, localDisk: [] });
  assert.is(store.remove('a'), 'removed');
});

test('the oldest lease goes first, and of those that were never read the oldest put', () => {
  const { store } = storeOf();
  put(store, 'a', 'b');
  store.tick(2_000);
  put(store, 'c');
  store.read('a');
  store.tick(2_000 + LEASE_MS);
  assert.equal(store.evict(3), ['b', 'c', 'a']);
});

test('soft pinned objects go last, hard pinned ones never; Remove takes both', () => {
  const { store } = storeOf();
  store.putEnd('soft', 'cpu', 10, { softPin: true });
  store.putEnd('hard', 'cpu', 10, { hardPin: true });
  put(store, 'plain');
  assert.equal(store.evict(1), ['plain']);
  assert.equal(store.evict(2), ['soft']);
  assert.is(store.remove('hard'), 'removed');
  store.putEnd('soft', 'cpu', 10, { softPin: true });
  put(store, 'plain');
  store.tick(1_000 + SOFT_PIN_MS);
  assert.equal(store.evict(1), ['soft']); // its pin has ended, and it came first
});

test('members of a group go together, and none while one is leased', () => {
  const { store } = storeOf();
  for (const key of ['g1', 'g2', 'g3']) store.putEnd(key, 'cpu', 10, { group: 'g' });
  store.putEnd('other', 'cpu', 10, { group: 'g', tenant: 't' });
  store.read('g3');
  assert.equal(store.evict(1), ['other']);
  store.tick(1_000 + LEASE_MS);
  assert.equal(store.evict(1), ['g1', 'g2', 'g3']);
});

test('a hard pinned member stays when its group goes', () => {
  const { store } = storeOf();
  store.putEnd('g1', 'cpu', 10, { group: 'g' });
  store.putEnd('g2', 'cpu', 10, { group: 'g', hardPin: true });
  assert.equal(store.evict(2), ['g1']);
});

test('an object that is being offloaded is not evicted until that is done', () => {
  const { store, said } = storeOf();
  put(store, 'a');
  store.offloadStart('a');
  assert.equal(store.evict(1), []);
  store.offload('a');
  assert.equal(store.evict(1), ['a']);
  assert.ok(store.has('a')); // on disk
  assert.equal(
    said.map(({ kind, medium }) => [kind, medium]),
    [
      ['stored', 'cpu'],
      ['stored', 'disk'],
      ['removed', 'cpu'],
    ],
  );
});

test('above nine tenths of the capacity a twentieth is evicted', () => {
  const { store } = storeOf({ capacityObjects: 100 });
  for (let i = 0; i < 90; i++) put(store, `k${i}`);
  assert.is(store.objectCount, 90);
  put(store, 'k90');
  assert.is(store.objectCount, 86); // 91 objects, of which 5 went
  assert.not(store.has('k4'));
  assert.ok(store.has('k5'));
});

test('bytes count as well as objects', () => {
  const { store } = storeOf({ capacityBytes: 1_000 });
  for (let i = 0; i < 9; i++) assert.is(store.putEnd(`k${i}`, 'cpu', 100), 'stored');
  assert.is(store.usedBytes, 900);
  assert.is(store.putEnd('big', 'cpu', 500), 'stored');
  assert.ok(store.has('big'));
  assert.ok(store.usedBytes <= 1_000);
});

test('without anything that may go there is no room', () => {
  const { store, said } = storeOf({ capacityObjects: 2 });
  for (const key of ['a', 'b']) store.putEnd(key, 'cpu', 10, { hardPin: true });
  said.length = 0;
  assert.is(store.putEnd('c', 'cpu', 10), 'no-space');
  assert.is(store.putStart('c', 10), 'no-space');
  assert.equal(said, []);
  assert.is(store.putEnd('c', 'disk', 10), 'stored'); // disk has room
});

test('a quota evicts from its tenant alone', () => {
  const { store } = storeOf();
  put(store, 'a');
  for (const key of ['b', 'c']) store.putEnd(key, 'cpu', 10, { tenant: 't' });
  assert.equal(store.quotaEvict('t', 5), ['b', 'c']);
  assert.equal(store.readableKeys(), ['a']);
});

test('tenants may use the same key', () => {
  const { store } = storeOf();
  put(store, 'k');
  store.putEnd('k', 'cpu', 10, { tenant: 't' });
  store.remove('k');
  assert.not(store.has('k'));
  assert.ok(store.has('k', 't'));
  assert.equal(store.readableKeys('t'), ['k']);
});

test('what is being written can be neither read nor removed nor begun again', () => {
  const { store } = storeOf();
  store.putStart('k', 10);
  assert.not(store.has('k'));
  assert.not(store.read('k'));
  assert.is(store.remove('k'), 'absent');
  assert.is(store.putStart('k', 10), 'exists');
  assert.is(store.objectCount, 1);
  assert.ok(store.putRevoke('k'));
  assert.not(store.putRevoke('k'));
  assert.is(store.usedBytes, 0);
});

test('an upsert keeps its segments and takes its new size', () => {
  const { store } = storeOf();
  store.putEnd('k', 'cpu', 10, { segment: ['a', 'b'] });
  store.upsert('k', 30);
  assert.equal(store.replicas('k'), { size: 30, memory: ['a', 'b'], disk: false, localDisk: [] });
  assert.is(store.usedBytes, 60);
});

test('a snapshot is a copy, and its room is taken again', () => {
  const { store } = storeOf({ capacityObjects: 10 });
  put(store, 'a', 'b');
  store.putStart('writing', 10);
  const snapshot = store.snapshot();
  store.remove('a');
  const { store: next, said } = storeOf();
  next.restore(snapshot, () => false);
  assert.equal(next.readableKeys(), ['a', 'b']);
  assert.is(next.usedBytes, 20);
  assert.equal(next.segments, ['segment-0']);
  assert.equal(said, []);
});

// Whatever happens, what a reader of generation C's events believes is what the store has: the table's promise as a whole.
for (const seed of [1, 2, 3])
  test(`generation C says everything: 20,000 random steps, seed ${seed}`, () => {
    const random = new Random(seed);
    const believed = new Map<string, Set<string>>();
    const store = new StoreModel({ generation: 'C', capacityObjects: 60 }, ({ kind, tenant, key, medium }) => {
      if (kind === 'cleared') {
        for (const name of [...believed.keys()]) if (name.startsWith(`${tenant}/`)) believed.delete(name);
        return;
      }
      const name = `${tenant}/${key}`;
      const media = believed.get(name) ?? new Set();
      if (kind === 'stored') media.add(medium!);
      else media.delete(medium!);
      if (media.size > 0) believed.set(name, media);
      else believed.delete(name);
    });
    for (let step = 0; step < 20_000; step++) {
      store.tick(step * 100);
      randomStep(store, random);
      if (step % 50 === 0) assert.equal(sorted(believed.keys()), truthOf(store), `seed ${seed}, step ${step}`);
    }
    const bytes = [...believed.keys()].reduce((sum, name) => sum + memoryBytes(store, name), 0);
    assert.ok(store.usedBytes >= bytes);
  });

const TENANTS = ['default', 't'];
const SEGMENTS = ['a', 'b', 'c'];

function randomStep(store: StoreModel, random: Random): void {
  const key = `k${random.int(80)}`;
  const tenant = random.pick(TENANTS);
  const segment = random.pick(SEGMENTS);
  const steps: readonly (() => unknown)[] = [
    () =>
      store.putEnd(key, 'cpu', 10, { tenant, segment, ...(random.int(4) === 0 ? { group: `g${random.int(4)}` } : {}) }),
    () => store.putEnd(key, 'cpu', 10, { tenant, segment: [segment, 'd'] }),
    () => store.putEnd(key, random.pick(['disk', 'local-disk'] as const), 10, { tenant, segment }),
    () => store.putStart(key, 10, { tenant, segment }),
    () => store.putRevoke(key, { tenant }),
    () => store.upsertStart(key, 10 + random.int(5), { tenant }),
    () => store.upsertEnd(key, { tenant }),
    () => store.upsert(key, 10, { tenant, segment }),
    () => random.int(10) === 0 && store.writerDies(key, { tenant }),
    () => store.read(key, tenant),
    () => store.remove(key, { tenant, force: random.int(2) === 0 }),
    () => store.batchRemove([key, `k${random.int(80)}`], { tenant }),
    () => random.int(20) === 0 && store.removeByRegex(`^k${random.int(8)}`, { tenant }),
    () => random.int(200) === 0 && store.removeAll(random.int(2) === 0 ? {} : { tenant, force: true }),
    () => store.evict(random.int(3)),
    () => store.quotaEvict(tenant, random.int(3)),
    () => store.evictDisk(key, { tenant }),
    () => store.offloadStart(key, { tenant }),
    () => store.offload(key, { tenant, segment }),
    () => store.appearOnDisk(key, 10, { tenant, segment }),
    () => store.promote(key, { tenant, segment }),
    () => store.copy(key, segment, { tenant }),
    () => store.move(key, segment, random.pick(SEGMENTS), { tenant }),
    () => random.int(40) === 0 && store.unmountSegment(segment),
    () => random.int(40) === 0 && store.unmountLocalDisk(segment),
    () => random.int(40) === 0 && store.clientCrash(segment),
    () => store.replicaClear([key], { tenant, segment }),
  ];
  random.pick(steps)();
}

function truthOf(store: StoreModel): string[] {
  return sorted(TENANTS.flatMap((tenant) => store.readableKeys(tenant).map((key) => `${tenant}/${key}`)));
}

function memoryBytes(store: StoreModel, name: string): number {
  const [tenant, key] = name.split('/') as [string, string];
  const { size, memory } = store.replicas(key, tenant)!;
  return size * memory.length;
}

function sorted(names: Iterable<string>): string[] {
  return [...names].sort();
}

test.run();
