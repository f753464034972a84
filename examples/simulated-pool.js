// Two simulated workers and a simulated store, which speak the real wire on loopback: something to try a gateway against. Node.
import { Fleet } from 'moonroute/fleet';

/** Where everything is, as gateway.js wants it. */
export async function simulatedPool() {
  const fleet = await Fleet.start({ workers: 2, worker: { tp: 2 } });
  const workers = fleet.workers.map((worker) => ({
    ...{ id: worker.id, url: worker.httpUrl },
    ...{ events: worker.eventsEndpoints, replay: worker.replayEndpoints },
  }));
  return {
    workers,
    masters: fleet.masters.map(({ eventsEndpoint, httpUrl }) => ({ events: eventsEndpoint, http: httpUrl })),
  };
}
