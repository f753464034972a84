// The other process of the proxy's suite: two simulated workers that answer at once, so that what is measured is the way to them. Says their addresses
// as a router's configuration names them, and goes on until its input ends.
import { SimulatedWorker } from '../src/fleet/worker.js';

const workers = await Promise.all(
  [0, 1].map((i) => SimulatedWorker.start({ id: `worker-${i}`, latency: { timeScale: 0 } })),
);
const named = workers.map((worker) => ({
  id: worker.id,
  url: worker.httpUrl,
  events: worker.eventsEndpoints,
  replay: worker.replayEndpoints,
}));
console.log(JSON.stringify(named));
process.stdin.resume().on('end', () => process.exit());
