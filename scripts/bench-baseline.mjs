// Makes the base that `moonroute bench --quick --compare bench/baseline.json` compares with: `node scripts/bench-baseline.mjs [RUNS]`. Each run is a process
// of its own, since the engine's choices and the heap's layout differ from one to the next and move the rivals' times. Reports that are
// there already can be named instead: `node scripts/bench-baseline.mjs RUN.json…`.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const RUNS = 10;
const FILE = 'bench/baseline.json';

const { bench } = await import(new URL('../build/bench/bench.js', import.meta.url));
const given = process.argv.slice(2);
const files = given.filter((text) => text.endsWith('.json'));
const count = files.length > 0 ? 0 : Number(given[0] ?? RUNS);
const reports = files.map((file) => JSON.parse(readFileSync(file, 'utf8')));
for (let run = 0; run < count; run++) {
  console.error(`run ${run + 1} of ${count}`);
  const args = ['build/js/src/cli/main.js', 'bench', '--quick', '--json'];
  reports.push(
    JSON.parse(execFileSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 26 })),
  );
}
const rounded = (_key, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
writeFileSync(FILE, `${JSON.stringify(bench.baselineOf(reports), rounded, 2)}\n`);
console.error(`${FILE}: ${reports.length} runs`);
