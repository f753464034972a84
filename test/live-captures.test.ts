// The captured streams of a real master, sent through a real socket: the router knows afterwards what it knows when the same messages are handed in.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { XPublisher } from 'zeromq';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { validateContract } from '../src/contract/validate.js';
import { ContractError } from '../src/errors.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { geometryOf } from '../src/oracle/run.js';
import { Router, type RouterStats } from '../src/router/router.js';
import { type CaptureFolder, captured, captureNames, ownCases } from './support/captures.js';
import { until, zeromq } from './support/fleet-worker.js';
import { contractOf } from './support/messages.js';

/** What is known: tables, objects that came and went, and what became of messages; not the clears that a connection makes. */
function stateOf({ cache }: RouterStats) {
  const { core, messages } = cache!;
  const { digests, members, ambiguous, storedObjects, removedObjects } = core!;
  return { digests, members, ambiguous, storedObjects, removedObjects, messages };
}

const DEFAULT = contractOf({});
/** Contracts of the captures that are of a case of our own. */
const contracts = new Map(
  ownCases().flatMap((oracleCase) => {
    try {
      return [[oracleCase.name, validateContract(descriptorFromCase(geometryOf(oracleCase)))] as const];
    } catch (error) {
      if (error instanceof ContractError) return [];
      throw error;
    }
  }),
);

async function routerFor(name: string): Promise<Router> {
  const contract = contracts.get(name) ?? DEFAULT;
  const router = await Router.create({
    settings: { sharedCacheType: 'mooncake-store', seed: 1 },
    index: { bytes: 1 << 20 },
    blockSize: contract.mainEventBlockSize,
  });
  router.addWorker({ id: 'worker', contract });
  return router;
}

async function publisherWith(subscribed: (endpoint: string) => void): Promise<XPublisher> {
  const publisher = new zeromq!.XPublisher({ linger: 0, sendHighWaterMark: 100_000 });
  await publisher.bind('tcp://127.0.0.1:*');
  subscribed(publisher.lastEndpoint!);
  await publisher.receive();
  return publisher;
}

let stored = 0;

if (zeromq !== null) {
  for (const folder of ['cases', 'scenarios'] as CaptureFolder[]) {
    for (const name of captureNames(folder)) {
      test(`${folder}/${name}: the same state through a socket as handed in`, async () => {
        const messages = captured(folder, name);
        const direct = await routerFor(name);
        for (const frames of messages) direct.onStoreMessage(frames);
        const router = await routerFor(name);
        let live: LiveStreams | null = null;
        const publisher = await publisherWith((endpoint) => {
          live = LiveStreams.open(router, { store: { masters: [{ events: endpoint, http: null }] } });
        });
        try {
          for (const frames of messages) await publisher.send(frames.map((frame) => Buffer.from(frame)));
          const all = (stats: RouterStats): number =>
            Object.values(stats.cache!.messages).reduce((sum, count) => sum + count, 0);
          await until('all messages', () => all(router.stats()) === messages.length);
          assert.equal(stateOf(router.stats()), stateOf(direct.stats()));
          stored += stateOf(router.stats()).storedObjects;
        } finally {
          await live!.close();
          publisher.close();
        }
      });
    }
  }
  test('objects were among them', () => assert.ok(stored > 500, `${stored} objects`));

  test.run();
}
