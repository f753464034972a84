// The yardsticks measured: the brute force against vLLM's own answers, the rule that a router follows against the brute
// force, the core's model against that rule and against the rule book's sentences, and the reading of store messages.
// Seeds are fixed; MOONROUTE_SEED=n runs others. A failure prints the case.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  bruteForceHit,
  randomCase,
  type StoreCase,
  seesAsMuchAsTheWorker,
  visibleHit,
  workerHit,
} from './support/brute-force.js';
import { CoreModel, type ModelBlock, type ModelContract, type ModelOptions } from './support/model.js';
import { Random } from './support/random.js';
import { judgeBatch } from './support/store-batch-model.js';

const SEED = Number(process.env['MOONROUTE_SEED'] ?? 20_260_916);

// ---- The brute force and the lookup rule -----------------------------------------------------------------------

const show = (store: StoreCase): string =>
  `${JSON.stringify(store)} visible ${visibleHit(store)} worker ${workerHit(store)} oracle ${bruteForceHit(store)}`;

test('the brute force gives vLLM’s own answers in all 600 oracle cases; the visible rule never gives more', () => {
  const { cases } = JSON.parse(gunzipSync(readFileSync('test/fixtures/oracle-cases.json.gz')).toString());
  let equal = 0;
  let under = 0;
  for (const stored of cases) {
    const store: StoreCase = {
      hashBlock: stored.hash_block_size,
      lcm: stored.coordinator_alignment,
      partial: stored.partial_hash_hits,
      blockSize: stored.main_event_block_size ?? stored.coordinator_alignment,
      groups: stored.groups.map((group: { kind: string; block_size: number; window: number; prefixes: string[] }) => ({
        kind: group.kind,
        blockSize: group.block_size,
        window: group.window,
        prefixes: group.prefixes.length,
      })),
      present: stored.present,
      tokenCount: stored.request_token_count,
    };
    assert.is(bruteForceHit(store), stored.oracle_hit_tokens, stored.name);
    assert.is(workerHit(store), stored.worker_hit_tokens, stored.name);
    if (stored.main_event_block_size === null) continue; // no events to learn edges from
    const visible = visibleHit(store);
    assert.ok(visible <= stored.worker_hit_tokens, `${stored.name}: ${visible}`);
    if (visible === stored.worker_hit_tokens) equal++;
    else under++;
  }
  assert.is(cases.length, 600);
  assert.equal({ equal, under }, { equal: 526, under: 59 });
});

test('visible ≤ worker in 40,000 random cases, and equal where the router sees as much as the worker', () => {
  const random = new Random(SEED);
  let positive = 0;
  let seen = 0;
  for (let i = 0; i < 40_000; i++) {
    const store = randomCase(random);
    const visible = visibleHit(store);
    const worker = workerHit(store);
    assert.ok(visible <= worker, show(store));
    assert.ok(bruteForceHit(store) <= worker, show(store));
    if (visible > 0) positive++;
    if (seesAsMuchAsTheWorker(store)) {
      seen++;
      assert.is(visible, worker, show(store));
    }
    // Fewer known edges never show more than the worker grants either.
    const known = random.int(Math.floor(store.tokenCount / store.blockSize) + 2);
    assert.ok(visibleHit(store, known) <= worker, `${known} edges, ${show(store)}`);
  }
  assert.ok(positive > 6_000 && seen > 20_000, `${positive} positive, ${seen} seen`);
});

test('two spans of full attention with partial hits: each is asked within the reach of the one before', () => {
  // The first group reaches 1. vLLM asks the second one for 1 token at most, and it has nothing at 1; asked by itself it
  // would reach 2, and 1 would be credited. The smallest case in which the order of asking matters.
  const store: StoreCase = {
    hashBlock: 1,
    lcm: 2,
    partial: true,
    blockSize: 1,
    groups: [
      { kind: 'full_attention', blockSize: 1, window: null, prefixes: 1 },
      { kind: 'full_attention', blockSize: 2, window: null, prefixes: 1 },
      { kind: 'mamba', blockSize: 2, window: null, prefixes: 1 },
    ],
    present: [
      [0, 0, 0],
      [1, 0, 1],
      [2, 0, 0],
    ],
    tokenCount: 3,
  };
  assert.is(workerHit(store), 0);
  assert.is(visibleHit(store), 0);
  assert.is(modelHit(store, new Random(SEED)), 0);
});

test('an object more can make vLLM grant less: a tail at n serves only while n itself is no endpoint', () => {
  const base: Omit<StoreCase, 'present'> = {
    hashBlock: 1,
    lcm: 8,
    partial: true,
    blockSize: 1,
    groups: [
      { kind: 'full_attention', blockSize: 1, window: null, prefixes: 1 },
      { kind: 'full_attention', blockSize: 8, window: null, prefixes: 1 },
      { kind: 'mamba', blockSize: 2, window: null, prefixes: 1 },
    ],
    tokenCount: 2,
  };
  const few: StoreCase['present'] = [
    [0, 0, 0],
    [0, 0, 1],
    [1, 0, 1],
    [2, 0, 0],
  ];
  assert.is(workerHit({ ...base, present: few }), 1);
  assert.is(workerHit({ ...base, present: [...few, [2, 0, 1]] }), 0);
  assert.is(modelHit({ ...base, present: few }, new Random(SEED)), 1);
  assert.is(modelHit({ ...base, present: [...few, [2, 0, 1]] }, new Random(SEED)), 0);
});

// ---- The model against the visible rule ------------------------------------------------------------------------

const localOf = (block: number): bigint => BigInt(block) + 1n;
const highOf = (name: number | bigint): string => name.toString(16).padStart(48, '0');

/** The hit of a model that was given the case's objects and its first `known` edges, the edges before or after the objects. */
function modelHit(store: StoreCase, random: Random, known = Math.ceil(store.tokenCount / store.blockSize) + 1): number {
  const { blockSize, hashBlock, tokenCount, groups } = store;
  const prefixes = groups.flatMap((group, index) => Array.from({ length: group.prefixes }, () => index));
  const model = new CoreModel({ edgeCap: 4_096, ambiguousCap: 16, contract: { ...store, prefixes } });
  model.replaceResidency([]);
  const secret = random.bigint64();
  const low64Of = (digest: number): bigint => BigInt.asUintN(64, secret * BigInt(2 * digest + 3));
  const blocks = Array.from({ length: known }, (_, block) => ({
    local: localOf(block),
    child: low64Of(((block + 1) * blockSize) / hashBlock - 1),
  }));
  const learnAll = (): void => model.learn({ parent: null, salted: false, blocks });
  if (random.chance(0.5)) learnAll();
  for (const [group, prefix, digest] of random.shuffle([...store.present])) {
    const object = { high: highOf(digest), low64: low64Of(digest) };
    model.stored(object, prefixes.indexOf(group) + prefix, random.pick([1, 2, 4]));
  }
  learnAll();
  const locals = Array.from({ length: Math.floor(tokenCount / blockSize) }, (_, block) => localOf(block));
  const { hit, walked } = model.lookup(locals, tokenCount);
  assert.ok(walked <= known);
  return hit;
}

test('CoreModel.lookup is the visible rule in 20,000 random cases, all edges known and some', () => {
  const random = new Random(SEED + 1);
  let positive = 0;
  for (let i = 0; i < 20_000; i++) {
    const store = randomCase(random);
    const most = Math.ceil(store.tokenCount / store.blockSize) + 1;
    const known = random.chance(0.8) ? most : random.int(most);
    const hit = modelHit(store, random, known);
    assert.is(hit, visibleHit(store, known), `${known} edges, ${show(store)}`);
    if (hit > 0) positive++;
  }
  assert.ok(positive > 3_000, `${positive} positive`);
});

// ---- The model against the rule book's sentences ---------------------------------------------------------------

const oneGroup: ModelContract = {
  blockSize: 16,
  lcm: 16,
  hashBlock: 16,
  partial: false,
  groups: [{ kind: 'full_attention', blockSize: 16, window: null }],
  prefixes: [0, 0],
};
const small = (options: Partial<ModelOptions> = {}): CoreModel =>
  new CoreModel({ edgeCap: 64, ambiguousCap: 4, contract: oneGroup, ...options });

/** Blocks from text: "a:1 b:2" is local a → child 1, then local b → child 2. Locals are letters, children numbers. */
const blocksOf = (text: string, high?: string): ModelBlock[] =>
  text.split(' ').map((block) => {
    const [local, child] = block.split(':');
    return { local: BigInt(local!.codePointAt(0)!), child: BigInt(child!), high };
  });
const learn = (model: CoreModel, parent: bigint | null, text: string, salted = false, high?: string): void =>
  model.learn({ parent, salted, blocks: blocksOf(text, high) });
const store = (model: CoreModel, low64: bigint, prefix = 0, high = highOf(low64), medium = 1): void =>
  model.stored({ high, low64 }, prefix, medium);
const remove = (model: CoreModel, low64: bigint, prefix = 0, media = 7, high = highOf(low64)): void =>
  model.removed({ high, low64 }, prefix, media);
const hitOf = (model: CoreModel, locals: string, tokens = locals.length * 16 + 1): number =>
  model.lookup(
    [...locals].map((local) => BigInt(local.codePointAt(0)!)),
    tokens,
  ).hit;
const numbers = (hashes: readonly string[]): number[] => hashes.map((hash) => Number(`0x${hash}`));
const lru = (model: CoreModel): number[] => numbers(model.snapshot().lru);
const edgeOf = (model: CoreModel, child: number) =>
  model.snapshot().edges.find((edge) => Number(`0x${edge.child}`) === child);

test('learn 0: a child twice, or the parent as a child, teaches nothing', () => {
  const model = small();
  learn(model, null, 'a:1 b:2 c:1');
  learn(model, 7n, 'a:1 b:7');
  assert.is(model.snapshot().counters.edges, 0);
  assert.is(model.counters.repeated, 2);
});

test('learn 1: assumed where the parent is unknown, assumed or salted and the event is not salted', () => {
  const model = small();
  learn(model, 9n, 'a:10 b:11');
  learn(model, 11n, 'c:12');
  learn(model, null, 's:20', true);
  learn(model, 20n, 'd:21');
  learn(model, 20n, 'e:22', true);
  learn(model, 9n, 'f:13', true);
  learn(model, null, 'g:30');
  learn(model, 30n, 'h:31');
  const assumed = model.snapshot().edges.filter((edge) => edge.assumed);
  assert.equal(numbers(assumed.map((edge) => edge.child)).sort(), [10, 11, 12, 21]);
});

test('learn 2: an assumed edge takes the salt of an event that knows', () => {
  const model = small();
  learn(model, 9n, 'a:10');
  learn(model, 9n, 'a:10', true);
  assert.equal([edgeOf(model, 10)?.assumed, edgeOf(model, 10)?.salted], [false, true]);
});

test('learn 2: another child makes the edge conflicted for good and stops the event', () => {
  const model = small();
  learn(model, null, 'a:1 b:2');
  learn(model, null, 'a:3 c:4');
  learn(model, null, 'a:1 d:5');
  const { counters } = model.snapshot();
  assert.equal([counters.edges, counters.conflicted, counters.conflicts], [2, 1, 1]);
  assert.equal(lru(model), [2]);
  assert.is(model.lookup([97n, 98n], 33).walked, 0);
});

test('learn 2: a child that belongs to another edge: replaced, outranked or conflicted', () => {
  const model = small();
  learn(model, 9n, 'a:1'); // assumed
  store(model, 1n);
  learn(model, null, 'b:1'); // knows more: replaces it, digest and all
  assert.equal([edgeOf(model, 1)?.parent, edgeOf(model, 1)?.high], ['root', highOf(1)]);
  assert.equal(model.snapshot().withoutEdge, []);
  learn(model, 9n, 'c:1'); // knows less
  learn(model, 9n, 'c:2');
  learn(model, 8n, 'd:2'); // both assumed
  learn(model, null, 'e:1'); // both known
  const { counters } = model.snapshot();
  assert.equal([counters.replaced, counters.outranked, counters.conflicts], [1, 1, 2]);
  assert.equal(numbers(model.snapshot().withoutEdge), [1]);
});

test('learn 2: at the cap the coldest edge leaves, but none of this event’s own', () => {
  const model = small({ edgeCap: 16 });
  const letters = 'abcdefghijklmnop';
  for (const [i, letter] of [...letters].entries()) learn(model, null, `${letter}:${i + 1}`);
  learn(model, null, 'a:1 q:17'); // touches the coldest, so the next one leaves
  assert.is(edgeOf(model, 2), undefined);
  assert.equal(lru(model).slice(0, 3), [1, 17, 16]);
  learn(model, null, [...'ABCDEFGHIJKLMNOPQR'].map((letter, i) => `${letter}:${i + 100}`).join(' '));
  const { counters } = model.snapshot();
  assert.equal([counters.edges, counters.full, counters.edgeEvictions], [16, 1, 17]);
  assert.equal(
    lru(model),
    Array.from({ length: 16 }, (_, i) => i + 100),
  );
});

test('learn 3 and lookup 1: hottest first in block order, ahead of everything else; ancestors are not touched', () => {
  const model = small();
  learn(model, null, 'a:1 b:2');
  learn(model, null, 'x:5');
  learn(model, 2n, 'c:3 d:4');
  assert.equal(lru(model), [3, 4, 5, 1, 2]);
  model.lookup([97n, 98n, 99n], 49);
  assert.equal(lru(model), [1, 2, 3, 4, 5]);
  model.lookup([120n], 17, { touch: false });
  assert.equal(lru(model), [1, 2, 3, 4, 5]);
});

test('more than a sixteenth of the cap conflicted: edges and residency go, the ambiguous set stays', () => {
  const model = small({ edgeCap: 32 });
  learn(model, null, 'a:1');
  learn(model, null, 'b:2');
  learn(model, null, 'c:3');
  store(model, 3n);
  store(model, 9n);
  store(model, 9n, 0, highOf(8)); // ambiguous
  for (const [letter, child] of ['a:11', 'b:12', 'c:13'].entries())
    learn(model, null, child.replace('x', String(letter)));
  const { counters, ambiguous } = model.snapshot();
  assert.equal([counters.edges, counters.digests, counters.conflicted, counters.dropsByConflict], [0, 0, 0, 1]);
  assert.equal(numbers(ambiguous), [9]);
});

test('residency: an object in any medium counts, the last one gone the digest goes', () => {
  const model = small();
  learn(model, null, 'a:1');
  store(model, 1n, 0, undefined, 1);
  assert.is(hitOf(model, 'a'), 0);
  store(model, 1n, 1, undefined, 2);
  store(model, 1n, 1, undefined, 4);
  assert.is(hitOf(model, 'a'), 16);
  assert.is(model.snapshot().counters.memberships, 3);
  remove(model, 1n, 1, 2);
  assert.is(hitOf(model, 'a'), 16);
  remove(model, 1n, 1, 1 | 4);
  assert.is(hitOf(model, 'a'), 0);
  remove(model, 1n, 0);
  remove(model, 1n, 0);
  assert.equal(model.snapshot().digests, []);
  assert.is(edgeOf(model, 1)?.high, highOf(1));
});

test('ambiguous: a second digest under one low64, from stored, removed or an edge’s high, ends it for good', () => {
  const model = small({ ambiguousCap: 16 });
  store(model, 1n);
  store(model, 1n, 0, highOf(99));
  store(model, 2n);
  remove(model, 2n, 0, 7, highOf(99));
  learn(model, null, 'c:3', false, highOf(3));
  store(model, 3n, 0, highOf(99));
  store(model, 4n);
  learn(model, null, 'd:4', false, highOf(99));
  learn(model, null, 'e:5', false, highOf(5));
  learn(model, null, 'e:5', false, highOf(99));
  for (const low64 of [1n, 2n, 3n, 4n, 5n]) store(model, low64);
  assert.equal(numbers(model.snapshot().ambiguous), [1, 2, 3, 4, 5]);
  assert.equal(model.snapshot().digests, []);
  model.clearResidency();
  assert.is(model.snapshot().ambiguous.length, 5);
  model.dropAll();
  assert.is(model.snapshot().ambiguous.length, 0);
});

test('the ambiguous set full: edges, residency and the set go, then the low64 joins', () => {
  const model = small({ ambiguousCap: 2 });
  learn(model, null, 'a:1');
  for (const low64 of [1n, 2n, 3n, 9n]) store(model, low64);
  for (const low64 of [1n, 2n, 3n]) store(model, low64, 0, highOf(99));
  const { counters, ambiguous } = model.snapshot();
  assert.equal([counters.edges, counters.digests, counters.dropsByAmbiguity], [0, 0, 1]);
  assert.equal(numbers(ambiguous), [3]);
});

test('digest cap: the oldest without an edge leaves; without such, the coldest edge’s', () => {
  const model = small({ edgeCap: 16, digestCap: 3 });
  learn(model, null, 'a:1');
  learn(model, null, 'b:2');
  learn(model, null, 'c:3');
  store(model, 7n);
  store(model, 8n);
  store(model, 7n); // newest again
  store(model, 1n);
  store(model, 2n); // 8 leaves
  assert.equal(numbers(model.snapshot().withoutEdge), [7]);
  store(model, 3n); // 7 leaves
  store(model, 9n); // none is without an edge: that of the coldest edge, 1, leaves
  assert.equal(numbers(model.snapshot().digests.map((digest) => digest.low64)), [2, 3, 9]);
  assert.is(model.counters.digestEvictions, 3);
});

test('an edge that leaves: its digest becomes the oldest without an edge, and is linked again when learned', () => {
  const model = small({ edgeCap: 16, digestCap: 16 });
  learn(model, null, 'z:50');
  store(model, 60n);
  store(model, 50n);
  for (const [i, letter] of [...'abcdefghijklmnop'].entries()) learn(model, null, `${letter}:${i + 1}`);
  assert.equal(numbers(model.snapshot().withoutEdge), [50, 60]);
  learn(model, null, 'z:50');
  assert.equal(numbers(model.snapshot().withoutEdge), [60]);
});

test('wide: at the membership cap digests without an edge go first, then the coldest edges with their digests', () => {
  const model = small({ wide: true, membershipCap: 4 });
  learn(model, null, 'a:1');
  learn(model, null, 'b:2');
  store(model, 1n, 0, undefined, 1);
  store(model, 1n, 0, undefined, 2); // the same object
  store(model, 2n);
  store(model, 7n, 0);
  store(model, 7n, 1);
  store(model, 8n); // 7 leaves, with both its objects
  store(model, 2n, 1);
  store(model, 8n, 1); // 8 itself is passed over; edge 1 leaves
  const { counters } = model.snapshot();
  assert.equal(
    [counters.memberships, counters.edges, counters.edgeEvictions, counters.digestEvictions, counters.refused],
    [4, 1, 1, 2, 0],
  );
});

test('wide: after 256 departures an object is refused', () => {
  const model = small({ edgeCap: 1_024, wide: true, membershipCap: 2 });
  for (let child = 1; child <= 300; child++) model.learn({ parent: null, salted: false, blocks: [edgeTo(child)] });
  model.learn({ parent: null, salted: false, blocks: [edgeTo(301)] });
  store(model, 301n, 0);
  store(model, 301n, 1);
  store(model, 900n);
  let { counters } = model.snapshot();
  assert.equal([counters.refused, counters.edgeEvictions, counters.digests], [1, 256, 1]);
  store(model, 900n);
  ({ counters } = model.snapshot());
  assert.equal([counters.refused, counters.edges, counters.digests, counters.memberships], [1, 0, 1, 1]);
});

function edgeTo(child: number): ModelBlock {
  return { local: BigInt(child) + 5_000n, child: BigInt(child) };
}

test('invariants hold through 60,000 random operations at tiny caps', () => {
  const random = new Random(SEED + 2);
  for (const wide of [false, true]) {
    const model = small({ edgeCap: 48, digestCap: 40, ambiguousCap: 6, wide, membershipCap: 30 });
    // The world is a binary tree: the parent of child c is c / 2 (rarely a stranger), that of 1 the root; locals name the child.
    const low64 = (): bigint => BigInt(random.between(1, 255));
    for (let i = 0; i < 30_000; i++) {
      const kind = random.int(100);
      if (kind < 35) {
        let child = low64();
        const parent = random.chance(0.94) ? child >> 1n : child + 1_000n;
        const blocks: ModelBlock[] = [];
        for (let left = random.between(1, 5); left > 0; left--, child = 2n * child + BigInt(random.int(2))) {
          const wrong = random.chance(0.005);
          const high = random.chance(0.005) ? highOf(999) : random.chance(0.1) ? highOf(child) : undefined;
          blocks.push({ local: child, child: wrong ? low64() : child, high });
        }
        if (random.chance(0.01)) blocks.push({ local: 0n, child: blocks[0]!.child });
        model.learn({ parent: parent === 0n ? null : parent, salted: random.chance(0.1), blocks });
      } else if (kind < 80) store(model, low64(), random.int(2), undefined, random.pick([1, 2, 4]));
      else if (kind < 95) remove(model, low64(), random.int(2), random.between(1, 7));
      else if (kind < 96 && random.chance(0.3)) store(model, low64(), 0, highOf(999));
      else if (kind < 99) model.lookup([1n, ...random.pick([[2n, 5n], [3n], [3n, 7n, 14n]])], 65);
      else if (random.chance(0.1)) model.clearResidency();
      if (i % 5 !== 0) continue;
      const { counters, edges, digests, withoutEdge, lru: order } = model.snapshot();
      assert.ok(counters.edges <= 48 && counters.digests <= 40 && counters.conflicted <= 3);
      assert.is(order.length, counters.edges - counters.conflicted);
      assert.equal(
        [...withoutEdge].sort(),
        digests.filter((digest) => !digest.hasEdge).map((digest) => digest.low64),
      );
      const bits = (media: number): number => (media & 1) + ((media >> 1) & 1) + (media >> 2);
      const objects = digests.flatMap((digest) => digest.objects);
      assert.is(counters.memberships, wide ? objects.length : objects.reduce((sum, [, media]) => sum + bits(media), 0));
      if (wide) assert.ok(counters.memberships <= 30);
      const highs = new Map(edges.filter((edge) => !edge.conflicted).map((edge) => [edge.child, edge.high]));
      for (const digest of digests) if (digest.hasEdge) assert.is(highs.get(digest.low64), digest.high);
    }
    const { counters } = model.snapshot();
    for (const name of ['repeated', 'replaced', 'outranked', 'conflicts', 'ambiguities'] as const)
      assert.ok(counters[name] > 4, `${name} ${counters[name]}`);
    assert.ok(
      counters.dropsByConflict > 2 && counters.dropsByAmbiguity > 2 && counters.digestEvictions > 100,
      JSON.stringify(counters),
    );
  }
});

// ---- Store messages --------------------------------------------------------------------------------------------

const PREFIXES = ['cache@m@tp_rank:0@group:0', 'käse@m@tp_rank:1@group:0'];
const DIGEST = `${'ab'.repeat(24)}0102030405060708`;
const key = (prefix = PREFIXES[0], digest = DIGEST): string => `${prefix}@${digest}`;
const event = (fields: Record<string, unknown>) => ({
  event_id: 1,
  event_type: 'stored',
  type: 'BlockStored',
  tenant_id: 'default',
  medium: 'cpu',
  dp_rank: null,
  object_key: key(),
  ...fields,
});
const pack = (value: unknown): Uint8Array => encode(value, { useBigInt64: true });
const judge = (...events: unknown[]) => judgeBatch(pack([1n, events, 0]), PREFIXES);
const storedAs = (media: number, prefix = 0) => ({
  op: 'stored',
  prefix,
  high: 'ab'.repeat(24),
  low64: 0x0102030405060708n,
  media,
});
/** What one event comes to: "stored 1", "removed 7", "cleared", "foreignTenant", "foreignKey" or "malformed: reason". */
function verdict(fields: unknown): string {
  const judged = judge(fields);
  if (judged.unreadable) return 'unreadable';
  if (judged.malformed !== null) return `malformed: ${judged.malformed.reason}`;
  const [op] = judged.ops;
  if (op !== undefined) return op.op === 'cleared' ? 'cleared' : `${op.op} ${op.media}`;
  return judged.skipped.foreignKey > 0 ? 'foreignKey' : judged.skipped.foreignTenant > 0 ? 'foreignTenant' : 'nothing';
}

const verdicts: readonly [rule: string, fields: unknown, verdict: string][] = [
  ['1 not a map', 7, 'malformed: the event is no map'],
  ['1 not a map', [event({})], 'malformed: the event is no map'],
  ['1 an extension is no map', new Date(0), 'malformed: the event is no map'],
  ['1 tenant nil', event({ tenant_id: null }), 'stored 1'],
  ['1 tenant empty', event({ tenant_id: '' }), 'stored 1'],
  ['1 tenant other', event({ tenant_id: 'acme', object_key: 5 }), 'foreignTenant'],
  ['1 tenant binary', event({ tenant_id: new Uint8Array(0) }), 'malformed: tenant_id is no text'],
  ['2 cleared, type unsaid', { event_type: 'cleared' }, 'cleared'],
  ['2 type alone', { type: 'AllBlocksCleared', tenant_id: null }, 'cleared'],
  ['2 both', { event_type: 'cleared', type: 'AllBlocksCleared' }, 'cleared'],
  ['2 cleared and unknown', event({ event_type: 'cleared', type: 'what' }), 'malformed: cleared on one side only'],
  ['2 cleared and a number', event({ event_type: 'cleared', type: 5 }), 'malformed: cleared on one side only'],
  ['2 cleared and stored', event({ event_type: 'cleared' }), 'malformed: cleared on one side only'],
  ['2 before the key', event({ type: 'AllBlocksCleared', object_key: 'x' }), 'malformed: cleared on one side only'],
  ['3 key missing', event({ object_key: null }), 'malformed: object_key is missing or no text'],
  ['3 key binary', event({ object_key: new Uint8Array(3) }), 'malformed: object_key is missing or no text'],
  ['3 bare prefix', event({ object_key: PREFIXES[0] }), 'malformed: object_key is a bare prefix'],
  ['3 no @', event({ object_key: 'x' }), 'foreignKey'],
  ['3 other prefix', event({ object_key: key('cache@m@tp_rank:2@group:0'), medium: 5 }), 'foreignKey'],
  ['3 foreign before bad kind', event({ object_key: 'x', event_type: 'what' }), 'foreignKey'],
  ['4 upper case', event({ object_key: key(PREFIXES[0], DIGEST.toUpperCase()) }), 'malformed: the digest is not 64'],
  ['4 63 digits', event({ object_key: key(PREFIXES[0], DIGEST.slice(1)) }), 'malformed: the digest is not 64'],
  ['4 newline', event({ object_key: `${key()}\n` }), 'malformed: the digest is not 64'],
  ['5 medium nil', event({ medium: null }), 'malformed: medium is neither'],
  ['5 medium CPU', event({ medium: 'CPU' }), 'malformed: medium is neither'],
  ['5 medium binary', event({ medium: new TextEncoder().encode('cpu') }), 'malformed: medium is neither'],
  ['5 disk', event({ medium: 'disk' }), 'stored 2'],
  ['6 both unsaid', event({ event_type: null, type: null }), 'malformed: the kind is not said'],
  ['6 disagree', event({ type: 'BlockRemoved' }), 'malformed: event_type and type disagree'],
  ['6 one unsaid', event({ event_type: null }), 'stored 1'],
  ['6 one unknown', event({ event_type: 'Stored' }), 'malformed: the kind is unknown'],
  ['7 removed, generation A', event({ event_type: 'removed', type: null }), 'removed 7'],
  ['7 removed, dp_rank 0', event({ event_type: 'removed', type: 'BlockRemoved', dp_rank: 0 }), 'removed 5'],
  [
    '7 removed, dp_rank u64',
    event({ event_type: 'removed', type: null, dp_rank: 2n ** 63n, medium: 'disk' }),
    'removed 6',
  ],
  ['7 removed, dp_rank text', event({ event_type: 'removed', type: null, dp_rank: '0' }), 'removed 7'],
  ['7 removed, dp_rank true', event({ event_type: 'removed', type: null, dp_rank: true }), 'removed 7'],
];
for (const [rule, fields, expected] of verdicts)
  test(`store message ${rule}: ${expected}`, () => assert.ok(verdict(fields).startsWith(expected), verdict(fields)));

test('store message: the rest of the batch is dropped behind a malformed event, what stands before it counts', () => {
  assert.equal(judge(event({}), event({ tenant_id: 'x' }), event({ medium: 1 }), event({})), {
    ops: [storedAs(1)],
    malformed: { index: 2, reason: 'medium is neither cpu nor disk' },
    skipped: { foreignTenant: 1, foreignKey: 0 },
  });
});

test('store message: prefixes are compared as the bytes of their text', () => {
  assert.equal(judge(event({ object_key: key(PREFIXES[1]) })), {
    ops: [storedAs(1, 1)],
    malformed: null,
    skipped: { foreignTenant: 0, foreignKey: 0 },
  });
});

test('store message: the last of a repeated key counts, keys that are no text are skipped', () => {
  const bytes = (hex: string): number[] => [...Buffer.from(hex.replaceAll(' ', ''), 'hex')];
  const text = (value: string): number[] => [...pack(value)];
  const map = [
    0x8a,
    ...[...text('object_key'), ...text('x')],
    ...[...text('object_key'), ...text(key())],
    ...[...text('__proto__'), ...text('y')],
    ...bytes('c4 06 6d 65 64 69 75 6d 01'), // binary "medium"
    ...[...text('medium'), ...text('cpu')],
    ...bytes('93 01 02 03 05'), // an array as a key
    ...bytes('c0 06 07 08'), // nil and 7 as keys
    ...[...text('event_type'), ...text('stored')],
    ...bytes('d4 ff 00 c7 03 ff 01 02 03'), // extensions of the timestamp's type and strange lengths
  ];
  const judged = judgeBatch(new Uint8Array([0x92, 0x00, 0x91, ...map]), PREFIXES);
  assert.equal(judged, { ops: [storedAs(1)], malformed: null, skipped: { foreignTenant: 0, foreignKey: 0 } });
});

test('store message: text is taken by its bytes, a float is no integer', () => {
  // "store" + c1 in front of a4 ("type") is "stored" to a lenient reader.
  const payload = pack([1, [event({})], 0]);
  const at = Buffer.from(payload).indexOf('stored');
  payload[at + 5] = 0xc1;
  const judged = judgeBatch(payload, PREFIXES);
  assert.is(judged.unreadable, undefined);
  assert.is(judged.unreadable ? '' : judged.malformed?.reason, 'the kind is unknown');
  const float = encode([1, [event({ event_type: 'removed', type: null, dp_rank: 2 })], 0], {
    forceIntegerToFloat: true,
  });
  const removal = judgeBatch(float, PREFIXES);
  assert.is(removal.unreadable ? 0 : (removal.ops[0] as { media: number }).media, 7);
});

const unreadable: readonly [what: string, payload: Uint8Array][] = [
  ['nothing', new Uint8Array(0)],
  ['c1', new Uint8Array([0xc1])],
  ['one element', pack([1])],
  ['no array', pack({ 0: 1, 1: [] })],
  ['events no array', pack([1, {}])],
  ['a byte behind it', new Uint8Array([...pack([1, []]), 0xc0])],
  ['cut short', pack([1, [event({})], 0]).slice(0, -1)],
  ['c1 in a later element', new Uint8Array([0x93, 0x01, 0x90, 0xc1])],
  ['4,097 events', pack([1, Array.from({ length: 4_097 }, () => 0)])],
  ['more than 1 MiB', pack([1, [], 'x'.repeat(1_048_576)])],
  ['a long array that isn’t there', new Uint8Array([0x92, 0x01, 0xdd, 0xff, 0xff, 0xff, 0xff])],
  ['long arrays in long arrays', new Uint8Array(1_000_000).map((_, i) => [0xdd, 0, 0x0f, 0xff, 0xff][i % 5]!)],
  ['a long map', new Uint8Array([0x92, 0x01, 0xdf, 0x7f, 0xff, 0xff, 0xff, 0x01])],
  ['a long text', new Uint8Array([0x92, 0xdb, 0xff, 0xff, 0xff, 0xff, 0x61])],
];
for (const [what, payload] of unreadable)
  test(`store message unreadable: ${what}`, () => assert.equal(judgeBatch(payload, PREFIXES), { unreadable: true }));

test('store message: 4,096 events, elements beyond the third and deep nesting are readable', () => {
  const foreign = { object_key: 'x' };
  assert.equal(judgeBatch(pack([1, Array.from({ length: 4_096 }, () => foreign)]), PREFIXES), {
    ops: [],
    malformed: null,
    skipped: { foreignTenant: 0, foreignKey: 4_096 },
  });
  const deep = new Uint8Array(200_003).fill(0x91);
  deep.set([0x93, 0x01, 0x90]);
  deep[deep.length - 1] = 0x01;
  assert.is(judgeBatch(deep, PREFIXES).unreadable, undefined);
});

test('store message: a judge of mutated bytes never throws, and leaves the payload as it was', () => {
  const random = new Random(SEED + 3);
  const template = pack([1n, [event({}), event({ event_type: 'removed', type: 'BlockRemoved', dp_rank: 1.5 })], 0]);
  let readable = 0;
  for (let i = 0; i < 20_000; i++) {
    const payload = Buffer.from(template);
    for (let n = random.between(1, 3); n > 0; n--) payload[random.int(payload.length)] = random.int(256);
    const before = payload.toString('hex');
    if (!judgeBatch(payload, PREFIXES).unreadable) readable++;
    assert.is(payload.toString('hex'), before);
  }
  assert.ok(readable > 1_000 && readable < 19_500, `${readable} readable`);
});

test.run();
