// The benchmark's page: starts the worker, shows how far it is and what it found, and offers the report for download. `?run=quick` starts at once, and
// `&suites=a,b` picks suites.
import type { Report, ReportRow, ReportSuite } from '../../src/bench/report-schema.js';
import { factor } from '../method/compare.js';
import { shownAmount } from '../shown.js';
import type { Answer, Ask } from './messages.js';

const element = <T extends HTMLElement>(selector: string) => document.querySelector<T>(selector)!;
const buttons = { quick: element<HTMLButtonElement>('#quick'), full: element<HTMLButtonElement>('#full') };
const cancel = element<HTMLButtonElement>('#cancel');
const progress = element<HTMLProgressElement>('#progress');
const status = element('#status');
const download = element<HTMLAnchorElement>('#download');
const table = element<HTMLTableElement>('table');
const source = URL.createObjectURL(new Blob([element('#worker').textContent!], { type: 'text/javascript' }));
const asked = new URLSearchParams(location.search);

let worker: Worker | null = null;

function start(mode: Ask['mode']): void {
  worker = new Worker(source);
  worker.addEventListener('message', ({ data }: MessageEvent<Answer>) => hear(data));
  worker.addEventListener('error', (event) => end(`The run failed: ${event.message}`));
  const suites = asked.get('suites')?.split(',') ?? null;
  const ask: Ask = {
    mode,
    suites,
    machine: navigator.platform || 'unknown',
    processors: navigator.hardwareConcurrency,
  };
  worker.postMessage(ask);
  show(true);
  download.hidden = true;
  status.textContent = 'Starting …';
}

function hear(said: Answer): void {
  if (said.kind === 'failed') end(`The run failed: ${said.text}`);
  else if (said.kind === 'report') {
    fill(said.report);
    end(`Done in ${said.report.seconds.toFixed(0)} s on ${said.report.environment.engine}.`);
  } else {
    const { suite, size, done, all } = said.progress;
    progress.value = done / all;
    status.textContent = `${done + 1} of ${all}: ${suite}${size === null ? '' : `, ${size.toLocaleString('en')}`}`;
  }
}

function end(text: string): void {
  worker?.terminate();
  worker = null;
  show(false);
  status.textContent = text;
}

function show(running: boolean): void {
  buttons.quick.disabled = running;
  buttons.full.disabled = running;
  cancel.disabled = !running;
  progress.hidden = !running;
  progress.value = 0;
}

function fill(report: Report): void {
  const rows = report.suites.flatMap((suite) =>
    suite.rows.filter(({ a }) => a !== null).map((row) => lineOf(suite, row)),
  );
  table.tBodies[0]!.replaceChildren(...rows);
  table.hidden = false;
  URL.revokeObjectURL(download.href);
  download.href = URL.createObjectURL(new Blob([JSON.stringify(report, null, 2)], { type: 'application/json' }));
  download.hidden = false;
}

function lineOf(
  { name, title, measures, unit, rival }: ReportSuite,
  { size, a, b, ratio, counters }: ReportRow,
): HTMLElement {
  const amount = (side: ReportRow['a']) =>
    side === null ? '' : `${shownAmount(side.median, measures)}${measures === 'time' ? `/${unit}` : ''}`;
  const cells: [text: string, look: string][] = [
    [name, ''],
    [size.toLocaleString('en'), 'number'],
    [amount(a), 'number'],
    [amount(b), 'number'],
    [ratio === null ? '' : `${factor(ratio.median)} ×`, 'number'],
    [ratio === null ? '' : `${factor(ratio.low)}–${factor(ratio.high)}`, 'number'],
    [
      Object.entries(counters)
        .map(([what, value]) => `${what} ${value.toLocaleString('en')}`)
        .join(', '),
      'counters',
    ],
  ];
  const line = document.createElement('tr');
  line.title = rival === null ? title : `${title}; beside ${rival}`;
  for (const [text, look] of cells) {
    const cell = document.createElement('td');
    cell.textContent = text;
    cell.className = look;
    line.append(cell);
  }
  return line;
}

buttons.quick.addEventListener('click', () => start('quick'));
buttons.full.addEventListener('click', () => start('full'));
cancel.addEventListener('click', () => end('Cancelled.'));
const run = asked.get('run');
if (run === 'quick' || run === 'full') start(run);
