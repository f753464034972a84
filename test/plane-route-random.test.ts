// Whatever a plane loses, repeats, reorders and restarts: with recovery, a router fed over it ends with the same index, provenance and learned edges as
// one that has the worker's own stream, and meanwhile is never told more of the store by it. The worker's publisher is the real one, from its messages to the
// bytes of batches and answers, but for its sockets. Where the worker contradicts itself, less may be credited and dumped as eligible, and never more.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PrefixIndex } from '../src/core/prefix-index.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { Intake } from '../src/live/plane/publish/intake.js';
import { LocalIndexer } from '../src/live/plane/publish/local-indexer.js';
import { RankPipeline } from '../src/live/plane/publish/rank-pipeline.js';
import { RankSplice } from '../src/live/plane/route/rank-splice.js';
import {
  decodeRecoveryAnswer,
  EventBatchReader,
  encodeEvents,
  encodeRecoveryAnswer,
} from '../src/wire/envelope/index.js';
import type { RecoveryQuestion, RouterEvent } from '../src/wire/envelope/types.js';
import type { Prompt } from './support/messages.js';
import { dumpedSet } from './support/prefix-dumps.js';
import { Random } from './support/random.js';
import { blockRemoved, blockStored, type RawEvent, RouterPool, workerMessage } from './support/router-pool.js';

const PROMPTS = 8;
const BLOCKS = 24;
const WORKER = 7;
const OPTIONS = { index: { bytes: 4 << 20, provenance: true, tableSeed: 5n } };

type Medium = 'GPU' | 'CPU';

/** How bad the plane is. Shares of events, or of questions. */
interface Weather {
  readonly loss: number;
  readonly twice: number;
  readonly late: number;
  readonly restart: number;
  readonly unanswered: number;
  /** Events that the indexer keeps for ranges. */
  readonly ring: number;
  /** Share of the worker's acts by which it contradicts itself. */
  readonly contradictions?: number;
}

/** A worker whose stream one router has itself, and another one over a bad plane. */
class World {
  readonly #random: Random;
  readonly #weather: Weather;
  readonly #prompts: readonly Prompt[];
  /** How often the worker has announced each block that it holds of a prompt; it announces as often that it goes. */
  #held = new Map<string, number[]>();
  #indexer: LocalIndexer | null = null;
  #events = new WorkerEvents();
  #intake: Intake | null = null;
  #pipeline: RankPipeline | null = null;
  readonly #bytes = new EventBatchReader();
  /** Prompts about which the worker contradicted itself. */
  readonly contradicted = new Set<Prompt>();
  #way: RouterEvent[] = [];
  #question: { readonly at: number; readonly question: RecoveryQuestion } | null = null;
  #now = 0;
  readonly splice: RankSplice;

  private constructor(
    readonly direct: RouterPool,
    readonly plane: RouterPool,
    random: Random,
    weather: Weather,
  ) {
    this.#random = random;
    this.#weather = weather;
    this.#prompts = Array.from({ length: PROMPTS }, (_, name) => direct.prompt(name + 1, BLOCKS));
    this.splice = new RankSplice(
      {
        apply: (event) => {
          const { fate } = plane.router.takeEvent(event);
          // Contradictions of a dump are nobody's blocks.
          assert.is(fate, event.domain === 'cache_owner' ? 'cache-owner' : 'applied');
        },
        reset: (cause) => {
          if (cause === 'new-life') plane.router.workerStreamLost(WORKER);
          else plane.router.rebuildWorker(WORKER);
        },
        ask: (question, delay) => {
          const whole = { workerId: BigInt(WORKER), dpRank: 0, supportsTreeDumpFailed: true, ...question };
          this.#question = { at: this.#now + delay + random.int(40), question: whole };
        },
        cancel: () => {
          this.#question = null;
        },
      },
      () => random.int(1000) / 1000,
    );
  }

  static async make(random: Random, weather: Weather): Promise<World> {
    const [direct, plane] = [await RouterPool.shared(0, OPTIONS), await RouterPool.shared(0, OPTIONS)];
    for (const pool of [direct, plane]) pool.add(WORKER);
    const world = new World(direct, plane, random, weather);
    await world.#restart();
    for (const prompt of world.#prompts) for (const pool of [direct, plane]) pool.store(prompt);
    return world;
  }

  async run(steps: number): Promise<void> {
    const { restart } = this.#weather;
    for (let step = 0; step < steps; step++) {
      this.#now += 10;
      if (this.#random.chance(restart)) await this.#restart();
      this.#act();
      this.#deliver(false);
      this.#answer();
      if (step % 100 === 0) this.splice.tick(this.#now);
      if (step % 50 === 0) this.#compareCredit(false);
    }
    this.#deliver(true);
    this.splice.check(this.#now);
    for (let turn = 0, quiet = 0; turn < 400 && quiet < 4; turn++) {
      this.#now += 1000;
      this.splice.tick(this.#now);
      this.#answer();
      quiet = this.splice.recovering || !this.splice.warm ? 0 : quiet + 1;
    }
    this.#compare();
  }

  /** The worker begins anew, with nothing. */
  async #restart(): Promise<void> {
    this.direct.router.workerStreamLost(WORKER);
    this.#held = new Map();
    this.#events = new WorkerEvents();
    this.#intake = new Intake({ workerId: BigInt(WORKER), blockSize: this.#prompts[0]!.blockSize });
    const index = await PrefixIndex.create({ bytes: 4 << 20, ranks: 1, provenance: true, tableSeed: 5n });
    const ring = { events: this.#weather.ring, bytes: 1 << 20 };
    this.#indexer = new LocalIndexer({ workerId: BigInt(WORKER), dpRank: 0, index, ring, answerBytes: () => 20_000 });
    this.#pipeline = new RankPipeline({ keeper: this.#indexer });
  }

  /** Something happens in the worker. Blocks leave from the end, as in engines. */
  #act(): void {
    const random = this.#random;
    const prompt = random.pick(this.#prompts);
    const medium: Medium = random.int(4) === 0 ? 'CPU' : 'GPU';
    const key = `${this.#prompts.indexOf(prompt)} ${medium}`;
    const held = this.#heldOf(key).length;
    const what = random.int(100);
    if (random.chance(this.#weather.contradictions ?? 0)) {
      // Salted in one place, and text in another.
      const first = Math.max(0, held - 1 - random.int(4));
      const said = { first, end: Math.min(BLOCKS, first + 1 + random.int(3)) };
      this.#say(blockStored(prompt, { ...said, medium: 'CPU', fields: { cache_salt: `salt ${random.int(2)}` } }));
      this.#say(blockStored(prompt, { ...said, medium: 'GPU' }));
      this.contradicted.add(prompt);
      for (const tier of ['GPU', 'CPU']) this.#hold(`${this.#prompts.indexOf(prompt)} ${tier}`, said.first, said.end);
    } else if (what === 0) {
      this.#say({ type: 'AllBlocksCleared' });
      this.#held.clear();
    } else if (what < 60) {
      const end = Math.min(BLOCKS, held + 1 + random.int(4));
      const first = random.int(3) === 0 ? 0 : Math.min(held, end - 1);
      const limit = this.#eligibleUpTo(prompt);
      const store = (from: number, to: number) =>
        blockStored(prompt, {
          first: from,
          end: to,
          medium,
          fields: from < limit ? {} : { shared_cache_eligible: false },
        });
      const middle = first < limit && limit < end ? limit : first + Math.ceil((end - first) / 2);
      const halves = [store(first, middle)];
      if (middle < end) halves.push(store(middle, end));
      this.#say(...halves);
      this.#hold(key, first, end);
    } else if (held > 0) {
      const first = random.int(held);
      const counts = this.#heldOf(key);
      for (let round = 1; ; round++) {
        const blocks = Array.from({ length: held - first }, (_, i) => first + i).filter((at) => counts[at]! >= round);
        if (blocks.length === 0) break;
        this.#say(...blocks.map((at) => blockRemoved(prompt, { first: at, end: at + 1, medium })));
      }
      counts.length = first;
    }
  }

  #heldOf(key: string): number[] {
    const held = this.#held.get(key) ?? [];
    this.#held.set(key, held);
    return held;
  }

  #hold(key: string, first: number, end: number): void {
    const held = this.#heldOf(key);
    for (let at = first; at < end; at++) held[at] = (held[at] ?? 0) + 1;
  }

  /** Blocks of a prompt from its start that may teach: all, half of them, or none. */
  #eligibleUpTo(prompt: Prompt): number {
    return [BLOCKS, BLOCKS, BLOCKS / 2, 0][this.#prompts.indexOf(prompt) % 4]!;
  }

  /** One message of the worker. */
  #say(...events: RawEvent[]): void {
    const frames = workerMessage(events);
    assert.is(this.direct.router.onWorkerMessage(WORKER, frames).fate, 'applied');
    const pipeline = this.#pipeline!;
    pipeline.batch(this.#intake!.take(this.#events.read(BigInt(WORKER), frames)), this.#now);
    for (let batch = pipeline.queue.take(); batch.length > 0; batch = pipeline.queue.take())
      for (const event of this.#bytes.read(encodeEvents(batch)).events) this.#emit(event);
  }

  #emit(event: RouterEvent): void {
    const { loss, twice, late } = this.#weather;
    const random = this.#random;
    if (random.chance(loss)) return;
    const at = random.chance(late) ? Math.max(0, this.#way.length - random.int(4)) : this.#way.length;
    this.#way.splice(at, 0, event);
    if (random.chance(twice)) this.#way.splice(at + random.int(this.#way.length - at), 0, event);
  }

  #deliver(all: boolean): void {
    const most = all ? this.#way.length : this.#random.int(3);
    for (const event of this.#way.splice(0, most)) {
      while (this.splice.step(this.#now));
      this.splice.event(event, this.#now);
    }
  }

  #answer(): void {
    while (this.splice.step(this.#now));
    const asked = this.#question;
    if (asked === null || asked.at > this.#now) return;
    this.#question = null;
    if (this.#random.chance(this.#weather.unanswered)) this.splice.failed('unanswered', this.#now);
    else {
      const bytes = encodeRecoveryAnswer(this.#indexer!.answer(asked.question, this.#now));
      this.splice.answered(decodeRecoveryAnswer(bytes).answer, this.#now);
    }
    while (this.splice.step(this.#now));
  }

  #compare(): void {
    assert.ok(this.splice.warm, `it is warm: ${JSON.stringify(this.splice.outcomes)}`);
    const [ours, theirs] = [dumpedSet(this.plane.router.dump(WORKER)), dumpedSet(this.direct.router.dump(WORKER))];
    if (this.contradicted.size > 0) {
      for (const [place, block] of theirs) {
        const our = ours.get(place);
        assert.is(our?.name, block.name, place);
        assert.ok(block.eligible || !our!.eligible, place);
      }
      assert.is(ours.size, theirs.size);
    } else assert.equal(Object.fromEntries([...ours].sort()), Object.fromEntries([...theirs].sort()));
    this.#compareCredit(true);
  }

  /** What the store would be believed to give, by what was learned. */
  #compareCredit(atEnd: boolean): void {
    for (const [name, prompt] of this.#prompts.entries()) {
      // The stores' credit alone: past what the GPU has, and reaching as far as both together.
      const reach = (pool: RouterPool) => pool.router.route({ tokens: prompt.tokens, textOnly: true, explain: true });
      const [one, other] = [reach(this.plane), reach(this.direct)];
      const shared = (decision: typeof one) => decision.candidates![0]!.blocks;
      const total = ({ device, host, disk, shared: more }: ReturnType<typeof shared>) =>
        more > 0 ? device + host + disk + more : 0;
      const [ours, theirs] = [total(shared(one)), total(shared(other))];
      one.lease.complete(0);
      other.lease.complete(0);
      assert.ok(ours <= this.#eligibleUpTo(prompt), 'nothing ineligible is ever learned');
      const all = this.#heldOf(`${name} GPU`).length === BLOCKS;
      if (atEnd && this.contradicted.size > 0) assert.ok(ours <= theirs, `prompt ${name}: ${ours}, not ${theirs}`);
      else if (atEnd && all) assert.is(ours, theirs, `prompt ${name}`);
      // Local depths may differ meanwhile, and with them what lies beyond: edges themselves are compared by their number.
    }
    const edges = (pool: RouterPool) => pool.router.stats().cache!.core!.edges;
    assert.ok(edges(this.plane) <= edges(this.direct), 'never more than the direct path has learned');
  }
}

const WEATHERS: Readonly<Record<string, Weather>> = {
  calm: { loss: 0, twice: 0, late: 0, restart: 0, unanswered: 0, ring: 1000 },
  'a few losses': { loss: 0.02, twice: 0, late: 0, restart: 0, unanswered: 0, ring: 1000 },
  'losses that are too old for ranges': { loss: 0.05, twice: 0, late: 0, restart: 0, unanswered: 0.1, ring: 20 },
  duplicates: { loss: 0, twice: 0.1, late: 0, restart: 0, unanswered: 0, ring: 1000 },
  disorder: { loss: 0, twice: 0, late: 0.3, restart: 0, unanswered: 0, ring: 1000 },
  restarts: { loss: 0, twice: 0, late: 0, restart: 0.005, unanswered: 0, ring: 1000 },
  'restarts whose beginning is lost': { loss: 0.2, twice: 0, late: 0, restart: 0.005, unanswered: 0.2, ring: 50 },
  contradictions: { loss: 0, twice: 0, late: 0, restart: 0, unanswered: 0, ring: 1000, contradictions: 0.01 },
  'contradictions, of which some are lost': {
    ...{ loss: 0.2, twice: 0.1, late: 0.2, restart: 0, unanswered: 0.2, contradictions: 0.01 },
    ring: 20,
  },
  storm: { loss: 0.2, twice: 0.1, late: 0.2, restart: 0.01, unanswered: 0.3, ring: 100 },
};

for (const [name, weather] of Object.entries(WEATHERS)) {
  test(name, async () => {
    let conflicts = 0;
    for (let seed = 1; seed <= 4; seed++) {
      const world = await World.make(new Random(seed), weather);
      try {
        await world.run(800);
        conflicts += world.direct.router.stats().cache!.core!.conflicted;
      } catch (error) {
        (error as Error).message = `seed ${seed}: ${(error as Error).message}`;
        throw error;
      }
    }
    assert.is(conflicts > 0, weather.contradictions !== undefined);
  });
}

test('a router that comes late is warm from the first answer', async () => {
  const random = new Random(9);
  const world = await World.make(random, { ...WEATHERS['calm']!, loss: 1 });
  await world.run(300);
  assert.is(world.splice.counts.applied > 0, true);
});

test.run();
