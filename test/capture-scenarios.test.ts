// Streams of special situations, captured from running masters. First as they are: how every message stands to the one before, and what
// is skipped. Then with their keys replaced by keys of a small contract and objects stored before them, so that each shows what it
// leaves resident and what is still credited.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { StoreMessageResult } from '../src/cache/types.js';
import { splitStoreFrames } from '../src/wire/mooncake.js';
import { captured, captureNames, eventsOf, rewritten } from './support/captures.js';
import { Pool, type Prompt, removed, type StoreEvent, stored, storeMessage } from './support/messages.js';

const LLAMA = { model: 'meta-llama/Llama-3.1-8B', groups: [{ ranks: 2 }] };
const EVERY = 1_000_000;

interface PlainScenario {
  /** Fates in order; a number repeats the fate behind it. */
  readonly fates: readonly (number | StoreMessageResult['fate'])[];
  readonly objects: number;
  readonly foreignTenant: number;
  readonly foreignKey: number;
  readonly gaps: number;
}

/** What each stream says to a cache of the Llama contract, whose keys are the only ones here that vLLM wrote. */
const plain: Readonly<Record<string, PlainScenario>> = {
  'basic-put-remove': { fates: [8, 'applied'], objects: 2, foreignTenant: 0, foreignKey: 15, gaps: 0 },
  'disk-offload': { fates: [40, 'applied'], objects: 0, foreignTenant: 0, foreignKey: 42, gaps: 0 },
  'late-joiner-first': { fates: [4, 'applied'], objects: 0, foreignTenant: 0, foreignKey: 4, gaps: 0 },
  'late-joiner-second': { fates: [1, 'applied'], objects: 0, foreignTenant: 0, foreignKey: 1, gaps: 0 },
  'memory-eviction': { fates: [56, 'applied'], objects: 0, foreignTenant: 0, foreignKey: 83, gaps: 0 },
  'newer-format-with-cleared': { fates: [1, 'applied'], objects: 1, foreignTenant: 3, foreignKey: 0, gaps: 0 },
  'queue-overflow-gap': {
    fates: [3, 'applied', 1, 'gap-applied'],
    objects: 0,
    foreignTenant: 0,
    foreignKey: 103,
    gaps: 1,
  },
  'restart-backwards': {
    fates: [2, 'applied', 1, 'gap-applied', 4, 'applied'],
    objects: 0,
    foreignTenant: 0,
    foreignKey: 8,
    gaps: 1,
  },
  'restart-looks-contiguous': { fates: [4, 'applied'], objects: 0, foreignTenant: 0, foreignKey: 4, gaps: 0 },
  'snapshot-restore-silent': {
    fates: [3, 'applied', 1, 'gap-applied', 1, 'applied'],
    objects: 0,
    foreignTenant: 0,
    foreignKey: 5,
    gaps: 1,
  },
  tenants: { fates: [20, 'applied'], objects: 0, foreignTenant: 19, foreignKey: 1, gaps: 0 },
  'two-replicas': { fates: [6, 'applied'], objects: 0, foreignTenant: 0, foreignKey: 7, gaps: 0 },
};

test('every scenario of the folder is expected below', () => {
  assert.equal(captureNames('scenarios'), Object.keys(plain).sort());
});

for (const [name, expected] of Object.entries(plain)) {
  test(`${name}, as captured: fates, skips and clears`, async () => {
    const { cache } = await Pool.open(LLAMA);
    const results = captured('scenarios', name).map((frames) => cache.applyStoreMessage(frames));
    assert.equal(
      results.map(({ fate }) => fate),
      repeated(expected.fates),
    );
    const sum = (of: (result: StoreMessageResult) => number) =>
      results.reduce((total, result) => total + of(result), 0);
    assert.is(
      sum(({ objects }) => objects),
      expected.objects,
    );
    assert.is(
      sum(({ skipped }) => skipped.foreignTenant),
      expected.foreignTenant,
    );
    assert.is(
      sum(({ skipped }) => skipped.foreignKey),
      expected.foreignKey,
    );
    const { messages, clears } = cache.stats();
    assert.equal(messages, tallied(results));
    // Nothing was malformed or unreadable: the only clears are those of gaps.
    assert.equal(clears, { 'contract-change': 1, ...(expected.gaps > 0 ? { gap: expected.gaps } : {}) });
  });

  test(`${name}, every message delivered twice: the second is a duplicate and changes nothing`, async () => {
    const { cache } = await Pool.open(LLAMA);
    for (const frames of captured('scenarios', name)) {
      assert.is.not(cache.applyStoreMessage(frames).fate, 'duplicate');
      const before = cache.stats().core;
      assert.is(cache.applyStoreMessage(frames).fate, 'duplicate');
      assert.equal(cache.stats().core, before);
    }
  });
}

function repeated(fates: PlainScenario['fates']): string[] {
  const all: string[] = [];
  let times = 1;
  for (const item of fates) {
    if (typeof item === 'number') times = item;
    else all.push(...Array<string>(times).fill(item));
  }
  return all;
}

function tallied(results: readonly StoreMessageResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { fate } of results) counts[fate] = (counts[fate] ?? 0) + 1;
  return counts;
}

test('basic-put-remove, as captured: the two ranks of one vLLM digest make it complete', async () => {
  const { cache } = await Pool.open(LLAMA);
  for (const frames of captured('scenarios', 'basic-put-remove')) cache.applyStoreMessage(frames);
  assert.equal(cache.census(), [{ group: 0, complete: 1, objects: 2, cpu: 2, disk: 0, unknown: 0 }]);
});

test('a message that is rewritten without a change keeps its bytes', () => {
  for (const name of captureNames('scenarios')) {
    for (const frames of captured('scenarios', name)) {
      assert.equal(
        rewritten(frames, (event) => event),
        frames,
        name,
      );
    }
  }
});

// ---- with the contract's keys ----

/** Blocks that are stored before a scenario begins. */
const FILLED = 4;

/** A scenario whose keys, in order of appearance, are those of a prompt's blocks behind the filled ones. */
class Scenario {
  readonly #blocks = new Map<string, number>();
  readonly #messages: Uint8Array[][];
  readonly pool: Pool;
  readonly prompt: Prompt;

  private constructor(pool: Pool, messages: Uint8Array[][]) {
    this.pool = pool;
    for (const { object_key } of messages.flatMap(eventsOf))
      if (typeof object_key === 'string' && !this.#blocks.has(object_key))
        this.#blocks.set(object_key, FILLED + this.#blocks.size);
    this.prompt = pool.prompt(1, FILLED + this.#blocks.size);
    pool.teach(this.prompt);
    this.#messages = messages.map((frames) =>
      rewritten(frames, (event) =>
        typeof event['object_key'] === 'string' ? { ...event, object_key: this.key(event['object_key']) } : event,
      ),
    );
  }

  static async open(name: string): Promise<Scenario> {
    return new Scenario(await Pool.open(), captured('scenarios', name));
  }

  /** The block that stands for a captured key. */
  block(capturedKey: string): number {
    const block = this.#blocks.get(capturedKey);
    if (block === undefined) throw new Error(`${capturedKey} is not in the capture`);
    return block;
  }

  /** The contract's key for a captured key. */
  key(capturedKey: string): string {
    return this.keyOf(this.block(capturedKey));
  }

  keyOf(block: number): string {
    return this.prompt.keys(this.pool.contract)[block]!;
  }

  /** Stores the filled blocks, and what else is given, in the message before the scenario's first (or any other). */
  fill(more: readonly StoreEvent[] = [], sequence = this.firstSequence - 1n): void {
    const events = Array.from({ length: FILLED }, (_, block) => stored(this.keyOf(block)));
    this.pool.cache.applyStoreMessage(storeMessage(sequence, [...events, ...more]));
    if (more.length === 0) assert.is(this.hits, FILLED);
  }

  /** Copies on disk of all that the scenario puts, as no generation A master would announce them. */
  copiesOnDisk(): StoreEvent[] {
    const blocks = Array.from(this.#blocks.values());
    return blocks.map((block) => stored(this.keyOf(block), { medium: 'disk' }));
  }

  get firstSequence(): bigint {
    return splitStoreFrames(this.#messages[0]!).sequence;
  }

  /** Feeds messages `from` to `end` (behind the last). */
  play(from = 0, end = EVERY, change: (event: StoreEvent) => StoreEvent = (event) => event): StoreMessageResult[] {
    return this.#messages
      .slice(from, end)
      .map((frames) => this.pool.cache.applyStoreMessage(rewritten(frames, change)));
  }

  get hits(): number {
    return this.pool.hits(this.prompt);
  }

  /** Objects by medium: cpu, disk, unknown. */
  get resident(): [cpu: number, disk: number, unknown: number] {
    const { objects, complete, cpu, disk, unknown } = this.pool.cache.census()[0]!;
    assert.is(objects, complete); // one rank: each object completes its digest
    return [cpu, disk, unknown];
  }
}

const fatesOf = (results: readonly StoreMessageResult[]) => results.map(({ fate }) => fate);
const oursEntirely = (event: StoreEvent): StoreEvent => ({ ...event, tenant_id: 'default' });

test('basic-put-remove: what was put is credited behind what was there, what was removed ends the hit', async () => {
  const scenario = await Scenario.open('basic-put-remove');
  scenario.fill();
  scenario.play(0, 5);
  assert.equal(scenario.resident, [4 + 14, 0, 0]);
  assert.is(scenario.hits, 18);
  scenario.play(5); // key 12345 goes; 0x2a is announced twice more
  assert.equal(scenario.resident, [4 + 13, 0, 0]);
  assert.is(scenario.hits, scenario.block('12345'));
});

test('memory-eviction: a removal of wire generation A clears the object in all media', async () => {
  const scenario = await Scenario.open('memory-eviction');
  scenario.fill(scenario.copiesOnDisk());
  assert.equal(scenario.resident, [FILLED, 53, 0]);
  scenario.play();
  // hp1 and sp1 are pinned; of k all 25 went, of the group both, of k2 three of 8; k3 is new.
  assert.equal(scenario.resident, [FILLED + 2 + 5 + 16, 2 + 5 + 16, 0]);
  assert.is(scenario.hits, scenario.block('gA-rank0'));
});

test('memory-eviction: the same removals with a rank, as wire generation C sends them, leave the copies on disk', async () => {
  const scenario = await Scenario.open('memory-eviction');
  scenario.fill(scenario.copiesOnDisk());
  scenario.play(0, EVERY, (event) => ({ ...event, dp_rank: 0 }));
  assert.equal(scenario.resident, [FILLED + 2 + 5 + 16, 53, 0]);
  assert.is(scenario.hits, scenario.prompt.blocks);
});

test('memory-eviction: the members of a group go together, the pinned object before them stays', async () => {
  const scenario = await Scenario.open('memory-eviction');
  scenario.fill();
  scenario.play(0, 29);
  assert.is(scenario.hits, FILLED + 29);
  scenario.play(29, 31);
  assert.is(scenario.hits, scenario.block('gA-rank0'));
  assert.equal(scenario.resident, [FILLED + 29 - 6, 0, 0]);
});

test('queue-overflow-gap: the gap clears all that was stored before it, the batch behind it applies', async () => {
  const scenario = await Scenario.open('queue-overflow-gap');
  // 19,900 events were dropped between the last message received, 0, and the capture's first, 19901.
  assert.is(scenario.firstSequence, 19_901n);
  scenario.fill([], 0n);
  const residentAfter = [];
  const fates = [];
  for (let i = 0; i < 4; i++) {
    fates.push(...fatesOf(scenario.play(i, i + 1)));
    residentAfter.push(scenario.resident[0]);
    assert.is(scenario.hits, 0); // the filled blocks are gone
  }
  assert.equal(fates, ['gap-applied', 'applied', 'applied', 'gap-applied']);
  assert.equal(residentAfter, [64, 100, 101, 2]);
  assert.is(scenario.pool.clears('gap'), 2);
  assert.equal(scenario.pool.explain(scenario.prompt).reasons[0]!.missing, [scenario.keyOf(0)]);
});

test('queue-overflow-gap: had the publisher started at its number, nothing would be missed', async () => {
  const scenario = await Scenario.open('queue-overflow-gap');
  scenario.fill();
  assert.equal(fatesOf(scenario.play(0, 3)), ['applied', 'applied', 'applied']);
  assert.is(scenario.hits, FILLED + 101);
  assert.equal(fatesOf(scenario.play(3)), ['gap-applied']);
  assert.is(scenario.hits, 0);
});

test('restart-backwards: the restart clears, and what the new life stores counts alone', async () => {
  const scenario = await Scenario.open('restart-backwards');
  scenario.fill();
  const residentAfter = [];
  for (let i = 0; i < 7; i++) {
    scenario.play(i, i + 1);
    residentAfter.push(scenario.resident[0]);
    if (i < 2) assert.is(scenario.hits, scenario.resident[0]);
    else assert.is(scenario.hits, 0);
  }
  assert.equal(residentAfter, [5, 7, 1, 2, 3, 4, 5]);
  assert.is(scenario.pool.clears('gap'), 1);
});

test('restart-looks-contiguous, the blind spot: fed plainly it goes unnoticed and stale residency stays', async () => {
  const scenario = await Scenario.open('restart-looks-contiguous');
  scenario.fill();
  assert.equal(fatesOf(scenario.play()), ['applied', 'applied', 'applied', 'applied']);
  assert.equal(scenario.resident, [FILLED + 4, 0, 0]);
  assert.is(scenario.hits, FILLED + 4); // three objects of life 1 among them, which no longer exist
  assert.is(scenario.pool.clears('gap'), 0);
});

test('restart-looks-contiguous: the monitor saw the disconnect before sequence 4, so all of life 1 goes', async () => {
  const scenario = await Scenario.open('restart-looks-contiguous');
  scenario.fill();
  scenario.play(0, 3);
  assert.is(scenario.hits, FILLED + 3);
  scenario.pool.cache.streamLost('disconnect');
  assert.equal(scenario.resident, [0, 0, 0]);
  assert.equal(fatesOf(scenario.play(3)), ['applied']); // the first of a connection has no predecessor
  assert.equal(scenario.resident, [1, 0, 0]);
  assert.is(scenario.hits, 0);
  assert.is(scenario.pool.clears('disconnect'), 1);
  assert.equal(scenario.pool.explain(scenario.prompt).reasons[0]!.missing, [scenario.keyOf(0)]);
});

test('newer-format-with-cleared, as captured: the clear is another tenant’s and clears nothing of ours', async () => {
  const scenario = await Scenario.open('newer-format-with-cleared');
  scenario.fill();
  const [result] = scenario.play();
  assert.equal([result!.fate, result!.objects, result!.skipped.foreignTenant], ['applied', 1, 3]);
  assert.equal(scenario.resident, [FILLED + 1, 0, 0]);
  assert.is(scenario.hits, FILLED + 1);
});

test('newer-format-with-cleared, all of it of our tenant: `cleared` clears what came before, and only that', async () => {
  const scenario = await Scenario.open('newer-format-with-cleared');
  scenario.fill();
  const clearsBefore = scenario.pool.cache.stats().core!.clears;
  const [result] = scenario.play(0, EVERY, oursEntirely);
  assert.equal([result!.fate, result!.skipped.foreignTenant], ['applied', 0]);
  assert.equal(scenario.resident, [0, 0, 0]);
  assert.is(scenario.hits, 0);
  assert.is(scenario.pool.cache.stats().core!.clears, clearsBefore + 1);
  // Edges stayed: what is stored afterwards is credited at once.
  scenario.pool.cache.applyStoreMessage(storeMessage(2, [stored(scenario.keyOf(0), { generation: 'C' })]));
  assert.is(scenario.hits, 1);
});

test('newer-format-with-cleared, without the clear: a removal on disk takes the copy on disk and nothing else', async () => {
  const scenario = await Scenario.open('newer-format-with-cleared');
  scenario.fill([stored(scenario.key('12345'))]);
  scenario.play(0, EVERY, (event) => {
    const ours = oursEntirely(event);
    if (event['event_type'] === 'cleared') return { ...ours, tenant_id: 'tenant-a' };
    return ours;
  });
  assert.equal(scenario.resident, [FILLED + 2, 0, 0]);
  assert.is(scenario.hits, FILLED + 2);
});

test('disk-offload: no copy on disk is ever announced, and a removal that says cpu takes the one on disk', async () => {
  const scenario = await Scenario.open('disk-offload');
  scenario.fill([stored(scenario.key('rescan-only-on-disk'), { medium: 'disk' })]);
  assert.equal(scenario.resident, [FILLED, 1, 0]);
  scenario.play();
  // of1, of2, of3, the object on disk and 4 of 31 big ones were removed.
  assert.equal(scenario.resident, [FILLED + 27, 0, 0]);
  assert.is(scenario.hits, scenario.block('of1'));
  const [why] = scenario.pool.explain(scenario.prompt).reasons;
  assert.equal([why!.code, why!.block, why!.missing], ['object-missing', FILLED, [scenario.key('of1')]]);
});

test('disk-offload: the removal of an object that was never announced changes nothing', async () => {
  const scenario = await Scenario.open('disk-offload');
  scenario.fill();
  scenario.play(0, 4);
  const before = scenario.resident;
  assert.equal(fatesOf(scenario.play(4, 5)), ['applied']);
  assert.equal(scenario.resident, before);
});

test('two-replicas: two copies are announced once, and removed once when the object is gone', async () => {
  const scenario = await Scenario.open('two-replicas');
  scenario.fill();
  scenario.play(0, 5);
  assert.equal(scenario.resident, [FILLED + 6, 0, 0]);
  assert.is(scenario.hits, FILLED + 6);
  scenario.play(5);
  assert.equal(scenario.resident, [FILLED + 5, 0, 0]);
  assert.is(scenario.hits, FILLED); // the object with two replicas comes first
});

test('tenants: another tenant’s objects under our very keys are skipped, puts and removals alike', async () => {
  const scenario = await Scenario.open('tenants');
  scenario.fill();
  const results = scenario.play(0, 18);
  assert.is(
    results.reduce((sum, { skipped }) => sum + skipped.foreignTenant, 0),
    18,
  );
  assert.equal(scenario.resident, [FILLED, 0, 0]);
  scenario.play(18, 19); // the default tenant puts shared-key
  assert.is(scenario.hits, FILLED + 1);
  const [last] = scenario.play(19); // tenant-a removes its shared-key
  assert.equal(last!.skipped, { foreignTenant: 1, foreignKey: 0 });
  assert.equal(scenario.resident, [FILLED + 1, 0, 0]);
  assert.is(scenario.hits, FILLED + 1);
});

test('tenants: were they all ours, the same messages would store 18 objects and remove the shared one', async () => {
  const scenario = await Scenario.open('tenants');
  scenario.fill();
  scenario.play(0, EVERY, oursEntirely);
  assert.equal(scenario.resident, [FILLED + 17, 0, 0]);
  assert.is(scenario.hits, scenario.block('shared-key'));
});

test('snapshot-restore-silent: what the master restored in silence is not credited until a reconcile finds it', async () => {
  const scenario = await Scenario.open('snapshot-restore-silent');
  const { cache } = scenario.pool;
  scenario.fill();
  scenario.play(0, 3);
  assert.is(scenario.hits, FILLED + 3);
  assert.equal(fatesOf(scenario.play(3)), ['gap-applied', 'applied']);
  assert.equal(scenario.resident, [1, 0, 0]); // s4; removing s1, which is not known any more, changed nothing
  assert.is(scenario.hits, 0);
  const token = cache.beginReconcile();
  const keys = [0, 1, 2, 3].map((block) => scenario.keyOf(block)).concat(scenario.key('s2'), scenario.key('s4'));
  assert.ok(cache.reconcile(token, keys, { s0: 2, firstSequence: null }).accepted);
  assert.equal(scenario.resident, [0, 0, FILLED + 2]);
  assert.is(scenario.hits, scenario.block('s1')); // removed, and s3 was never restored
});

test('late-joiner: who joins late knows only what came since, and credits nothing that needs more', async () => {
  const first = await Scenario.open('late-joiner-first');
  assert.equal(fatesOf(first.play()), ['applied', 'applied', 'applied', 'applied']);
  assert.equal(first.resident, [4, 0, 0]);
  const second = await Scenario.open('late-joiner-second');
  assert.is(second.firstSequence, 4n);
  assert.equal(fatesOf(second.play()), ['applied']);
  assert.equal(second.resident, [1, 0, 0]);
  assert.is(second.hits, 0);
  assert.is(second.pool.clears('gap'), 0); // no predecessor: nothing to clear, and nothing missed that was believed
});

test('late-joiner: had it been there for sequence 3, message 4 would follow; after sequence 0 it is a gap', async () => {
  const following = await Scenario.open('late-joiner-second');
  following.fill();
  assert.equal(fatesOf(following.play()), ['applied']);
  assert.is(following.hits, FILLED + 1);
  const missing = await Scenario.open('late-joiner-second');
  missing.fill([], 0n);
  assert.equal(fatesOf(missing.play()), ['gap-applied']);
  assert.equal(missing.resident, [1, 0, 0]);
});

test('late-joiner: a reconcile whose list is older than the buffered message 4 gives it the whole store', async () => {
  const scenario = await Scenario.open('late-joiner-first');
  const { cache } = scenario.pool;
  const token = cache.beginReconcile();
  scenario.play(3); // the first message it receives is number 4
  const keys = ['l1', 'l2', 'l3'].map((key) => scenario.key(key)).concat(scenario.keyOf(0), scenario.keyOf(1));
  assert.ok(cache.reconcile(token, keys, { s0: 3, firstSequence: 4n }).accepted);
  assert.equal(scenario.resident, [1, 0, 5]);
  assert.is(scenario.hits, 2);
});

test('a removal of wire generation A takes an object that a reconcile found, whatever medium it names', async () => {
  const scenario = await Scenario.open('two-replicas');
  const { cache } = scenario.pool;
  const token = cache.beginReconcile();
  assert.ok(cache.reconcile(token, [scenario.key('rep2-key')], { s0: 5, firstSequence: null }).accepted);
  assert.equal(scenario.resident, [0, 0, 1]);
  scenario.play(5);
  assert.equal(scenario.resident, [0, 0, 0]);
  cache.applyStoreMessage(storeMessage(7, [removed(scenario.key('rep2-key'))]));
  assert.equal(scenario.resident, [0, 0, 0]);
});

test.run();
