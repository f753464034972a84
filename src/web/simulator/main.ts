// The simulator's page: settings in, a run in the worker, its answer and pictures out. The built-in workload runs as soon as the page is open; what the address
// says is run instead. Everything happens in this browser.
import { commandOf } from '../../sim/settings/command.js';
import { byId, fill, h } from '../console/dom.js';
import { fillAssumptions } from './assumptions.js';
import { pngOf, timeWindow } from './charts/index.js';
import { Client, type RunAnswer } from './client.js';
import { copy, oncePerFrame, save } from './dom-events.js';
import { fileName, saveText, stacked } from './exports.js';
import { How } from './how.js';
import { fillKeys, listenForKeys } from './keys.js';
import type { Settings } from './messages.js';
import { showProgress } from './progress.js';
import { type ChosenTrace, Running } from './running.js';
import type { Run } from './runs.js';
import { RunsList } from './runs-list.js';
import { servedTrace } from './served-trace.js';
import { SettingsForm } from './settings-form.js';
import { hashOf, linkedIn } from './settings-hash.js';
import { PAGE_SETTINGS, withScenario } from './settings-scenarios.js';
import { Shown } from './shown.js';
import { themeButton } from './theme.js';
import { listenForDrops } from './trace-drop.js';
import { hashOfFile, otherThan, type TraceName, traceText } from './trace-file.js';
import { Trouble, unfit } from './trouble.js';

/** Of a built-in workload that says no rate. */
const USUAL_SPAN_MS = 600_000;

const how = new How(byId('how'));
const trouble = new Trouble(byId('trouble'));
let trace: ChosenTrace | null = null;
/** The trace that a link was made with, until it is given. */
let wanted: TraceName | null = null;

const source = URL.createObjectURL(new Blob([byId('worker').textContent ?? ''], { type: 'text/javascript' }));
const running: Running = new Running({ client: () => client, moved, failed, say, ended });
const client = new Client({ source, hear: (answer) => running.hear(answer), died });
const shown = new Shown({
  client,
  /** A size of memory was chosen on the curve. */
  capacity: (bytes) => {
    form.set({ ...form.settings, store: `${Math.round(bytes / 1e6) / 1e3}GB` });
    changed();
  },
});

const form = new SettingsForm(byId<HTMLFormElement>('settings'), {
  changed: () => changed(),
  run: () => run(),
  trace: (file) => void useTrace(file),
  scenario: (place) => {
    const span = shown.a?.result?.traces[0]?.span ?? USUAL_SPAN_MS;
    const settings = withScenario(form.settings, place, { span });
    form.set(settings);
    changed();
  },
});

const list = new RunsList(byId('runs'), {
  show: (run) => show(run, shown.b === run ? shown.a : shown.b),
  compare: (run) => show(shown.a, run),
  remove(run) {
    running.remove(run);
    const last = running.runs.list.at(-1) ?? null;
    show(shown.a === run ? last : shown.a, shown.b === run ? null : shown.b);
  },
  export: (run, kind) =>
    said(
      async () => saveText(run, kind, await client.export(run.number, kind)),
      `The ${kind.toUpperCase()} was not made`,
    ),
  pictures: () =>
    said(async () => {
      const ground = getComputedStyle(document.documentElement).getPropertyValue('--page').trim();
      save(fileName(shown.a!, 'png', 'charts'), await stacked(await shown.pictures(), ground));
    }, 'The picture was not made'),
  link: () => void copied(location.href, null, 'Link copied.'),
});

async function pictureOf(chart: string): Promise<void> {
  if (shown.a === null) return;
  const name = fileName(shown.a, 'png', chart);
  await said(async () => save(name, await pngOf(byId(chart))), 'The picture was not made');
}

// ---- running ----

function run(): void {
  if (byId<HTMLButtonElement>('run').disabled) return;
  if (!form.valid) {
    form.focusFault();
    say('A setting is not valid: see the field.');
    return;
  }
  trouble.clear();
  timeWindow.set(null);
  const made = running.begin(form.settings, trace);
  show(made, shown.b !== null && running.runs.list.includes(shown.b) ? shown.b : null);
  say(`Run ${made.number} begins.`);
}

function cancel(): void {
  if (!running.cancel()) return;
  show(shown.a, shown.b);
  trouble.say('Ended at once. Figures of earlier runs stay; to look into their requests, run them again.');
}

function moved(run: Run, what: 'standing' | 'picture' | 'results'): void {
  if (what === 'results') {
    if (run === shown.a || run === shown.b) shown.draw.all();
    list.show(running.runs.list, shown.a, shown.b);
  } else if (what === 'picture' && run === shown.a) shown.draw.charts();
  drawProgress();
}

function ended(run: Run): void {
  if (run !== shown.a) return;
  const state = run.state === 'finished' ? 'complete' : 'cancelled';
  // Once the answer stands.
  requestAnimationFrame(() => say(`Run ${run.number} is ${state}. ${shown.answer}`));
}

function failed({ code, text, flag }: Extract<RunAnswer, { readonly kind: 'failed' }>): void {
  trouble.say(
    code === 'trace-empty' ? `${text}. Is it a trace? It takes JSONL, CSV, or a recording, plain or gzip.` : text,
  );
  if (flag !== null) form.refuse(flag, text);
}

function died(text: string): void {
  running.died();
  trouble.say(
    `The simulation's worker ended: ${text || 'no reason was given'}. Most often it ran out of memory: take fewer requests (or a limit), or fewer workers. Figures of earlier runs stay; their requests and timelines need a new run.`,
    { label: 'Run again', act: run },
  );
  show(shown.a, shown.b);
}

// ---- what is shown ----

function show(a: Run | null, b: Run | null): void {
  shown.show(a, b);
  list.show(running.runs.list, shown.a, shown.b);
  drawProgress();
}

const drawProgress = oncePerFrame(() => {
  showProgress(byId('progress'), running);
  form.showRun(running.busy, shown.a !== null && !same(form.settings, shown.a.settings));
});

const same = (one: Settings, other: Settings): boolean =>
  Object.keys({ ...one, ...other }).every((flag) => one[flag] === other[flag]);

/** For those who hear the page: rarely, and in sentences. */
function say(text: string): void {
  byId('said').textContent = text;
}

async function said(work: () => Promise<void>, fault: string): Promise<void> {
  try {
    await work();
  } catch (error) {
    trouble.say(`${fault}: ${(error as Error).message}`);
  }
}

// ---- settings, address and command ----

const command = h('code', { id: 'command' });

function changed(): void {
  fill(command, commandOf(form.settings, trace?.name.name ?? wanted?.name ?? null));
  drawProgress();
  if (!form.valid) return;
  try {
    history.replaceState(null, '', hashOf(form.settings, trace?.name ?? wanted));
  } catch {
    // Pages without an address of their own have no link either.
  }
}

async function copied(text: string, element: HTMLElement | null, done: string): Promise<void> {
  const copiedIt = await copy(text, element);
  if (copiedIt) say(done);
  else trouble.say('This browser lets no page copy: select it, or copy the address above.');
  byId('copied').textContent = copiedIt ? done : '';
}

function buildElsewhere(): void {
  const copyCommand = h('button', { type: 'button' }, 'Copy command');
  copyCommand.addEventListener('click', () => void copied(command.textContent ?? '', command, 'Command copied.'));
  const copyLink = h('button', { type: 'button' }, 'Copy link');
  copyLink.addEventListener('click', () => void copied(location.href, null, 'Link copied.'));
  byId('settings').append(
    h(
      'div',
      { class: 'elsewhere' },
      h('h3', {}, 'The same on the command line'),
      h('pre', { tabindex: '0', 'aria-label': 'Command' }, command),
      h('div', { class: 'tools' }, copyCommand, copyLink, h('span', { id: 'copied', class: 'soft' })),
    ),
  );
}

/** What the address says, or the page's defaults. */
function begin(): void {
  const linked = linkedIn(location.hash);
  wanted = linked?.trace ?? null;
  if (wanted !== null && trace !== null && otherThan(wanted, trace.name) === null) wanted = null;
  else trace = null;
  form.showTrace(trace?.name ?? wanted);
  form.set(linked?.settings ?? PAGE_SETTINGS);
  changed();
  if (wanted === null) {
    if (form.valid) run();
    else form.focusFault();
    if (linked !== null && linked.unknown.length > 0)
      trouble.say(
        `The link has settings that this page does not know: ${linked.unknown.join(', ')}. They are left out.`,
      );
    return;
  }
  trouble.say(
    `This link was made with a trace of its own: ${traceText(wanted)}${wanted.sha256 === null ? '' : `, SHA-256 ${wanted.sha256.slice(0, 12)}…`}. It is on no server: choose or drop that file to see the same.`,
    { label: 'Choose the trace', act: () => form.pick() },
  );
}

// ---- traces ----

async function useTrace(file: File | null): Promise<void> {
  const asked = wanted;
  wanted = null;
  if (file?.size === 0) {
    trouble.say(`${file.name} is empty (or a folder): choose a file with requests.`);
    return;
  }
  const mine = file === null ? null : { file, name: { name: file.name, size: file.size, sha256: null } as TraceName };
  trace = mine;
  form.showTrace(mine?.name ?? null);
  if (mine === null && form.settings['requests'] === undefined)
    form.set({ ...form.settings, requests: PAGE_SETTINGS['requests']! });
  changed();
  run();
  if (mine === null) return;
  const sha256 = await hashOfFile(mine.file).catch(() => null);
  if (trace !== mine) return;
  const unhashed = mine.name;
  mine.name = { ...unhashed, sha256 };
  for (const each of running.runs.list) if (each.trace === unhashed) each.trace = mine.name;
  changed();
  const other = asked === null ? null : otherThan(asked, mine.name);
  if (other !== null) trouble.say(other);
}

// ---- the page itself ----

function openDialog(id: string, opener: string, fillIt: (dialog: HTMLDialogElement) => void): () => void {
  const dialog = byId<HTMLDialogElement>(id);
  fillIt(dialog);
  const open = () => {
    if (!dialog.open) dialog.showModal();
  };
  byId(opener).addEventListener('click', open);
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  return open;
}

function start(): void {
  const fault = unfit();
  themeButton(byId<HTMLButtonElement>('theme'));
  openDialog('assumptions', 'assumptions-open', fillAssumptions);
  const help = openDialog('keys', 'keys-open', fillKeys);
  listenForKeys({
    run,
    escape: () => {
      if (!how.hide()) cancel();
    },
    pick: () => form.pick(),
    help,
    theme: () => byId('theme').click(),
  });
  listenForDrops(byId('drop'), (file, left) => {
    void useTrace(file).then(() => {
      if (left > 0) trouble.say(`One trace at a time: ${file.name} was taken, ${left} left out.`);
    });
  });
  byId('cancel').addEventListener('click', cancel);
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-chart]'))
    button.addEventListener('click', () => void pictureOf(button.dataset['chart']!));
  document.querySelector('[data-skip]')!.addEventListener('click', (event) => {
    event.preventDefault();
    byId('answer').focus();
  });
  if (fault !== null) {
    trouble.say(fault);
    byId<HTMLButtonElement>('run').disabled = true;
    return;
  }
  buildElsewhere();
  addEventListener('hashchange', () => {
    if (linkedIn(location.hash) !== null) begin();
  });
  void servedTrace().then(
    (file) => {
      if (file === null) return begin();
      form.set(linkedIn(location.hash)?.settings ?? { policy: PAGE_SETTINGS['policy']!, curve: 'true' });
      return useTrace(file);
    },
    (error: Error) => {
      trouble.say(`The trace was not read: ${error.message}.`);
      begin();
    },
  );
}

start();
