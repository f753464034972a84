// Derived hashes through the whole service on real sockets: a prefix that only the store knows, put there by a worker that the router never heard of,
// is counted on from the first request, as far as the engine then restores it; and nothing is where ranks have proven nothing, or something else.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Descriptor } from '../src/contract/descriptor.js';
import { descriptorFromCase } from '../src/contract/from-case.js';
import type { FleetOptions } from '../src/fleet/fleet.js';
import type { GroupOptions } from '../src/fleet/worker/geometry.js';
import type { ConfigInput } from '../src/server/config.js';
import type { DerivationView } from '../src/server/derivation.js';
import { type Answered, complete, post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { ServiceOverFleet } from './support/running-service.js';

type Hashing = NonNullable<NonNullable<ConfigInput['sharedCache']>['hashing']>;
type Fields = Readonly<Record<string, unknown>>;

const MODELS: Readonly<Record<string, readonly GroupOptions[]>> = {
  full: [{ kind: 'full_attention' }],
  sliding: [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 48 }],
  mamba: [{ kind: 'full_attention' }, { kind: 'mamba' }],
  'coarse full attention': [{ kind: 'full_attention' }, { kind: 'full_attention', blockSize: 32 }],
};

/** Blocks of a prompt that ends within its last one. */
const BLOCKS = 40;
const TOKENS = 16 * BLOCKS + 7;
/** Restored of it by every one of these models. */
const WHOLE = 16 * BLOCKS;

/** A router of two workers, and a third one that shares their store and is no business of the router's. */
class Pool {
  private constructor(readonly over: ServiceOverFleet) {}

  static async open(hashing: Hashing, worker: FleetOptions['worker'] = {}, trustSeed = false): Promise<Pool> {
    const fleet = { workers: 3, worker: { latency: { timeScale: 0 }, ...worker } };
    return new Pool(await ServiceOverFleet.start(fleet, { sharedCache: { hashing, trustSeed } }, 1));
  }

  get workers() {
    return this.over.fleet.workers;
  }

  /** The third worker computes a prompt, and so puts it into the store. */
  async put(prompt: readonly number[], fields: Fields = {}): Promise<void> {
    await complete(this.workers[2]!.httpUrl, prompt, fields);
    await this.over.heard();
  }

  /** A worker computes something of its own, and says so. */
  async prove(worker: number, fields: Fields = {}): Promise<void> {
    await complete(this.workers[worker]!.httpUrl, tokensOf(500 + worker, 40), fields);
    await this.over.heard();
  }

  /** What a request through the router is counted on to find in the store, and what then was found. */
  async ask(prompt: readonly number[], fields: Fields = {}) {
    const response = await post(`${this.over.url}/v1/completions`, { prompt, max_tokens: 1, ...fields });
    const text = await response.text();
    assert.is(response.status, 200, text);
    const { usage, moonroute } = JSON.parse(text) as Answered;
    await this.over.heard();
    return {
      worker: response.headers.get('x-moonroute-worker'),
      shared: Number(/shared=(\d+)/.exec(response.headers.get('x-moonroute-cached-tokens')!)![1]),
      reason: response.headers.get('x-moonroute-reason'),
      restored: moonroute.store_tokens,
      cached: usage.prompt_tokens_details.cached_tokens,
    };
  }

  async explain(tokens: readonly number[]) {
    const response = await post(`${this.over.url}/explain`, { completions: { prompt: tokens } });
    return (await response.json()) as {
      readonly candidates: readonly {
        readonly worker: { readonly id: string };
        readonly blocks: { readonly shared: number };
        readonly zero: { readonly shared: { readonly code: string; readonly text: string } | null };
      }[];
      readonly reasons: readonly { readonly code: string; readonly text: string }[];
    };
  }

  async derivation(): Promise<DerivationView> {
    const response = await fetch(`${this.over.url}/status`);
    return ((await response.json()) as { derivation: DerivationView }).derivation;
  }

  async isIn(state: DerivationView['state']): Promise<void> {
    await until(`state ${state}`, async () => (await this.derivation()).state === state);
  }

  close(): Promise<void> {
    return this.over.close();
  }
}

async function withPool(work: (pool: Pool) => Promise<void>, ...options: Parameters<typeof Pool.open>): Promise<void> {
  const pool = await Pool.open(...options);
  try {
    await work(pool);
  } finally {
    await pool.close();
  }
}

if (zeromq !== null) {
  for (const hashing of ['derived', 'both'] as const) {
    for (const [model, groups] of Object.entries(MODELS)) {
      test(`${hashing}, ${model}: what only the store holds is counted on whole from the first request`, () =>
        withPool(
          async (pool) => {
            const prompt = tokensOf(1, TOKENS);
            await pool.put(prompt);
            for (const worker of [0, 1]) await pool.prove(worker);
            await pool.isIn('proven');
            const { shared, restored, cached, reason } = await pool.ask(prompt);
            assert.is(shared, WHOLE, String(reason));
            assert.is(restored, WHOLE);
            assert.is(cached, WHOLE);
            assert.is(reason, null);
          },
          hashing,
          { groups, tp: 2 },
        ));
    }
  }

  test('learned: the same prefix is worth nothing, for nobody has announced it', () =>
    withPool(async (pool) => {
      const prompt = tokensOf(1, TOKENS);
      await pool.put(prompt);
      for (const worker of [0, 1]) await pool.prove(worker);
      const { shared, restored, reason } = await pool.ask(prompt);
      assert.is(shared, 0);
      assert.is(reason, 'not-learned');
      assert.is(restored, WHOLE);
    }, 'learned'));

  for (const [hashing, unproven] of [
    ['derived', 'hashes-unproven'],
    ['both', 'not-learned'],
  ] as const) {
    test(`${hashing}: nothing before an event agreed, then the rank that proved it alone, then all`, () =>
      withPool(async (pool) => {
        const prompts = [1, 2, 3].map((name) => tokensOf(name, TOKENS));
        for (const prompt of prompts) await pool.put(prompt);
        await pool.isIn('unproven');
        const before = await pool.explain(prompts[0]!);
        assert.equal(
          before.candidates.map(({ blocks, zero }) => [blocks.shared, zero.shared?.code]),
          [
            [0, unproven],
            [0, unproven],
          ],
        );
        await pool.prove(1);
        await pool.isIn('proving');
        const half = await pool.explain(prompts[1]!);
        assert.equal(
          half.candidates.map(({ worker, blocks, zero }) => [worker.id, blocks.shared, zero.shared?.code ?? null]),
          [
            ['worker-0', 0, unproven],
            ['worker-1', BLOCKS, null],
          ],
        );
        const chosen = await pool.ask(prompts[1]!);
        assert.is(chosen.worker, 'worker-1');
        assert.is(chosen.shared, WHOLE);
        await pool.prove(0);
        await pool.isIn('proven');
        const { candidates } = await pool.explain(prompts[2]!);
        assert.equal(
          candidates.map(({ blocks }) => blocks.shared),
          [BLOCKS, BLOCKS],
        );
        // Another process has to prove itself.
        await pool.workers[1]!.restart();
        await pool.isIn('proving');
        const restarted = await pool.explain(prompts[2]!);
        assert.equal(
          restarted.candidates.map(({ blocks }) => blocks.shared),
          [BLOCKS, 0],
        );
      }, hashing));
  }

  test('the reasons read well', () =>
    withPool(async (pool) => {
      const prompt = tokensOf(1, TOKENS);
      await pool.put(prompt);
      const { reasons, candidates } = await pool.explain(prompt);
      const text =
        /^Not every admitted rank has published an event yet that agrees with derived hashes, so nothing proves that they hash as their contract says\.$/;
      assert.match(reasons[0]!.text, text);
      assert.match(candidates[0]!.zero.shared!.text, text);
      for (const worker of [0, 1]) await pool.prove(worker);
      await pool.isIn('proven');
      // What is not in the store is named by its whole key.
      const longer = await pool.explain([...prompt, ...tokensOf(9, 64)]);
      assert.is(longer.candidates[0]!.blocks.shared, BLOCKS);
      const missing = longer.reasons.find(({ code }) => code === 'object-missing')!;
      assert.match(missing.text, /Not in the store: fleet@simulated-70b@tp_rank:0@.*@group:0@[0-9a-f]{64}/);
    }, 'derived'));

  test('adapters and salts: each is counted on once a rank has proven such hashes, too', () =>
    withPool(
      async (pool) => {
        const kinds: readonly (readonly [Fields, Fields])[] = [
          [{ model: 'sql' }, { model: 'sql' }],
          [{ cache_salt: 'tenant' }, { cache_salt: 'dynamo-cache-salt:tenant' }],
          [
            { model: 'sql', cache_salt: 'tenant' },
            { model: 'sql', cache_salt: 'dynamo-cache-salt:tenant' },
          ],
        ];
        for (const worker of [0, 1]) await pool.prove(worker);
        await pool.isIn('proven');
        for (const [name, [asked, atWorker]] of kinds.entries()) {
          const prompts = [1, 2].map((half) => tokensOf(10 * name + half, TOKENS));
          for (const prompt of prompts) await pool.put(prompt, atWorker);
          // The last kind is proven by the two before it.
          if (name < 2) {
            const { shared, reason } = await pool.ask(prompts[0]!, asked);
            assert.is(shared, 0);
            assert.is(reason, 'hashes-unproven');
            for (const worker of [0, 1]) await pool.prove(worker, atWorker);
          }
          const { shared, restored } = await pool.ask(prompts[1]!, asked);
          assert.is(shared, WHOLE, `kind ${name}`);
          assert.is(restored, WHOLE, `kind ${name}`);
        }
      },
      'derived',
      { adapters: ['sql'] },
    ));

  test('engines of another seed than their contract are refuted by their first event, and credit never comes', () =>
    withPool(
      async (pool) => {
        const prompt = tokensOf(1, TOKENS);
        await pool.put(prompt);
        assert.is((await pool.ask(tokensOf(2, 100))).reason, 'hashes-unproven');
        await pool.isIn('refuted');
        const { text } = await pool.derivation();
        assert.match(text, /where sha256 with seed "42" gives [0-9a-f]{16}\. .*Check PYTHONHASHSEED/);
        for (const worker of [0, 1]) await pool.prove(worker);
        const { shared, reason, restored } = await pool.ask(prompt);
        assert.is(shared, 0);
        assert.is(reason, 'hashes-refuted');
        assert.is(restored, WHOLE, 'the engines know it by their own seed');
        const { reasons } = await pool.explain(prompt);
        assert.match(
          reasons[0]!.text,
          /^Of worker worker-[01], rank 0, a block hash is [0-9a-f]{16} where sha256 with/,
        );
        const page = await (await fetch(`${pool.over.url}/metrics`)).text();
        assert.match(page, /^moonroute_derivation_state\{state="refuted"\} 1$/m);
      },
      'derived',
      { descriptor: withSeed('pythonhashseed-42') },
    ));

  test('both: refuted, learned hashes go on', () =>
    withPool(
      async (pool) => {
        const prompt = tokensOf(3, TOKENS);
        await pool.ask(prompt);
        await pool.isIn('refuted');
        for (const worker of pool.workers.slice(0, 2)) worker.clear();
        await pool.over.heard();
        const { shared, restored } = await pool.ask(prompt);
        assert.is(shared, WHOLE);
        assert.is(restored, WHOLE);
      },
      'both',
      { descriptor: withSeed('pythonhashseed-42') },
    ));

  test('a seed that is taken on trust is credited at once, and no longer than until an event disagrees', () =>
    withPool(
      async (pool) => {
        const prompt = tokensOf(1, TOKENS);
        await pool.put(prompt);
        await pool.isIn('trusted');
        assert.is((await pool.ask(prompt)).shared, WHOLE);
      },
      'derived',
      {},
      true,
    ));
}

/** What a worker of the simulated kind publishes, under another seed policy. */
function withSeed(seed_policy: string): Descriptor {
  const keys = ['fleet@simulated-70b@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0'];
  const descriptor = descriptorFromCase({
    hash_block_size: 16,
    coordinator_alignment: 16,
    partial_hash_hits: false,
    main_event_block_size: 16,
    groups: [{ group_id: 0, kind: 'full_attention', block_size: 16, window: null, prefixes: keys }],
  });
  return { ...descriptor, hash: { ...descriptor.hash, seed_policy } };
}

test.run();
