// Load that other routers report (router/foreign-load.ts): counted wherever a router's own is, returned when its router dies or says good-bye, and never
// mistaken for a lease or for credit.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { indexedBlocks } from '../src/core/prefix-types.js';
import { blockHashes } from '../src/index.js';
import { LoadPace } from '../src/live/plane/route/load-pace.js';
import { MAX_FOREIGN_ROUTERS, MAX_GOOD_FOR } from '../src/router/foreign-load.js';
import { Router } from '../src/router/router.js';
import type { RouterOptions } from '../src/router/router-options.js';
import type { LoadReport, RankLoadShare } from '../src/wire/envelope/types.js';

const INDEX = { index: { bytes: 4 << 20 } };
const share = (
  workerId: number,
  activeRequests = 1,
  prefillTokens = 0,
  decodeBlocks = 0,
  dpRank = 0,
): RankLoadShare => ({
  workerId: BigInt(workerId),
  dpRank,
  activeRequests,
  prefillTokens,
  decodeBlocks,
});
const report = (router: string, sequence: number, ranks: readonly RankLoadShare[], goodFor = 3000): LoadReport => ({
  router,
  sequence: BigInt(sequence),
  goodFor,
  ranks,
});

async function routerOf(workers: number, options: RouterOptions = {}): Promise<Router> {
  const router = await Router.create({ ...INDEX, ...options });
  for (let id = 0; id < workers; id++) router.addWorker({ id });
  return router;
}

const tokens = (start: number, count = 160) => Uint32Array.from({ length: count }, (_, i) => start * 1000 + i);
const foreignOf = (router: Router, id: number) => {
  router.stats();
  return router.workers().find((worker) => worker.id === id)!.ranks[0]!.foreignLoad;
};

test('a report stands until the next one replaces it', async () => {
  const router = await routerOf(2);
  assert.is(router.takeLoadReport(report('a', 1, [share(0, 2, 300, 20), share(1, 1)]), 0), 'taken');
  assert.equal(foreignOf(router, 0), { activeRequests: 2, prefillTokens: 300, decodeBlocks: 20 });
  assert.is(router.takeLoadReport(report('a', 2, [share(1, 5)]), 10), 'taken');
  assert.equal(foreignOf(router, 0), { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 });
  assert.is(foreignOf(router, 1).activeRequests, 5);
  assert.is(router.takeLoadReport(report('b', 1, [share(1, 2)]), 10), 'taken');
  assert.is(foreignOf(router, 1).activeRequests, 7, 'routers add up');
  const { routers, activeRequests } = router.stats().foreignLoad;
  assert.equal([routers, activeRequests], [2, 7]);
});

test('what becomes of reports', async () => {
  const router = await routerOf(1);
  router.reportsAs('me');
  router.takeLoadReport(report('a', 5, [share(0, 3)]), 0);
  const many = Array.from({ length: 1025 }, () => share(0));
  const rows: [LoadReport, string][] = [
    [report('me', 1, [share(0)]), 'own'],
    [report('a', 5, [share(0, 9)]), 'stale'],
    [report('a', 4, [share(0, 9)]), 'stale'],
    [report('', 1, []), 'malformed'],
    [report('b', 1, [share(0, -1)]), 'malformed'],
    [report('b', 1, [share(0, 0.5)]), 'malformed'],
    [report('b', 1, [share(0, 1, Number.NaN)]), 'malformed'],
    [report('b', 1, [share(0, 1, 0, 2 ** 60)]), 'malformed'],
    [report('b', 1, [], Number.NaN), 'malformed'],
    [report('b', 1, [], -1), 'malformed'],
    [report('b', 1, many), 'too-many-ranks'],
    [report('b', 1, [share(9, 4), share(0, 1, 0, 0, 3)]), 'taken'],
  ];
  for (const [given, fate] of rows) assert.is(router.takeLoadReport(given, 1), fate);
  assert.is(foreignOf(router, 0).activeRequests, 3);
  const { reports, unknownRanks } = router.stats().foreignLoad;
  assert.equal(reports, { taken: 2, own: 1, stale: 2, malformed: 7, 'too-many-ranks': 1 });
  assert.is(unknownRanks, 2);
  router.dispose();
  assert.is(router.takeLoadReport(report('a', 9, []), 1), 'disposed');
});

test('silence returns the load when the report is no longer good, to the millisecond', async () => {
  const router = await routerOf(1, { policy: 'least-loaded' });
  router.takeLoadReport(report('a', 1, [share(0, 4)]), 1000);
  const load = (now: number) => {
    const decision = router.route({ tokens: tokens(1), now });
    decision.lease.complete(now);
    return foreignOf(router, 0).activeRequests;
  };
  assert.is(load(3999), 4);
  assert.is(load(4000), 0);
  assert.is(router.stats().foreignLoad.expired, 1);
  router.takeLoadReport(report('a', 2, [share(0, 4)], 1e12), 4000);
  assert.is(load(4000 + MAX_GOOD_FOR), 0, 'no report is believed for longer than a minute');
});

test('a good-bye returns the load at once, and what comes late does not bring it back', async () => {
  const router = await routerOf(1);
  router.takeLoadReport(report('a', 1, [share(0, 4)]), 0);
  assert.is(router.takeLoadReport(report('a', 3, [], 0), 1), 'good-bye');
  assert.is(foreignOf(router, 0).activeRequests, 0);
  assert.is(router.takeLoadReport(report('a', 2, [share(0, 4)]), 2), 'stale');
  assert.is(router.stats().foreignLoad.expired, 0);
  assert.is(router.stats().foreignLoad.routers, 0);
});

test('so many routers and no more; one that has left makes room', async () => {
  const router = await routerOf(1);
  for (let i = 0; i < MAX_FOREIGN_ROUTERS; i++) router.takeLoadReport(report(`r${i}`, 1, [share(0)]), 0);
  assert.is(router.takeLoadReport(report('one more', 1, [share(0)]), 1), 'too-many-routers');
  assert.is(foreignOf(router, 0).activeRequests, MAX_FOREIGN_ROUTERS);
  router.takeLoadReport(report('r7', 2, [], 0), 2);
  assert.is(router.takeLoadReport(report('one more', 2, [share(0)]), 3), 'taken');
  assert.is(foreignOf(router, 0).activeRequests, MAX_FOREIGN_ROUTERS);
});

test('a worker that goes takes its foreign load with it, and none comes to its successor', async () => {
  const router = await routerOf(2);
  router.takeLoadReport(report('a', 1, [share(0, 4), share(1, 2)]), 0);
  router.removeWorker(0);
  router.addWorker({ id: 5 });
  assert.is(foreignOf(router, 5).activeRequests, 0);
  router.takeLoadReport(report('a', 2, [share(1, 2)]), 1);
  assert.is(foreignOf(router, 5).activeRequests, 0);
  assert.is(foreignOf(router, 1).activeRequests, 2);
});

for (const policy of ['kv', 'ttft', 'least-loaded'] as const) {
  test(`${policy}: other routers' load counts as one's own`, async () => {
    const router = await routerOf(2, { policy });
    const own = await routerOf(2, { policy });
    // The same load on worker 0, once by leases of its own, once by another router's report.
    const lease = own.route({ tokens: tokens(1), allowed: [0], now: 0 });
    router.takeLoadReport(report('a', 1, own.loadReport()), 0);
    const [ours, theirs] = [router, own].map((one) => one.route({ tokens: tokens(2), now: 1, explain: true }));
    assert.is(ours!.worker.id, 1);
    assert.is(theirs!.worker.id, 1);
    const facts = (decision: typeof ours) =>
      decision!.candidates!.map(({ cost, terms, blocks }) => JSON.stringify([cost, terms, blocks]));
    assert.equal(facts(ours), facts(theirs), 'every term is the same');
    assert.is(router.stats().leases.open, 1, 'it is no lease');
    lease.lease.complete(2);
  });
}

test('round-robin and random do not look at load, theirs or ours', async () => {
  for (const policy of ['round-robin', 'random'] as const) {
    const router = await routerOf(2, { policy, settings: { seed: 1 } });
    const other = await routerOf(2, { policy, settings: { seed: 1 } });
    router.takeLoadReport(report('a', 1, [share(0, 100, 1e6, 1e6)]), 0);
    for (let i = 0; i < 20; i++) {
      const request = { tokens: tokens(1), now: i };
      assert.is(router.route(request).worker.id, other.route(request).worker.id);
    }
  }
});

test('a policy of the caller’s sees it in the loads', async () => {
  const seen: number[] = [];
  const router = await routerOf(2, {
    policy: (candidate) => {
      seen.push(candidate.activeRequests);
      return 0;
    },
  });
  router.takeLoadReport(report('a', 1, [share(1, 7)]), 0);
  router.route({ tokens: tokens(1), now: 0 });
  assert.equal(seen, [0, 7]);
});

test('a report names ranks that have load, by their numbers on the plane', async () => {
  const router = await Router.create(INDEX);
  router.addWorker({ id: 'w', planeId: '18446744073709551615', dpRanks: { start: 2, size: 2 } });
  router.addWorker({ id: 'unnumbered' });
  const decisions = [2, 3].map((n) => router.route({ tokens: tokens(n), allowed: ['w'], now: 0 }));
  router.route({ tokens: tokens(9), allowed: ['unnumbered'], now: 0 });
  const rank = (dpRank: number) => share(0, 1, 160, 10, dpRank);
  const workerId = 2n ** 64n - 1n;
  assert.equal(
    router.loadReport(),
    [2, 3].map((dpRank) => ({ ...rank(dpRank), workerId })),
  );
  for (const { lease } of decisions) lease.complete(1);
  assert.equal(router.loadReport(), []);
});

test('numbers on the plane: what can be one, and whose it is', async () => {
  const router = await Router.create(INDEX);
  for (const planeId of ['', '-1', '01', '1.5', 1.5, -1, 2n ** 64n, 'x']) {
    assert.throws(() => router.addWorker({ id: 'w', planeId }), /worker w: planeId is/);
  }
  router.addWorker({ id: 'w', planeId: 4 });
  assert.throws(() => router.addWorker({ id: 4 }), /planeId 4 is that of worker w/);
  router.addWorker({ id: 4, planeId: null });
  router.addWorker({ id: 'w', planeId: 5 });
  router.addWorker({ id: 4 });
  assert.is(router.takeLoadReport(report('a', 1, [share(4, 2), share(5, 3)]), 0), 'taken');
  assert.is(foreignOf(router, 4).activeRequests, 2);
});

test('two routers that share load spread 200 equal requests over workers; alone, they pile up', async () => {
  const spread = async (shares: boolean) => {
    const options: RouterOptions = { policy: 'least-loaded', settings: { seed: 3 } };
    const routers = [await routerOf(8, options), await routerOf(8, options)];
    const paces = ['a', 'b'].map((name) => new LoadPace(name));
    const sent = new Array<number>(8).fill(0);
    for (let i = 0; i < 200; i++) {
      const now = i * 60;
      // What the first one serves may only go to half of the workers; the second one is free.
      const at = i < 100 ? 0 : 1;
      const allowed = at === 0 ? [0, 1, 2, 3] : null;
      const { worker } = routers[at]!.route({ tokens: tokens(i), allowed, now });
      sent[Number(worker.id)]!++;
      for (const [from, pace] of paces.entries()) {
        const due = pace.due(routers[from]!.loadReport(), now);
        if (shares && due !== null) routers[1 - from]!.takeLoadReport(due, now);
      }
    }
    return [Math.min(...sent), Math.max(...sent)];
  };
  assert.equal(await spread(true), [25, 25]);
  const [least, most] = await spread(false);
  assert.ok(most! - least! >= 24, `alone: ${least} to ${most}`);
});

test('a hot prefix: each router alone fills its holder up to the brim, together they do so once', async () => {
  const hot = tokens(1, 640);
  const onHolder = async (shares: boolean) => {
    const routers = await Promise.all(Array.from({ length: 2 }, () => routerOf(4, { settings: { seed: 1 } })));
    const locals = blockHashes(hot, 16);
    for (const router of routers) router.takeStored(0, 0, 'device', indexedBlocks(null, locals, locals));
    let held = 0;
    for (let i = 0; i < 200; i++) {
      const { worker } = routers[i % 2]!.route({ tokens: hot, now: i });
      if (worker.id === 0) held++;
      if (shares) routers[(i + 1) % 2]!.takeLoadReport(report(`r${i % 2}`, i + 1, routers[i % 2]!.loadReport()), i);
    }
    return held;
  };
  const [together, alone] = [await onHolder(true), await onHolder(false)];
  assert.ok(together >= 50 && together < alone, `together ${together}, alone ${alone}`);
});

test('when a report is due', () => {
  const pace = new LoadPace('a');
  const due = (shares: readonly RankLoadShare[], now: number) => pace.due(shares, now)?.ranks.length ?? null;
  assert.is(due([], 0), 0, 'at once');
  assert.is(due([share(1)], 49), null, 'not after every change');
  assert.is(due([share(1)], 50), 1);
  assert.is(due([share(1)], 900), null, 'nothing has changed');
  assert.is(due([share(1)], 1050), 1, 'but now and then');
  assert.is(due([share(1, 2)], 1100), 1);
  assert.is(due([share(1, 2)], 500), 1, 'a clock that goes back does not silence it');
  assert.equal(pace.goodBye(), { router: 'a', sequence: 6n, goodFor: 0, ranks: [] });
});

test.run();
