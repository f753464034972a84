// `node build/js/bench/whole.js [--quick]`: whole simulations, and reconciles of live streams over sockets. The suites that run anywhere are those of
// `moonroute bench`.
import { nodeEnvironment } from '../src/bench/node-engine.js';
import { liveSuite } from './live-suites.js';
import { clockStep } from './method/pairing.js';
import { FULL, QUICK, shownTime } from './row.js';
import { simSuite } from './sim-suites.js';

const effort = process.argv.includes('--quick') ? QUICK : FULL;
for (const [what, value] of Object.entries(nodeEnvironment(clockStep()))) console.log(`${what}: ${value}`);
for (const suite of [liveSuite, simSuite])
  for (const { suite: name, core, aim, met, note } of await suite(effort))
    console.log(
      `${name}: ${shownTime(core.median)} — ${note}${aim === null ? '' : `  [aim ${aim}: ${met ? 'met' : 'MISSED'}]`}`,
    );
