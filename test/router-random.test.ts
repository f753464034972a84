// Random lives of a router, each step held against a plain model: workers come, go, drain and change their contracts, blocks enter and leave
// their tiers and the store, requests are routed, and end or fail. What every rank is believed to hold and what is credited from the
// store must be exactly what the model says, and the sums must add up.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Lease } from '../src/router/leases.js';
import { Router } from '../src/router/router.js';
import { contractOf, prefixOf, removed, stored, storeMessage } from './support/messages.js';
import { Random } from './support/random.js';
import { workerMessage } from './support/router-pool.js';

const BLOCK = 16;
const LIVES = 12;
const STEPS = 400;
const CONTRACTS = ['model', 'other'].map((model) => contractOf({ model }));
const MEDIA = ['GPU', 'CPU', 'DISK'] as const;

/** A prompt as a path: one letter a block, so that prompts of a common beginning share blocks. */
type Path = string;

const prefixes = (path: Path): Path[] => Array.from({ length: path.length }, (_, i) => path.slice(0, i + 1));
/** The engine's hash of a path: its own number in base 5, no two alike. */
const hashOf = (path: Path): bigint =>
  [...path].reduce((hash, letter) => hash * 5n + BigInt('abcd'.indexOf(letter) + 1), 0n);
const digestOf = (path: Path): string => hashOf(path).toString(16).padStart(64, '0');
const tokensOf = (path: Path): number[] =>
  [...path].flatMap((letter) => Array.from({ length: BLOCK }, (_, i) => letter.charCodeAt(0) * 1000 + i));

/** A rank of the model: what it holds by tier, and its contract. */
interface ModelRank {
  readonly held: readonly Set<Path>[];
  contract: number | null;
  draining: boolean;
}

/** What a prompt's first blocks come to on a rank: so many on the device, then in host memory, then on disk. */
function depthsOf({ held }: ModelRank, path: Path): number[] {
  let depth = 0;
  return held.map((tier) => {
    const from = depth;
    while (depth < path.length && tier.has(path.slice(0, depth + 1))) depth++;
    return depth - from;
  });
}

class Life {
  readonly ranks = new Map<number, ModelRank>();
  readonly learned = new Set<Path>();
  readonly resident = new Set<Path>();
  inForce: number | null = null;
  sequence = 0;
  readonly leases: Lease[] = [];

  constructor(
    readonly router: Router,
    readonly random: Random,
  ) {}

  step(): void {
    const { random } = this;
    const acts = [
      () => this.addWorker(random.int(5)),
      () => this.removeWorker(random.int(5)),
      () => this.drain(random.int(5), random.chance(0.3)),
      () => this.clear(random.int(5)),
      ...Array(6).fill(() => this.announce(random.int(5), this.path(), random.int(3))),
      ...Array(3).fill(() => this.evict(random.int(5), this.path(), random.int(3))),
      ...Array(4).fill(() => this.store(this.path())),
      ...Array(2).fill(() => this.unstore(this.path())),
      ...Array(5).fill(() => this.route(this.path())),
      () => this.end(),
    ] as const;
    random.pick(acts)();
  }

  path(): Path {
    const { random } = this;
    return Array.from({ length: random.between(1, 6) }, () =>
      random.chance(0.7) ? 'a' : random.pick(['b', 'c', 'd']),
    ).join('');
  }

  addWorker(id: number): void {
    const contract = this.random.chance(0.15) ? null : this.random.chance(0.8) ? 0 : 1;
    this.router.addWorker({ id, contract: contract === null ? null : CONTRACTS[contract]! });
    const known = this.ranks.get(id);
    if (known === undefined) {
      const { load } = this.router.workers().find((worker) => worker.id === id)!.ranks[0]!;
      assert.equal(load, { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 });
    }
    const held = known?.held ?? MEDIA.map(() => new Set<Path>());
    this.ranks.set(id, { held, contract, draining: false });
    this.elect();
  }

  removeWorker(id: number): void {
    assert.is(this.router.removeWorker(id), this.ranks.delete(id));
    this.elect();
  }

  /** The contract of most; the one in force stays unless another has more. */
  elect(): void {
    const votes = [0, 1].map(
      (contract) => [...this.ranks.values()].filter((rank) => rank.contract === contract).length,
    );
    const [a, b] = votes as [number, number];
    const first = CONTRACTS[0]!.fingerprint < CONTRACTS[1]!.fingerprint ? 0 : 1;
    const winner = a + b === 0 ? null : a > b ? 0 : b > a ? 1 : (this.inForce ?? first);
    if (winner === this.inForce) return;
    this.inForce = winner;
    this.learned.clear();
    this.resident.clear();
  }

  drain(id: number, draining: boolean): void {
    const rank = this.ranks.get(id);
    assert.is(this.router.setDraining(id, draining), rank !== undefined);
    if (rank !== undefined) rank.draining = draining;
  }

  clear(id: number): void {
    this.router.onWorkerMessage(id, workerMessage([{ type: 'AllBlocksCleared' }]));
    for (const tier of this.ranks.get(id)?.held ?? []) tier.clear();
  }

  /** The blocks of a path from some block on enter a tier; those on the device teach, whether the index takes them or not. */
  announce(id: number, path: Path, tier: number): void {
    const first = this.random.chance(0.7) ? 0 : this.random.int(path.length);
    const blocks = prefixes(path).slice(first);
    const event = {
      type: 'BlockStored',
      block_hashes: blocks.map(hashOf),
      parent_block_hash: first === 0 ? null : hashOf(path.slice(0, first)),
      token_ids: tokensOf(path.slice(first)),
      block_size: BLOCK,
      medium: MEDIA[tier],
    };
    const result = this.router.onWorkerMessage(id, workerMessage([event]));
    const rank = this.ranks.get(id);
    if (rank === undefined) {
      assert.is(result.fate, 'unknown-worker');
      return;
    }
    if (rank.contract !== null && rank.contract === this.inForce && tier === 0)
      for (const block of blocks) this.learned.add(block);
    const taken = first === 0 || rank.held.some((held) => held.has(path.slice(0, first)));
    assert.is(result.stored, taken ? blocks.length : 0);
    if (taken) for (const block of blocks) rank.held[tier]!.add(block);
  }

  /** The last block of a path leaves a tier. */
  evict(id: number, path: Path, tier: number): void {
    const event = { type: 'BlockRemoved', block_hashes: [hashOf(path)], medium: MEDIA[tier] };
    const { removed } = this.router.onWorkerMessage(id, workerMessage([event]));
    const held = this.ranks.get(id)?.held[tier];
    assert.is(removed, held?.delete(path) ? 1 : 0);
  }

  store(path: Path): void {
    this.send(prefixes(path), stored);
    if (this.inForce !== null) for (const block of prefixes(path)) this.resident.add(block);
  }

  unstore(path: Path): void {
    this.send([path], removed);
    this.resident.delete(path);
  }

  send(paths: readonly Path[], event: typeof stored): void {
    const prefix = prefixOf(0, 0, this.inForce === 1 ? 'other' : 'model');
    this.sequence++;
    this.router.onStoreMessage(
      storeMessage(
        this.sequence,
        paths.map((path) => event(`${prefix}@${digestOf(path)}`)),
      ),
    );
  }

  route(path: Path): void {
    const { random } = this;
    const tokens = [...tokensOf(path), 1];
    const allowed = random.chance(0.2) ? [random.int(5), random.int(5)] : undefined;
    const open = [...this.ranks].filter(([id, { draining }]) => !draining && (allowed?.includes(id) ?? true));
    if (open.length === 0) {
      assert.throws(() => this.router.route({ tokens, allowed }), /no worker may serve/);
      return;
    }
    const before = this.router.workers();
    const decision = this.router.route({ tokens, textOnly: true, allowed, explain: true });
    const chain = prefixes(path);
    const missing = chain.findIndex((block) => !(this.learned.has(block) && this.resident.has(block)));
    const sharedEnd = missing < 0 ? path.length : missing;
    let best = 0;
    for (const view of decision.candidates!) {
      const rank = this.ranks.get(view.worker.id as number)!;
      const [device, host, disk] = depthsOf(rank, path) as [number, number, number];
      const end = rank.contract !== null && rank.contract === this.inForce ? sharedEnd : 0;
      const local = device + host + disk;
      const shared = Math.max(0, end - local);
      assert.equal(view.blocks, { device, host, disk, shared, request: path.length + 1 });
      assert.is(view.zero.shared === null, shared > 0);
      const isOpen = open.some(([id]) => id === view.worker.id);
      assert.is(view.notEligible === null, isOpen);
      if (isOpen) best = Math.max(best, local, end);
    }
    assert.is(decision.candidates!.length, this.ranks.size);
    assert.is(decision.bestReachable, best);
    const costs = decision.candidates!.flatMap(({ cost }) => (cost === null ? [] : [cost])).sort((a, b) => a - b);
    assert.equal(
      [decision.cost, decision.runnerUp?.cost],
      costs.slice(0, 2).concat(Array(2).fill(undefined)).slice(0, 2),
    );
    // What the lease added is what the rank must compute, whatever the store could restore.
    const { device, host, disk } = decision.blocks;
    const loadOf = (views: ReturnType<Router['workers']>) =>
      views.find(({ id }) => id === decision.worker.id)!.ranks[0]!.load.prefillTokens;
    assert.is(loadOf(this.router.workers()) - loadOf(before), tokens.length - (device + host + disk) * BLOCK);
    this.leases.push(decision.lease);
  }

  end(): void {
    const lease = this.leases.pop();
    if (this.random.chance(0.5)) lease?.cancel(0);
    else lease?.complete(0);
  }
}

/** Blocks that decisions counted on, in all lives. */
const seen = { shared: 0, local: 0 };

for (let seed = 1; seed <= LIVES; seed++) {
  test(`life ${seed}`, async () => {
    const router = await Router.create({
      settings: { sharedCacheType: 'mooncake-store', seed },
      index: { bytes: 4 << 20 },
    });
    const life = new Life(router, new Random(seed));
    for (let id = 0; id < 3; id++) life.addWorker(id);
    for (let step = 0; step < STEPS; step++) life.step();
    for (const lease of life.leases) lease.complete(1);
    for (const { ranks } of router.workers())
      assert.equal(ranks[0]!.load, { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 });
    const { opened, completed, cancelled, open } = router.stats().leases;
    assert.equal([open, completed + cancelled], [0, opened]);
    const { decisions, sharedBlocks, achievedBlocks } = router.stats().decisions;
    assert.is(decisions, opened);
    seen.shared += sharedBlocks;
    seen.local += achievedBlocks - sharedBlocks;
  });
}

test('these lives saw hits of both kinds', () => {
  console.log(`router-random: ${JSON.stringify(seen)}`);
  assert.ok(seen.shared > 50 && seen.local > 300, JSON.stringify(seen));
});

test.run();
