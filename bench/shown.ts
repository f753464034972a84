// A report as people and other programs read it: a table, the same in Markdown, and the list that GitHub's common benchmark action takes.
import type { Report, ReportRow, ReportSuite } from '../src/bench/report-schema.js';
import { factor } from './method/compare.js';

/** Nanoseconds or bytes as a person reads them. */
export function shownAmount(value: number, measures: ReportSuite['measures']): string {
  const [steps, size] =
    measures === 'time' ? ([['ns', 'µs', 'ms', 's'], 1000] as const) : ([['B', 'KiB', 'MiB'], 1024] as const);
  let at = 0;
  let left = value;
  while (left >= size && at < steps.length - 1) {
    left /= size;
    at++;
  }
  const digits = left >= 100 ? 0 : left >= 10 ? 1 : 2;
  return `${left.toFixed(digits)} ${steps[at]}`;
}

const HEADS = ['suite', 'size', 'core', 'rival', 'ratio', '95 % interval', 'spread', 'counters'] as const;

function cellsOf({ name, measures, unit }: ReportSuite, { size, a, b, ratio, aim, counters }: ReportRow): string[] {
  const each = measures === 'time' ? `/${unit}` : '';
  const amount = (side: ReportRow['a']) => (side === null ? '' : `${shownAmount(side.median, measures)}${each}`);
  const verdict = aim === null ? '' : ` (aim ${aim.atLeast} ×: ${aim.met ? 'met' : 'MISSED'})`;
  return [
    name,
    size.toLocaleString('en'),
    amount(a),
    amount(b),
    ratio === null ? '' : `${factor(ratio.median)} ×${verdict}`,
    ratio === null ? '' : `${factor(ratio.low)}–${factor(ratio.high)}`,
    ratio === null ? '' : `${factor(ratio.p10)}–${factor(ratio.p90)}`,
    Object.entries(counters)
      .map(([what, value]) => `${what} ${value.toLocaleString('en')}`)
      .join(', '),
  ];
}

function headLines({ environment, rivals, mode, seconds, method }: Report): string[] {
  const versions = Object.entries(rivals).map(([name, version]) => `${name} ${version}`);
  return [
    `moonroute ${environment.package}, commit ${environment.commit}, ${environment.date}`,
    `${environment.machine} × ${environment.processors}, ${environment.engine}, clock of ${(environment.clockStep * 1000).toFixed(2)} µs`,
    `rivals: JavaScript Maps${versions.length === 0 ? '' : `, ${versions.join(', ')}`}`,
    `${mode} run of ${seconds.toFixed(0)} s; ratios (rival / core) are medians of paired rounds, with their ${100 * method.confidence} % interval and 10th to 90th percentile`,
    ...(method.slowDown === null ? [] : [`PLANTED SLOW-DOWN: ${method.slowDown}`]),
  ];
}

function growthLine({ name, growth }: ReportSuite): string {
  return `${name}: ${growth.map(({ of, exponent }) => `${of} ^ ${exponent.toFixed(2)}`).join(', ')}`;
}

function bodyOf({ suites }: Report): string[][] {
  return suites.flatMap((suite) => suite.rows.filter(({ a }) => a !== null).map((row) => cellsOf(suite, row)));
}

/** For a terminal. */
export function tableOf(report: Report): string {
  const body = bodyOf(report);
  const shown = [[...HEADS], ...body];
  const widths = HEADS.map((_, column) => Math.max(...shown.map((cells) => cells[column]!.length)));
  const lines = shown.map((cells) =>
    cells.map((cell, i) => (i === HEADS.length - 1 ? cell : cell.padEnd(widths[i]!))).join('  '),
  );
  return [
    ...headLines(report),
    '',
    ...lines.map((line) => line.trimEnd()),
    '',
    'growth (cost of the whole work ~ size ^ exponent)',
    ...report.suites.filter(({ growth }) => growth.length > 0).map((suite) => `  ${growthLine(suite)}`),
  ].join('\n');
}

/** For a page or a comment. */
export function markdownOf(report: Report): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    ...headLines(report).map((text) => `- ${text}`),
    '',
    line(HEADS),
    line(HEADS.map(() => '---')),
    ...bodyOf(report).map(line),
    '',
    ...report.suites.filter(({ growth }) => growth.length > 0).map((suite) => `- growth of ${growthLine(suite)}`),
  ].join('\n');
}

/** One value of the action's list (github-action-benchmark, `customBiggerIsBetter`). */
export interface ActionValue {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly range: string;
  readonly extra: string;
}

export function actionOf({ suites, environment }: Report): ActionValue[] {
  return suites.flatMap((suite) =>
    suite.rows.flatMap(({ size, ratio, a }) =>
      ratio === null
        ? []
        : {
            name: `${suite.name}/${size}`,
            unit: '× the rival',
            value: ratio.median,
            range: `${factor(ratio.low)}–${factor(ratio.high)}`,
            extra: `${suite.title}, ${size} ${suite.sizeOf}: ${shownAmount(a!.median, suite.measures)} a ${suite.unit}, beside ${suite.rival}; ${environment.engine}`,
          },
    ),
  );
}
