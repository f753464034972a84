// The report as one page that needs nothing else: charts are inline SVG, the style sheet follows the reader's light or dark, there is no
// script, and its own content policy lets nothing be loaded.
import { type Axis, lineChart, ranges, stackedBars } from './report-charts.js';
import { CURVE_NOTE } from './report-curve.js';
import { escapeHtml } from './report-escape.js';
import { FIGURES, figureOf, figureText, hitShare, zeroReasons } from './report-figures.js';
import { bytesText, countText, NOTHING, rateText, shareText, timeText } from './report-format.js';
import { configText, factsText, sweptText, warningLines } from './report-table.js';
import type { CurveReport, SimResult, SimRun, TraceFacts } from './report-types.js';
import { runText, SWEEP_AXES } from './sweep.js';

const STYLE = `
:root { color-scheme: light dark; --page: #fcfcfb; --ink: #1c1f24; --soft: #5d6470; --rule: #dfe2e6; --panel: #fff;
  --gpu: #2f6db5; --dram: #1f9a8a; --ssd: #d99a1c; --none: #d3d7dd;
  --c0: #2f6db5; --c1: #c8551b; --c2: #1f9a8a; --c3: #8a4fb0; --c4: #b8860b; --c5: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --ink: #e6e8eb; --soft: #9aa2ad; --rule: #31363d; --panel: #1c2025;
  --gpu: #6aa5e8; --dram: #45c4b2; --ssd: #e9b44c; --none: #444b55;
  --c0: #6aa5e8; --c1: #f08a52; --c2: #45c4b2; --c3: #c08be0; --c4: #e0b84a; --c5: #a3aab5; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 60rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; overflow-wrap: anywhere; }
p, li { color: var(--soft); margin: .25rem 0; } pre { overflow-x: auto; font-size: 13px; color: var(--soft); }
.partial { color: var(--c1); font-weight: 600; }
figure { margin: 1.25rem 0; padding: 1rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
.legend { font-size: 13px; color: var(--soft); margin-bottom: .5rem; } .key { display: inline-block; margin-right: 1rem; }
.key i { display: inline-block; width: 10px; height: 10px; margin-right: 6px; border-radius: 2px; background: var(--k); }
.t0 { --k: var(--gpu); } .t1 { --k: var(--dram); } .t2 { --k: var(--ssd); } .t3 { --k: var(--none); }
.c0 { --k: var(--c0); } .c1 { --k: var(--c1); } .c2 { --k: var(--c2); } .c3 { --k: var(--c3); } .c4 { --k: var(--c4); } .c5 { --k: var(--c5); }
.key .mark { --k: var(--ink); width: 2px; height: 14px; vertical-align: -2px; }
rect, circle { fill: var(--k); } .line { fill: none; stroke: var(--k); stroke-width: 2; } .spot { fill: transparent; }
.mark { fill: none; stroke: var(--ink); stroke-width: 2; } .range { stroke: var(--soft); stroke-width: 2; opacity: .5; }
.grid { stroke: var(--rule); fill: none; } text { fill: var(--ink); } .tick, .axis { fill: var(--soft); text-anchor: middle; }
.tick.end, .label { text-anchor: end; } .value { font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } tr.section th { padding-top: .9rem; color: var(--soft); }
summary { cursor: pointer; margin-top: 1rem; }
`;

const SHARE_AXIS: Axis = { title: 'share of full prompt blocks (%)', text: (share) => `${Math.round(share * 100)} %` };
const SHARE_TEXT: Axis = { ...SHARE_AXIS, text: shareText };
const TIME_AXIS: Axis = { title: 'time to first token', text: timeText };
const TIERS = ['GPU', 'store memory', 'store SSD', 'computed'] as const;

/** Charts of a sweep: a figure over the swept value, a line for each policy. */
const SWEEP_CHARTS: readonly { key: string; title: string; axis: Axis; yMost: number }[] = [
  { key: 'hit_share', title: 'Hit blocks', axis: SHARE_AXIS, yMost: 1 },
  { key: 'ttft_p50_ms', title: 'Time to first token, p50', axis: TIME_AXIS, yMost: 0 },
  { key: 'ttft_p99_ms', title: 'Time to first token, p99', axis: TIME_AXIS, yMost: 0 },
  {
    key: 'generated_tokens_per_second',
    title: 'Generated tokens a second',
    axis: { title: 'tokens/s', text: countText },
    yMost: 0,
  },
  {
    key: 'fetch_mean_bytes_per_second',
    title: 'Fetched from the store, mean',
    axis: { title: 'bytes/s', text: rateText },
    yMost: 0,
  },
];

/** The whole page. */
export function reportHtml({ traces, runs, curves, partial }: SimResult): string {
  const sections = traces.map((facts) =>
    traceSection(
      facts,
      runs.filter(({ trace }) => trace === facts.name),
      curves.filter(({ trace }) => trace === facts.name),
    ),
  );
  const cut = partial ? '<p class="partial">Partial: the simulation was ended before its trace did.</p>' : '';
  return [
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>moonroute simulation</title><style>${STYLE}</style></head><body>`,
    '<h1>moonroute simulation</h1><p>Workers and store are simulated; the router and its core are the real ones.</p>',
    cut,
    ...sections,
    '</body></html>\n',
  ].join('\n');
}

function traceSection(facts: TraceFacts, runs: readonly SimRun[], curves: readonly CurveReport[]): string {
  const warnings = warningLines(facts);
  const first = runs[0];
  const swept = runs.filter(({ point }) => point !== null);
  return [
    `<section><h2>${escapeHtml(facts.name)}</h2><p>${escapeHtml(factsText(facts))}</p>`,
    first === undefined
      ? ''
      : `<pre>${escapeHtml([configText(first.config), ...(swept.length > 0 ? [sweptText(swept)] : [])].join('\n'))}</pre>`,
    warnings.length === 0
      ? ''
      : `<details><summary>What was odd about the trace (${facts.warnings.length})</summary><pre>${escapeHtml(warnings.join('\n'))}</pre></details>`,
    runs.length === 0 ? '' : runCharts(runs),
    swept.length === 0 ? '' : sweepCharts(swept),
    ...curves.map(curveSection),
    runs.length === 0 ? '' : runTable(runs),
    runs.length === 0 ? '' : zeroTable(runs),
    first === undefined
      ? ''
      : `<details><summary>Configuration${swept.length > 0 ? ' of the first run' : ''}</summary><pre>${escapeHtml(JSON.stringify(first.config, null, 2))}</pre></details>`,
    '</section>',
  ].join('\n');
}

function runCharts(runs: readonly SimRun[]): string {
  const bars = runs.map((run) => {
    const { blocks, reachableBlocks } = run.report;
    const share = (part: number): number => (blocks.full > 0 ? part / blocks.full : 0);
    const hit = hitShare(run.report);
    return {
      label: runText(run),
      shares: [blocks.gpu, blocks.dram, blocks.ssd, blocks.computed].map(share),
      mark: blocks.full > 0 ? Math.min(1, share(reachableBlocks)) : null,
      value: hit === null ? NOTHING : shareText(hit),
    };
  });
  const rows = runs.map((run) => {
    const { p50, p90, p99 } = run.report.ttft;
    return { label: runText(run), values: [p50, p90, p99] };
  });
  return (
    stackedBars('Where prompt blocks came from', TIERS, 'reachable by any routing', bars, SHARE_AXIS) +
    ranges('Time to first token', ['p50', 'p90', 'p99'], rows, TIME_AXIS)
  );
}

function sweepCharts(runs: readonly SimRun[]): string {
  const axis = runs[0]!.point!.axis;
  const policies = [...new Set(runs.map(({ policy }) => policy))];
  return SWEEP_CHARTS.map(({ key, title, axis: yAxis, yMost }) => {
    const figure = figureOf(key);
    const lines = policies.map((name) => ({
      name,
      points: runs.flatMap(({ policy, point, report }): [number, number][] => {
        const value = figure.of(report);
        return policy === name && point !== null && value !== null ? [[point.value, value]] : [];
      }),
    }));
    return lineChart(`${title}, by ${axis}`, lines, SWEEP_AXES[axis], yAxis, { yMost });
  }).join('\n');
}

function curveSection(curve: CurveReport): string {
  const lines = [
    { name: 'one LRU cache', points: curve.corners.map(({ bytes, share }): [number, number] => [bytes, share]) },
  ];
  const chart =
    curve.corners.length === 0
      ? '<p>No prefix of the trace ever came again.</p>'
      : lineChart(
          `Capacity curve${curve.partial ? ' (partial)' : ''}`,
          lines,
          { title: 'capacity (bytes)', text: bytesText },
          { ...SHARE_TEXT, title: 'share of references (%)', text: (share) => `${Number((share * 100).toFixed(1))} %` },
          { stepped: true },
        );
  const rows = curve.points.map(({ bytes, capacity, share }, i) => [
    i === curve.points.length - 1 ? `unlimited (${bytesText(bytes)})` : bytesText(bytes),
    countText(capacity),
    shareText(share),
  ]);
  return `${chart}<p>${escapeHtml(CURVE_NOTE)}</p><details><summary>Capacity curve as numbers</summary>${table(['capacity', 'ids', 'hit'], rows)}</details>`;
}

function runTable(runs: readonly SimRun[]): string {
  const body = FIGURES.map(({ title, figures }) => {
    const rows = figures.map(
      (figure) =>
        `<tr><td>${escapeHtml(figure.label)}</td>${runs.map(({ report }) => `<td>${escapeHtml(figureText(figure, report))}</td>`).join('')}</tr>`,
    );
    return `<tr class="section"><th colspan="${runs.length + 1}">${escapeHtml(title)}</th></tr>${rows.join('')}`;
  });
  const heads = runs.map((run) => `<th>${escapeHtml(run.partial ? `${runText(run)} (partial)` : runText(run))}</th>`);
  return `<div class="wide"><table><thead><tr><th></th>${heads.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`;
}

function zeroTable(runs: readonly SimRun[]): string {
  const codes = [...new Set(runs.flatMap(({ report }) => zeroReasons(report).map(([code]) => code)))];
  if (codes.length === 0) return '';
  const rows = codes.map((code) => [code, ...runs.map(({ report }) => countText(report.credit.zero[code] ?? 0))]);
  return `<details><summary>Decisions without shared credit, by reason</summary>${table(['reason', ...runs.map(runText)], rows)}</details>`;
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: 'th' | 'td'): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`;
  return `<div class="wide"><table><thead>${line(heads, 'th')}</thead><tbody>${rows.map((cells) => line(cells, 'td')).join('')}</tbody></table></div>`;
}
