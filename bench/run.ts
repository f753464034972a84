// `npm run bench`: the core beside plain JavaScript rivals, in one process. Prints machine, method and spread; --quick for a short run,
// --json for machines. Aims are stated and judged, but a missed aim is a report, not a failure: machines differ.
import { readFileSync } from 'node:fs';
import { Core } from '../src/core/core.js';
import { Numbers } from '../src/core/numbers.js';
import { derivedSuite } from './derived-suites.js';
import { environment, shownTime } from './harness.js';
import { liveSuite } from './live-suites.js';
import {
  prefixClearSuite,
  prefixEventSuite,
  prefixLookupSuite,
  prefixNewSuite,
  prefixSizes,
  shownPrefixSize,
} from './prefix-suites.js';
import { reconcileSuite } from './reconcile-suites.js';
import { rivals } from './rivals/index.js';
import { decisionSuite } from './router-suites.js';
import { simSuite } from './sim-suites.js';
import {
  batchSuite,
  churnSuite,
  FULL,
  hashSuite,
  interleavedSuite,
  learnSuite,
  lookupSuite,
  QUICK,
  type Row,
} from './suites.js';
import { newWorkerSuite, requestSuite, workerSuite } from './worker-suites.js';

const effort = process.argv.includes('--quick') ? QUICK : FULL;
const json = process.argv.includes('--json');
const report: { rival: string; rows: Row[] }[] = [];

const say = (text: string) => {
  if (!json) console.log(text);
};

/** A ratio as a person reads it. */
function factor(ratio: number): string {
  return ratio < 20 ? ratio.toFixed(1) : ratio.toFixed(0);
}

function print({ suite, core, rival, ratio, aim, met, note }: Row): void {
  const times =
    rival === null ? shownTime(core.median) : `${shownTime(core.median)} against ${shownTime(rival.median)}`;
  const factors =
    ratio === null ? '' : `, ${factor(ratio.median)} × (${factor(ratio.at(0.1))}–${factor(ratio.at(0.9))})`;
  const verdict = aim === null ? '' : `  [aim ${aim}: ${met ? 'met' : 'MISSED'}]`;
  say(`  ${suite}: ${times}${factors}${note === '' ? '' : ` — ${note}`}${verdict}`);
}

async function run(name: string, suites: (() => Promise<Row[]>)[]): Promise<void> {
  say(`\n${name}`);
  const rows: Row[] = [];
  for (const suite of suites) {
    for (const row of await suite()) {
      print(row);
      rows.push(row);
    }
  }
  report.push({ rival: name, rows });
}

for (const [what, value] of Object.entries(environment())) say(`${what}: ${value}`);
say(
  'method: contenders alternate in one process; medians of paired ratios, in parentheses the 10th to 90th percentile; seeds are fixed',
);
for (const rival of rivals) {
  await run(`beside ${rival.name}`, [
    () => lookupSuite(rival, effort, rival.reference),
    () => interleavedSuite(rival, effort, rival.reference),
    () => batchSuite(rival, effort, rival.reference),
    ...(rival.reference ? [() => learnSuite(rival, effort)] : []),
    () => workerSuite(rival, effort, rival.reference),
    () => newWorkerSuite(rival, effort),
  ]);
}
await run('the core alone', [() => churnSuite(effort), () => hashSuite(effort), () => requestSuite(effort)]);
await run('engine digests', [() => derivedSuite(effort)]);
await run('the GPU index', [
  () => prefixLookupSuite(effort),
  () => prefixEventSuite(effort),
  () => prefixNewSuite(effort),
  () => prefixClearSuite(effort),
]);
await run('reconcile', [() => reconcileSuite(effort), () => liveSuite(effort)]);
await run('decisions', [() => decisionSuite(effort)]);
await run('simulations', [() => simSuite(effort)]);

say('\nsizes');
const sizes: Record<string, { wasmBytes: number; memoryMiB: number }> = {};
for (const [build, file] of [
  ['default', 'core'],
  ['wide', 'core-wide'],
  ['large', 'core-large'],
] as const) {
  const core = await Core.load(build);
  sizes[build] = {
    wasmBytes: readFileSync(`build/wasm/${file}.wasm`).length,
    memoryMiB: core.stats().memoryBytes / (1 << 20),
  };
  say(
    `  ${build}: ${(sizes[build].wasmBytes / 1024).toFixed(1)} KiB of module, ${sizes[build].memoryMiB.toFixed(1)} MiB of linear memory`,
  );
}
const reader = new Numbers();
sizes['reader'] = {
  wasmBytes: readFileSync('build/wasm/wire.wasm').length,
  memoryMiB: reader.bytes.buffer.byteLength / (1 << 20),
};
say(
  `  reader: ${(sizes['reader'].wasmBytes / 1024).toFixed(1)} KiB of module, ${sizes['reader'].memoryMiB.toFixed(1)} MiB of linear memory, of which a message touches what it needs`,
);
for (const size of await prefixSizes()) say(`  ${shownPrefixSize(size)}`);
if (json) {
  const rows = report.map(({ rival, rows: all }) => ({
    rival,
    rows: all.map((row) => ({
      ...row,
      core: row.core.median,
      rival: row.rival?.median ?? null,
      ratio: row.ratio?.median ?? null,
    })),
  }));
  console.log(JSON.stringify({ ...environment(), effort, report: rows, sizes }, null, 2));
}
