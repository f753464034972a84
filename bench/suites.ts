// The suites: each measures the core beside a rival, or the core alone where only its own bound matters.
import { Core } from '../src/core/core.js';
import { type Pairing, pair, randomLongs, Sample, timed } from './harness.js';
import type { Rival, RivalOptions } from './rivals/rival.js';
import {
  BLOCK,
  CAP,
  type Chain,
  chainsAtCap,
  fillStore,
  planFor,
  rivalOptions,
  storeBatch,
  teach,
  teachPart,
} from './workload.js';

/** How to make a rival. */
export interface RivalMaker {
  readonly name: string;
  /** How it reads worker messages (rivals/worker-messages.ts). */
  readonly style: 'plain' | 'tuned';
  make(options: RivalOptions): Rival;
}

/** One line of the report. Times in milliseconds. */
export interface Row {
  readonly suite: string;
  readonly core: Sample;
  readonly rival: Sample | null;
  readonly ratio: Sample | null;
  /** What the project aims at, and whether this run met it. */
  readonly aim: string | null;
  readonly met: boolean | null;
  readonly note: string;
}

/** How long to measure. */
export interface Effort {
  readonly turns: number;
  readonly churnBlocks: number;
  readonly singleLearns: number;
  /** Ranks up to which the GPU index is measured beside its rivals: at 1,024 they take gigabytes. */
  readonly rivalRanks: number;
}

export const FULL: Effort = { turns: 15, churnBlocks: 3_000_000, singleLearns: 200_000, rivalRanks: 1_024 };
export const QUICK: Effort = { turns: 5, churnBlocks: 300_000, singleLearns: 20_000, rivalRanks: 64 };

const SEED = 0x6d6f6f6e_726f7574n;
/** Calls of the core a turn: enough for the clock. */
const CORE_CALLS = 64;
/** Single learns before the first one counts. */
const LEARN_WARM_UP = 5_000;

async function freshCore(blocks: number): Promise<Core> {
  const core = await Core.load('default');
  core.configure(planFor(blocks), SEED);
  return core;
}

/** A line of the report for a pair of contenders. */
export function ratioRow(suite: string, aim: number | null, { a, b, ratio }: Pairing, note: string): Row {
  return {
    suite,
    core: a,
    rival: b,
    ratio,
    aim: aim === null ? null : `≥ ${aim} ×`,
    met: aim === null ? null : ratio.median >= aim,
    note,
  };
}

/** Lookups of contiguous chains at the caps, with the hashes in memory and copied in. */
export async function lookupSuite(rival: RivalMaker, effort: Effort, aims: boolean): Promise<Row[]> {
  const rows: Row[] = [];
  for (const blocks of [4_096, 16_384]) {
    const core = await freshCore(blocks);
    const other = rival.make(rivalOptions(blocks));
    const chains = chainsAtCap(blocks, SEED);
    teach(core, other, chains, 512);
    fillStore(core, other, chains);
    const { locals } = chains[1]!;
    const tokens = blocks * BLOCK + 1;
    checkEqual(core, other, chains[1]!, tokens, blocks * BLOCK);
    core.loadLocals(locals);
    const options = { turns: effort.turns, callsA: CORE_CALLS, callsB: 1 };
    const inMemory = pair(
      () => core.lookup(blocks, tokens),
      () => other.lookup(locals, tokens),
      options,
    );
    rows.push(
      ratioRow(
        `lookup ${blocks} blocks, contiguous, at the caps`,
        aims && blocks === 16_384 ? 1500 : null,
        inMemory,
        'hashes in memory',
      ),
    );
    const copied = pair(
      () => core.lookup(core.loadLocals(locals), tokens),
      () => other.lookup(locals, tokens),
      options,
    );
    rows.push(
      ratioRow(`lookup ${blocks} blocks, hashes copied in`, aims && blocks === 16_384 ? 1000 : null, copied, ''),
    );
  }
  return rows;
}

/** A chain learned 16 blocks at a time between 63 others: its runs lie scattered. */
export async function interleavedSuite(rival: RivalMaker, effort: Effort, aims: boolean): Promise<Row[]> {
  const blocks = 16_384;
  const core = await freshCore(blocks);
  const other = rival.make(rivalOptions(blocks));
  const run = 16;
  const rest = Math.floor((CAP - blocks) / 63 / run) * run;
  const chain = (length: number, i: number): Chain => ({
    locals: randomLongs(length, SEED + BigInt(i) * 77n),
    children: randomLongs(length, SEED + BigInt(i) * 77n + 5n),
  });
  const chains = [chain(blocks, 1), ...Array.from({ length: 63 }, (_, i) => chain(rest, i + 2))];
  // Each turn gives every stream one run; the long one gets as many as it takes to end with the others.
  const share = Math.ceil(blocks / rest);
  const at = chains.map(() => 0);
  for (let left = true; left; ) {
    left = false;
    for (let round = 0; round < share; round++) {
      for (const [i, one] of chains.entries()) {
        if ((i > 0 && round > 0) || at[i]! >= one.locals.length) continue;
        teachPart(core, other, one, at[i]!, run);
        at[i]! += run;
        left = true;
      }
    }
  }
  fillStore(core, other, chains);
  const { locals } = chains[0]!;
  const tokens = blocks * BLOCK + 1;
  checkEqual(core, other, chains[0]!, tokens, blocks * BLOCK);
  core.loadLocals(locals);
  const result = pair(
    () => core.lookup(blocks, tokens),
    () => other.lookup(locals, tokens),
    { turns: effort.turns, callsA: 16 },
  );
  const rows = [
    ratioRow(
      'lookup 16384 blocks, 64 interleaved sessions',
      aims ? 250 : null,
      result,
      `runs of ${run} blocks, no compaction`,
    ),
  ];
  while (core.lookup(blocks, tokens) && core.compact(1024) > 0);
  const compacted = pair(
    () => core.lookup(blocks, tokens),
    () => other.lookup(locals, tokens),
    { turns: effort.turns, callsA: CORE_CALLS },
  );
  rows.push(ratioRow('the same after compaction', null, compacted, ''));
  return rows;
}

/** Steady churn at the cap: 48 sessions, prompts looked up before they are learned, decode events of one block in between. */
export async function churnSuite(effort: Effort): Promise<Row[]> {
  const core = await freshCore(16_384);
  const pick = randomLongs(1 << 16, SEED + 9n);
  let drawn = 0;
  const random = (limit: number) => Number(pick[drawn++ & 0xffff]! % BigInt(limit));
  const LONGEST = 8_192;
  let made = 0n;
  const session = (): { chain: Chain; length: number } => {
    made++;
    return {
      chain: {
        locals: randomLongs(LONGEST, SEED + made * 131n),
        children: randomLongs(LONGEST, SEED + made * 131n + 65n),
      },
      length: 0,
    };
  };
  const sessions = Array.from({ length: 48 }, session);
  const perBlock: number[] = [];
  let learned = 0;
  const grow = (index: number, blocks: number) => {
    let one = sessions[index]!;
    if (one.length + blocks > LONGEST) {
      one = session();
      sessions[index] = one;
    }
    teachPart(core, null, one.chain, one.length, blocks);
    one.length += blocks;
    learned += blocks;
  };
  while (learned < CAP + effort.churnBlocks) {
    const index = random(48);
    const { chain, length } = sessions[index]!;
    if (length > 0) {
      core.loadLocals(chain.locals.subarray(0, length));
      const started = performance.now();
      core.lookup(length, length * BLOCK + 1);
      const took = performance.now() - started;
      if (learned > CAP && length >= 1_024) perBlock.push(took / length);
      core.compact(1024); // off the request path
    }
    grow(index, 1 + random(512));
    for (let i = random(64); i > 0; i--) grow(random(48), 1);
  }
  const sample = new Sample(perBlock);
  const { runs, walkedBlocks } = core.stats();
  const note = `p90 ${(sample.at(0.9) * 1e6).toFixed(1)} ns, mean run ${(walkedBlocks / runs).toFixed(0)} blocks, ${perBlock.length} lookups of ≥ 1,024 blocks`;
  return [
    {
      suite: 'steady churn at the cap, per block walked',
      core: sample,
      rival: null,
      ratio: null,
      aim: 'p50 ≤ 8 ns',
      met: sample.median <= 8e-6,
      note,
    },
  ];
}

/** A store batch of 510 objects (85 digests under 6 prefixes) from its wire bytes: stored, then removed. */
export async function batchSuite(rival: RivalMaker, effort: Effort, aims: boolean): Promise<Row[]> {
  const core = await freshCore(4_096);
  const other = rival.make(rivalOptions(4_096));
  const chains = chainsAtCap(4_096, SEED);
  teach(core, other, chains.slice(0, 8), 512);
  const lows = [...chains[0]!.children.subarray(0, 85)];
  const stored = storeBatch(lows);
  const removed = storeBatch(lows, 'removed');
  const result = pair(
    () => {
      core.applyPayload(stored);
      core.applyPayload(removed);
    },
    () => {
      other.applyBatch(stored);
      other.applyBatch(removed);
    },
    { turns: effort.turns, callsA: 50, callsB: 10, warmA: 200, warmB: 200 },
  );
  const rate = (1020 / result.a.median / 1000).toFixed(1);
  return [
    ratioRow(
      'store batches of 510 objects from wire bytes, stored and removed',
      aims ? 15 : null,
      result,
      `${rate} M objects/s`,
    ),
  ];
}

/** Learning at the cap, where each new edge evicts the coldest: one block, and events of 1,024. */
export async function learnSuite(rival: RivalMaker, effort: Effort): Promise<Row[]> {
  const core = await freshCore(4_096);
  const chains = chainsAtCap(4_096, SEED);
  teach(core, null, chains, 512);
  const one = {
    locals: randomLongs(effort.singleLearns, SEED + 1n),
    children: randomLongs(effort.singleLearns, SEED + 2n),
  };
  const single = new Float64Array(effort.singleLearns - LEARN_WARM_UP);
  for (let i = 0; i < effort.singleLearns; i++) {
    const locals = one.locals.subarray(i, i + 1);
    const event = { parent: null, lows: one.children.subarray(i, i + 1), digests: null, salted: false };
    const started = performance.now();
    core.loadLocals(locals);
    core.learn(event);
    const took = performance.now() - started;
    if (i >= LEARN_WARM_UP) single[i - LEARN_WARM_UP] = took;
  }
  const singles = new Sample(single);
  const events = Math.max(1000, effort.singleLearns / 100);
  const big: number[] = [];
  for (let i = 0; i < events; i++) {
    const chain = {
      locals: randomLongs(1024, SEED + BigInt(i) * 17n + 3n),
      children: randomLongs(1024, SEED + BigInt(i) * 17n + 11n),
    };
    big.push(timed(() => teachPart(core, null, chain, 0, 1024)));
  }
  const bigs = new Sample(big);
  const other = rival.make(rivalOptions(4_096));
  teach(await freshCore(4_096), other, chains, 512);
  let made = 0n;
  const chain = () => ({
    locals: randomLongs(1024, SEED + ++made * 31n + 3n),
    children: randomLongs(1024, SEED + made * 31n + 11n),
  });
  const times: [number, number][] = [];
  for (let turn = 0; turn < effort.turns * 4; turn++) {
    const a = chain(); // an event is new only once
    const b = chain();
    times.push([
      timed(() => teachPart(core, null, a, 0, 1024)),
      timed(() => other.learn({ parent: null, salted: false, locals: b.locals, children: b.children })),
    ]);
  }
  const bulk = {
    a: new Sample(times.map(([x]) => x)),
    b: new Sample(times.map(([, y]) => y)),
    ratio: new Sample(times.map(([x, y]) => y / x)),
  };
  return [
    {
      suite: 'learn one block at the cap',
      core: singles,
      rival: null,
      ratio: null,
      aim: 'p99.9 ≤ 5 µs',
      met: singles.at(0.999) <= 0.005,
      note: `p99.9 ${(singles.at(0.999) * 1000).toFixed(2)} µs`,
    },
    {
      suite: 'learn an event of 1,024 blocks at the cap',
      core: bigs,
      rival: null,
      ratio: null,
      aim: 'p99.9 ≤ 3 ms',
      met: bigs.at(0.999) <= 3,
      note: `p99.9 ${bigs.at(0.999).toFixed(2)} ms`,
    },
    ratioRow('the same beside the rival', null, bulk, `${(1.024 / bulk.a.median).toFixed(1)} M edges/s`),
  ];
}

/** Local hashes of a 100,000-token prompt. */
export async function hashSuite(effort: Effort): Promise<Row[]> {
  const core = await freshCore(4_096);
  const tokens = Uint32Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 151_936);
  return [16, 64, 512].map((blockSize) => {
    timed(() => core.hashTokens(tokens, blockSize, { low: 1337, high: 0 }), 50);
    const sample = new Sample(
      Array.from({ length: effort.turns }, () =>
        timed(() => core.hashTokens(tokens, blockSize, { low: 1337, high: 0 }), 20),
      ),
    );
    return {
      suite: `hash 100,000 tokens, ${blockSize} a block`,
      core: sample,
      rival: null,
      ratio: null,
      aim: null,
      met: null,
      note: 'copied in and hashed',
    };
  });
}

/** A ratio between contenders that answer differently would mean nothing. */
function checkEqual(core: Core, rival: Rival, { locals }: Chain, tokens: number, expected: number): void {
  const ours = core.lookup(core.loadLocals(locals), tokens) * BLOCK;
  const theirs = rival.lookup(locals, tokens);
  if (ours !== expected || theirs !== expected)
    throw new Error(`the contenders disagree: core ${ours}, rival ${theirs}, expected ${expected} tokens`);
}
