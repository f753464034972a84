// The console's page: asks for data once a second and shows it. It stops while nobody looks, says when the server does not answer, and asks for the
// admin key when the server wants one. It loads nothing from elsewhere.
import type { ConsoleData, RequestData } from '../../server/console-data.js';
import { HitChart } from './chart.js';
import { byId } from './dom.js';
import { askKey, forgetKey, keptKey } from './key.js';
import { showPrompts, showReasons, showStore, showTiles, showWarnings, showWorkers } from './panels.js';
import { RequestTable } from './requests.js';

const PERIOD = 1000;
/** As many as the server keeps. */
const REQUESTS_KEPT = 200;
const PATIENCE = 5000;

type State = 'live' | 'paused' | 'locked' | 'refused' | 'lost';
const WORDS: Readonly<Record<State, string>> = {
  live: 'Live',
  paused: 'Paused',
  locked: 'Needs a key',
  refused: 'Refused',
  lost: 'No answer; trying again',
};

const state = byId('state');
const pause = byId<HTMLButtonElement>('pause');
const chart = new HitChart(byId('hits'));
const table = new RequestTable(byId('requests'), REQUESTS_KEPT);
let requests: RequestData[] = [];
let startedAt = 0;
let paused = false;
let wake: () => void = () => {};

function say(now: State, words = WORDS[now]): void {
  state.dataset['state'] = now;
  if (state.textContent !== words) state.textContent = words;
}

function show(data: ConsoleData): void {
  if (data.startedAt !== startedAt) {
    const first = startedAt === 0;
    startedAt = data.startedAt;
    if (!first) {
      // Another life of the server counts from 1 again: the next answer has them all.
      requests = [];
      table.clear();
      return;
    }
  }
  const known = requests.at(-1)?.number ?? 0;
  const fresh = data.requests.filter(({ number }) => number > known);
  requests = [...requests, ...fresh].slice(-REQUESTS_KEPT);
  table.add(fresh);
  byId('model').textContent = data.model ?? '';
  showWarnings(byId('warnings'), data);
  showTiles(byId('tiles'), data, requests);
  chart.show(data.seconds);
  showWorkers(byId('workers'), data);
  showStore(byId('store'), data);
  showPrompts(byId('prompts'), data);
  showReasons(byId('reasons'), data);
}

async function ask(): Promise<void> {
  const key = keptKey();
  const response = await fetch(`console/data.json?after=${requests.at(-1)?.number ?? 0}`, {
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(PATIENCE),
    cache: 'no-store',
  });
  if (!response.ok) {
    const { error } = (await response.json()) as { error?: { code?: string; message?: string } };
    if (response.status !== 401 && error?.code !== 'wrong-kind-of-key') {
      say('refused', `Refused with status ${response.status}: ${error?.message ?? 'no reason given'}`);
      return;
    }
    say('locked');
    forgetKey();
    if (!(await askKey(key === null ? '' : 'This is not an admin key.'))) setPaused(true);
    return;
  }
  show((await response.json()) as ConsoleData);
  say('live');
}

/** Until the next turn: a second, or as long as nobody looks. */
async function rest(): Promise<void> {
  const idle = () => paused || document.hidden;
  await new Promise<void>((resolve) => {
    wake = resolve;
    if (!idle()) setTimeout(resolve, PERIOD);
  });
  if (idle()) await rest();
}

function setPaused(now: boolean): void {
  paused = now;
  pause.setAttribute('aria-pressed', String(paused));
  wake();
}

pause.addEventListener('click', () => {
  setPaused(!paused);
  if (paused) say('paused');
});
document.addEventListener('visibilitychange', () => wake());

for (;;) {
  try {
    await ask();
  } catch {
    say('lost');
  }
  if (paused && state.dataset['state'] === 'live') say('paused');
  await rest();
}
