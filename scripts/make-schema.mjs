// Writes config.schema.json from the schema that checks configurations (src/server/config-schema.ts). Run it after `node scripts/build.mjs` whenever
// that has changed; a test says when it was forgotten.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { configJsonSchema } from '../build/js/src/server/config-json-schema.js';

const file = new URL('../config.schema.json', import.meta.url).pathname;
writeFileSync(file, `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
execFileSync('npx', ['biome', 'format', '--write', file], { stdio: 'inherit' });
