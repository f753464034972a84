// The simulated store: what is put and what restores, by kind of group, with cases worked out by hand; then everything against a store that
// keeps object by object.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { checkSimConfig, type GroupModel, type StoreModel } from '../src/sim/index.js';
import { SSD, Store, type StoreWatcher } from '../src/sim/store.js';
import { PlainStore } from './support/sim-plain-store.js';

const BLOCK = 16;
const EACH = 4;
const FULL: GroupModel = { kind: 'full_attention', window: null, bytesPerBlock: 10 };
const WINDOW: GroupModel = { kind: 'sliding_window', window: 33, bytesPerBlock: 4 };
const STATE: GroupModel = { kind: 'mamba', window: null, bytesPerBlock: 7 };
const LARGE = 1e9;

function storeOf(groups: readonly GroupModel[], sizes: Partial<StoreModel> = { dramBytes: LARGE }) {
  const said: string[] = [];
  const say = (sign: string) => (tier: number, group: number, node: number, from: number, count: number) => {
    for (let block = from + count - 1; block >= from; block--)
      said.push(`${sign}${tier === SSD ? 'disk' : 'cpu'} ${group}/${node}:${block}`);
  };
  const watcher: StoreWatcher = { entered: say('+'), left: say('-') };
  const { store: model } = checkSimConfig({ store: { dramBytes: 0, ...sizes } });
  return { said, model, store: new Store(model, groups, BLOCK, () => EACH, watcher) };
}

const path = (...nodes: number[]): Int32Array => Int32Array.from(nodes);

/** What a put of a prompt of so many tokens says. */
function putOf(groups: readonly GroupModel[], tokens: number): string[] {
  const { store, said } = storeOf(groups);
  store.put(path(0, 1, 2), Math.floor(tokens / BLOCK), Math.floor((tokens - 1) / BLOCK));
  return said.sort();
}

test('full attention puts every full block of the prompt', () => {
  assert.equal(putOf([FULL], 2 * BLOCK + 5), ['+cpu 0/0:0', '+cpu 0/0:1']);
  assert.equal(putOf([FULL], 5 * BLOCK), ['+cpu 0/0:0', '+cpu 0/0:1', '+cpu 0/0:2', '+cpu 0/0:3', '+cpu 0/1:0']);
  assert.equal(putOf([FULL], BLOCK - 1), []);
});

test('a sliding window puts the window before the last block end at or before prompt - 1', () => {
  // Window 33 looks back over 2 blocks. 6 full blocks and a tail: end 6, so blocks 4 and 5. 6 whole blocks: end 5, so blocks 3 and 4.
  const windowOnly = (tokens: number) => putOf([FULL, WINDOW], tokens).filter((text) => text.startsWith('+cpu 1/'));
  assert.equal(windowOnly(6 * BLOCK + 1), ['+cpu 1/1:0', '+cpu 1/1:1']);
  assert.equal(windowOnly(6 * BLOCK), ['+cpu 1/0:3', '+cpu 1/1:0']);
  assert.equal(windowOnly(BLOCK + 1), ['+cpu 1/0:0']);
  assert.equal(windowOnly(BLOCK), []);
});

test('mamba puts one state, at that same end', () => {
  const stateOnly = (tokens: number) => putOf([FULL, STATE], tokens).filter((text) => text.startsWith('+cpu 1/'));
  assert.equal(stateOnly(6 * BLOCK + 1), ['+cpu 1/1:1']);
  assert.equal(stateOnly(6 * BLOCK), ['+cpu 1/1:0']);
  assert.equal(stateOnly(BLOCK), []);
});

test('an endpoint needs all of full attention, the window before it, and the state at it', () => {
  // Two prompts of one conversation: 5 full blocks, then 9.
  const reaches = (groups: readonly GroupModel[]) => {
    const { store } = storeOf(groups);
    store.put(path(0, 1), 5, 5);
    store.put(path(0, 1, 2), 9, 9);
    return [1, 4, 5, 6, 8, 9].map((limit) => store.reach(path(0, 1, 2), limit));
  };
  assert.equal(reaches([FULL]), [1, 4, 5, 6, 8, 9]);
  // Windows 3–4 and 7–8 are there: ends 5 and 9.
  assert.equal(reaches([FULL, WINDOW]), [0, 0, 5, 5, 5, 9]);
  assert.equal(reaches([FULL, STATE]), [0, 0, 5, 5, 5, 9]);
  assert.equal(reaches([FULL, WINDOW, STATE]), [0, 0, 5, 5, 5, 9]);
});

test('near the start a window is whole with fewer blocks', () => {
  const { store } = storeOf([FULL, WINDOW]);
  store.put(path(0), 1, 1);
  assert.is(store.reach(path(0), 1), 1);
});

test('a put that is there already is no new object, and is touched', () => {
  const { store, said } = storeOf([FULL], { dramBytes: 60 });
  store.put(path(0), 3, 3);
  store.put(path(1), 3, 3);
  store.put(path(0), 3, 3);
  assert.is(said.length, 6);
  store.put(path(2), 1, 1);
  assert.equal(said.slice(6), ['+cpu 0/2:0', '-cpu 0/1:2']);
  assert.is(store.reach(path(0), 3), 3);
  assert.is(store.reach(path(1), 3), 2);
});

test('a get keeps a prefix alive, deepest blocks going first', () => {
  const { store } = storeOf([FULL], { dramBytes: 60 });
  store.put(path(0), 3, 3);
  store.put(path(1), 3, 3);
  store.get(path(0), 1, 3);
  store.put(path(2), 4, 4);
  assert.is(store.reach(path(1), 3), 0);
  assert.is(store.reach(path(0), 3), 2);
});

test('memory spills to the SSD, which drops its coldest', () => {
  const { store, said } = storeOf([FULL], { dramBytes: 20, ssdBytes: 30 });
  store.put(path(0), 4, 4);
  assert.equal(said.splice(0).slice(4), ['+disk 0/0:3', '+disk 0/0:2', '-cpu 0/0:3', '-cpu 0/0:2'].sort(byOrder));
  store.put(path(1), 2, 2);
  assert.is(store.reach(path(0), 4), 3);
  assert.equal(store.usedBytes, { dram: 20, ssd: 30 });
  assert.equal(store.get(path(0), 1, 3), { blocks: { dram: 0, ssd: 2 }, bytes: { dram: 0, ssd: 20 } });
  assert.is(store.evictedBlocks, 1);
});

/** As the store says it: a run enters the SSD before it leaves memory. */
const byOrder = (a: string, b: string): number => Number(a.startsWith('-')) - Number(b.startsWith('-'));

test('a fetch takes the blocks of full attention, what is missing of the window, and one state', () => {
  const { store } = storeOf([FULL, WINDOW, STATE]);
  store.put(path(0, 1, 2), 9, 9);
  assert.equal(store.get(path(0, 1, 2), 2, 9).bytes, { dram: 7 * 10 + 2 * 4 + 7, ssd: 0 });
  assert.equal(store.get(path(0, 1, 2), 8, 9).bytes, { dram: 10 + 4 + 7, ssd: 0 });
});

test('a store without room holds nothing', () => {
  const { store, said } = storeOf([FULL], {});
  store.put(path(0), 4, 4);
  assert.is(store.exists, false);
  assert.is(store.reach(path(0), 4), 0);
  assert.equal(said, []);
});

test('a new start leaves it empty', () => {
  const { store } = storeOf([FULL]);
  store.put(path(0), 4, 4);
  store.clear();
  assert.is(store.reach(path(0), 4), 0);
  assert.equal(store.usedBytes, { dram: 0, ssd: 0 });
  store.put(path(0), 4, 4);
  assert.is(store.reach(path(0), 4), 4);
});

// Nodes of a tree: 0 … 3 are roots, node n ≥ 4 hangs on n >> 2 - 1 or so; a path is a walk from a root down.
const PATHS: readonly (readonly number[])[] = [
  [0],
  [0, 4],
  [0, 4, 8],
  [0, 4, 9],
  [0, 5],
  [1],
  [1, 6],
  [1, 6, 10],
  [2, 7],
];

const kinds = fc.array(
  fc.oneof(
    fc.constant(FULL),
    fc.constant(STATE),
    fc.integer({ min: 2, max: 120 }).map((window): GroupModel => ({ ...WINDOW, window })),
  ),
  { maxLength: 3 },
);
const operations = fc.array(
  fc.record({
    path: fc.integer({ min: 0, max: PATHS.length - 1 }),
    tail: fc.integer({ min: 0, max: 4 * BLOCK - 1 }),
    gets: fc.boolean(),
  }),
  { minLength: 1, maxLength: 40 },
);

test('it equals a store that keeps object by object', () => {
  fc.assert(
    fc.property(
      kinds,
      fc.integer({ min: 0, max: 300 }),
      fc.integer({ min: 0, max: 200 }),
      operations,
      (more, dramBytes, ssdBytes, steps) => {
        const groups = [FULL, ...more];
        const { store, said, model } = storeOf(groups, { dramBytes, ssdBytes });
        if (!store.exists) return;
        const plain = new PlainStore(model, groups, BLOCK, EACH);
        for (const step of steps) {
          const nodes = PATHS[step.path]!;
          const tokens = (nodes.length - 1) * EACH * BLOCK + step.tail + 1;
          const full = Math.floor(tokens / BLOCK);
          const end = Math.floor((tokens - 1) / BLOCK);
          const walk = Int32Array.from(nodes.slice(0, Math.ceil(full / EACH)));
          const reach = store.reach(walk, end);
          assert.is(reach, plain.reach(walk, end));
          if (step.gets && reach > 0) {
            const { blocks } = store.get(walk, 0, reach);
            const tiers = Array.from({ length: reach }, (_, block) => plain.tierOf(0, walk, block));
            assert.equal(blocks, {
              dram: tiers.filter((t) => t === 0).length,
              ssd: tiers.filter((t) => t === 1).length,
            });
            plain.get(walk, reach);
          } else {
            said.length = 0;
            store.put(walk, full, end);
            // Within a put the store tells its moves run by run: the same ones in another order.
            assert.equal([...said].sort(), plain.put(walk, full, end).sort());
          }
          const held: string[] = [];
          store.forEach((group, node, from, count) => {
            for (let block = from + count - 1; block >= from; block--) held.push(`${group}/${node}:${block}`);
          });
          assert.equal(held, [...plain.tiers[1], ...plain.tiers[0]]);
        }
      },
    ),
    { numRuns: 400 },
  );
});

test.run();
