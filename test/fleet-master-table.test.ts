// When events fire: the rows of spec/mooncake-events.md 4, in its order, for generation A and for B and C, which agree. Each row sets a store
// up, forgets what that announced, does one thing, and says which events follow and what can be read afterwards.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { StoreModel } from '../src/fleet/master/store-model.js';
import type { StoreModelOptions } from '../src/fleet/master/store-options.js';
import type { Announcement, Generation } from '../src/fleet/master/types.js';

interface Row {
  readonly name: string;
  readonly before?: (store: StoreModel) => void;
  readonly act: (store: StoreModel) => void;
  readonly A: readonly string[];
  readonly C: readonly string[];
  /** Keys of the default tenant that can be read afterwards. */
  readonly left: readonly string[];
  readonly options?: Partial<StoreModelOptions>;
}

const both = (events: readonly string[]) => ({ A: events, C: events });
const inMemory = (store: StoreModel) => store.putEnd('k', 'cpu', 10);
const inBoth = (store: StoreModel) => {
  store.putEnd('k', 'cpu', 10);
  store.putEnd('k', 'disk', 10);
};
const onDisk = (store: StoreModel) => {
  inMemory(store);
  store.offload('k');
  store.evict(1);
};
const threeInMemory = (store: StoreModel) => {
  for (const key of ['k1', 'k2', 'x']) store.putEnd(key, 'cpu', 10);
};

const rows: readonly Row[] = [
  // PutEnd / BatchPutEnd / UpsertEnd
  { name: 'PutEnd of memory', act: inMemory, ...both(['stored cpu k']), left: ['k'] },
  {
    name: 'PutEnd of disk alone',
    act: (store) => store.putEnd('k', 'disk', 10),
    ...both(['stored disk k']),
    left: ['k'],
  },
  {
    name: 'PutEnd twice: memory, later disk',
    act: inBoth,
    A: ['stored cpu k', 'stored disk k'],
    C: ['stored cpu k', 'stored cpu k', 'stored disk k'],
    left: ['k'],
  },
  {
    name: 'PutEnd of two memory replicas',
    act: (store) => store.putEnd('k', 'cpu', 10, { segment: ['a', 'b'] }),
    ...both(['stored cpu k']),
    left: ['k'],
  },
  {
    name: 'PutStart, PutEnd',
    act: (store) => {
      store.putStart('k', 10);
      assert.not(store.has('k'));
      store.putEnd('k', 'cpu', 10);
    },
    ...both(['stored cpu k']),
    left: ['k'],
  },
  {
    name: 'BatchPutEnd',
    act: threeInMemory,
    ...both(['stored cpu k1', 'stored cpu k2', 'stored cpu x']),
    left: ['k1', 'k2', 'x'],
  },
  // re-Put
  {
    name: 're-Put of an existing key',
    before: inMemory,
    act: (store) => assert.is(store.putEnd('k', 'cpu', 10), 'exists'),
    ...both([]),
    left: ['k'],
  },
  {
    name: 're-Put of a key that is on disk only',
    before: onDisk,
    act: (store) => assert.is(store.putEnd('k', 'cpu', 10), 'exists'),
    ...both([]),
    left: ['k'],
  },
  // Upsert
  {
    name: 'Upsert, same size: being written',
    before: inMemory,
    act: (store) => store.upsertStart('k', 10),
    A: [],
    C: ['removed cpu k'],
    left: [],
  },
  {
    name: 'Upsert, same size',
    before: inMemory,
    act: (store) => store.upsert('k', 10),
    A: ['stored cpu k'],
    C: ['removed cpu k', 'stored cpu k'],
    left: ['k'],
  },
  {
    name: 'Upsert of a new key',
    act: (store) => store.upsert('k', 10),
    ...both(['stored cpu k']),
    left: ['k'],
  },
  {
    name: 'Upsert, other size',
    before: inMemory,
    act: (store) => store.upsert('k', 20),
    A: ['stored cpu k'],
    C: ['removed cpu k', 'stored cpu k'],
    left: ['k'],
  },
  {
    name: 'Upsert, other size, the writer dies',
    before: inMemory,
    act: (store) => {
      store.upsertStart('k', 20);
      store.writerDies('k');
    },
    A: [],
    C: ['removed cpu k'],
    left: [],
  },
  // Remove
  { name: 'Remove', before: inMemory, act: (store) => store.remove('k'), ...both(['removed cpu k']), left: [] },
  {
    name: 'Remove of what both media have',
    before: inBoth,
    act: (store) => store.remove('k'),
    A: ['removed cpu k'],
    C: ['removed cpu k', 'removed disk k'],
    left: [],
  },
  {
    name: 'Remove of what disk alone has',
    before: onDisk,
    act: (store) => store.remove('k'),
    ...both(['removed disk k']),
    left: [],
  },
  {
    name: 'Remove of a leased key, then forced',
    before: (store) => {
      inMemory(store);
      store.read('k');
    },
    act: (store) => {
      assert.is(store.remove('k'), 'leased');
      assert.is(store.remove('k', { force: true }), 'removed');
      assert.is(store.remove('k'), 'absent');
    },
    ...both(['removed cpu k']),
    left: [],
  },
  // BatchRemove, RemoveByRegex, RemoveAll
  {
    name: 'BatchRemove',
    before: threeInMemory,
    act: (store) => store.batchRemove(['k1', 'k2', 'unknown']),
    A: [],
    C: ['removed cpu k1', 'removed cpu k2'],
    left: ['x'],
  },
  {
    name: 'RemoveByRegex',
    before: threeInMemory,
    act: (store) => store.removeByRegex('^k'),
    A: [],
    C: ['removed cpu k1', 'removed cpu k2'],
    left: ['x'],
  },
  {
    name: 'RemoveAll',
    before: threeInMemory,
    act: (store) => store.removeAll(),
    A: [],
    C: ['removed cpu k1', 'removed cpu k2', 'removed cpu x', 'cleared'],
    left: [],
  },
  {
    name: 'RemoveAll that skips a leased object',
    before: (store) => {
      threeInMemory(store);
      store.read('k2');
    },
    act: (store) => assert.is(store.removeAll(), 2),
    A: [],
    C: ['removed cpu k1', 'removed cpu x'],
    left: ['k2'],
  },
  {
    name: 'RemoveAll of one tenant',
    before: (store) => {
      inMemory(store);
      store.putEnd('k', 'cpu', 10, { tenant: 't' });
    },
    act: (store) => store.removeAll({ tenant: 't' }),
    A: [],
    C: ['removed cpu t/k', 'cleared t/'],
    left: ['k'],
  },
  // memory eviction
  {
    name: 'eviction of the last replica',
    before: inMemory,
    act: (store) => store.evict(1),
    ...both(['removed cpu k']),
    left: [],
  },
  {
    name: 'eviction of a group: one event for each member',
    before: (store) => {
      for (const key of ['g1', 'g2']) store.putEnd(key, 'cpu', 10, { group: 'g' });
    },
    act: (store) => store.evict(1),
    ...both(['removed cpu g1 of g', 'removed cpu g2 of g']),
    left: [],
  },
  {
    name: 'eviction while a disk replica remains',
    before: inBoth,
    act: (store) => store.evict(1),
    A: [],
    C: ['removed cpu k'],
    left: ['k'],
  },
  // quota
  {
    name: 'tenant-quota eviction',
    before: (store) => store.putEnd('k', 'cpu', 10, { tenant: 't' }),
    act: (store) => store.quotaEvict('t', 1),
    A: [],
    C: ['removed cpu t/k'],
    left: [],
  },
  // whole segments
  {
    name: 'segment unmount',
    before: (store) => {
      store.putEnd('k1', 'cpu', 10, { segment: 'a' });
      store.putEnd('k2', 'cpu', 10, { segment: 'b' });
      store.putEnd('k3', 'cpu', 10, { segment: 'a' });
      store.offload('k3');
    },
    act: (store) => store.unmountSegment('a'),
    A: [],
    C: ['removed cpu k1', 'removed cpu k3'],
    left: ['k2', 'k3'],
  },
  {
    name: 'client crash, client_ttl expiry, stale-handle cleanup',
    before: (store) => {
      store.mountSegment('a', 'client');
      store.putEnd('k1', 'cpu', 10, { segment: 'a' });
      store.putEnd('k2', 'cpu', 10, { segment: 'b' });
      store.offload('k1');
    },
    act: (store) => store.clientCrash('client'),
    A: [],
    C: ['removed cpu k1', 'removed disk k1'],
    left: ['k2'],
  },
  // one of two replicas
  {
    name: 'one of two memory replicas lost',
    before: (store) => store.putEnd('k', 'cpu', 10, { segment: ['a', 'b'] }),
    act: (store) => store.unmountSegment('a'),
    ...both([]),
    left: ['k'],
  },
  {
    name: 'one of two memory replicas lost, then removed',
    before: (store) => {
      store.putEnd('k', 'cpu', 10, { segment: ['a', 'b'] });
      store.unmountSegment('a');
    },
    act: (store) => store.remove('k'),
    ...both(['removed cpu k']),
    left: [],
  },
  // disk
  {
    name: 'offload to local disk',
    before: inMemory,
    act: (store) => store.offload('k'),
    A: [],
    C: ['stored disk k'],
    left: ['k'],
  },
  {
    name: 'an object appears on disk only',
    act: (store) => store.appearOnDisk('k', 10),
    A: [],
    C: ['stored disk k'],
    left: ['k'],
  },
  {
    name: 'EvictDiskReplica of the last replica',
    before: onDisk,
    act: (store) => store.evictDisk('k'),
    A: ['removed cpu k'],
    C: ['removed disk k'],
    left: [],
  },
  {
    name: 'EvictDiskReplica of what was never announced',
    before: (store) => store.appearOnDisk('k', 10),
    act: (store) => store.evictDisk('k'),
    A: ['removed cpu k'],
    C: ['removed disk k'],
    left: [],
  },
  {
    name: 'EvictDiskReplica while memory remains',
    before: inBoth,
    act: (store) => store.evictDisk('k'),
    A: [],
    C: ['removed disk k'],
    left: ['k'],
  },
  {
    name: 'UnmountLocalDiskSegment',
    before: onDisk,
    act: (store) => store.unmountLocalDisk('segment-0'),
    A: [],
    C: ['removed disk k'],
    left: [],
  },
  // promotion, copy, move
  { name: 'promotion', before: onDisk, act: (store) => store.promote('k'), A: [], C: ['stored cpu k'], left: ['k'] },
  { name: 'copy', before: inMemory, act: (store) => store.copy('k', 'b'), ...both([]), left: ['k'] },
  { name: 'move', before: inMemory, act: (store) => store.move('k', 'segment-0', 'b'), ...both([]), left: ['k'] },
  // PutRevoke, expired PutStart
  {
    name: 'PutRevoke, and a PutStart that expires',
    before: (store) => store.putStart('k', 10),
    act: (store) => store.putRevoke('k'),
    ...both([]),
    left: [],
  },
  // BatchReplicaClear
  {
    name: 'BatchReplicaClear',
    before: threeInMemory,
    act: (store) => store.replicaClear(['k1', 'x']),
    A: [],
    C: ['removed cpu k1', 'removed cpu x'],
    left: ['k2'],
  },
  // oplog
  {
    name: 'HA with oplog: Remove',
    options: { oplog: true },
    act: (store) => {
      inMemory(store);
      store.remove('k');
    },
    A: ['stored cpu k'],
    C: ['stored cpu k', 'removed cpu k'],
    left: [],
  },
  {
    name: 'HA with oplog: eviction',
    options: { oplog: true },
    before: inMemory,
    act: (store) => store.evict(1),
    A: [],
    C: ['removed cpu k'],
    left: [],
  },
  // snapshot restore, standby promotion
  {
    name: 'restore of a snapshot, with a loss on the way',
    act: (store) => {
      const before = new StoreModel({ generation: 'C' }, () => {});
      threeInMemory(before);
      store.restore(before.snapshot(), ({ key }) => key === 'x');
    },
    ...both([]),
    left: ['k1', 'k2'],
  },
];

function textOf({ kind, tenant, key, group, medium }: Announcement): string {
  const name = `${tenant === 'default' ? '' : `${tenant}/`}${key}`;
  return [kind, medium, name, ...(group === null ? [] : ['of', group])]
    .filter((part) => part !== null && part !== '')
    .join(' ');
}

for (const [index, { name, before, act, A, C, left, options }] of rows.entries())
  for (const generation of ['A', 'B', 'C'] as const)
    test(`row ${index + 1}, ${generation}: ${name}`, () => {
      const said: Announcement[] = [];
      const store = new StoreModel({ generation: generation as Generation, ...options }, (event) => said.push(event));
      store.tick(1_000);
      before?.(store);
      said.length = 0;
      act(store);
      assert.equal(said.map(textOf), generation === 'A' ? A : C);
      assert.equal(store.readableKeys(), left);
    });

test.run();
