// `node build/js/bench/proxy.js [seconds]`: what the proxy adds to a request's time. Prints machine and method, and what part of the machine its host
// gave to others meanwhile: where that is more than a few percent, no time here means anything.
import { existsSync, readFileSync } from 'node:fs';
import { nodeEnvironment } from '../src/bench/node-engine.js';
import { clockStep } from './method/pairing.js';
import { proxySuite } from './proxy-suites.js';

const STAT = '/proc/stat';
const STEAL = 7;

/** Ticks of all processors since the machine's start, by kind; none where there is no such file. */
function ticks(): number[] {
  if (!existsSync(STAT)) return [];
  const [line = ''] = readFileSync(STAT, 'utf8').split('\n');
  return line.split(/\s+/).slice(1, 9).map(Number);
}

for (const [what, value] of Object.entries(nodeEnvironment(clockStep()))) console.log(`${what}: ${value}`);
const before = ticks();
const seconds = process.argv[2] === undefined ? undefined : Number(process.argv[2]);
for (const { suite, note, aim, met } of await proxySuite(seconds)) {
  console.log(`${suite}: ${note}  [aim ${aim}: ${met ? 'met' : 'MISSED'}]`);
}
const spent = ticks().map((tick, kind) => tick - before[kind]!);
const all = spent.reduce((sum, tick) => sum + tick, 0);
if (all > 0) console.log(`taken by the machine's host meanwhile: ${((100 * spent[STEAL]!) / all).toFixed(1)} %`);
