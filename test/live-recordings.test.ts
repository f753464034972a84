// Timelines of a real Mooncake master, played over real sockets to the live streams: after every key list that was recorded, what is credited is
// held against it, object by object. Nothing may be credited that is not in the list once evidence has had its chance to be confirmed.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { until, zeromq } from './support/fleet-worker.js';
import { LivePool } from './support/live-pool.js';
import { RecordedMaster, recordingLines, recordingNames } from './support/recorded-master.js';
import { workerMessage } from './support/router-pool.js';

const MODEL = 'pool-a@Qwen3-32B';
const RANKS = 2;
const BLOCK = 16;
const SPEED = 4;

/** One block whose engine digest is one of the recording: a prompt of its own. */
interface Block {
  readonly digest: string;
  readonly tokens: Uint32Array;
}

/** All digests that the recording ever names. */
function digestsOf(name: string): string[] {
  const found = new Set<string>();
  for (const line of recordingLines(name)) {
    const text =
      line.kind === 'keys'
        ? (line.keys ?? []).join()
        : line.kind === 'zmq'
          ? Buffer.from(line.frames[2]!, 'hex').toString('latin1')
          : '';
    for (const [, digest] of text.matchAll(/@group:0@([0-9a-f]{64})/g)) found.add(digest!);
  }
  return [...found].sort();
}

/** Teaches the router each digest as the hash of a block of its own, and takes it off the GPU again. */
function teach(pool: LivePool, digests: readonly string[]): Block[] {
  return digests.map((digest, i) => {
    const tokens = Uint32Array.from({ length: BLOCK + 1 }, (_, k) => 1000 * i + k);
    const hash = new Uint8Array(Buffer.from(digest, 'hex'));
    const stored = {
      type: 'BlockStored',
      block_hashes: [hash],
      parent_block_hash: null,
      token_ids: [...tokens.subarray(0, BLOCK)],
      block_size: BLOCK,
      lora_id: null,
      medium: 'GPU',
      lora_name: null,
    };
    const removed = { type: 'BlockRemoved', block_hashes: [hash], medium: 'GPU' };
    const { learned } = pool.pool.router.onWorkerMessage(0, workerMessage([stored, removed]));
    assert.is(learned, 1);
    return { digest, tokens };
  });
}

interface Compared {
  readonly over: string[];
  readonly under: string[];
  readonly right: number;
}

function compare(pool: LivePool, blocks: readonly Block[], keys: ReadonlySet<string>): Compared {
  const over: string[] = [];
  const under: string[] = [];
  let right = 0;
  for (const { digest, tokens } of blocks) {
    const { blocks: found, lease } = pool.pool.router.route({ tokens, textOnly: true });
    lease.cancel(0);
    const there = pool.pool.contract.groups[0]!.keyPrefixes.every((prefix) => keys.has(`${prefix}@${digest}`));
    if (found.shared === 1 && !there) over.push(digest);
    else if (found.shared === 0 && there) under.push(digest);
    else right++;
  }
  return { over, under, right };
}

interface Played {
  /** Key lists that were compared, and those of them with something in the store. */
  samples: number;
  filled: number;
  /** Samples at which something was credited at first that is not there. */
  overAtFirst: number;
  reconciled: number;
  losses: number;
}

/** Sequence of the last message before that time; 0 before the first, and after a restart. */
function lastSent(name: string, at: number): bigint {
  let sequence = 0n;
  for (const line of recordingLines(name)) {
    if (line.t > at) break;
    if (line.kind === 'zmq') sequence = BigInt(`0x${line.frames[1]}`);
    else if (line.kind === 'monitor' && line.event === 'disconnect') sequence = 0n;
  }
  return sequence;
}

async function play(name: string): Promise<Played> {
  const played: Played = { samples: 0, filled: 0, overAtFirst: 0, reconciled: 0, losses: 0 };
  let pool: LivePool | null = null;
  let blocks: Block[] = [];
  const master = await RecordedMaster.start(name, {
    speed: SPEED,
    onKeys: async (keys, at) => {
      if (pool === null || !master.bound) return;
      // What was sent before the list was sampled is heard first, where somebody listens.
      const sent = lastSent(name, at);
      await until('the last message', () => !pool!.store.connected || (pool!.store.lastSequence ?? sent) >= sent);
      const first = compare(pool, blocks, keys);
      if (first.over.length > 0) played.overAtFirst++;
      let last = first;
      await until(`credit and key list to agree at ${at} ms of ${name}`, () => {
        last = compare(pool!, blocks, keys);
        return last.over.length + last.under.length === 0;
      });
      assert.is(last.right, blocks.length);
      played.samples++;
      if (keys.size > 0) played.filled++;
    },
  });
  try {
    pool = await LivePool.open(master, {
      // The recorder did not ask for the metrics page, so silent removals are found by the timer.
      keeper: { pollEvery: 100, reconcileEvery: 150 },
      shape: { model: MODEL, groups: [{ ranks: RANKS }] },
    });
    blocks = teach(pool, digestsOf(name));
    await master.play();
    played.reconciled = pool.store.reconciled;
    played.losses = Object.values(pool.store.losses).reduce((sum, count) => sum + count, 0);
    assert.is(master.requests('/query_key'), 0);
  } finally {
    await pool?.close();
    await master.close();
  }
  return played;
}

if (zeromq !== null) {
  const EXPECTED: Record<string, (played: Played) => void> = {
    steady: ({ overAtFirst }) => assert.is(overAtFirst, 0, 'everything was announced, so nothing was ever stale'),
    'late-joiner': ({ overAtFirst }) => assert.is(overAtFirst, 0),
    'silent-removals': ({ overAtFirst }) => assert.ok(overAtFirst >= 1, 'the stream alone can not know'),
    restart: ({ losses }) => assert.ok(losses >= 1),
  };
  assert.equal(recordingNames(), Object.keys(EXPECTED).sort());
  for (const [name, check] of Object.entries(EXPECTED)) {
    test(`${name}: credit agrees with every key list of the real master`, async () => {
      const played = await play(name);
      console.log(`  ${name}: ${JSON.stringify(played)}`);
      assert.ok(played.samples >= 10 && played.filled >= 5 && played.reconciled >= 1);
      check(played);
    });
  }
  test.run();
}
