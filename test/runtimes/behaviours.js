// The behaviour suite of the public entries, run unchanged in Node, in Deno, and in pages with and without a bundler. Each behaviour gives what it saw as
// plain JSON; engines must agree to the last bit. It knows nothing but what is handed to it: the two modules, and test/support/behaviour-input.ts.
import { answers } from './answers.js';

/** Of the hash tables: what they drop must be repeatable. */
const TABLE_SEED = 7n;
const INDEX = { bytes: 4 << 20, ranks: 64, tableSeed: TABLE_SEED };
const SETTINGS = { sharedCacheType: 'mooncake-store', seed: 3 };
const WORKER = { workerId: 'worker-0', dpRank: 0 };

const bytes = (frames) => frames.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));

/** As JSON would have it, with what JSON can't say: bigints and typed arrays. */
function plain(value) {
  if (typeof value === 'bigint') return `${value}n`;
  if (ArrayBuffer.isView(value)) return Array.from(value, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value === undefined ? null : value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]));
}

/** How `work` ends; an error by what callers may rely on. */
async function endOf({ MoonrouteError, ConfigError, ContractError, WireError }, work) {
  try {
    return { value: await work() };
  } catch (error) {
    if (!(error instanceof MoonrouteError)) throw error;
    const kinds = { ConfigError, ContractError, WireError };
    const kind = Object.keys(kinds).find((name) => error instanceof kinds[name]) ?? 'MoonrouteError';
    return { kind, name: error.name, code: error.code, says: error.message.length > 0 };
  }
}

/** A pool's life as a cache sees it, from nothing to lost from sight. */
function cacheLife({ validateContract, WorkerEvents }, cache, pool) {
  const { descriptor, tokens, blockSize, announced, stored, removed } = pool;
  const contract = validateContract(descriptor);
  const prompt = { tokens: Uint32Array.from(tokens), tokenCount: tokens.length, blockSize, eligible: true };
  const seen = () => ({ hits: cache.lookup(prompt), explained: cache.explain(prompt), census: cache.census() });
  const life = { fingerprint: contract.fingerprint, before: seen() };
  cache.updateContract(contract, [WORKER]);
  life.build = cache.stats().build;
  life.learned = cache.observeMessage(new WorkerEvents().read(WORKER.workerId, bytes(announced)));
  life.learnedOnly = seen();
  life.storeSaid = cache.applyStoreMessage(bytes(stored));
  life.resident = seen();
  life.ineligible = cache.explain({ ...prompt, eligible: false });
  life.again = cache.applyStoreMessage(bytes(stored)).fate;
  cache.applyStoreMessage(bytes(removed));
  life.oneGone = seen();
  cache.streamLost('reconnect');
  life.lost = seen();
  life.stats = cache.stats();
  cache.stop();
  life.stopped = seen();
  return plain(life);
}

/** A request's way through a router, and what the engine's reports change. */
async function routerLife(moonroute, router, pool) {
  const prompt = { tokens: Uint32Array.from(pool.tokens), textOnly: true, explain: true };
  const life = [];
  let now = 0;
  const route = (step, end) => {
    const { lease, ...decision } = router.route({ ...prompt, now });
    lease.admitted(now + 1);
    lease.progress(1, now + 20);
    end(lease, decision, now + 50);
    life.push({ step, decision, outcome: lease.outcome });
    now += 100;
  };
  const complete = (lease, _, at) => lease.complete(at, { cachedTokens: 0 });
  life.push({ step: 'nobody', end: await endOf(moonroute, () => router.route(prompt)) });
  for (const id of ['worker-0', 'worker-1']) router.addWorker({ id, descriptor: pool.descriptor });
  route('cold', complete);
  life.push({ step: 'announced', said: router.onWorkerMessage('worker-0', bytes(pool.announced)) });
  route('on the GPU', (lease, { blocks }, at) => lease.complete(at, { cachedTokens: blocks.device * pool.blockSize }));
  life.push({ step: 'stored', said: router.onStoreMessage(bytes(pool.stored)) });
  life.push({ step: 'evicted', said: router.onWorkerMessage('worker-0', bytes(pool.evicted)) });
  route('from the store', (lease, _, at) => lease.cancel(at));
  // The engine finds none of it, again and again: the prefix is withheld.
  for (let i = 0; i < 6; i++) route(`refuted ${i}`, complete);
  life.push({ step: 'workers', workers: router.workers() }, { step: 'stats', stats: router.stats() });
  router.dispose();
  life.push({ step: 'disposed', end: await endOf(moonroute, () => router.route(prompt)) });
  life.push({ step: 'deaf', said: router.onWorkerMessage('worker-0', bytes(pool.announced)) });
  return plain(life);
}

const BEHAVIOURS = {
  /** Credit of oracle cases, from bytes to tokens. */
  oracle: ({ moonroute, input }) => answers(moonroute, input.cases),

  /** Every build, awaited. */
  async caches({ moonroute, input }) {
    const lives = [];
    for (const pool of input.pools) {
      const options = { limits: { edges: pool.edges }, tableSeed: TABLE_SEED };
      lives.push(cacheLife(moonroute, await moonroute.SharedCache.create(options), pool));
    }
    return lives;
  },

  /** The same at once. */
  cachesSync({ moonroute, input }) {
    return input.pools.map((pool) => {
      const options = { limits: { edges: pool.edges }, tableSeed: TABLE_SEED };
      return cacheLife(moonroute, moonroute.SharedCache.createSync(options), pool);
    });
  },

  async router({ moonroute, input }) {
    const router = await moonroute.Router.create({ index: INDEX, settings: SETTINGS });
    return routerLife(moonroute, router, input.pools[0]);
  },

  routerSync({ moonroute, input }) {
    const router = moonroute.Router.createSync({ index: INDEX, settings: SETTINGS });
    return routerLife(moonroute, router, input.pools[0]);
  },

  hashes({ moonroute: { blockHashes, sequenceHashes }, input: { pools } }) {
    const tokens = Uint32Array.from(pools[0].tokens);
    const local = blockHashes(tokens, pools[0].blockSize, { loraName: 'adapter', cacheNamespace: 'tenant' });
    return plain({ local, sequence: sequenceHashes(local), none: blockHashes(tokens.subarray(0, 3), 16) });
  },

  wire({ moonroute: { decodeWorkerMessage, readReplayReply, replayRequest }, input }) {
    const { announced } = input.pools[0];
    const { sequence, batch } = decodeWorkerMessage(bytes(announced));
    const events = batch.events.map(({ type, form, blockHashes, tokenIds, parentBlockHash, blockSize, medium }) => {
      return { type, form, blockHashes, tokenIds, parentBlockHash, blockSize, medium };
    });
    const [, number, payload] = bytes(announced);
    const replayed = readReplayReply([new Uint8Array(0), number, payload]);
    return plain({ sequence, events, rejected: batch.rejected, request: replayRequest(5n), replayed });
  },

  requests({ moonroute: { cloneRequest, judgeRequest, proveTextOnly } }) {
    const text = { model: 'model', messages: [{ role: 'user', content: 'Hello' }] };
    const image = { ...text, mm_processor_kwargs: {} };
    const judged = [judgeRequest(text), judgeRequest(image)];
    for (const request of [text, image]) proveTextOnly(request);
    return plain([...judged, judgeRequest(cloneRequest(text)), judgeRequest(image)]);
  },

  async errors({ moonroute, input }) {
    const { Router, SharedCache, validateContract, decodeWorkerMessage, validateSettings } = moonroute;
    const { descriptor } = input.pools[0];
    const ends = [
      () => validateContract({ ...descriptor, vllm_revision: 'unknown' }),
      () => validateContract(null),
      () => decodeWorkerMessage([new Uint8Array(1)]),
      () => SharedCache.createSync({ limits: { edges: 0 } }),
      () => SharedCache.create({ limits: { edges: 0 } }).then(() => 'made'),
      () => SharedCache.createSync({ hashing: 'guessed' }),
      () => Router.createSync({ index: { bytes: 1 } }),
      () => Router.create({ index: { bytes: 1 } }).then(() => 'made'),
      () => Router.createSync({ policy: 'best' }),
      () => validateSettings({ temperature: -1 }),
      () => Router.createSync({ settings: { sharedCacheType: 'hicache' } }),
    ];
    return plain(await Promise.all(ends.map((end) => endOf(moonroute, end))));
  },

  async simulation({ sim: { builtInWorkload, simulate } }) {
    const config = { workers: { count: 2, gpuBlocks: 4_000 }, store: { dramBytes: 20e9, ssdBytes: 0 }, policy: 'ttft' };
    return plain(await simulate(config, builtInWorkload({ requests: 60 })));
  },
};

/** What each behaviour gives, by its name. */
export async function behaviours(given) {
  const seen = {};
  for (const [name, behaviour] of Object.entries(BEHAVIOURS)) seen[name] = await behaviour(given);
  return seen;
}
