// Any stream of stores, removals and clears: what a reader makes of the bytes that come out is what the direct path makes of the events that went in,
// blocks, names, tiers and provenance alike. The direct path counts references too, in plain Maps, since that is what removals mean (spec 4.2).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PrefixIndex } from '../src/core/prefix-index.js';
import { indexedBlocks, type PrefixIndexLike } from '../src/core/prefix-types.js';
import type { Tier } from '../src/events/tiers.js';
import { blocksOf, type Draft } from '../src/live/plane/publish/draft.js';
import { LocalIndexer } from '../src/live/plane/publish/local-indexer.js';
import { RankPipeline } from '../src/live/plane/publish/rank-pipeline.js';
import { BATCH_CAPS } from '../src/live/plane/publish/split.js';
import { EventBatchReader, encodeEvents } from '../src/wire/envelope/index.js';
import type { RecoveryAnswer, RouterEvent } from '../src/wire/envelope/types.js';
import { cleared, removed, stored, WORKER } from './support/plane-drafts.js';
import { dumpedSet } from './support/prefix-dumps.js';
import { Random } from './support/random.js';
import { ReferencePrefixIndex } from './support/reference-prefix-index.js';

const TIERS = { device: 'device', host_pinned: 'host', disk: 'disk', external: 'disk' } as const;
const SOME_TIERS: readonly Tier[] = ['device', 'device', 'device', 'host_pinned', 'disk', 'external'];

/** Blocks of a few prompts that share beginnings; a block's name says where it stands, so that chains are always the same. */
function parentOf(hash: number): number | null {
  const [tree, place] = [Math.floor(hash / 1000), hash % 1000];
  if (place === 0) return null;
  return tree > 1 && place === 5 ? 1004 : hash - 1;
}

function apply(index: PrefixIndexLike, { data, tier, eligible }: Draft | RouterEvent): void {
  if (data.kind === 'cleared') index.clear(0);
  else if (data.kind === 'removed') {
    index.removed(0, TIERS[tier], indexedBlocks(null, data.hashes, data.hashes).lows, 0, data.hashes.length);
  } else index.stored(0, TIERS[tier], indexedBlocks(data.parent, data.hashes, data.locals, eligible));
}

/** What a worker says: mostly prompts that grow, blocks that go in any order, some blocks twice, and now and then a clear. */
class AnyWorker {
  readonly #random: Random;
  #next = 1000;
  #last: Pick<Draft, 'tier' | 'eligible' | 'sessionId'> = { tier: 'device', eligible: true, sessionId: null };

  constructor(random: Random) {
    this.#random = random;
  }

  events(): Draft[] {
    return [this.#event()];
  }

  #event(): Draft {
    const random = this.#random;
    const what = random.int(300);
    if (what === 0) return cleared();
    if (what < 100) {
      const first = (1 + random.int(3)) * 1000 + random.int(20);
      const hashes = Array.from({ length: 1 + random.int(4) }, (_, i) => first + i);
      return removed(random.shuffle(hashes), { tier: random.pick(SOME_TIERS) });
    }
    if (random.int(3) === 0) {
      this.#next = (1 + random.int(3)) * 1000 + random.int(8);
      this.#last = { ...this.#last, tier: random.pick(SOME_TIERS), sessionId: random.int(4) === 0 ? 's' : null };
    }
    if (random.int(3) === 0) this.#last = { ...this.#last, eligible: random.int(3) > 0 };
    const first = this.#next;
    const hashes = [first];
    for (let left = random.int(4); left > 0 && parentOf(hashes.at(-1)! + 1) === hashes.at(-1); left--)
      hashes.push(hashes.at(-1)! + 1);
    this.#next = first % 1000 > 20 ? first - (first % 1000) : hashes.at(-1)! + 1;
    return stored(parentOf(first), hashes, this.#last);
  }
}

/**
 * What an engine says whose ends of prompts go first, as vLLM's do: it never holds a block without the one before it. It offloads blocks to other tiers,
 * holds some several times, and is now and then cleared.
 */
class OrderlyWorker {
  readonly #random: Random;
  /** References by tier and block. */
  readonly #held = new Map<Tier, Map<number, number>>(SOME_TIERS.map((tier) => [tier, new Map()]));

  constructor(random: Random) {
    this.#random = random;
  }

  events(): Draft[] {
    const random = this.#random;
    const what = random.int(100);
    if (what === 0) {
      for (const blocks of this.#held.values()) blocks.clear();
      return [cleared()];
    }
    const hash = (1 + random.int(3)) * 1000 + random.int(20);
    const path = [hash];
    for (let at = parentOf(hash); at !== null; at = parentOf(at)) path.unshift(at);
    if (what < 50)
      return this.#store('device', random.int(4) === 0 ? path : path.filter((at) => !this.#has('device', at)));
    if (what < 65)
      return this.#store(
        random.pick(SOME_TIERS),
        path.filter((at) => this.#has('device', at)),
      );
    // Copies elsewhere go as they like, references of the device one by one.
    if (what < 80)
      return this.#remove(random.pick(SOME_TIERS), (at, count, tier) =>
        tier === 'device' ? count > 1 : this.#has('device', at),
      );
    const isBehind = (at: number | null): boolean => at !== null && (at === hash || isBehind(parentOf(at)));
    const gone: Draft[] = [];
    for (const tier of this.#held.keys())
      for (let more = this.#remove(tier, isBehind); more.length > 0; more = this.#remove(tier, isBehind))
        gone.push(...more);
    return gone;
  }

  #has(tier: Tier, hash: number): boolean {
    return this.#held.get(tier)!.has(hash);
  }

  /** Blocks whose parents are held, or stand before them; in steps of a few. */
  #store(tier: Tier, hashes: readonly number[]): Draft[] {
    const random = this.#random;
    const steps: number[][] = [];
    for (const hash of hashes) {
      const step = steps.at(-1);
      if (step !== undefined && step.at(-1) === parentOf(hash) && random.int(2) === 0) step.push(hash);
      else steps.push([hash]);
      this.#held.get(tier)!.set(hash, (this.#held.get(tier)!.get(hash) ?? 0) + 1);
    }
    const sessionId = random.int(4) === 0 ? 's' : null;
    return steps.map((step) => stored(parentOf(step[0]!), step, { tier, eligible: random.int(4) > 0, sessionId }));
  }

  /** One reference of each block that is chosen goes. */
  #remove(tier: Tier, chosen: (hash: number, count: number, tier: Tier) => boolean): Draft[] {
    const held = this.#held.get(tier)!;
    const gone = [...held].filter(([hash, count]) => chosen(hash, count, tier)).map(([hash]) => hash);
    for (const hash of gone) {
      const left = held.get(hash)! - 1;
      if (left === 0) held.delete(hash);
      else held.set(hash, left);
    }
    return gone.length === 0 ? [] : [removed(this.#random.shuffle(gone), { tier })];
  }
}

/** The removals that mean something, by counts in a Map; null where nothing is left. */
class PlainCounts {
  readonly #counts = new Map<string, number>();

  pass(draft: Draft): Draft | null {
    const { data, tier } = draft;
    if (data.kind === 'cleared') this.#counts.clear();
    if (data.kind === 'stored')
      for (const hash of data.hashes) this.#counts.set(`${tier}${hash}`, (this.#counts.get(`${tier}${hash}`) ?? 0) + 1);
    if (data.kind !== 'removed') return draft;
    const gone = data.hashes.filter((hash) => {
      const left = (this.#counts.get(`${tier}${hash}`) ?? 1) - 1;
      if (left > 0) this.#counts.set(`${tier}${hash}`, left);
      else this.#counts.delete(`${tier}${hash}`);
      return left === 0;
    });
    return gone.length === 0 ? null : { ...draft, data: { kind: 'removed', hashes: gone } };
  }
}

interface Run {
  readonly sent: RouterEvent[];
  readonly direct: PrefixIndexLike;
  readonly reader: PrefixIndexLike;
  readonly indexer: LocalIndexer;
  readonly own: PrefixIndex;
  readonly pipeline: RankPipeline;
  readonly native: Draft[];
}

interface Worker {
  events(): Draft[];
}

async function play(seed: number, kind: new (random: Random) => Worker, batchingTimeout = 0): Promise<Run> {
  const random = new Random(seed);
  const own = await PrefixIndex.create({ bytes: 1 << 20, ranks: 1, provenance: true, tableSeed: BigInt(seed) });
  const indexer = new LocalIndexer({ workerId: WORKER, dpRank: 0, index: own, ring: { events: 64, bytes: 1 << 20 } });
  const caps = { ...BATCH_CAPS, events: 5, blocks: 9 };
  const pipeline = new RankPipeline({ batchingTimeout, keeper: indexer, caps: () => caps });
  const direct = new ReferencePrefixIndex({ ranks: 64, provenance: true });
  const reader = new ReferencePrefixIndex({ ranks: 64, provenance: true });
  const counts = new PlainCounts();
  const worker = new kind(random);
  const bytes = new EventBatchReader();
  const sent: RouterEvent[] = [];
  const native: Draft[] = [];
  const read = (): void => {
    for (let batch = pipeline.queue.take(); batch.length > 0; batch = pipeline.queue.take()) {
      assert.ok(batch.length <= caps.events && batch.reduce((sum, { data }) => sum + blocksOf(data), 0) <= caps.blocks);
      const { events, rejected } = bytes.read(encodeEvents(batch));
      assert.is(rejected.length, 0);
      for (const event of events) {
        sent.push(event);
        apply(reader, event);
      }
    }
  };
  for (let at = 0; at < 80; at++) {
    const drafts = Array.from({ length: 1 + random.int(4) }, () => worker.events()).flat();
    native.push(...drafts);
    for (const draft of drafts) {
      const passed = counts.pass(draft);
      if (passed !== null) apply(direct, passed);
    }
    pipeline.batch(drafts, at * 10);
    pipeline.tick(at * 10 + 5);
    if (random.int(4) === 0) read();
  }
  pipeline.flush();
  read();
  return { sent, direct, reader, indexer, own, pipeline, native };
}

for (const timeout of [0, 35])
  test(`the reader's index and provenance are the direct path's, and so is the local indexer's dump (timeout ${timeout} ms)`, async () => {
    let [merged, deduplicated, eligible] = [0, 0, 0];
    for (let seed = 1; seed <= 60; seed++) {
      const { sent, direct, reader, indexer, own, pipeline } = await play(seed, OrderlyWorker, timeout);
      const name = `seed ${seed}`;
      for (const [i, { eventId }] of sent.entries()) assert.is(eventId, BigInt(i + 1), name);
      const truth = dumpedSet(direct.dump(0));
      assert.equal(dumpedSet(reader.dump(0)), truth, name);
      assert.equal(dumpedSet(own.dump(0)), truth, name);
      // A reader that comes late: dump, and the buffered rest.
      const late = new ReferencePrefixIndex({ ranks: 64, provenance: true });
      const question = {
        workerId: WORKER,
        dpRank: 0,
        startEventId: null,
        endEventId: null,
        supportsTreeDumpFailed: true,
        page: null,
      };
      const dump = indexer.answer(question, 0);
      if (dump.kind !== 'tree-dump') throw new Error(dump.kind);
      for (const event of dump.events) apply(late, event);
      assert.equal(dumpedSet(late.dump(0)), truth, name);
      assert.is(dump.lastEventId, pipeline.lastEventId);
      merged += pipeline.stats().merged;
      deduplicated += pipeline.stats().deduplicated;
      eligible += dump.events.filter((event) => event.eligible).length;
    }
    assert.ok(merged > 1000 && deduplicated > 100 && eligible > 100, `${merged}, ${deduplicated}, ${eligible}`);
  });

/** Each of the blocks is one of the truth's, under the same name. */
function assertNoneMore(
  ours: ReturnType<typeof dumpedSet>,
  truth: ReturnType<typeof dumpedSet>,
  message: string,
): void {
  for (const [place, { name }] of ours) assert.is(truth.get(place)?.name, name, message);
}

test('of a worker that holds blocks without those before them nothing is believed that is not there', async () => {
  // A merged event finds no place where its first block has none, though a later part would have found one.
  let blocks = 0;
  for (let seed = 301; seed <= 340; seed++) {
    const { direct, reader, own } = await play(seed, AnyWorker);
    const truth = dumpedSet(direct.dump(0));
    const read = dumpedSet(reader.dump(0));
    blocks += read.size;
    assertNoneMore(read, truth, `seed ${seed}`);
    assert.equal(dumpedSet(own.dump(0)), read, `seed ${seed}`);
  }
  assert.ok(blocks > 100);
});

for (const kind of [OrderlyWorker, AnyWorker])
  test(`a dump at any moment and the buffered events behind it lead to ${kind === AnyWorker ? 'nothing that is not there' : 'the same'}`, async () => {
    let blocks = 0;
    for (let seed = 101; seed <= 130; seed++) {
      const worker = new kind(new Random(seed));
      const own = await PrefixIndex.create({ bytes: 1 << 20, ranks: 1, provenance: true, tableSeed: 1n });
      const indexer = new LocalIndexer({ workerId: WORKER, dpRank: 0, index: own });
      const pipeline = new RankPipeline({ keeper: indexer });
      const late = new ReferencePrefixIndex({ ranks: 64, provenance: true });
      const ask = (startEventId: bigint | null): RecoveryAnswer => {
        const rest = { endEventId: null, supportsTreeDumpFailed: true, page: null };
        return indexer.answer({ workerId: WORKER, dpRank: 0, startEventId, ...rest }, 0);
      };
      let last = 0n;
      for (let at = 0; at < 90; at++) {
        pipeline.batch(worker.events(), at);
        if (at !== 45) continue;
        const dump = ask(null);
        if (dump.kind !== 'tree-dump') throw new Error(dump.kind);
        for (const event of dump.events) apply(late, event);
        last = dump.lastEventId;
      }
      const answer = ask(last + 1n);
      if (answer.kind !== 'events') throw new Error(answer.kind);
      for (const event of answer.events) apply(late, event);
      const [ours, truth] = [dumpedSet(late.dump(0)), dumpedSet(own.dump(0))];
      blocks += truth.size;
      // A block without the one before it can't be dumped; when that one comes back, only who saw the block has it.
      if (kind === AnyWorker) assertNoneMore(ours, truth, `seed ${seed}`);
      else assert.equal(ours, truth, `seed ${seed}`);
    }
    assert.ok(blocks > 100);
  });

test('where no block is announced twice while it is held, the direct path needs no counts to be the same', async () => {
  for (let seed = 201; seed <= 220; seed++) {
    const { native } = await play(seed, OrderlyWorker);
    const plain = new ReferencePrefixIndex({ ranks: 64, provenance: true });
    const pipeline = new RankPipeline();
    const again = new ReferencePrefixIndex({ ranks: 64, provenance: true });
    const held = new Set<string>();
    for (const draft of native) {
      const { data, tier } = draft;
      if (data.kind === 'cleared') held.clear();
      else if (data.kind === 'removed') for (const hash of data.hashes) held.delete(`${tier}${hash}`);
      else if (data.hashes.some((hash) => held.has(`${tier}${hash}`))) continue;
      else for (const hash of data.hashes) held.add(`${tier}${hash}`);
      apply(plain, draft);
      pipeline.batch([draft], 0);
    }
    for (let batch = pipeline.queue.take(); batch.length > 0; batch = pipeline.queue.take())
      for (const event of batch) apply(again, event);
    assert.equal(dumpedSet(again.dump(0)), dumpedSet(plain.dump(0)), `seed ${seed}`);
  }
});

test('after everything is removed, or cleared, no entry is left anywhere', async () => {
  for (const ends of ['removed', 'cleared'] as const) {
    const { pipeline, own, native } = await play(7, OrderlyWorker);
    assert.ok(pipeline.stats().dedup.tracked > 0 && own.stats().entries > 0);
    if (ends === 'cleared') pipeline.batch([cleared()], 0);
    else
      for (const { data, tier } of native)
        if (data.kind === 'stored') pipeline.batch([removed([...data.hashes].map(Number), { tier })], 0);
    own.tidy();
    assert.is(pipeline.stats().dedup.tracked, 0, ends);
    assert.is(own.stats().entries, 0, ends);
    for (let batch = pipeline.queue.take(); batch.length > 0; batch = pipeline.queue.take());
    assert.is(pipeline.queue.events + pipeline.queue.blocks, 0);
  }
});

test.run();
