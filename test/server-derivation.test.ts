// How far derived hashes are trusted, as status, metrics and console say it, and what the log says of it and how often.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Hashing } from '../src/contract/descriptor.js';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import { createConsole } from '../src/server/console.js';
import { DERIVATION_STATES, derivationOf } from '../src/server/derivation.js';
import { LOOK_EVERY, watchDerivation } from '../src/server/derivation-watch.js';
import { createMetrics } from '../src/server/metrics.js';
import { derivationWords, zeroWords } from '../src/web/console/words.js';
import { low64Of } from '../src/wire/block-digests.js';
import { noPrompts } from './support/ended-request.js';
import { vllmDigests } from './support/engine-digests.js';
import { HandClock } from './support/hand-clock.js';
import { metricsPage } from './support/metrics-page.js';
import { workerMessage } from './support/router-pool.js';

const BLOCK = 16;

/** A contract of one group: full attention, or a window, of which no group is the main one. */
function descriptorOf({ seed = '0', window = null }: { seed?: string; window?: number | null } = {}) {
  const kind = window === null ? 'full_attention' : 'sliding_window';
  const descriptor = descriptorFromCase({
    hash_block_size: BLOCK,
    coordinator_alignment: BLOCK,
    partial_hash_hits: false,
    main_event_block_size: BLOCK,
    groups: [
      { group_id: 0, kind, block_size: BLOCK, window, prefixes: ['pool@m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0'] },
    ],
  });
  return { ...descriptor, hash: { ...descriptor.hash, seed_policy: `pythonhashseed-${seed}` } };
}

/** A router of two workers, as the server makes it, with everything that shows its state. */
class Pool {
  readonly clock = new HandClock();
  readonly lines: string[] = [];
  readonly live: LiveStreams;
  /** Ends the watch. */
  readonly end: () => void;

  private constructor(
    readonly router: Router,
    readonly sharedCache: { hashing: Hashing; trustSeed: boolean },
  ) {
    const say = (level: string) => (fields: object, text: string) =>
      void this.lines.push(`${level} ${JSON.stringify(fields)} ${text}`);
    const log = { info: say('info'), warn: say('warn') };
    this.end = watchDerivation({ router, sharedCache, log, clock: this.clock });
    this.live = LiveStreams.open(router);
  }

  static async open(hashing: Hashing = 'derived', trustSeed = false): Promise<Pool> {
    const settings = { sharedCacheType: 'mooncake-store' } as const;
    const index = { bytes: 1 << 20 };
    return new Pool(await Router.create({ settings, index, cache: { hashing, trustSeed } }), { hashing, trustSeed });
  }

  add(...descriptors: readonly object[]): this {
    for (const [id, descriptor] of descriptors.entries()) this.router.addWorker({ id: `w${id}`, descriptor });
    return this;
  }

  /** A worker computes the first block of some prompt under a seed. */
  announce(id: string, seed = '0'): void {
    const tokens = Uint32Array.from({ length: BLOCK }, (_, i) => 5000 + i);
    const event = {
      type: 'BlockStored',
      block_hashes: vllmDigests(tokens, BLOCK, { seed }).map((digest) => low64Of(digest)),
      parent_block_hash: null,
      token_ids: [...tokens],
      block_size: BLOCK,
      lora_id: null,
      medium: 'GPU',
      lora_name: null,
    };
    this.router.onWorkerMessage(id, workerMessage([event]));
  }

  get view() {
    return derivationOf(this.router.stats(), this.router.contract, this.sharedCache);
  }

  async page() {
    const { router, live, sharedCache } = this;
    const sources = { router, live, registry: { list: () => [] }, prompts: { stats: noPrompts }, sharedCache };
    return { metrics: metricsPage(await createMetrics(sources).text()), console: createConsole(sources).json() };
  }

  /** Lines of the log since the last time. */
  logged(): string[] {
    this.clock.advance(LOOK_EVERY);
    return this.lines.splice(0);
  }

  close(): void {
    this.end();
    this.live.close();
    this.router.dispose();
  }
}

/** State, words, and figures of a pool, the same wherever they are shown. */
async function shows(pool: Pool, state: (typeof DERIVATION_STATES)[number], words: RegExp, proven = 0): Promise<void> {
  const { view } = pool;
  assert.is(view.state, state);
  assert.match(view.text, words);
  assert.is(view.provenRanks, proven);
  const { metrics, console } = await pool.page();
  assert.equal(console.derivation, view);
  for (const other of DERIVATION_STATES)
    assert.is(metrics.sum('moonroute_derivation_state', { state: other }), other === state ? 1 : 0, other);
  assert.is(metrics.sum('moonroute_derivation_proven_ranks'), proven);
}

async function withPool(work: (pool: Pool) => Promise<void>, ...options: Parameters<typeof Pool.open>): Promise<void> {
  const pool = await Pool.open(...options);
  try {
    await work(pool);
  } finally {
    pool.close();
  }
}

test('from no contract over the first agreeing event to proven, said once', () =>
  withPool(async (pool) => {
    await shows(pool, 'no-contract', /No contract is in force/);
    pool.add(descriptorOf(), descriptorOf());
    await shows(pool, 'unproven', /Events of 0 of 2 ranks have agreed so far, and no derived hash is credited/);
    pool.announce('w1');
    await shows(pool, 'proving', /Events of 1 of 2 ranks have agreed so far; the others get nothing/, 1);
    assert.equal(pool.logged(), []);
    pool.announce('w0');
    await shows(pool, 'proven', /Events of 2 of 2 ranks have agreed\./, 2);
    assert.equal(pool.logged(), ['info {"derivation":"proven"} derived hashes: Events of 2 of 2 ranks have agreed.']);
    assert.equal(pool.logged(), []);
    assert.is((await pool.page()).metrics.sum('moonroute_derivation_agreed_events_total'), 2);
    assert.equal(
      (await pool.page()).console.warnings.map(({ code }) => code),
      ['no-workers'],
    );
  }));

for (const hashing of ['derived', 'both'] as const) {
  test(`${hashing}: a worker of another seed refutes; that is said once, with what to do`, () =>
    withPool(async (pool) => {
      pool.add(descriptorOf(), descriptorOf());
      pool.announce('w0');
      pool.announce('w1', '42');
      await shows(
        pool,
        'refuted',
        /^Of worker w1, rank 0, a block hash is [0-9a-f]{16} where sha256 with seed "0" gives [0-9a-f]{16}\. .*not credited until the contract changes.*PYTHONHASHSEED/,
        1,
      );
      const [line, ...more] = pool.logged();
      assert.equal(more, []);
      assert.match(line!, /^warn \{"derivation":"refuted"\} derived hashes: Of worker w1, rank 0/);
      for (let i = 0; i < 100; i++) pool.announce('w1', '42');
      assert.equal(pool.logged(), []);
      const { console } = await pool.page();
      assert.match(console.warnings.find(({ code }) => code === 'hashes-refuted')!.text, 'Of worker w1');
    }, hashing));
}

test('a pool that changes its contract all the time is said once a look', () =>
  withPool(async (pool) => {
    let lines = 0;
    for (let i = 0; i < 200; i++) {
      pool.add(descriptorOf({ seed: String(i % 7) }));
      pool.announce('w0', 'another');
      if (i % 10 === 9) lines += pool.logged().length;
    }
    assert.ok(lines > 10 && lines <= 20, `${lines}`);
  }));

test('once ended it looks no more', () =>
  withPool(async (pool) => {
    pool.add(descriptorOf());
    assert.equal(pool.logged(), []);
    pool.announce('w0');
    pool.end();
    for (let look = 0; look < 3; look++) assert.equal(pool.logged(), []);
  }));

test('a contract without a main group can’t be proven by events, and is trusted where somebody vouches for it', async () => {
  await withPool(async (pool) => {
    pool.add(descriptorOf({ window: 64 }));
    await shows(pool, 'unproven', /no main event group, so no event can prove .*set sharedCache\.trustSeed to true/);
    assert.match(pool.logged().join(), /^warn .*no main event group/);
    const { console } = await pool.page();
    assert.ok(console.warnings.some(({ code }) => code === 'hashes-unprovable'));
  });
  await withPool(
    async (pool) => {
      pool.add(descriptorOf({ window: 64 }));
      await shows(pool, 'trusted', /Taken on trust \(sharedCache\.trustSeed\); events of 0 of 1 rank have agreed/);
      assert.match(pool.logged().join(), /^info /);
    },
    'derived',
    true,
  );
});

test('trust does not outlast an event that disagrees', () =>
  withPool(
    async (pool) => {
      pool.add(descriptorOf());
      await shows(pool, 'trusted', /Taken on trust/);
      pool.announce('w0', '42');
      await shows(pool, 'refuted', /Of worker w0/);
    },
    'derived',
    true,
  ));

test('where hashes are learned, derivation is off and nothing is watched', () =>
  withPool(async (pool) => {
    pool.add(descriptorOf());
    pool.announce('w0', '42');
    await shows(pool, 'off', /learned from workers/);
    assert.equal(pool.logged(), []);
  }, 'learned'));

test('every state and every reason has its words', () => {
  for (const state of DERIVATION_STATES) assert.not.equal(derivationWords(state), '');
  for (const code of ['hashes-unproven', 'hashes-refuted', 'tokens-missing', 'not-derived', 'contract-unfit'])
    assert.is.not(zeroWords(code), code);
});

test.run();
