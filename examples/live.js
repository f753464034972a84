// A router on live streams. The pool is simulated: two workers and a store's master that speak the real wire on loopback.
import { Router } from 'moonroute';
import { Fleet } from 'moonroute/fleet';
import { LiveStreams } from 'moonroute/live';

const fleet = await Fleet.start({ workers: 2, worker: { tp: 2, latency: { timeScale: 0 } } });
const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' } });
const live = LiveStreams.open(router, {
  workers: fleet.workers.map((worker) => ({
    id: worker.id,
    descriptor: worker.descriptor,
    events: worker.eventsEndpoints,
    replay: worker.replayEndpoints,
  })),
  store: { masters: fleet.masters.map((master) => ({ events: master.eventsEndpoint, http: master.httpUrl })) },
});

const tokens = Array.from({ length: 161 }, (_, i) => i);
const worker = fleet.workers[0];
await fetch(`${worker.httpUrl}/v1/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ prompt: tokens, max_tokens: 1 }),
});
const show = (what) => {
  const { blocks, sharedReason, lease } = router.route({ tokens: Uint32Array.from(tokens), textOnly: true });
  lease.cancel(Date.now());
  console.log(
    `${what}: ${blocks.device} blocks on the GPU, ${blocks.shared} in the store${sharedReason ? ` (${sharedReason.code})` : ''}`,
  );
};
const until = async (holds) => {
  while (!holds(live.status())) await new Promise((resolve) => setTimeout(resolve, 20));
};

await until(
  ({ workers, store }) => workers[0].lastSequence !== null && store.reconciled > 0 && store.lastSequence > 0n,
);
show('computed once');
worker.evict(10_000);
await until(() => router.dump(worker.id).length === 0);
show('evicted from the GPU');
fleet.masters[0].removeAll({ force: true });
await until(() => router.route({ tokens: Uint32Array.from(tokens), textOnly: true }).blocks.shared === 0);
show('removed from the store');
console.log('warnings:', live.status().store.warnings.length);

await live.close();
router.dispose();
await fleet.close();
