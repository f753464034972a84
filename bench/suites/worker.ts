// Messages of vLLM workers (64 events) from payload bytes to learned edges, by the blocks of an event: edges known, as what is announced again or by a
// second rank; and all new at the cap, where every block evicts one.

import { PackageHasher } from '../rivals/package-hasher.js';
import type { Contest, TimedSuite } from '../suite.js';
import { sessionChain, type WorkerForm, workerBatch } from '../worker-workload.js';
import { BLOCK, CAP } from '../workload.js';
import { applyBoth, checkAgree, contenders } from './worker-contenders.js';

const EVENTS = 64;
/** Of a message whose blocks are new: so few that most of the rival's runs fit between two collections. */
const NEW_EVENTS = 8;
const SIZES = [1, 2, 4, 8, 16, 32];
const PROMPT_BLOCKS = 4_096;
const NEW_BLOCKS = 32;
/** Messages after which the first one's blocks are long gone. */
const RING = Math.ceil((1.5 * CAP) / (NEW_EVENTS * NEW_BLOCKS));
const RIVAL = '@msgpack/msgpack + hash-wasm + nested Maps';

/** What of the core's counters the cache's callers see. */
const COSTS = ['learned', 'conflicts', 'edgeEvictions', 'replaced'] as const;

async function knownContest(form: WorkerForm, blocksPerEvent: number): Promise<Contest> {
  const both = await contenders(PROMPT_BLOCKS);
  const shape = { events: EVENTS, blocksPerEvent, form };
  const payload = workerBatch({ ...shape, step: 1 });
  for (const message of [workerBatch(shape), payload]) applyBoth(both, message);
  return {
    a: { items: EVENTS, run: () => both.ours.apply(payload) },
    b: { items: EVENTS, run: () => both.reader.apply(payload) },
    check: () => checkAgree(both, sessionChain(EVENTS - 1, 2, blocksPerEvent)),
    counters: () => ({
      wireBytes: payload.length,
      ...difference(
        both.ours.core,
        () => both.ours.apply(payload),
        () => both.ours.core,
      ),
    }),
  };
}

async function newContests(): Promise<(size: number) => Contest> {
  const both = await contenders(PROMPT_BLOCKS);
  const payloads = Array.from({ length: RING }, (_, i) =>
    workerBatch({ events: NEW_EVENTS, blocksPerEvent: NEW_BLOCKS, form: 'map', firstSession: i * NEW_EVENTS }),
  );
  const filled = Math.ceil(CAP / (NEW_EVENTS * NEW_BLOCKS));
  for (const payload of payloads.slice(0, filled)) applyBoth(both, payload);
  let atA = filled;
  let atB = filled;
  const ours = () => {
    both.ours.apply(payloads[atA]!);
    atA = (atA + 1) % RING;
  };
  return () => ({
    a: { items: NEW_EVENTS, run: ours },
    b: {
      items: NEW_EVENTS,
      run: () => {
        both.reader.apply(payloads[atB]!);
        atB = (atB + 1) % RING;
      },
    },
    check: () => checkAgree(both, sessionChain(filled * NEW_EVENTS - 1, 1, NEW_BLOCKS)),
    counters: () => difference(both.ours.core, ours, () => both.ours.core),
  });
}

const REQUEST_SIZES = [64, 256, 512, 1_024, 2_048, 6_144];
const PREFILL_BLOCKS = 64;

/** A request's part of the way: token ids to the credited tokens, all of the prompt being known and resident. */
async function requestContests(): Promise<(size: number) => Contest> {
  const longest = REQUEST_SIZES.at(-1)!;
  const both = await contenders(longest);
  const events = longest / PREFILL_BLOCKS;
  for (let step = 0; step < events; step++)
    applyBoth(both, workerBatch({ events: 1, blocksPerEvent: PREFILL_BLOCKS, form: 'map', step }));
  const chain = sessionChain(0, events, PREFILL_BLOCKS);
  checkAgree(both, chain);
  const hasher = await PackageHasher.create();
  return (size) => {
    const tokens = chain.tokens.slice(0, size * BLOCK);
    const query = { tokens, tokenCount: tokens.length, blockSize: BLOCK, eligible: true };
    const ours = () => both.ours.cache.lookup(query).tokens;
    const theirs = () => both.core.lookup(hasher.hash(tokens, BLOCK), tokens.length);
    return {
      a: { items: size, run: ours },
      b: { items: size, run: theirs },
      check() {
        // The last token is always computed.
        const [mine, other] = [ours(), theirs()];
        if (mine !== other || mine !== (size - 1) * BLOCK) throw new Error(`${mine} and ${other} tokens credited`);
      },
      counters() {
        const before = both.ours.core;
        ours();
        const after = both.ours.core;
        return { walkedBlocks: after.walkedBlocks - before.walkedBlocks, runs: after.runs - before.runs };
      },
    };
  };
}

type Costs = Readonly<Record<(typeof COSTS)[number], number>>;

function difference(before: Costs, work: () => void, after: () => Costs): Record<string, number> {
  work();
  const now = after();
  return Object.fromEntries(COSTS.map((name) => [name, now[name] - before[name]]));
}

const known = (form: WorkerForm, title: string, aims: Readonly<Record<number, number>>): TimedSuite => ({
  ...{ kind: 'time', name: `vllm-${form === 'map' ? 'maps' : 'arrays'}`, title, unit: 'event', rival: RIVAL },
  ...{ sizeOf: 'blocks an event', sizes: SIZES, quickSizes: [1, 32], aims },
  make: async () => (size) => knownContest(form, size),
});

export const workerSuites: readonly TimedSuite[] = [
  known('map', 'vLLM messages of 64 events (maps), edges known', { 1: 4, 32: 10 }),
  known('positional', 'vLLM messages of 64 events (arrays), edges known', { 1: 7, 32: 10 }),
  {
    ...{
      kind: 'time',
      name: 'vllm-new',
      title: 'vLLM messages of 8 events (maps), all new at the cap',
      unit: 'event',
    },
    ...{ rival: RIVAL, sizeOf: 'blocks an event', sizes: [NEW_BLOCKS], quickSizes: [NEW_BLOCKS], make: newContests },
  },
  {
    ...{ kind: 'time', name: 'request', title: 'a request from token ids to its credit', unit: 'block' },
    ...{ rival: 'hash-wasm + nested Maps', sizeOf: 'blocks', sizes: REQUEST_SIZES, quickSizes: [256] },
    make: requestContests,
  },
];
