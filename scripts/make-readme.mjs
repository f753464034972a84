// Fills the README's marked blocks from what they show: an example word for word, and the benchmark's summary from its base. `node scripts/make-readme.mjs`,
// after a build; `--check` writes nothing and fails where a block is stale. A block begins with the name of its source in a comment and ends with `<!-- end -->`.
import { readFileSync, writeFileSync } from 'node:fs';
import { bench } from '../build/bench/bench.js';

const FILE = 'README.md';
const { suites } = bench;
/** Rows of the summary: where the core is better, and where it is not. */
const ROWS = [
  'lookup-caps/4096',
  'lookup-interleaved/512',
  'lookup-cold/1024',
  'evict/1024',
  'learn/1',
  'wire/126',
  'vllm-maps/32',
  'hash/16',
  'derive-cold/6144',
  'derive-warm/6144',
  'index-depths/512',
  'decision/1024',
  'reconcile/3124',
  'memory/262144',
];

const number = (value) => (value >= 100 ? Math.round(value).toLocaleString('en') : Number(value.toPrecision(2)));

/** The base's ratios as a table. */
function summary(file) {
  const { rows, runs, engineFamily } = JSON.parse(readFileSync(file, 'utf8'));
  const lines = ROWS.map((row) => {
    const [name, size] = row.split('/');
    const suite = suites.find((one) => one.name === name);
    const { median, low, high } = rows[row].ratio;
    const before = suites[suites.indexOf(suite) - 1];
    const title = suite.title === 'the same' ? before.title : suite.title;
    const what = `${title}; ${Number(size).toLocaleString('en')} ${suite.sizeOf}`;
    return `| ${what} | ${suite.rival} | **${number(median)} ×** | ${number(low)} … ${number(high)} |`;
  });
  return [
    `How many times faster (smaller, for memory) than the same rules in plain JavaScript, in one process and in turn: medians of ${runs} runs on ${engineFamily}, and the interval that holds those of all runs. Below 1 the plain way is better.`,
    '',
    '| what | beside | ratio | interval |',
    '| --- | --- | --: | --: |',
    ...lines,
  ].join('\n');
}

const example = (file) => `\`\`\`js\n${readFileSync(file, 'utf8')}\`\`\``;

const text = readFileSync(FILE, 'utf8');
const filled = text.replace(/<!-- (\S+) -->\n[\s\S]*?<!-- end -->/g, (_, file) => {
  const block = file.endsWith('.json') ? summary(file) : example(file);
  return `<!-- ${file} -->\n${block}\n<!-- end -->`;
});
if (!process.argv.includes('--check')) writeFileSync(FILE, filled);
else if (filled !== text) {
  console.error(`${FILE} is stale; run node scripts/make-readme.mjs`);
  process.exitCode = 1;
}
