// Derived edges where it hurts: hashes that collide in their low 64 bits, tables that overflow in the middle of a prompt, paths that fill the core by
// themselves. Each step is taken by core and model, and the whole state compared after it.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Contract } from '../src/contract/descriptor.js';
import { globalOf } from '../src/core/builds.js';
import { planOf } from '../src/core/plan.js';
import { Episode, prefixesOf } from './support/core-episode.js';
import { coreSnapshot } from './support/core-state.js';
import { loadCore, type TestBuild } from './support/cores.js';
import { vllmDigests } from './support/engine-digests.js';
import type { Derived, ModelDigest } from './support/model.js';
import { setClearGeneration } from './support/poke.js';
import { Random } from './support/random.js';

const SIZE = 2;
/** All derived edges and digests of a tiny build. */
const CAP = 64;
const AMBIGUOUS_CAP = 8;
const OTHER_HIGH = 'ee'.repeat(24);

function contractOf(ranks: number): Contract {
  return contractOfGroups([{ span: SIZE, ranks }]);
}

/** Of full attention groups with spans of so many tokens. */
function contractOfGroups(groups: readonly { span: number; ranks: number }[], partial = false): Contract {
  return {
    revision: '',
    adapter: '',
    verified: true,
    mainEventBlockSize: SIZE,
    hashBlockSize: SIZE,
    lcmBlockSize: Math.max(...groups.map(({ span }) => span)),
    partialHashHits: partial,
    gpuToStoreGroup: groups.map((_, i) => i),
    mainEventGroup: 0,
    hashRule: { algorithm: 'sha256', seed: '0' },
    learnable: true,
    groups: groups.map(({ span, ranks }, groupId) => ({
      groupId,
      kind: 'full_attention',
      blockSize: span,
      slidingWindow: null,
      keyPrefixes: Array.from({ length: ranks }, (_, rank) => `p@m@tp_rank:${100 + rank}@group:${groupId}`),
    })),
    fingerprint: '',
  };
}

/** A prompt of whole blocks and one token more. Prompts of different `name` share no block but those that are given. */
class TokenPrompt {
  readonly tokens: Uint32Array;
  readonly digests: readonly ModelDigest[];
  readonly keys: readonly bigint[];

  constructor(name: number, blocks: number, shared: TokenPrompt | null = null, sharedBlocks = 0) {
    this.tokens = Uint32Array.from({ length: blocks * SIZE + 1 }, (_, i) =>
      i < sharedBlocks * SIZE ? shared!.tokens[i]! : name * 100_000 + i,
    );
    this.digests = vllmDigests(this.tokens, SIZE).map((digest) => ({
      low64: digest.readBigUInt64BE(24),
      high: digest.toString('hex', 0, 24),
    }));
    this.keys = this.digests.map((_, i) => (i < sharedBlocks ? shared!.keys[i]! : BigInt(name * 100_000 + i)));
  }
}

/** Another digest with the same low 64 bits. */
const twin = ({ low64 }: ModelDigest): ModelDigest => ({ low64, high: OTHER_HIGH });
const hex = ({ high, low64 }: ModelDigest): string => high + low64.toString(16).padStart(16, '0');

/** Core and model side by side, doing as they are told. */
class Both {
  readonly episode: Episode;
  readonly #contract: Contract;

  private constructor(episode: Episode, contract: Contract) {
    this.episode = episode;
    this.#contract = contract;
  }

  static async of(build: 'tiny' | 'tiny-wide', contract = contractOf(1)): Promise<Both> {
    const options = { build, contract, hashing: 'both', evil: 0, keys: 'of the prompts' } as const;
    return new Both(new Episode(await loadCore(build), new Random(1), [], options), contract);
  }

  get core() {
    return this.episode.core;
  }

  /** Stores their objects of one group, or of all. */
  store(digests: readonly ModelDigest[], group?: number): void {
    this.applyStored(digests, group);
    for (const [digest, prefix] of this.#objects(digests, group)) this.episode.model.stored(digest, prefix, 1);
    this.compare('store');
  }

  remove(digests: readonly ModelDigest[]): void {
    this.#apply('removed', digests);
    for (const [digest, prefix] of this.#objects(digests)) this.episode.model.removed(digest, prefix, 5);
    this.compare('remove');
  }

  /** Stores them in the core alone. */
  applyStored(digests: readonly ModelDigest[], group?: number): void {
    this.#apply('stored', digests, group);
  }

  #apply(event_type: string, digests: readonly ModelDigest[], group?: number): void {
    const texts = prefixesOf(this.#contract).map(({ text }) => text);
    const events = this.#objects(digests, group).map(([digest, prefix]) => {
      return { event_type, object_key: `${texts[prefix]}@${hex(digest)}`, medium: 'cpu', dp_rank: 0 };
    });
    assert.is(this.core.applyPayload(encode([0, events, 0])).outcome, 'applied');
  }

  #objects(digests: readonly ModelDigest[], group?: number): (readonly [ModelDigest, number])[] {
    const prefixes = [...prefixesOf(this.#contract).entries()].filter(
      ([, of]) => group === undefined || of.group === group,
    );
    return digests.flatMap((digest) => prefixes.map(([prefix]) => [digest, prefix] as const));
  }

  /** Learns that a worker stored the prompt's blocks `from` … , under these digests or under their low halves. */
  learn({ keys }: TokenPrompt, digests: readonly ModelDigest[], { from = 0, whole = true } = {}): void {
    const parent = from === 0 ? null : digests[from - 1]!.low64;
    const told = digests.slice(from);
    const locals = keys.slice(from, from + told.length);
    this.core.loadLocals(BigUint64Array.from(locals));
    this.core.learn({
      parent,
      salted: false,
      lows: BigUint64Array.from(told, ({ low64 }) => low64),
      digests: whole ? Buffer.from(told.map(hex).join(''), 'hex') : null,
    });
    const blocks = told.map(({ low64, high }, i) => ({
      local: locals[i]!,
      child: low64,
      high: whole ? high : undefined,
    }));
    this.episode.model.learn({ parent, salted: false, blocks });
    this.compare('learn');
  }

  /** Derives the prompt's first `blocks` blocks and looks them up; returns how deriving ended, and the hit in blocks. */
  derive(
    { tokens, keys, digests }: TokenPrompt,
    blocks = keys.length,
    named: readonly bigint[] = keys,
  ): [Derived, number] {
    const { core, model } = this.episode;
    core.digestBehind(null, new Uint32Array(0), {});
    core.loadLocals(BigUint64Array.from(named));
    const ended = model.derive(named, digests, 0, blocks);
    assert.is(this.deriveInCore({ tokens }, blocks), ended === 'end' ? 1 : 0, ended);
    this.compare('derive');
    const hit = core.exports.lookupDerived(blocks, blocks * SIZE + 1);
    assert.is(hit * SIZE, model.lookupDerived(named.slice(0, blocks), blocks * SIZE + 1).hit, 'derived lookup');
    this.compare('lookup');
    return [ended, hit];
  }

  /** Derives in the core alone; the keys are in place. */
  deriveInCore({ tokens }: Pick<TokenPrompt, 'tokens'>, blocks: number): number {
    const { exports } = this.core;
    new Uint32Array(exports.memory.buffer, globalOf(exports, 'INPUT'), tokens.length).set(tokens);
    return exports.derive(0, blocks);
  }

  /** The hit along learned edges, in blocks. */
  lookup({ keys }: TokenPrompt): number {
    const hit = this.core.lookup(this.core.loadLocals(BigUint64Array.from(keys)), keys.length * SIZE + 1);
    assert.is(hit * SIZE, this.episode.model.lookup(keys, keys.length * SIZE + 1).hit, 'lookup');
    return hit;
  }

  clear(): void {
    this.episode.clear();
    this.compare('clear');
  }

  compare(where: string): void {
    this.episode.check();
    this.episode.compare(where);
  }

  /** Writes another digest into the derived edge that leads to this low64. */
  pokeHigh({ low64 }: ModelDigest): void {
    const { exports } = this.core;
    const view = new DataView(exports.memory.buffer);
    for (let slot = 1; slot < globalOf(exports, 'SLOTS'); slot++) {
      const derived = (view.getUint8(globalOf(exports, 'FLAGS') + slot) & 17) === 17;
      if (!derived || view.getBigUint64(globalOf(exports, 'EXTERNAL') + slot * 8, true) !== low64) continue;
      new Uint8Array(exports.memory.buffer, globalOf(exports, 'HIGH') + slot * 24, 24).set(
        Buffer.from(OTHER_HIGH, 'hex'),
      );
      return;
    }
    throw new Error('no such derived edge');
  }
}

/** Fills the ambiguous set. */
function fillAmbiguous(both: Both): void {
  const { digests } = new TokenPrompt(99, AMBIGUOUS_CAP);
  both.store(digests);
  both.store(digests.map(twin));
  assert.is(both.core.stats().ambiguous, AMBIGUOUS_CAP);
}

// ---- collisions ----

type Act = 'derive' | 'learn' | 'store' | 'store the twin';
/** What is done about block 2 of a prompt, in this order; `learn` tells its twin's digest. */
const ORDERS: readonly (readonly Act[])[] = [
  ['derive', 'learn', 'store'],
  ['learn', 'derive', 'store'],
  ['derive', 'learn', 'store the twin'],
  ['learn', 'derive', 'store the twin'],
  ['store', 'derive', 'learn'],
  ['store', 'learn', 'derive'],
  ['store the twin', 'derive'],
  ['store the twin', 'learn', 'derive'],
  ['derive', 'store the twin'],
  ['derive', 'store', 'store the twin'],
  ['derive', 'store the twin', 'store'],
];

for (const build of ['tiny', 'tiny-wide'] as const) {
  for (const order of ORDERS) {
    test(`${build}: two digests under one low64 are ambiguous and credit nothing: ${order.join(', ')}`, async () => {
      const both = await Both.of(build);
      const prompt = new TokenPrompt(1, 4);
      const others = prompt.digests.filter((_, i) => i !== 2);
      both.store(others);
      for (const act of order) {
        if (act === 'derive') both.derive(prompt);
        else if (act === 'learn') {
          both.learn(
            prompt,
            prompt.digests.map((digest, i) => (i === 2 ? twin(digest) : digest)),
          );
        } else both.store([act === 'store' ? prompt.digests[2]! : twin(prompt.digests[2]!)]);
      }
      assert.is(both.core.stats().ambiguous, 1);
      for (let again = 0; again < 3; again++) {
        assert.is(both.derive(prompt)[1], 2);
        assert.ok(both.lookup(prompt) <= 2);
        both.store(prompt.digests);
        both.store([twin(prompt.digests[2]!)]);
      }
      assert.is(both.core.stats().ambiguous, 1);
      // What has no part in it goes on.
      const good = new TokenPrompt(2, 4);
      both.store(good.digests);
      assert.equal(both.derive(good), ['end', 4]);
    });
  }

  for (const full of [false, true]) {
    test(`${build}: two derived digests under one low64 are ambiguous${full ? '; where that is one too many, all is dropped' : ''}`, async () => {
      const both = await Both.of(build);
      if (full) fillAmbiguous(both);
      const prompt = new TokenPrompt(1, 3);
      both.store(prompt.digests.slice(0, 2));
      assert.equal(both.derive(prompt), ['gap', 2]);
      both.pokeHigh(prompt.digests[2]!);
      // From here on the core alone. Another key for the same tokens stands for other tokens whose digest has the low half of the poked one.
      const { core } = both;
      core.loadLocals(BigUint64Array.from([...prompt.keys.slice(0, 2), 7n]));
      assert.is(both.deriveInCore(prompt, 3), 0);
      both.episode.check();
      const { edges, derivedEdges, digests, ambiguous } = core.stats();
      assert.equal([edges, derivedEdges, digests, ambiguous], full ? [0, 0, 0, 1] : [3, 3, 2, 1]);
      both.applyStored(prompt.digests);
      core.loadLocals(BigUint64Array.from(prompt.keys));
      both.deriveInCore(prompt, 3);
      assert.is(core.exports.lookupDerived(3, 7), 2);
      both.episode.check();
    });
  }

  test(`${build}: one digest under two keys stays under its first`, async () => {
    const both = await Both.of(build);
    const prompt = new TokenPrompt(1, 3);
    both.store(prompt.digests);
    both.derive(prompt);
    assert.equal(both.derive(prompt, 3, [prompt.keys[0]!, 7n, 8n]), ['cut', 1]);
    assert.is(both.core.stats().ambiguous, 0);
    assert.equal(both.derive(prompt), ['end', 3]);
  });

  // ---- overflow in the middle of a prompt ----

  for (const block of [0, 1, 5, 15, 16, 19]) {
    test(`${build}: the ambiguous set overflows at block ${block} of a prompt: all is dropped, and can be derived again`, async () => {
      const both = await Both.of(build);
      fillAmbiguous(both);
      const prompt = new TokenPrompt(1, 20);
      const others = prompt.digests.filter((_, i) => i !== block);
      both.store([...others, twin(prompt.digests[block]!)]);
      both.learn(prompt, others.slice(0, block), { whole: false });
      assert.equal(both.derive(prompt), ['cut', 0]);
      const { edges, derivedEdges, digests, ambiguous, ambiguityDrops } = both.core.stats();
      assert.equal([edges, derivedEdges, digests, ambiguous, ambiguityDrops], [0, 0, 0, 1, 1]);
      both.store(others);
      assert.equal(both.derive(prompt), ['cut', block]);
      assert.equal(both.derive(prompt), ['cut', block]);
      const good = new TokenPrompt(2, 20);
      both.store(good.digests);
      assert.equal(both.derive(good), ['end', 20]);
    });
  }

  // ---- caps ----

  test(`${build}: a prompt that fills the cap by itself is derived up to it, and others after it`, async () => {
    const both = await Both.of(build);
    const learned = new TokenPrompt(2, 30);
    both.learn(learned, learned.digests);
    const long = new TokenPrompt(1, CAP + 20);
    both.store(long.digests.slice(0, CAP));
    for (let again = 0; again < 3; again++) {
      assert.equal(both.derive(long), ['cut', CAP]);
      const { edges, derivedEdges, fullEvents } = both.core.stats();
      assert.equal([edges, derivedEdges, fullEvents], [CAP, CAP, again + 1]);
    }
    const short = new TokenPrompt(3, 3);
    both.remove(long.digests.slice(CAP - 3, CAP));
    both.store(short.digests);
    assert.equal(both.derive(short), ['end', 3]);
    // The short one pushed the long one's end out, from behind.
    assert.equal(both.derive(long, CAP - 3), ['end', CAP - 3]);
  });

  test(`${build}: edges in conflict leave a long prompt less room`, async () => {
    const both = await Both.of(build);
    for (let name = 2; name < 5; name++) {
      const prompt = new TokenPrompt(name, 1);
      both.learn(prompt, prompt.digests, { whole: false });
      both.learn(prompt, new TokenPrompt(name + 10, 1).digests, { whole: false });
    }
    assert.is(both.core.stats().conflicted, 3);
    const long = new TokenPrompt(1, CAP);
    both.store(long.digests);
    assert.equal(both.derive(long), ['cut', CAP - 3]);
  });

  test(`${build}: where every digest has an edge, a new one takes the place of the coldest edge's`, async () => {
    const both = await Both.of(build);
    const long = new TokenPrompt(1, CAP);
    both.store(long.digests);
    assert.equal(both.derive(long), ['end', CAP]);
    both.store(new TokenPrompt(2, 1).digests);
    assert.equal(both.derive(long), ['gap', CAP - 1]);
    assert.is(both.core.stats().refusedObjects, 0);
  });

  test(`${build}: a hint left by a walk along edges of one kind misleads none along the other`, async () => {
    const both = await Both.of(build);
    // With all extents in use, edges of both kinds share one, and its hint.
    for (let name = 50; name < 56; name++) {
      const filler = new TokenPrompt(name, 1);
      both.learn(filler, filler.digests);
    }
    const path = new TokenPrompt(1, 4);
    both.store(path.digests);
    for (let blocks = 1; blocks <= 4; blocks++) {
      both.learn(path, path.digests.slice(0, blocks));
      both.derive(path, blocks);
    }
    for (let turn = 0; turn < 3; turn++) {
      assert.is(both.lookup(path), 4);
      both.compare('lookup');
      assert.equal(both.derive(path), ['end', 4]);
    }
  });

  test(`${build}: a digest of both kinds becomes one without an edge with the last of them`, async () => {
    for (const derivedFirst of [true, false]) {
      const both = await Both.of(build);
      const prompt = new TokenPrompt(1, 2);
      both.store(prompt.digests);
      if (derivedFirst) both.derive(prompt);
      both.learn(prompt, prompt.digests);
      if (!derivedFirst) both.derive(prompt);
      assert.is(both.lookup(prompt), 2);
      const kinds = () => coreSnapshot(both.core).digests.map((digest) => digest.kinds.length);
      assert.equal(kinds(), [2, 2]);
      // The learned edge conflicts, the derived one stays.
      both.learn(prompt, [new TokenPrompt(9, 1).digests[0]!, prompt.digests[1]!], { whole: false });
      assert.equal(
        coreSnapshot(both.core)
          .digests.flatMap((digest) => digest.kinds)
          .sort(),
        ['derived', 'derived', 'learned'],
      );
      assert.is(both.lookup(prompt), 0);
      assert.equal(both.derive(prompt), ['end', 2]);
      // Others push everything out.
      const others = new TokenPrompt(2, CAP + 1);
      both.learn(others, others.digests, { whole: false });
      assert.is(both.core.stats().derivedEdges, 0);
      assert.equal(kinds(), [0, 0]);
    }
  });

  // ---- stopping early ----

  test(`${build}: one unit's gap does not end deriving while an earlier one may still reach further`, async () => {
    const groups = [
      { span: 4 * SIZE, ranks: 1 },
      { span: 2 * SIZE, ranks: 1 },
    ];
    const both = await Both.of(build, contractOfGroups(groups, true));
    const prompt = new TokenPrompt(1, 12);
    both.store(prompt.digests.slice(0, 1), 1);
    both.store(prompt.digests.slice(3, 4));
    // Two blocks are enough for the second unit's gap, not for the first one's reach.
    assert.equal(both.derive(prompt, 2), ['end', 0]);
    assert.equal(both.derive(prompt, 4), ['gap', 1]);
    assert.equal(both.derive(prompt), ['gap', 1]);
  });

  // ---- compaction ----

  for (const budget of [1, 7, 64]) {
    test(`${build}: compaction moves derived edges as they are, ${budget} at a time`, async () => {
      const both = await Both.of(build);
      const { core } = both;
      const path = new TokenPrompt(1, 10);
      both.store(path.digests);
      // Others branch off and take the slots behind the path's blocks; a learned path under the same keys lies beside it.
      both.derive(new TokenPrompt(2, 6, path, 5));
      both.derive(new TokenPrompt(3, 9, path, 8));
      both.derive(path);
      both.learn(path, path.digests);
      both.derive(path);
      const runsOf = () => {
        const before = core.stats().runs;
        core.exports.lookupDerived(10, 21);
        both.episode.model.lookupDerived(path.keys, 21);
        return core.stats().runs - before;
      };
      assert.is(runsOf(), 3);
      const before = coreSnapshot(core);
      assert.is(core.compact(budget), Math.min(budget, 10));
      assert.equal(coreSnapshot(core), before);
      both.compare('compact');
      if (budget === 64) assert.is(runsOf(), 1);
      assert.equal(both.derive(path), ['end', 10]);
      assert.is(both.lookup(path), 10);
      // The moved edges go as others do.
      both.remove(path.digests.slice(3, 5));
      assert.equal(both.derive(path), ['gap', 3]);
      const others = new TokenPrompt(4, CAP);
      both.learn(others, others.digests, { whole: false });
      assert.is(core.stats().derivedEdges, 0);
    });
  }

  // ---- clearing ----

  test(`${build}: residency of both kinds ends with its generation, over the wrap too`, async () => {
    const both = await Both.of(build);
    const prompt = new TokenPrompt(1, 20);
    both.store(prompt.digests);
    both.learn(prompt, prompt.digests);
    assert.equal(both.derive(prompt), ['end', 20]);
    both.clear();
    setClearGeneration(both.core, 0xffff_fffd);
    for (let turn = 0; turn < 6; turn++) {
      assert.equal(both.derive(prompt), ['gap', 0]);
      assert.is(both.lookup(prompt), 0);
      both.store(prompt.digests.slice(0, 7));
      assert.equal(both.derive(prompt), ['gap', 7]);
      assert.is(both.lookup(prompt), 7);
      both.remove(prompt.digests.slice(2, 3));
      assert.equal(both.derive(prompt), ['gap', 2]);
      both.store(prompt.digests);
      assert.equal(both.derive(prompt), ['end', 20]);
      both.clear();
    }
    assert.ok(both.core.stats().generation < 10);
  });
}

// ---- room for objects, in wide builds ----

test('tiny-wide: an edge that was left behind when its parent made room is there again once the parent is', async () => {
  const both = await Both.of('tiny-wide', contractOf(100));
  const prompt = new TokenPrompt(1, 4);
  const other = new TokenPrompt(2, 1);
  both.store(prompt.digests.slice(0, 1));
  assert.equal(both.derive(prompt, 2), ['gap', 1]);
  both.learn(other, other.digests);
  both.store(other.digests);
  // The third hundred objects is one too many. The coldest edge, which is passed over, is that of the digest being stored; the next its parent's.
  both.store(prompt.digests.slice(1, 2));
  assert.is(both.core.stats().derivedEdges, 1);
  both.remove(other.digests);
  both.store(prompt.digests.slice(0, 1));
  assert.equal(both.derive(prompt, 2), ['end', 2]);
  assert.equal(both.derive(prompt, 2), ['end', 2]);
  assert.equal(both.derive(prompt, 4), ['gap', 2]);
});

// ---- more than one part ----

test('digests of thousands of blocks are derived in parts, and told behind any of them', async () => {
  const core = await loadCore('default' satisfies TestBuild);
  const contract = contractOf(1);
  core.configure(planOf(contract, 'derived'), 5n, contract.hashRule);
  const prompt = new TokenPrompt(1, 3_500);
  const keyPrefix = contract.groups[0]!.keyPrefixes[0]!;
  const events = prompt.digests.map((digest) => ({
    event_type: 'stored',
    object_key: `${keyPrefix}@${hex(digest)}`,
    medium: 'cpu',
  }));
  assert.is(core.applyPayload(encode([0, events, 0])).outcome, 'applied');
  assert.is(core.lookupDerived(prompt.tokens, prompt.tokens.length, {}), 3_500);
  assert.is(core.stats().derivedEdges, 3_500);
  assert.is(core.stats().derivedBlocks, 3_500);
  assert.is(core.lookupDerived(prompt.tokens, prompt.tokens.length, {}), 3_500);
  assert.is(core.stats().derivedBlocks, 3_500, 'known digests are not computed again');
  for (const from of [0, 1, 1_000, 2_499]) {
    for (const blocks of [1, 2, 1_000]) {
      const parent = from === 0 ? null : prompt.digests[from - 1]!.low64;
      const halves = parent === null ? null : { low: Number(parent & 0xffff_ffffn), high: Number(parent >> 32n) };
      const said = core.digestBehind(halves, prompt.tokens.subarray(from * SIZE, (from + blocks) * SIZE), {});
      assert.is(
        Buffer.from(said!).toString('hex'),
        hex(prompt.digests[from + blocks - 1]!),
        `${blocks} behind ${from}`,
      );
    }
  }
  assert.is(
    Buffer.from(core.digestBehind(null, prompt.tokens.subarray(0, 7_000), {})!).toString('hex'),
    hex(prompt.digests[3_499]!),
  );
  assert.is(core.digestBehind({ low: 1, high: 2 }, prompt.tokens.subarray(0, 2), {}), null);
});

test('derived alone, the digest table full: a prompt looked up cold and stored afterwards is credited whole', async () => {
  const core = await loadCore('tiny');
  const contract = contractOf(1);
  core.configure(planOf(contract, 'derived'), 1n, contract.hashRule);
  const [prefix] = contract.groups[0]!.keyPrefixes;
  const store = (tokens: Uint32Array) => {
    const keys = vllmDigests(tokens, 2).map((digest) => `${prefix}@${digest.toString('hex')}`);
    core.applyPayload(encode([0, keys.map((object_key) => ({ event_type: 'stored', object_key, medium: 'cpu' })), 0]));
  };
  const tokensOf = (name: number, blocks: number) =>
    Uint32Array.from({ length: blocks * 2 + 1 }, (_, i) => name * 1000 + i);
  for (let name = 1; name <= 4; name++) {
    const tokens = tokensOf(name, 16);
    store(tokens);
    assert.is(core.lookupDerived(tokens, tokens.length, {}), 16);
  }
  for (let name = 10; name < 20; name++) {
    const tokens = tokensOf(name, 30);
    core.lookupDerived(tokens, tokens.length, {});
    store(tokens); // those past the first blocks that were derived have no edge yet
    assert.is(core.lookupDerived(tokens, tokens.length, {}), 30, `prompt ${name}`);
  }
});

test.run();
