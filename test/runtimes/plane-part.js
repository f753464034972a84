// One router of a pool on an event plane, a process of its own that is killed without warning (live-plane.test.ts). Says what it knows whenever that
// changes: digests of what it holds of each worker, how far each prompt reaches there, and the load that others told it. Argument: settings as JSON.
import { createHash } from 'node:crypto';
import { Router } from '../../build/js/src/index.js';
import { LiveStreams } from '../../build/js/src/live/index.js';
import { PlaneStreams } from '../../build/js/src/live/plane/route/plane-streams.js';
import { openPlaneSubscriber } from '../../build/js/src/live/plane/transport/index.js';
import { dumpedSet } from '../../build/js/test/support/prefix-dumps.js';

const EVERY_MS = 20;
console.log(''); // it runs
const { name, plane, model, workers, masters, prompts, leases } = JSON.parse(process.argv[2]);

const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' }, index: { bytes: 4 << 20 } });
LiveStreams.open(router, { store: { masters, keeper: { pollEvery: 200 } } });
const streams = PlaneStreams.open(router, {
  subscriber: await openPlaneSubscriber(plane, { model }),
  workers: workers.map(({ planeId, ...worker }) => ({ ...worker, planeId: BigInt(planeId) })),
  load: { name: `${name} ${process.pid}` },
});
// Requests that never end: what the others must see of this router, and lose with it. They are kept, for a lease that nobody holds is ended.
const kept = Array.from({ length: leases }, () => router.route({ tokens: prompts[0], textOnly: true }));

let last = '';
setInterval(() => {
  const digests = workers.map(({ id }) => {
    const blocks = [...dumpedSet(router.dump(id))].map(
      ([path, { name: block, eligible }]) => `${path} ${block} ${eligible}`,
    );
    return createHash('sha256').update(blocks.sort().join()).digest('base64');
  });
  const reaches = prompts.map((tokens) => {
    const { candidates, lease } = router.route({ tokens, textOnly: true, explain: true });
    lease.cancel(0);
    return candidates.map(({ worker, blocks }) => [worker.id, blocks.device, blocks.shared]);
  });
  const { ranks } = streams.status();
  const said = {
    digests,
    reaches,
    warm: ranks.every(({ warm, recovering }) => warm && !recovering),
    leases: kept.length,
    lives: ranks.map(({ counts }) => counts.lives),
    foreign: router.stats().foreignLoad.activeRequests,
  };
  const line = JSON.stringify(said);
  if (line !== last)
    console.log(
      JSON.stringify(
        {
          at: Date.now(),
          ...said,
          ranks: ranks.map(({ counts, recoveries, rebuilds, outcomes }) => ({
            ...counts,
            recoveries,
            rebuilds,
            outcomes,
          })),
        },
        (_, value) => (typeof value === 'bigint' ? `${value}` : value),
      ),
    );
  last = line;
}, EVERY_MS);
