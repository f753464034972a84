// What the collector does to routers: one that was disposed, dropped, or never finished is collected while leases of it live, and takes
// its callbacks with it. The collector must be at hand, so the file runs itself in a child process under --expose-gc.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Lease } from '../src/router/leases.js';
import { Router } from '../src/router/router.js';
import type { RouterOptions } from '../src/router/router-options.js';

/** Collections that a condition is given before it counts as failed. */
const ROUNDS = 50;
const TOKENS = Uint32Array.from({ length: 100 }, (_, i) => i);

async function settles(condition: () => boolean): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    globalThis.gc!();
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (condition()) return true;
  }
  return false;
}

const gone = (ref: WeakRef<object>) => settles(() => ref.deref() === undefined);

/** A router with one worker, two of its leases, and weak ways to it and to what it was made with. */
async function makeRouter(end: (router: Router) => void) {
  const isPending = () => false;
  const cost = () => 1;
  const router = await Router.create({
    settings: { sharedCacheType: 'mooncake-store' },
    policy: { name: 'mine', inputs: ['shared-cache'], cost },
    cache: { isPending },
    index: { bytes: 4 << 20 },
  });
  router.addWorker({ id: 0 });
  const decision = router.route({ tokens: TOKENS, explain: true });
  router.route({ tokens: TOKENS }); // its lease is dropped
  end(router);
  return { lease: decision.lease, refs: [router, isPending, cost].map((one) => new WeakRef<object>(one)) };
}

function childTests(): void {
  for (const [how, end] of [
    ['disposed', (router: Router) => router.dispose()],
    ['just dropped', () => {}],
  ] as const) {
    test(`a router that was ${how} is collected with its callbacks while a lease of it lives`, async () => {
      const { lease, refs } = await makeRouter(end);
      for (const ref of refs) assert.ok(await gone(ref), 'still alive');
      let ended = 0;
      lease.attach({ ended: () => ended++ });
      lease.progress(5, 2);
      lease.complete(3, { cachedTokens: 32 });
      assert.is(ended, 1);
    });
  }

  test('a router whose construction failed is collected with what it was made with', async () => {
    const make = async (): Promise<WeakRef<object>[]> => {
      const isPending = () => false;
      const cost = () => 1;
      const options: RouterOptions = {
        settings: { sharedCacheType: 'mooncake-store' },
        policy: { name: 'mine', inputs: ['shared-cache'], cost },
        cache: { isPending, limits: { edges: 0 } },
        index: { bytes: 4 << 20 },
      };
      const failed = await Router.create(options).then(
        () => false,
        () => true,
      );
      assert.ok(failed);
      return [isPending, cost].map((one) => new WeakRef<object>(one));
    };
    for (const ref of await make()) assert.ok(await gone(ref), 'still alive');
  });

  test('a dropped lease gives its load back, and the router counts it', async () => {
    const router = await Router.create({ index: { bytes: 4 << 20 } });
    router.addWorker({ id: 0 });
    const held: { lease: Lease | null } = { lease: router.route({ tokens: TOKENS }).lease };
    (() => router.route({ tokens: TOKENS }))();
    assert.ok(await settles(() => router.stats().leases.abandoned === 1));
    assert.is(router.workers()[0]!.ranks[0]!.load.activeRequests, 1);
    held.lease!.complete(1);
    held.lease = null;
    assert.is(router.workers()[0]!.ranks[0]!.load.activeRequests, 0);
  });

  test('a router keeps neither request nor decision', async () => {
    const router = await Router.create({ index: { bytes: 4 << 20 } });
    router.addWorker({ id: 0 });
    const make = () => {
      const body = {};
      const tokens = TOKENS.slice();
      const decision = router.route({ tokens, body, explain: true });
      return { lease: decision.lease, refs: [body, tokens, decision].map((one) => new WeakRef<object>(one)) };
    };
    const { lease, refs } = make();
    for (const ref of refs) assert.ok(await gone(ref), 'still alive');
    lease.complete(1);
  });

  test('a hundred routers, one after the other', async () => {
    for (let i = 0; i < 100; i++) (await Router.create({ index: { bytes: 4 << 20 } })).addWorker({ id: i });
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
