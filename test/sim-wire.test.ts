// A simulation that feeds the router with the bytes of real messages reports what one does that hands it decoded evidence, number for number.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { builtInWorkload, type GroupModel, type SimConfigInput, type SimReport, simulate } from '../src/sim/index.js';
import { ids, requestsOf } from './support/sim-requests.js';

const FULL: GroupModel = { kind: 'full_attention', window: null, bytesPerBlock: 1_000_000 };
const WINDOW: GroupModel = { kind: 'sliding_window', window: 1024, bytesPerBlock: 500_000 };
const STATE: GroupModel = { kind: 'mamba', window: null, bytesPerBlock: 2_000_000 };

const SEEDS = [1, 2, 3];
const REQUESTS = 150;
/** Small enough that GPUs, memory and SSD are short of room. */
const tight: SimConfigInput = {
  workers: { count: 3, gpuBlocks: 3_000 },
  store: { dramBytes: 2e9, ssdBytes: 1e9 },
  groups: [FULL],
  indexBytes: 4 << 20,
};
/** Of about 30 seconds. */
const restarts = [
  { at: 6_000, worker: 0 },
  { at: 9_000, worker: null },
  { at: 15_000, worker: 2 },
];

interface Scene {
  readonly name: string;
  readonly config: SimConfigInput;
  /** What must have happened, so that the scene shows something. */
  readonly shows: (report: SimReport) => boolean;
}

const evicts = ({ store }: SimReport) => store.evictedBlocks > 0;
const credits = ({ credit }: SimReport) => credit.right > 10;
const clears = ({ router }: SimReport) => router.lostMessages > 0 && router.clears > 0;

const scenes: readonly Scene[] = [
  { name: 'full attention', config: {}, shows: (report) => evicts(report) && credits(report) },
  { name: 'full attention and a sliding window', config: { groups: [FULL, WINDOW] }, shows: evicts },
  { name: 'Mamba before full attention', config: { groups: [STATE, FULL] }, shows: evicts },
  { name: 'six ranks, no SSD', config: { ranks: 6, store: { dramBytes: 2e9 } }, shows: evicts },
  {
    name: 'loss, which costs replays and reconciles',
    config: { events: { loss: 0.1, reconcileAfter: 1500 } },
    shows: (report) => clears(report) && report.credit.right > 0,
  },
  {
    name: 'jitter, by which messages overtake each other',
    config: { groups: [FULL, WINDOW], events: { delay: 10, jitter: 400, reconcileAfter: 3000 } },
    shows: ({ router }) => router.clears > 0,
  },
  {
    name: 'restarts of workers and of the store, whose reconcile comes before its first message',
    config: { restarts, events: { reconcileAfter: 0 } },
    shows: ({ router }) => router.clears > 0,
  },
  {
    name: 'all of it',
    config: {
      ...{ groups: [FULL, WINDOW, STATE], restarts, speedup: 3 },
      events: { delay: 20, jitter: 300, loss: 0.2, reconcileAfter: 3000 },
    },
    shows: clears,
  },
  { name: 'no store', config: { store: { dramBytes: 0 } }, shows: ({ credit }) => credit.credited === 0 },
  {
    name: 'no GPU events either',
    config: { store: { dramBytes: 0 }, settings: { useKvEvents: false } },
    shows: ({ credit }) => credit.credited === 0,
  },
];

const bothWays = (config: SimConfigInput, requests: Parameters<typeof simulate>[1]) =>
  Promise.all([simulate({ ...config, wire: true }, requests), simulate(config, requests)]);

for (const { name, config, shows } of scenes) {
  test(`${name}: the same report`, async () => {
    for (const seed of SEEDS) {
      const requests = [...builtInWorkload({ requests: REQUESTS, rate: 5, mix: { chat: 1, agent: 0 }, seed })];
      const [wire, decoded] = await bothWays({ ...tight, ...config, seed }, requests);
      assert.equal(wire, decoded, `seed ${seed}`);
      assert.is(decoded.completed, REQUESTS);
      assert.ok(shows(decoded), `seed ${seed} shows it: ${JSON.stringify(decoded.router)}`);
    }
  });
}

test('ids of many blocks, an id behind two parents, and prompts without ids', async () => {
  const rows = [
    { ids: ids(0, 40) },
    { at: 5_000, ids: [...ids(0, 20), ...ids(50, 60)], input: 30 * 512 - 100 },
    { at: 9_000, ids: [1, 2, 30, 31] },
    { at: 12_000, input: 5_000 },
    { at: 20_000, ids: ids(0, 41) },
  ];
  for (const blockSize of [2, 16, 512]) {
    const [wire, decoded] = await bothWays(
      { workers: { count: 1, gpuBlocks: 16_000 }, blockSize },
      requestsOf(512, rows),
    );
    assert.equal(wire, decoded);
    assert.ok(decoded.blocks.gpu + decoded.blocks.dram > 0);
  }
});

test.run();
