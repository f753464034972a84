// A message learned in one go against its stored events learned one by one: two caches with one table seed, fed the same bytes, must
// end up alike in every counter and every answer (src/cache/shared-cache.ts, observeMessage and observeStored). The random part runs on the
// default build and on the tiny one, whose 64 edges are evicted all the time. The seed is printed; MOONROUTE_SEED=n repeats a run.
import { readFileSync } from 'node:fs';
import { Encoder } from '@msgpack/msgpack';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import type { CacheQuery, Learned, SharedCacheOptions } from '../src/cache/types.js';
import type { Contract } from '../src/contract/descriptor.js';
import { MoonrouteError } from '../src/errors.js';
import { EventNormaliser } from '../src/events/normaliser.js';
import { type Source, WorkerEvents, type WorkerMessage } from '../src/events/worker-events.js';
import { decodeWorkerBatch } from '../src/wire/vllm.js';
import {
  contractOf,
  framesOf,
  removed as objectRemoved,
  stored as objectStored,
  prefixOf,
  storeMessage,
} from './support/messages.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
console.log(`cache-observe-message: seed ${seed}`);

const encoder = new Encoder({ useBigInt64: true });
type Fields = Readonly<Record<string, unknown>>;

const RANK: Source = { workerId: 'worker-a', dpRank: 0 };
const SECOND: Source = { workerId: 'worker-a', dpRank: 1 };
const OTHER: Source = { workerId: 'worker-b', dpRank: 0 };
const STRANGER: Source = { workerId: 'worker-c', dpRank: 0 };
const ADMITTED = [RANK, SECOND, OTHER];

// ---- what workers announce ----

/** A block: its tokens, and the digest that an engine gave it. */
interface Block {
  readonly tokens: readonly number[];
  readonly digest: Uint8Array;
}

/** A prompt that grows, under one adapter and namespace. */
interface Session {
  readonly loraName: string | null;
  readonly salt: string | null;
  readonly hashes: 'u64' | 'binary';
  readonly blocks: readonly Block[];
}

const SIZE = 4;

function randomBlock(random: Random, size = SIZE): Block {
  return {
    tokens: Array.from({ length: size }, () => random.int(1 << 20)),
    digest: Uint8Array.from({ length: 32 }, () => random.int(256)),
  };
}

function sessionOf(random: Random, length: number, more: Partial<Session> = {}): Session {
  const blocks = Array.from({ length }, () => randomBlock(random));
  return { loraName: null, salt: null, hashes: 'u64', blocks, ...more };
}

const low64 = ({ digest }: Block): bigint => Buffer.from(digest).readBigUInt64BE(24);
const wireHash = (block: Block, hashes: Session['hashes']): unknown => (hashes === 'u64' ? low64(block) : block.digest);

/** The worker's event about blocks `first` … `end` − 1, some of its fields as told. */
function event(
  { loraName, salt, hashes, blocks }: Session,
  first = 0,
  end = blocks.length,
  fields: Fields = {},
): Fields {
  const said = blocks.slice(first, end);
  return {
    type: 'BlockStored',
    block_hashes: said.map((block) => wireHash(block, hashes)),
    parent_block_hash: first === 0 ? null : wireHash(blocks[first - 1]!, hashes),
    token_ids: said.flatMap(({ tokens }) => tokens),
    block_size: SIZE,
    lora_id: null,
    medium: 'GPU',
    lora_name: loraName,
    extra_keys: said.map((_, i) => extraKeys(loraName, first + i === 0 ? salt : null)),
    ...fields,
  };
}

function extraKeys(loraName: string | null, salt: string | null): string[] | null {
  const keys = [loraName ?? [], salt === null ? [] : `dynamo-cache-salt:${salt}`].flat();
  return keys.length === 0 ? null : keys;
}

const payloadOf = (events: readonly unknown[], rank = 0): Uint8Array => encoder.encode([1.5, events, rank]);
const messageOf = (events: readonly unknown[], rank = 0): Uint8Array[] => framesOf(0, payloadOf(events, rank));

// ---- the two caches ----

type Build = 'default' | 'tiny';

async function cacheOf(build: Build, options: SharedCacheOptions): Promise<SharedCache> {
  if (build === 'default') return SharedCache.create(options);
  // A build that the package does not have stands in for the default one.
  const module = await WebAssembly.compile(readFileSync('build/wasm/core-tiny.wasm'));
  return Reflect.construct(SharedCache, [options, new Map([['default', module]])]) as SharedCache;
}

/** A cache that observes messages, and one that observes the same messages event by event. */
class Twins {
  pending = false;
  /** Events learned that followed another learned one in its message: what could be learned in one go. */
  neighbours = 0;
  refused = 0;
  #sequence = 0;

  private constructor(
    readonly byMessage: SharedCache,
    readonly byEvent: SharedCache,
    readonly contract: Contract,
    readonly messages = new WorkerEvents(),
    readonly events = new WorkerEvents(),
  ) {}

  static async open({ build = 'default' as Build, blockSize = SIZE } = {}): Promise<Twins> {
    let twins: Twins | undefined;
    const options = { tableSeed: 5n, isPending: () => twins?.pending ?? false };
    const caches = [await cacheOf(build, options), await cacheOf(build, options)] as const;
    twins = new Twins(...caches, contractOf({ blockSize }));
    twins.update(twins.contract);
    return twins;
  }

  /** The same to both. */
  both<T>(use: (cache: SharedCache) => T): T {
    const [a, b] = [use(this.byMessage), use(this.byEvent)];
    assert.equal(a, b);
    return a;
  }

  update(contract: Contract | null, sources = ADMITTED): void {
    this.both((cache) => cache.updateContract(contract, sources));
  }

  /** Reads a worker's message for each cache; returns the blocks learned. */
  say(events: readonly unknown[], { workerId, dpRank }: Source = RANK): number {
    const frames = messageOf(events, dpRank);
    const learned = this.byMessage.observeMessage(this.messages.read(workerId, frames));
    assert.is(learned, this.#oneByOne(this.events.read(workerId, frames)), 'blocks learned');
    return learned;
  }

  #oneByOne({ source, events }: WorkerMessage): number {
    const learned: Learned[] = [];
    for (const event of events) if (event.kind === 'stored') learned.push(this.byEvent.observeStored(source, event));
    for (const [i, { refused }] of learned.entries()) {
      if (refused !== null) this.refused++;
      else if (i > 0 && learned[i - 1]!.refused === null) this.neighbours++;
    }
    return learned.reduce((sum, { blocks }) => sum + blocks, 0);
  }

  /** The master's next message. */
  store(blocks: readonly Block[], gone = false): void {
    const keys = blocks.map(({ digest }) => `${prefixOf(0, 0)}@${Buffer.from(digest).toString('hex')}`);
    this.#sequence++;
    this.both((cache) =>
      cache.applyStoreMessage(
        storeMessage(
          this.#sequence,
          keys.map((key) => (gone ? objectRemoved(key) : objectStored(key))),
        ),
      ),
    );
  }

  hits(session: Session, scope: Partial<CacheQuery> = {}): number {
    return this.both((cache) => cache.lookup(queryOf(session, scope))).blocks;
  }

  /** Holds everything that can be asked about the sessions against each other, and the counters. */
  compare(sessions: readonly Session[], where: string): void {
    assert.equal(this.byMessage.stats(), this.byEvent.stats(), where);
    for (const session of sessions) {
      for (const cacheSalt of new Set([session.salt, null, 'tenant-b'])) {
        this.both((cache) => cache.explain(queryOf(session, { cacheSalt })));
      }
    }
    this.both((cache) => cache.census());
  }

  get core() {
    return this.both((cache) => cache.stats().core!);
  }
}

function queryOf({ blocks, loraName, salt }: Session, scope: Partial<CacheQuery> = {}): CacheQuery {
  const tokens = Uint32Array.from([...blocks.flatMap((block) => block.tokens), 1]);
  const blockSize = blocks[0]!.tokens.length;
  return { tokens, tokenCount: tokens.length, blockSize, eligible: true, loraName, cacheSalt: salt, ...scope };
}

// ---- at random ----

const MESSAGES = 250;
const COMPARE_EVERY = 10;

/** Sessions of several scopes; some share a beginning. */
function randomSessions(random: Random): Session[] {
  const sessions: Session[] = [];
  for (let i = 0; i < 8; i++) {
    const scope = {
      loraName: random.pick([null, null, 'adapter-a', 'adapter-b']),
      salt: random.pick([null, null, 'tenant-a', 'tenant-b']),
      hashes: random.pick(['u64', 'u64', 'binary'] as const),
    };
    const session = sessionOf(random, random.between(3, 30), scope);
    sessions.push(session);
    const shared = session.blocks.slice(0, random.int(session.blocks.length));
    const more = sessionOf(random, random.between(1, 8)).blocks;
    sessions.push({ ...session, blocks: [...shared, ...more] });
  }
  return sessions;
}

/** What makes an event teach nothing, or something wrong. */
const TWISTS: Readonly<Record<string, (random: Random, told: Fields, sessions: readonly Session[]) => Fields>> = {
  speculative: () => ({ is_eagle: true }),
  'flagged ineligible': () => ({ shared_cache_eligible: false }),
  'an image': () => ({ extra_keys: [['image']] }),
  'an adapter without a name': () => ({ lora_id: 3, lora_name: null }),
  pairs: (_, { token_ids }) => ({ token_ids: (token_ids as number[]).map((token) => [token, token + 1]) }),
  offloaded: () => ({ medium: 'CPU' }),
  'on disk': () => ({ medium: 'DISK' }),
  'an unknown medium': () => ({ medium: 'cpu' }),
  remote: () => ({ locality: 'REMOTE' }),
  'main attention of another group': () => ({ group_idx: 1, kv_cache_spec_kind: 'full_attention' }),
  'no main attention': () => ({ group_idx: 2, kv_cache_spec_kind: 'mamba' }),
  'group 0': () => ({ group_idx: 0, kv_cache_spec_kind: 'full_attention' }),
  'another block size': (_, { block_hashes }) => ({ block_size: 2, token_ids: twice(block_hashes) }),
  sparse: (_, { token_ids }) => ({ token_ids: [...(token_ids as number[]), 1] }),
  'no blocks': () => ({ block_hashes: [], token_ids: [], extra_keys: [] }),
  'an extra key too many': (_, { extra_keys }) => ({ extra_keys: [...(extra_keys as unknown[]), null] }),
  'a hash twice': (_, { block_hashes }) => ({
    block_hashes: (block_hashes as unknown[]).map((_hash, i, all) => all[i >> 1]),
  }),
  'its own parent': (_, { block_hashes }) => ({ parent_block_hash: (block_hashes as unknown[])[0] }),
  'another namespace': (random) => ({ cache_salt: random.pick(['tenant-a', 'tenant-b', '']), extra_keys: null }),
  'another adapter': () => ({ lora_name: 'adapter-b', extra_keys: null }),
  'other tokens': (random, { token_ids }) => ({ token_ids: (token_ids as number[]).map(() => random.int(9)) }),
  'an unknown parent': (random) => ({ parent_block_hash: random.bigint64() }),
  'a root': () => ({ parent_block_hash: null }),
  'hashes of another session': (random, { block_hashes }, sessions) => {
    const { blocks, hashes } = random.pick(sessions);
    return { block_hashes: (block_hashes as unknown[]).map((_, i) => wireHash(blocks[i % blocks.length]!, hashes)) };
  },
};
const TWIST_NAMES = Object.keys(TWISTS);

const twice = (hashes: unknown): number[] => (hashes as unknown[]).flatMap(() => [1, 2]);

/** Events of a session that continue each other, from somewhere. */
function stretch(random: Random, sessions: readonly Session[], twisted: number): Fields[] {
  const session = { ...random.pick(sessions) };
  const told = random.chance(0.1) ? { ...session, hashes: random.pick(['u64', 'binary'] as const) } : session;
  const events: Fields[] = [];
  let first = random.chance(0.6) ? 0 : random.int(told.blocks.length);
  const most = random.pick([1, 1, 3, 30]);
  for (let left = random.between(1, 6); left > 0 && first < told.blocks.length; left--) {
    const end = Math.min(told.blocks.length, first + random.between(1, most));
    const plain = event(told, first, end);
    const twist = TWISTS[random.pick(TWIST_NAMES)]!;
    events.push(random.chance(twisted) ? { ...plain, ...twist(random, plain, sessions) } : plain);
    first = end;
  }
  return events;
}

/** An event between them that is no stored one. */
function otherEvent(random: Random, sessions: readonly Session[]): unknown {
  const { blocks, hashes } = random.pick(sessions);
  return random.pick([
    { type: 'BlockRemoved', block_hashes: blocks.slice(0, random.int(4)).map((block) => wireHash(block, hashes)) },
    { type: 'BlockRemoved', block_hashes: blocks.map((block) => wireHash(block, hashes)), medium: 'CPU' },
    ['AllBlocksCleared'],
    { type: 'Ignored' },
    { type: 'BlockStored', block_hashes: 7 },
    null,
  ]);
}

function randomMessage(random: Random, sessions: readonly Session[]): unknown[] {
  const twisted = random.pick([0, 0, 0.05, 0.5]);
  return Array.from({ length: random.between(1, 6) }, () => [
    ...stretch(random, sessions, twisted),
    ...(random.chance(0.15) ? [otherEvent(random, sessions)] : []),
  ]).flat();
}

/** Something else that happens to a cache. */
function interlude(random: Random, twins: Twins, sessions: readonly Session[]): void {
  const session = random.pick(sessions);
  const roll = random.int(100);
  if (roll < 50) twins.store(session.blocks.slice(0, random.between(1, session.blocks.length)), random.chance(0.1));
  else if (roll < 92) twins.hits(session);
  else if (roll < 95) twins.pending = !twins.pending;
  else if (roll < 97) twins.both((cache) => cache.streamLost('test'));
  else if (roll < 98) twins.update(null);
  else twins.update(twins.contract, random.chance(0.5) ? ADMITTED : [RANK]);
  if (random.chance(0.5)) twins.pending = false;
  if (twins.byMessage.contract === null && random.chance(0.5)) twins.update(twins.contract);
}

const atRandom = suite('at random');

for (const build of ['default', 'tiny'] as const) {
  atRandom(`${build}: counters, answers and blocks learned are the same`, async () => {
    const random = new Random(seed ^ (build === 'tiny' ? 1 : 2));
    const twins = await Twins.open({ build });
    let sessions = randomSessions(random);
    let hits = 0;
    for (let message = 0; message < MESSAGES; message++) {
      const where = `seed ${seed}, build ${build}, message ${message}`;
      if (random.chance(0.02)) sessions = randomSessions(random);
      twins.say(randomMessage(random, sessions), random.pick([RANK, RANK, RANK, SECOND, OTHER, STRANGER]));
      if (random.chance(0.5)) interlude(random, twins, sessions);
      hits += twins.hits(random.pick(sessions));
      if (message % COMPARE_EVERY === 0) twins.compare(sessions, where);
    }
    twins.pending = false;
    twins.update(twins.contract);
    twins.compare(sessions, `seed ${seed}, build ${build}, at the end`);
    const { learned, conflicts, repeatedEvents, replaced, edgeEvictions } = twins.core;
    console.log(`  ${build}: ${JSON.stringify({ learned, conflicts, repeatedEvents, replaced, edgeEvictions, hits })}`);
    console.log(`  ${build}: ${twins.neighbours} neighbours, ${twins.refused} refused`);
    assert.ok(learned > 0 && conflicts > 0 && repeatedEvents > 0 && hits > 0 && twins.neighbours > 0);
    if (build === 'tiny') assert.ok(edgeEvictions > 0);
    const refusals = Object.keys(twins.both((cache) => cache.stats().refusals));
    for (const reason of ['ambiguous-namespace', 'sparse', 'no-blocks', 'speculative', 'source-not-admitted']) {
      assert.ok(refusals.includes(reason), `nothing was refused as ${reason}`);
    }
  });
}

atRandom.run();

// ---- the order of things ----

const order = suite('order');

/** Sessions with everything of them stored. */
async function filled(...sessions: readonly Session[]): Promise<Twins> {
  const twins = await Twins.open();
  for (const { blocks } of sessions) twins.store(blocks);
  return twins;
}

const apart = ({ blocks }: Session): readonly [number, number][] => blocks.map((_, i) => [i, i + 1]);

order('a chain in single blocks is learned whole, and returned', async () => {
  const session = sessionOf(new Random(seed), 9);
  const twins = await filled(session);
  assert.is(twins.say(apart(session).map(([first, end]) => event(session, first, end))), 9);
  assert.is(twins.hits(session), 9);
  assert.is(twins.say([event(session, 0, 4), event(session, 4, 9)]), 9, 'confirmed');
  assert.is(twins.core.learned, 9);
  twins.compare([session], 'afterwards');
});

order('no events, and none that is stored', async () => {
  const twins = await Twins.open();
  assert.is(twins.say([]), 0);
  assert.is(twins.say([['AllBlocksCleared'], { type: 'Ignored' }, 7]), 0);
  twins.compare([], 'afterwards');
});

order('what stands before a contradiction is learned before it costs its credit', async () => {
  const random = new Random(seed);
  const [session, other] = [sessionOf(random, 4, { salt: 'tenant-a' }), sessionOf(random, 3, { salt: 'tenant-a' })];
  const twins = await filled(session, other);
  const told = apart(session).map(([first, end]) => event(session, first, end));
  const conflict = event(session, 1, 3, { cache_salt: 'tenant-b' });
  assert.is(twins.say([...told, conflict, event(other)]), 7);
  assert.is(twins.hits(session), 1, 'its first block alone');
  assert.is(twins.hits(other), 3);
  assert.is(twins.core.conflicts, 2);
  assert.equal(
    twins.both((cache) => cache.stats().refusals),
    { 'ambiguous-namespace': 1 },
  );
  twins.compare([session, other], 'afterwards');
});

order('what stands behind a contradiction is learned after it', async () => {
  const random = new Random(seed);
  const session = sessionOf(random, 3, { salt: 'tenant-a' });
  const twins = await filled(session);
  twins.say([
    event(session, 0, 1),
    event(session, 0, 1, { cache_salt: 'tenant-b' }),
    event(session, 1, 3, { cache_salt: 'tenant-a' }),
  ]);
  assert.is(twins.hits(session), 0);
  twins.compare([session], 'afterwards');
});

order('a contradiction of tokens ends a chain at the block that it is about', async () => {
  const random = new Random(seed);
  const session = sessionOf(random, 6);
  const twins = await filled(session);
  const wrong = {
    ...session,
    blocks: session.blocks.with(3, { ...session.blocks[3]!, digest: randomBlock(random).digest }),
  };
  assert.is(twins.say([event(session, 0, 3), event(session, 3, 6), event(wrong, 3, 4), event(session, 4, 6)]), 8);
  assert.is(twins.hits(session), 3);
  assert.is(twins.core.conflicts, 1);
  twins.compare([session, wrong], 'afterwards');
});

order('an event that repeats a hash teaches nothing, those around it do', async () => {
  const random = new Random(seed);
  const [first, bad, last] = [sessionOf(random, 2), sessionOf(random, 2), sessionOf(random, 2)];
  const twins = await filled(first, last);
  const hash = low64(bad.blocks[0]!);
  assert.is(twins.say([event(first), event(bad, 0, 2, { block_hashes: [hash, hash] }), event(last)]), 4);
  assert.is(twins.core.repeatedEvents, 1);
  assert.equal([twins.hits(first), twins.hits(last)], [2, 2]);
});

/** Neighbours of which the second can't be learned in one go with the first. */
const BREAKS: Readonly<Record<string, readonly [Partial<Session>, Partial<Session>]>> = {
  'digests behind integers': [{ hashes: 'u64' }, { hashes: 'binary' }],
  'integers behind digests': [{ hashes: 'binary' }, { hashes: 'u64' }],
  'salted behind unsalted': [{}, { salt: 'tenant-a' }],
  'unsalted behind salted': [{ salt: 'tenant-a' }, {}],
  'another salt': [{ salt: 'tenant-a' }, { salt: 'tenant-b' }],
  'an adapter': [{}, { loraName: 'adapter-a' }],
  'another adapter': [{ loraName: 'adapter-a' }, { loraName: 'adapter-b' }],
};

for (const [what, [one, two]] of Object.entries(BREAKS)) {
  order(`${what}: each is learned in its own way`, async () => {
    const random = new Random(seed);
    const sessions = [one, two, one, two].map((scope) => sessionOf(random, 3, scope));
    const twins = await filled(...sessions);
    const told = sessions.flatMap((session) => [event(session, 0, 1), event(session, 1, 3)]);
    assert.is(twins.say(told), 12);
    assert.equal(
      sessions.map((session) => twins.hits(session)),
      [3, 3, 3, 3],
    );
    twins.compare(sessions, what);
  });
}

for (const [what, twist] of Object.entries(TWISTS)) {
  order(`between two that are learned: ${what}`, async () => {
    const random = new Random(seed);
    const sessions = [sessionOf(random, 4), sessionOf(random, 4), sessionOf(random, 4)] as const;
    const [before, between, after] = sessions;
    const twins = await filled(...sessions);
    const plain = event(between);
    twins.say([event(before), { ...plain, ...twist(random, plain, sessions) }, event(after, 0, 2), event(after, 2, 4)]);
    twins.compare(sessions, what);
    if (what !== 'hashes of another session') assert.equal([twins.hits(before), twins.hits(after)], [4, 4]);
  });
}

order.run();

// ---- nobody listens ----

const deaf = suite('refused as a whole');

const DEAF: Readonly<Record<string, (twins: Twins) => void>> = {
  pending: (twins) => {
    twins.pending = true;
  },
  stopped: (twins) => twins.both((cache) => cache.stop()),
  'no-contract': (twins) => twins.update(null),
  'source-not-admitted': (twins) => twins.update(twins.contract, [OTHER]),
};

for (const [reason, arrange] of Object.entries(DEAF)) {
  deaf(`${reason}: counted once for each stored event, without effect`, async () => {
    const session = sessionOf(new Random(seed), 3, { salt: 'tenant-a' });
    const twins = await filled(session);
    arrange(twins);
    const conflict = event(session, 0, 1, { cache_salt: 'tenant-b' });
    assert.is(twins.say([event(session, 0, 1), event(session, 1, 3), ['AllBlocksCleared'], conflict, conflict]), 0);
    assert.equal(
      twins.both((cache) => cache.stats().refusals),
      { [reason]: 4 },
    );
    assert.is(
      twins.both((cache) => cache.stats().core?.edges ?? 0),
      0,
    );
    assert.is(
      twins.both((cache) => cache.stats().core?.conflicts ?? 0),
      0,
    );
  });
}

deaf.run();

// ---- size ----

const size = suite('size');

const EVENT_BLOCKS = 65_536;

/** Chains of blocks of one token: the cheapest way to many blocks. Hash n of a chain is its base and n. */
class Chain {
  constructor(
    readonly base: bigint,
    readonly length: number,
  ) {}

  event(first: number, end: number): Fields {
    return {
      type: 'BlockStored',
      block_hashes: Array.from({ length: end - first }, (_, i) => this.base + BigInt(first + i)),
      parent_block_hash: first === 0 ? null : this.base + BigInt(first - 1),
      token_ids: Array.from({ length: end - first }, (_, i) => this.#token(first + i)),
      block_size: 1,
    };
  }

  /** Its events, of so many blocks each. */
  cut(blocks: number): Fields[] {
    return Array.from({ length: Math.ceil(this.length / blocks) }, (_, i) =>
      this.event(i * blocks, Math.min(this.length, (i + 1) * blocks)),
    );
  }

  #token(block: number): number {
    return Number(this.base & 0xffn) * 1_000_000 + block;
  }

  get query(): CacheQuery {
    const tokens = Uint32Array.from({ length: this.length + 1 }, (_, i) => this.#token(i));
    return { tokens, tokenCount: tokens.length, blockSize: 1, eligible: true };
  }
}

/** How far a chain's edges lead, by the blocks that a lookup walks. */
function walked(twins: Twins, chain: Chain): number {
  const before = twins.core.walkedBlocks;
  twins.both((cache) => cache.lookup(chain.query));
  return twins.core.walkedBlocks - before;
}

const base = (n: number): bigint => (0xabcd_ef01n << 32n) + (BigInt(n) << 24n) + BigInt(n);

/** Messages of many blocks, each a list of chains and the blocks of their events. */
const SIZES: Readonly<Record<string, readonly (readonly [blocks: number, each: number])[]>> = {
  'as many blocks as are learned in one go': [[EVENT_BLOCKS, 4096]],
  'one block more': [[EVENT_BLOCKS + 1, 4096]],
  'as many in one event': [[EVENT_BLOCKS, EVENT_BLOCKS]],
  'a full event between others': [
    [10, 3],
    [EVENT_BLOCKS, EVENT_BLOCKS],
    [10, 3],
  ],
  'events that do not divide it': [[2 * EVENT_BLOCKS + 500, 4999]],
  'two events that are too much together': [
    [40_000, 40_000],
    [40_000, 40_000],
    [25_536, 25_536],
  ],
};

for (const [what, chains] of Object.entries(SIZES)) {
  size(`${what}: all is learned`, async () => {
    const twins = await Twins.open({ blockSize: 1 });
    const made = chains.map(([blocks], n) => new Chain(base(n + 1), blocks));
    const total = made.reduce((sum, { length }) => sum + length, 0);
    assert.is(twins.say(made.flatMap((chain, n) => chain.cut(chains[n]![1]))), total);
    assert.is(twins.core.edges, total);
    assert.equal(
      made.map((chain) => walked(twins, chain)),
      made.map(({ length }) => length),
    );
    assert.equal(twins.byMessage.stats(), twins.byEvent.stats());
  });
}

size('an event of more blocks: its first 65,536 are learned, and what follows', async () => {
  const twins = await Twins.open({ blockSize: 1 });
  const [before, long, after] = [new Chain(base(1), 20), new Chain(base(2), 70_000), new Chain(base(3), 20)] as const;
  const events = [...before.cut(10), long.event(0, 70_000), ...after.cut(10)];
  assert.is(twins.say(events), 40 + EVENT_BLOCKS);
  assert.equal(
    [before, long, after].map((chain) => walked(twins, chain)),
    [20, EVENT_BLOCKS, 20],
  );
  assert.is(twins.say([long.event(EVENT_BLOCKS, 70_000), long.event(0, 70_000)]), 70_000 - EVENT_BLOCKS + EVENT_BLOCKS);
  assert.is(walked(twins, long), 70_000);
  assert.equal(twins.byMessage.stats(), twins.byEvent.stats());
});

size('as many events as a message may have', async () => {
  const twins = await Twins.open({ blockSize: 1 });
  const chain = new Chain(base(1), 65_536);
  assert.is(twins.say(chain.cut(1)), 65_536);
  assert.is(walked(twins, chain), 65_536);
  assert.equal(twins.byMessage.stats(), twins.byEvent.stats());
});

size.run();

// ---- messages that somebody else made ----

const made = suite('made by hand');

/** A message as its maker sees it: what was read, and what becomes of the list of events. */
type Change = (events: WorkerMessage['events']) => WorkerMessage['events'];

const CHANGES: Readonly<Record<string, Change>> = {
  'the same events': (events) => events,
  'one left out': (events) => events.toSpliced(2, 1),
  'every other one': (events) => events.filter((_, i) => i % 2 === 0),
  'the first left out': (events) => events.slice(1),
  'one twice': (events) => [...events.slice(0, 3), ...events.slice(2)],
  'all twice': (events) => [...events, ...events],
  backwards: (events) => events.toReversed(),
};

for (const [what, change] of Object.entries(CHANGES)) {
  made(`${what}: the same as one by one`, async () => {
    const random = new Random(seed);
    const session = sessionOf(random, 12);
    const twins = await filled(session);
    const frames = messageOf([0, 1, 3, 4, 6, 9].map((first, i, all) => event(session, first, all[i + 1] ?? 12)));
    const [message, other] = [twins.messages.read(RANK.workerId, frames), twins.events.read(RANK.workerId, frames)];
    const learned = twins.byMessage.observeMessage({ ...message, events: change(message.events) });
    let expected = 0;
    for (const told of change(other.events)) {
      if (told.kind === 'stored') expected += twins.byEvent.observeStored(RANK, told).blocks;
    }
    assert.is(learned, expected);
    twins.compare([session], what);
    twins.hits(session);
  });
}

made('events that own their numbers', async () => {
  const random = new Random(seed);
  const sessions = [
    sessionOf(random, 4),
    sessionOf(random, 4, { hashes: 'binary' }),
    sessionOf(random, 4, { salt: 'tenant-a' }),
  ];
  const twins = await filled(...sessions);
  const payload = payloadOf(sessions.flatMap((session) => [event(session, 0, 2), event(session, 2, 4)]));
  const owned = (): WorkerMessage => {
    const normaliser = new EventNormaliser();
    const publisher = normaliser.publisher();
    const { events, timestamp, rejected } = decodeWorkerBatch(payload);
    const normalised = events.map((read) => normaliser.normalise(publisher, read));
    return { sequence: 0n, source: RANK, timestamp, events: normalised, rejected, lostRemoval: false };
  };
  assert.is(twins.byMessage.observeMessage(owned()), 12);
  for (const told of owned().events) if (told.kind === 'stored') twins.byEvent.observeStored(RANK, told);
  twins.compare(sessions, 'owned');
  assert.equal(
    sessions.map((session) => twins.hits(session)),
    [4, 4, 4],
  );
});

const isStale = (error: unknown): boolean => error instanceof MoonrouteError && error.code === 'stale-event';

made('a stale message teaches nothing, neither then nor with the next one', async () => {
  const random = new Random(seed);
  const [stale, next] = [sessionOf(random, 6), sessionOf(random, 2)];
  const twins = await filled(stale, next);
  const frames = messageOf([event(stale, 0, 2), event(stale, 2, 6)]);
  const [message, other] = [twins.messages.read(RANK.workerId, frames), twins.events.read(RANK.workerId, frames)];
  for (const workers of [twins.messages, twins.events]) workers.read(RANK.workerId, messageOf([]));
  assert.throws(() => twins.byMessage.observeMessage(message), isStale);
  const [first] = other.events;
  assert.ok(first?.kind === 'stored');
  assert.throws(() => twins.byEvent.observeStored(RANK, first), isStale);

  assert.is(twins.say([event(next)]), 2);
  assert.is(twins.core.edges, 2);
  assert.equal([twins.hits(stale), twins.hits(next)], [0, 2]);
  twins.compare([stale, next], 'afterwards');
});

made.run();
