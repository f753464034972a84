// What is shown of simulations: numbers, tables, CSV, the page. Everything but the layout of charts is checked by hand-made reports.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { checkSimConfig } from '../src/sim/config.js';
import { CapacityCurve } from '../src/sim/curve.js';
import { csvText, curvesCsv, runsCsv } from '../src/sim/report-csv.js';
import { blockBytes, curveReport, curveText, roundSizes } from '../src/sim/report-curve.js';
import { escapeHtml } from '../src/sim/report-escape.js';
import { FIGURES, figureOf, figureText } from '../src/sim/report-figures.js';
import { bytesText, countText, rateText, shareText, shortNumber, timeText } from '../src/sim/report-format.js';
import { reportHtml } from '../src/sim/report-html.js';
import { logScale, roundStep, scaleFor, scaleFrom0, straightScale } from '../src/sim/report-scale.js';
import {
  aligned,
  configText,
  factsText,
  policyTable,
  sweepTable,
  warningLines,
  workerTable,
  zeroTable,
} from '../src/sim/report-table.js';
import { builtInWorkload } from '../src/sim/workload.js';
import { factsOf, reportOf, runOf, sweepOfStore } from './support/sim-report.js';
import { simulateLru } from './support/simulate-lru.js';

const EMPTY = reportOf({
  requests: 0,
  completed: 0,
  blocks: { full: 0, gpu: 0, dram: 0, ssd: 0, computed: 0 },
  ttft: { p50: null, p90: null, p99: null, mean: null },
  duration: 0,
});

test('numbers read well at every size', () => {
  for (const [seen, wanted] of [
    [shortNumber(0), '0'],
    [shortNumber(1.256), '1.26'],
    [shortNumber(12.34), '12.3'],
    [shortNumber(999.6), '1000'],
    [countText(0), '0'],
    [countText(999), '999'],
    [countText(1234567), '1,234,567'],
    [bytesText(0), '0 B'],
    [bytesText(999), '999 B'],
    [bytesText(999_900), '1 MB'],
    [bytesText(5_242_880), '5.24 MB'],
    [bytesText(200e9), '200 GB'],
    [bytesText(3e15), '3 PB'],
    [rateText(25e9), '25 GB/s'],
    [timeText(0.25), '0.25 ms'],
    [timeText(999.7), '1 s'],
    [timeText(61_000), '61 s'],
    [timeText(600_000), '10 min'],
    [timeText(7_200_000), '2 h'],
    [shareText(0.36644), '36.64 %'],
    [shareText(1), '100.00 %'],
  ])
    assert.is(seen, wanted);
});

test('figures are worked out from the report; where nothing was measured there is none', () => {
  const report = reportOf();
  for (const [key, value] of [
    ['hit_share', 0.5],
    ['gpu_share', 0.3],
    ['dram_share', 0.15],
    ['ssd_share', 0.05],
    ['computed_share', 0.5],
    ['reachable_share', 0.55],
    ['ceiling_share', 0.6],
    ['requests_per_second', 10],
    ['prompt_tokens_per_second', 1700],
    ['generated_tokens_per_second', 200],
    ['fetch_mean_bytes_per_second', 1e8],
    ['fetch_peak_bytes_per_second', 4e8],
    ['ttft_p99_ms', 90_000],
    ['credit_stale_blocks', 12],
    ['router_digest_evictions', 3],
  ] as const)
    assert.is(figureOf(key).of(report), value, key);
  for (const key of ['hit_share', 'ttft_p50_ms', 'requests_per_second', 'fetch_mean_bytes_per_second'])
    assert.is(figureOf(key).of(EMPTY), null, key);
  assert.is(figureText(figureOf('hit_share'), EMPTY), '–');
  assert.throws(() => figureOf('none'), /no figure is called none/);
  const keys = FIGURES.flatMap(({ figures }) => figures.map(({ key }) => key));
  assert.is(new Set(keys).size, keys.length);
});

test('tables: first column left, others right, no blanks at the ends of lines', () => {
  assert.equal(aligned([['', 'kv'], ['hit'], ['  GPU', '50 %']]), ['         kv', 'hit', '  GPU  50 %']);
  assert.equal(
    aligned(
      [
        ['a', 'b', '1'],
        ['aa', 'bbb', '10'],
      ],
      2,
    ),
    ['a   b     1', 'aa  bbb  10'],
  );
});

test('policies stand side by side, partial runs say so', () => {
  const text = policyTable([runOf(), runOf({ policy: 'random', partial: true }, {}, { imbalance: 2 })]);
  const lines = text.split('\n');
  assert.match(lines[0]!, /^ +kv +random \(partial\)$/);
  assert.ok(lines.some((line) => /^ {2}hit +50\.00 % +50\.00 %$/.test(line)));
  assert.ok(lines.some((line) => /^ {2}load imbalance \(most \/ mean\) +1\.25 +2$/.test(line)));
  assert.ok(lines.some((line) => /^ {2}fetch, mean +100 MB\/s +100 MB\/s$/.test(line)));
});

test('the configuration is told in two lines, with what is out of the ordinary', () => {
  const usual = configText(checkSimConfig());
  assert.is(usual.split('\n').length, 2);
  assert.match(usual, /8 workers of 65,536 GPU blocks, .*store: 2 TB memory, 0 B SSD/);
  assert.match(usual, /blocks of 16 tokens: full_attention 5\.24 MB; 2 ranks; events after 5 ms; speed-up 1; seed 1$/);
  const odd = configText(
    checkSimConfig({
      store: { dramBytes: 0 },
      events: { jitter: 20, loss: 0.01 },
      groups: [
        { kind: 'full_attention', window: null, bytesPerBlock: 1000 },
        { kind: 'sliding_window', window: 128, bytesPerBlock: 2000 },
      ],
      restarts: [
        { at: 60_000, worker: null },
        { at: 1000, worker: 3 },
      ],
    }),
  );
  assert.match(odd, /store: none\n/);
  assert.match(odd, /full_attention 1 kB \+ sliding_window 128 2 kB; .*events after 5 ms to 25 ms, 1\.00 % lost/);
  assert.match(odd, /the store starts anew at 60 s\n +worker 3 starts anew at 1 s$/);
});

test('a sweep has a line for each point and policy', () => {
  const lines = sweepTable(sweepOfStore(['kv', 'ttft'], [0, 50e9])).split('\n');
  assert.is(lines.length, 5);
  assert.match(lines[0]!, /^store +policy +hit +GPU/);
  assert.match(lines[3]!, /^50 GB {2}kv +50\.00 % +30\.00 %/);
});

test('reasons for zero credit: the commonest first, with their share of all decisions', () => {
  const lines = zeroTable([
    runOf(),
    runOf({ policy: 'ttft' }, {}, { credit: { ...reportOf().credit, zero: {} } }),
  ]).split('\n');
  assert.match(lines[0]!, /kv +ttft$/);
  assert.match(lines[1]!, /^ {2}edge-unknown +40 \(40\.00 %\) +0 \(0\.00 %\)$/);
  assert.match(lines[2]!, /^ {2}held-locally +20/);
  assert.match(zeroTable([runOf({}, {}, { credit: { ...reportOf().credit, zero: {} } })]), /No decision/);
  assert.match(workerTable(runOf()), /worker 1 +40 +3 s +200$/);
});

test('a trace is told in a line, and each oddity in one, with its quotes', () => {
  assert.is(
    factsText(factsOf({ gzip: true })),
    'a.jsonl (fast25, gzip): 100 requests in 9 s, 17,000 prompt and 2,000 output tokens',
  );
  const warnings = [
    { code: 'bad-value', count: 1200, firstLine: 7, skipped: true, text: 'rows; skipped', quotes: ['{"a": 1}'] },
  ] as const;
  assert.equal(warningLines(factsOf({ warnings })), [
    'a.jsonl: 1,200 × bad-value (first in line 7): rows; skipped',
    '    {"a": 1}',
  ]);
});

test('CSV: cells with commas, quotes and line ends are quoted, nothing measured is empty', () => {
  assert.is(csvText([['a', 1.5, null, true]]), 'a,1.5,,true\n');
  assert.is(csvText([['a,b', 'say "hi"', 'two\nlines', 'cr\r']]), '"a,b","say ""hi""","two\nlines","cr\r"\n');
  const [head, row, empty, end] = runsCsv([
    runOf({ trace: 'odd, name.jsonl', point: { axis: 'store', value: 50e9 } }),
    runOf({ report: EMPTY, partial: true }),
  ]).split('\n');
  assert.is(end, '');
  const columns = head!.split(',');
  const cells = row!.replace('"odd, name.jsonl"', 'odd').split(',');
  assert.is(cells.length, columns.length);
  const cell = (name: string): string => cells[columns.indexOf(name)]!;
  assert.equal(
    [cell('policy'), cell('sweep'), cell('sweep_value'), cell('hit_share'), cell('ttft_p50_ms')],
    ['kv', 'store', '50000000000', '0.5', '200'],
  );
  assert.is(empty!.split(',')[columns.indexOf('partial')], 'true');
  assert.is(empty!.split(',')[columns.indexOf('hit_share')], '');
});

test('round sizes go in steps of 1, 2, 5', () => {
  assert.equal(roundSizes(3, 150), [5, 10, 20, 50, 100]);
  assert.equal(roundSizes(1, 1), []);
});

test('blocks are counted by full-attention groups, for what windows keep depends on prompts', () => {
  const full = { kind: 'full_attention', window: null, bytesPerBlock: 100 } as const;
  const window = { kind: 'sliding_window', window: 64, bytesPerBlock: 70 } as const;
  assert.is(blockBytes([full, window, full]), 200);
  assert.is(blockBytes([window]), 70);
});

test('the curve at sizes in bytes equals the curve at the ids that fit', () => {
  const curve = new CapacityCurve();
  for (const ids of [
    [0, 1, 2],
    [3, 4],
    [0, 1, 2, 5],
    [3, 4, 6],
    [0, 1, 2],
  ])
    curve.add(ids);
  const config = checkSimConfig({
    store: { dramBytes: 4500 },
    groups: [{ kind: 'full_attention', window: null, bytesPerBlock: 500 }],
  });
  const report = curveReport(curve, { trace: 'a.jsonl', idTokens: 32, partial: false }, config);
  assert.is(report.bytesPerId, 1000);
  assert.is(report.references, 15);
  const sizes = report.points.map(({ bytes }) => bytes);
  assert.equal(sizes.slice(-4), [2000, 4500, 5000, 7000]);
  for (const { bytes, capacity, hits, share } of report.points) {
    assert.is(capacity, Math.floor(bytes / 1000));
    assert.is(hits, curve.hitsAt(capacity));
    assert.is(share, hits / 15);
  }
  for (const { capacity, hits } of report.corners) assert.is(hits, curve.hitsAt(capacity));
  const text = curveText(report);
  assert.match(text, /15 references to 7 ids of 32 tokens, 1 kB each/);
  assert.match(text, /unlimited \(7 kB\) +\d+\.\d\d % {2}█+\n/);
  assert.match(text, /not a simulation/);
  const rows = curvesCsv([report]).trim().split('\n');
  assert.is(rows.length, report.points.length + 1);
  assert.match(rows.at(-1)!, /^a\.jsonl,7000,7,8,0\.53/);
});

test('one pass agrees with a plain simulation at every size that is shown', () => {
  const curve = new CapacityCurve();
  const requests = [...builtInWorkload({ requests: 200, seed: 3 })].map(({ hashIds }) => hashIds!);
  for (const ids of requests) curve.add(ids);
  const { points } = curveReport(curve, { trace: 't', idTokens: 16, partial: false }, checkSimConfig());
  assert.ok(points.length > 8);
  for (const { capacity, hits } of points) assert.is(hits, simulateLru(requests, capacity), `${capacity} ids`);
});

test('a curve without any hit, or without ids, is flat', () => {
  const curve = new CapacityCurve();
  curve.add([0, 1]);
  const report = curveReport(curve, { trace: 't', idTokens: 512, partial: true }, checkSimConfig());
  assert.equal(report.corners, []);
  assert.ok(report.points.every(({ share }) => share === 0));
  assert.match(curveText(report), /capacity curve \(partial\)/);
  const none = curveReport(new CapacityCurve(), { trace: 't', idTokens: 512, partial: false }, checkSimConfig());
  assert.equal(none.points, [{ capacity: 0, bytes: 0, hits: 0, share: 0 }]);
});

test('axes: straight ones reach a round value, wide positive ones are logarithmic', () => {
  assert.equal([0.9, 1, 1.1, 4, 30, 0.03].map(roundStep), [1, 1, 2, 5, 50, 0.05]);
  assert.equal(straightScale(0, 1, 0, 100, 5).ticks, [0, 0.2, 0.4, 0.6, 0.8, 1]);
  const from0 = scaleFrom0(33, 0, 350, 5);
  assert.equal(from0.ticks, [0, 10, 20, 30, 40]);
  assert.is(from0.at(20), 175);
  const log = logScale(1, 1000, 0, 300);
  assert.equal([1, 10, 100, 1000].map(log.at), [0, 100, 200, 300]);
  assert.ok(Math.abs(log.at(2) - 30.1) <= 0.1);
  assert.equal(scaleFor([0, 1000], 0, 100).at(500), 50);
  assert.equal(scaleFor([1, 1000], 0, 300).at(10), 100);
  assert.equal(scaleFor([], 0, 100).ticks.at(-1), 1);
  assert.equal(scaleFor([0, 0], 0, 100).at(0), 0);
});

test('the page escapes whatever a trace says, loads nothing and has no script', () => {
  assert.is(escapeHtml(`<a b="c" d='e'>&\u0007`), '&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;?');
  const name = `<script>alert("x")</script>'.jsonl`;
  const warnings = [
    { code: 'malformed-row', count: 1, firstLine: 1, skipped: true, text: 'rows', quotes: ['<img src=x onerror=y>'] },
  ] as const;
  const page = reportHtml({
    partial: true,
    traces: [factsOf({ name, warnings })],
    runs: [runOf({ trace: name, partial: true }, {}, { credit: { ...reportOf().credit, zero: { '<b>': 1 } } })],
    curves: [],
  });
  assert.not.match(page, /<script|<img|<b>|https?:|url\(|@import|src=x onerror=y>/);
  assert.match(page, /&lt;script&gt;alert\(&quot;x&quot;\)/);
  assert.match(page, /default-src 'none'/);
  assert.match(page, /prefers-color-scheme: dark/);
  assert.match(page, /Partial/);
});

test('the page draws tiers, percentiles, sweep lines and the curve, each with titled axes', () => {
  const curve = new CapacityCurve();
  for (const ids of [[0, 1], [2], [0, 1], [2]]) curve.add(ids);
  const subject = { trace: 'a.jsonl', idTokens: 512, partial: false };
  const page = reportHtml({
    partial: false,
    traces: [factsOf()],
    runs: sweepOfStore(['kv', 'ttft'], [0, 50e9, 100e9]),
    curves: [curveReport(curve, subject, checkSimConfig())],
  });
  assert.is(page.match(/<svg /g)?.length, 8);
  for (const text of [
    'share of full prompt blocks (%)',
    'store memory (bytes)',
    'capacity (bytes)',
    'tokens/s',
    'bytes/s',
  ])
    assert.ok(page.includes(text), text);
  assert.match(page, /<title>kv, store 50 GB: GPU 30 %<\/title>/);
  assert.match(page, /<title>ttft: 50 % at 100 GB<\/title>/);
  assert.not.match(page, /NaN|Infinity|undefined/);
});

test('a page of nothing measured still stands', () => {
  const page = reportHtml({ partial: true, traces: [factsOf()], runs: [runOf({ report: EMPTY })], curves: [] });
  assert.not.match(page, /NaN|Infinity|undefined/);
});

test.run();
