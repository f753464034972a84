// Entry for Deno: prints what answers.js finds for the prepared cases in the given file.
import { readFileSync } from 'node:fs';
import * as moonroute from '../../build/js/src/index.js';
import { answers } from './answers.js';

console.log(JSON.stringify(await answers(moonroute, JSON.parse(readFileSync(Deno.args[0], 'utf8')))));
