// Entry for Deno: prints what behaviours.js sees there, given the input in the file that the argument names.
import { readFileSync } from 'node:fs';
import * as moonroute from '../../build/js/src/index.js';
import * as sim from '../../build/js/src/sim/index.js';
import { behaviours } from './behaviours.js';

const input = JSON.parse(readFileSync(Deno.args[0], 'utf8'));
console.log(JSON.stringify(await behaviours({ moonroute, sim, input })));
