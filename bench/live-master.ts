// The other process of the live suites: a simulated master that holds so many objects, asked for as arguments: generation, keys, key prefixes. Says
// where it listens, and goes on until its input ends.
import { SimulatedMaster } from '../src/fleet/master.js';
import { randomLongs } from './method/random.js';
import { digestOf } from './workload.js';

const [keys, ...prefixes] = process.argv.slice(2);
const master = await SimulatedMaster.start({ generation: 'C' });
const digests = Math.ceil(Number(keys) / prefixes.length);
for (const low of randomLongs(digests, 0x6c697665n)) {
  for (const prefix of prefixes) master.putEnd(`${prefix}@${digestOf(low)}`);
}
await master.flushed();
console.log(JSON.stringify({ events: master.eventsEndpoint, http: master.httpUrl }));
process.stdin.resume().on('end', () => process.exit());
