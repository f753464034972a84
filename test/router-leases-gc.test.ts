// What the collector does to leases and routers (design.md 7: the router never keeps a lease alive, nor a lease its router). The collector
// must be at hand, so the file runs itself in a child process under --expose-gc; the tests proper are those of the child.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { LeaseObserver, LeaseRequest } from '../src/router/lease-types.js';
import { type Lease, LeaseTable } from '../src/router/leases.js';
import { LoadTable } from '../src/router/load.js';

const REQUEST: LeaseRequest = { rank: 0, promptTokens: 100, localTokens: 32, blockSize: 16 };
/** Collections that a condition is given before it counts as failed. */
const ROUNDS = 50;

/** Stands for a router: the tables are its own, and it learns from what ends. */
class StandIn implements LeaseObserver {
  readonly load = new LoadTable(2);
  readonly leases = new LeaseTable(this.load, { observer: this });
  heard = 0;

  /** @param fail called at the end of a construction that is to fail */
  constructor(fail?: (half: StandIn) => never) {
    fail?.(this);
  }

  leaseEnded(): void {
    this.heard++;
  }
}

/** Collects until the condition holds. A turn of the event loop lets go of what weak references were followed to. */
async function settles(condition: () => boolean): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    globalThis.gc!();
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (condition()) return true;
  }
  return false;
}

/** Collects a few times, so that what could go is gone. */
const collect = async (): Promise<void> => {
  let rounds = 0;
  await settles(() => ++rounds === 5);
};

const gone = (ref: WeakRef<object>) => settles(() => ref.deref() === undefined);

function childTests(): void {
  test('a dropped lease is collected, its load returned, and counted as abandoned', async () => {
    const router = new StandIn();
    const kept = router.leases.open(REQUEST, 0);
    const drop = (): WeakRef<Lease> => {
      const lease = router.leases.open(REQUEST, 0);
      lease.progress(500, 1);
      return new WeakRef(lease);
    };
    const dropped = drop();
    assert.is(router.load.of(0).activeRequests, 2);
    assert.ok(await gone(dropped), 'the lease is still alive');
    assert.ok(await settles(() => router.leases.stats().abandoned === 1), 'it was not counted');
    const { activeRequests, prefillTokens, decodeBlocks } = router.load.of(0);
    assert.equal([activeRequests, prefillTokens, decodeBlocks], [1, 68, 7]);
    assert.is(router.leases.stats().open, 1);
    assert.is(router.heard, 0);
    kept.complete(2);
    assert.is(router.load.of(0).activeRequests, 0);
  });

  test('10,000 dropped leases leave exactly no load', async () => {
    const router = new StandIn();
    for (let i = 0; i < 10_000; i++) router.leases.open({ ...REQUEST, rank: i % 2, promptTokens: i }, 0);
    assert.ok(await settles(() => router.leases.stats().abandoned === 10_000));
    for (const rank of [0, 1]) {
      const { activeRequests, prefillTokens, decodeBlocks } = router.load.of(rank);
      assert.equal([activeRequests, prefillTokens, decodeBlocks], [0, 0, 0]);
    }
    assert.is(router.leases.stats().open, 0);
  });

  test('an ended lease that is collected is not abandoned', async () => {
    const router = new StandIn();
    const end = (how: 'complete' | 'fail' | 'cancel'): WeakRef<Lease> => {
      const lease = router.leases.open(REQUEST, 0);
      lease[how](1);
      return new WeakRef(lease);
    };
    const refs = [end('complete'), end('fail'), end('cancel')];
    for (const ref of refs) assert.ok(await gone(ref));
    await collect();
    const { abandoned, completed, failed, cancelled, open } = router.leases.stats();
    assert.equal([abandoned, completed, failed, cancelled, open], [0, 1, 1, 1, 0]);
    assert.is(router.load.of(0).activeRequests, 0);
  });

  test('a lease dropped after its rank was forgotten is abandoned and touches no load', async () => {
    const router = new StandIn();
    router.leases.open(REQUEST, 0);
    router.load.forget(0);
    const kept = router.leases.open(REQUEST, 0);
    assert.ok(await settles(() => router.leases.stats().abandoned === 1));
    assert.is(router.load.of(0).activeRequests, 1);
    kept.complete(1);
  });

  test('handlers keep firing while the lease is held, and go with it', async () => {
    const router = new StandIn();
    const calls: unknown[] = [];
    const held: { lease: Lease | null } = { lease: router.leases.open(REQUEST, 0) };
    const attach = (): WeakRef<object> => {
      const lease = held.lease!;
      // The handlers know their lease: a cycle, which must not keep it alive either.
      const handlers = {
        admitted: (now: number) => calls.push(['admitted', now, lease.outcome]),
        progress: (tokens: number) => calls.push(['progress', tokens]),
        ended: () => calls.push('ended'),
      };
      lease.attach(handlers);
      return new WeakRef(handlers);
    };
    const handlers = attach();
    await collect();
    held.lease!.admitted(1);
    await collect();
    held.lease!.progress(2, 2);
    await collect();
    assert.equal(calls, [
      ['admitted', 1, null],
      ['progress', 2],
    ]);
    assert.is(router.leases.stats().abandoned, 0);
    held.lease = null;
    assert.ok(await gone(handlers), 'the handlers outlived their lease');
    assert.ok(await settles(() => router.leases.stats().abandoned === 1));
    assert.is(calls.length, 2, 'nobody is told of an abandoned lease');
  });

  for (const disposed of [true, false]) {
    test(`a router that was ${disposed ? 'disposed' : 'just dropped'} is collected while a lease lives, which is inert`, async () => {
      const make = (): { lease: Lease; ref: WeakRef<StandIn> } => {
        const router = new StandIn();
        const lease = router.leases.open(REQUEST, 0);
        router.leases.open(REQUEST, 0); // dropped with it
        if (disposed) router.leases.dispose();
        return { lease, ref: new WeakRef(router) };
      };
      const { lease, ref } = make();
      let ended = 0;
      lease.attach({ ended: () => ended++ });
      assert.ok(await gone(ref), 'the router is still alive');
      lease.admitted(1);
      lease.progress(5, 2);
      lease.complete(3);
      lease.progress(6, 4);
      assert.is(ended, 1);
    });
  }

  test('a disposed router that is still held hears nothing of its leases', async () => {
    const router = new StandIn();
    const lease = router.leases.open(REQUEST, 0);
    router.leases.open(REQUEST, 0);
    router.leases.dispose();
    await collect();
    lease.complete(1);
    assert.is(router.heard, 0);
    const { abandoned, completed } = router.leases.stats();
    assert.equal([abandoned, completed], [0, 0]);
  });

  test('a router whose construction failed is collected while a lease of it lives', async () => {
    const make = (): { lease: Lease; ref: WeakRef<StandIn> } => {
      const out: { lease?: Lease; ref?: WeakRef<StandIn> } = {};
      const fail = (half: StandIn): never => {
        out.ref = new WeakRef(half);
        out.lease = half.leases.open(REQUEST, 0);
        throw new Error('construction failed');
      };
      assert.throws(() => new StandIn(fail), 'construction failed');
      return { lease: out.lease!, ref: out.ref! };
    };
    const { lease, ref } = make();
    assert.ok(await gone(ref), 'the router is still alive');
    lease.progress(1, 1);
    lease.fail(2);
    assert.is(lease.outcome, 'failed');
  });

  test('a lease keeps nothing else of the request object that it was opened with', async () => {
    const router = new StandIn();
    const make = (): { lease: Lease; ref: WeakRef<object> } => {
      const decision = {};
      const request: LeaseRequest & { decision: object } = { ...REQUEST, decision };
      return { lease: router.leases.open(request, 0), ref: new WeakRef(decision) };
    };
    const { lease, ref } = make();
    assert.ok(await gone(ref));
    lease.complete(1);
  });

  test('without weak references a disposed router is collected while a lease lives', async () => {
    const Weak = globalThis.WeakRef;
    const { FinalizationRegistry: Registry } = globalThis;
    const make = (): { lease: Lease; ref: WeakRef<StandIn> } => {
      Object.assign(globalThis, { WeakRef: undefined, FinalizationRegistry: undefined });
      try {
        const router = new StandIn();
        const lease = router.leases.open(REQUEST, 0);
        router.leases.dispose();
        return { lease, ref: new Weak(router) };
      } finally {
        Object.assign(globalThis, { WeakRef: Weak, FinalizationRegistry: Registry });
      }
    };
    const { lease, ref } = make();
    assert.ok(await gone(ref));
    lease.complete(1);
  });
}

if (typeof globalThis.gc === 'function') {
  childTests();
} else {
  test('every test of this file passes where the collector can be called', () => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', fileURLToPath(import.meta.url)], {
      encoding: 'utf8',
      env: { ...process.env, NO_COLOR: '1' },
      timeout: 120_000,
    });
    const [, total, passed] = /Total:\s+(\d+)\s+Passed:\s+(\d+)/.exec(stdout) ?? [];
    console.log(`  under --expose-gc: ${passed} of ${total} passed`);
    assert.ok(Number(total) > 0 && passed === total, stdout + stderr);
  });
}

test.run();
