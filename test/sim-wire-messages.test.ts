// What becomes of a message of the feed on the wire: parts as large as a publisher's, in order, and no answer of the router goes unheard.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import type { Router } from '../src/router/router.js';
import { BlockTree } from '../src/sim/blocks.js';
import { checkSimConfig } from '../src/sim/index.js';
import { MessageQueue } from '../src/sim/message-queue.js';
import { REMOVED, STORED, whatOf } from '../src/sim/message-runs.js';
import { DRAM, SSD } from '../src/sim/store.js';
import { WireEvidence } from '../src/sim/wire-evidence.js';
import { decodeWorkerMessage } from '../src/wire/vllm.js';
import { framesOf, Pool } from './support/messages.js';
import { ids, requestsOf } from './support/sim-requests.js';

const EACH = 32;
const RANKS = 2;
const config = checkSimConfig({ wire: true, workers: { count: 1 }, ranks: RANKS });

/** Evidence about a chain of 200 nodes for a router that keeps its messages. */
function stage(answer: { readonly fate?: string; readonly lostRemoval?: boolean } = {}) {
  const tree = new BlockTree(16, 1000);
  tree.pathOf(requestsOf(16 * EACH, [{ ids: ids(0, 200) }])[0]!);
  const ofWorker: Uint8Array[][] = [];
  const ofStore: Uint8Array[][] = [];
  const causes: string[] = [];
  const result = { fate: 'applied', lostRemoval: false, detail: null, ...answer };
  const router: Partial<Record<keyof Router, unknown>> = {
    onWorkerMessage: (_: number, frames: Uint8Array[]) => ofWorker.push(frames) && result,
    // The payload is the batch's own memory.
    onStoreMessage: (frames: Uint8Array[]) => ofStore.push(frames.map((frame) => frame.slice())) && result,
    storeStreamLost: (cause: string) => causes.push(cause),
    workerStreamLost: (id: number) => causes.push(`${id}`),
  };
  const evidence = new WireEvidence(config, router as unknown as Router, tree);
  const queue = new MessageQueue();
  return { evidence, queue, ofWorker, ofStore, causes };
}

test("a worker's large message is several, none of more than 4,096 events, in order", () => {
  const { evidence, queue, ofWorker } = stage();
  for (let node = 0; node < 200; node++) queue.add(STORED, node, 0, EACH);
  for (let node = 199; node >= 0; node--) queue.add(REMOVED, node, 0, EACH);
  queue.end(false, false);
  evidence.takeOfWorker(0, queue);
  const messages = ofWorker.map((frames) => decodeWorkerMessage(frames));
  assert.equal(
    messages.map(({ sequence }) => sequence),
    [0n, 1n],
  );
  const events = messages.map(({ batch }) => batch.events.map((event) => event.type));
  // 6,400 blocks are 102,400 tokens: two stored events.
  assert.equal(
    events.map(({ length }) => length),
    [4096, 2306],
  );
  assert.equal(
    events.flat().map((type) => type[0]),
    [...'ss', ...'r'.repeat(6400)],
  );
});

test("the store's message is batches of 64 events, one for every rank, and a core takes them", async () => {
  const { evidence, queue, ofStore, causes } = stage();
  queue.add(whatOf(STORED, DRAM, 0), 0, 0, EACH);
  queue.add(whatOf(STORED, SSD, 0), 1, 5, 1);
  queue.add(whatOf(REMOVED, DRAM, 0), 0, 30, 2);
  queue.end(false, false);
  evidence.takeOfStore(queue, false);
  const groups = [{ ranks: RANKS }];
  const pool = await Pool.open({ groups, model: 'sim@model' });
  const results = ofStore.map((frames) => pool.cache.applyStoreMessage(frames));
  assert.equal(
    results.map(({ fate, sequence, objects }) => [fate, sequence, objects]),
    [
      ['applied', 1n, EACH * RANKS],
      ['applied', 2n, 3 * RANKS],
    ],
  );
  assert.is(pool.objects, (EACH + 1 - 2) * RANKS);
  assert.equal(causes, []);
  assert.equal(framesOf(2, new Uint8Array(0))[1], ofStore[1]![1]);
});

test('only a gap before the first message is told by the listener', () => {
  const { evidence, queue, causes } = stage();
  const say = (gap: boolean) => {
    queue.add(whatOf(STORED, DRAM, 0), 0, 0, 1);
    queue.end(false, false);
    evidence.takeOfStore(queue, gap);
    queue.shift();
  };
  say(true);
  say(true);
  evidence.restartStore();
  say(false);
  say(true);
  evidence.restartStore();
  say(true);
  assert.equal(causes, ['gap', 'restart', 'restart', 'gap']);
});

for (const answer of [{ fate: 'unreadable' }, { fate: 'unknown-worker' }, { lostRemoval: true }]) {
  test(`a router that answers ${JSON.stringify(answer)} to a worker's message ends the simulation`, () => {
    const { evidence, queue } = stage(answer);
    queue.add(STORED, 0, 0, 1);
    queue.end(false, false);
    assert.throws(
      () => evidence.takeOfWorker(0, queue),
      (error: unknown) => error instanceof MoonrouteError && error.code === 'sim-wire-refused',
    );
  });
}

test("so does one that can't use the store's", () => {
  const { evidence, queue } = stage({ fate: 'malformed' });
  queue.add(whatOf(STORED, DRAM, 0), 0, 0, 1);
  queue.end(false, false);
  assert.throws(
    () => evidence.takeOfStore(queue, false),
    (error: unknown) =>
      error instanceof MoonrouteError && error.message.includes("'malformed' to message 1 of the store"),
  );
});

test.run();
