// Entry for Deno: prints what sim-reports.js finds.
import * as sim from '../../build/js/src/sim/index.js';
import { simReports } from './sim-reports.js';

console.log(JSON.stringify(await simReports(sim)));
