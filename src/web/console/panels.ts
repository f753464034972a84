// The parts of the page that are drawn anew from each answer: figures at a glance, warnings, workers, the store, prompts and reasons.
import type { ConsoleData, RankData, RequestData, WorkerData } from '../../server/console-data.js';
import { lastSeconds } from './buckets.js';
import { fill, h } from './dom.js';
import { count, duration, milliseconds, plural, quantile, share } from './format.js';
import { admissionWords, derivationWords, zeroWords } from './words.js';

/** Seconds over which the rate of requests is taken. */
const RATE_SECONDS = 10;
const MOST_REASONS = 8;

export function showWarnings(section: HTMLElement, { warnings }: ConsoleData): void {
  section.hidden = warnings.length === 0;
  fill(section.querySelector('ul')!, ...warnings.map(({ code, text }) => h('li', { 'data-code': code }, text)));
}

export function showTiles(list: HTMLElement, data: ConsoleData, requests: readonly RequestData[]): void {
  const { sums } = lastSeconds(data.seconds);
  // The second under way would pull the rate down.
  const rate = lastSeconds(data.seconds, RATE_SECONDS + 1).sums.requests - (data.seconds.requests.at(-1) ?? 0);
  const hit = sums.device + sums.host + sums.disk + sums.shared;
  const routed = requests.filter(({ decision }) => decision.blocks.request > 0);
  const times = (of: (request: RequestData) => number | null) => routed.map(of).filter((time) => time !== null);
  const decision = times(({ decisionTime }) => decisionTime);
  const first = times(({ firstByteTime }) => firstByteTime);
  const time = (values: readonly number[], part: number) => {
    const value = quantile(values, part);
    return value === null ? '–' : milliseconds(value);
  };
  fill(
    list,
    ...tile('Requests', `${(rate / RATE_SECONDS).toFixed(1)}/s`, requestsDetail(data)),
    ...tile('Hit rate', share(hit, sums.blocks), `of ${plural(sums.blocks, 'block')}`),
    ...tile('Routing', share(sums.achieved, sums.reachable), `of ${count(sums.reachable)} reachable`),
    ...tile('Engines confirm', share(sums.reported, sums.predicted), `of ${count(sums.predicted)} predicted`),
    ...tile('Decision', time(decision, 0.5), `99 %: ${time(decision, 0.99)}`),
    ...tile('First byte', time(first, 0.5), `99 %: ${time(first, 0.99)}`),
  );
}

function requestsDetail({ openLeases, refused }: ConsoleData): string {
  const underWay = `${count(openLeases)} under way`;
  return refused === 0 ? underWay : `${underWay}, ${count(refused)} refused`;
}

function tile(name: string, value: string, detail: string): HTMLElement[] {
  return [h('div', {}, h('dt', {}, name), h('dd', { class: 'value' }, value), h('dd', { class: 'detail' }, detail))];
}

// ---- workers ----

export function showWorkers(box: HTMLElement, { workers, workersLeftOut, shares }: ConsoleData): void {
  if (workers.length === 0) {
    fill(box, empty('No worker is registered.'));
    return;
  }
  const most = Math.max(1, ...workers.flatMap(({ ranks }) => ranks.map(({ load }) => load.activeRequests)));
  const heads = ['Worker', 'State', 'Requests', 'Prefill tokens', 'KV blocks', 'Contract', 'Events'];
  const rows = workers.flatMap((worker) =>
    worker.ranks.length === 0
      ? [workerRow(worker, null, most, shares)]
      : worker.ranks.map((rank) => workerRow(worker, rank, most, shares)),
  );
  const more = workersLeftOut > 0 ? empty(`And ${plural(workersLeftOut, 'worker')} more.`) : null;
  fill(box, table('workers', heads, rows), more);
}

function workerRow(worker: WorkerData, rank: RankData | null, most: number, shares: boolean): HTMLElement {
  const { id, url, ranks, adapters } = worker;
  const name = ranks.length > 1 && rank !== null ? `${id} rank ${rank.dpRank}` : id;
  const extra = adapters.length === 0 ? url : `${url} · ${plural(adapters.length, 'adapter')}`;
  const active = rank?.load.activeRequests ?? 0;
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, h('span', { class: 'name' }, name), h('small', {}, extra)),
    cell('State', ...chips(worker, rank)),
    cell('Requests', h('meter', { min: '0', max: String(most), value: String(active) }), count(active)),
    cell('Prefill tokens', count(rank?.load.prefillTokens ?? 0)),
    cell('KV blocks', count(rank?.load.decodeBlocks ?? 0)),
    cell('Contract', ...contractOf(worker, rank, shares)),
    cell('Events', ...eventsOf(rank)),
  );
}

function chips({ healthy, draining }: WorkerData, rank: RankData | null): HTMLElement[] {
  const found: HTMLElement[] = [];
  if (!healthy) found.push(chip('bad', 'unhealthy'));
  if (draining && healthy) found.push(chip('warn', 'draining'));
  if (rank?.resting === true) found.push(chip('warn', 'resting'));
  if (rank === null) found.push(chip('warn', 'not routed'));
  return found.length === 0 ? [chip('good', 'ready')] : found;
}

function contractOf({ contractFault }: WorkerData, rank: RankData | null, shares: boolean): HTMLElement[] {
  if (!shares) return [chip('none', 'not needed')];
  if (rank === null) return [chip('none', '–')];
  const words = chip(rank.admission === 'admitted' ? 'good' : 'bad', admissionWords(rank.admission));
  const text = contractFault ?? rank.admissionText;
  return text === null ? [words] : [words, h('small', {}, text)];
}

function eventsOf(rank: RankData | null): HTMLElement[] {
  const stream = rank?.stream ?? null;
  if (stream === null) return [chip('none', 'none')];
  const { connected, counts, lastSequence, replay, queued } = stream;
  const state =
    replay === 'running' ? chip('warn', 'replaying') : chip(connected ? 'good' : 'bad', connected ? 'live' : 'down');
  const seen = [
    lastSequence === null ? 'nothing yet' : `#${lastSequence}`,
    counts.gaps > 0 ? plural(counts.gaps, 'gap') : '',
    counts.replayed > 0 ? `${count(counts.replayed)} replayed` : '',
    counts.restarts > 0 ? plural(counts.restarts, 'restart') : '',
    total(stream.rebuilds) > 0 ? `emptied ${count(total(stream.rebuilds))}×` : '',
    total(stream.losses) > 0 ? `lost ${count(total(stream.losses))}×` : '',
    queued > 0 ? `${count(queued)} waiting` : '',
  ];
  return [state, h('small', {}, seen.filter((one) => one !== '').join(' · '))];
}

// ---- the store ----

export function showStore(box: HTMLElement, { store, contracts, shares, derivation }: ConsoleData): void {
  if (store === null) {
    fill(box, empty(shares ? 'No master is watched.' : 'No shared store is configured.'));
    return;
  }
  const { masters, followed, connected, lastSequence, generation, evidenceAge, maxEvidenceAge, lastReconcile } = store;
  const followedOne = followed === null ? undefined : masters[followed];
  const where = followedOne === undefined ? 'none serves' : (followedOne.http ?? followedOne.events);
  const state = followedOne?.state ?? 'unknown';
  const age = Number.isFinite(evidenceAge) ? evidenceAge : null;
  fill(
    box,
    facts([
      ['Master', [chip(state === 'serving' ? 'good' : 'warn', state), h('small', {}, where)]],
      [
        'Stream',
        [
          chip(connected ? 'good' : 'bad', connected ? 'live' : 'down'),
          h('small', {}, lastSequence === null ? 'nothing yet' : `#${lastSequence}`),
        ],
      ],
      ['Wire generation', [generation ?? '–']],
      ['Contract', [`${contracts.admitted} of ${plural(contracts.ranks, 'rank')} admitted`]],
      ['Engine hashes', hashesOf(derivation)],
      [
        'Evidence',
        age === null ? ['none'] : [`confirmed ${duration(age)} ago; dropped at ${duration(maxEvidenceAge)}`],
      ],
      [
        'Last reconcile',
        lastReconcile === null
          ? ['none yet']
          : [
              `${plural(lastReconcile.placed, 'object')} in ${milliseconds(lastReconcile.took)} (${lastReconcile.cause})`,
            ],
      ],
      ['Reconciles', [`${count(store.reconciled)} counted${list(store.voided, ', void: ')}`]],
      ['Drift', [list(store.drifts, '') || 'none']],
      ['Connections lost', [list(store.losses, '') || 'none']],
      ['Grew too old', [`${count(store.expired)}×`]],
    ]),
  );
}

const TRUSTED: ReadonlySet<string> = new Set(['proven', 'trusted']);

function hashesOf({ state, text }: ConsoleData['derivation']): (Node | string)[] {
  if (state === 'off') return ['learned from events'];
  const kind = state === 'refuted' ? 'bad' : TRUSTED.has(state) ? 'good' : 'warn';
  return [chip(kind, `derived: ${derivationWords(state)}`), h('small', {}, text)];
}

// ---- prompts and reasons ----

const SOURCES = { ids: 'given as ids', local: 'local tokenizer', worker: 'worker’s /tokenize', none: 'not tokenised' };
const LOCAL = { none: 'none', unverified: 'being verified', agrees: 'agrees with the workers', disagrees: 'disagrees' };

export function showPrompts(box: HTMLElement, { prompts }: ConsoleData): void {
  const { bySource, notProven, local, cache } = prompts;
  const sources = Object.entries(SOURCES).map(
    ([source, words]) => [words, bySource[source as keyof typeof SOURCES]] as const,
  );
  fill(
    box,
    bars(
      sources.filter(([, times]) => times > 0),
      'No prompt yet.',
    ),
    facts([
      ['Not proven', [list(notProven, '') || 'none']],
      ['Local tokenizer', [LOCAL[local.state], local.detail === null ? '' : h('small', {}, local.detail)]],
      [
        'Kept tokens',
        [
          cache.entries === 0
            ? 'none'
            : `${plural(cache.entries, 'prompt')}, ${share(cache.hits, cache.hits + cache.misses)} found there`,
        ],
      ],
    ]),
  );
}

export function showReasons(box: HTMLElement, { zeroCredit, decisions }: ConsoleData): void {
  const sorted = Object.entries(zeroCredit).sort(([, a], [, b]) => b - a);
  const rows = sorted.slice(0, MOST_REASONS).map(([code, times]) => [zeroWords(code), times, code] as const);
  const zero = sorted.reduce((sum, [, times]) => sum + times, 0);
  const lead = `${share(zero, decisions)} of ${plural(decisions, 'decision')} since start`;
  fill(box, h('p', { class: 'lead' }, lead), bars(rows, 'Every decision had some, or there was none.'));
}

// ---- pieces ----

export function table(name: string, heads: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  const head = h('thead', {}, h('tr', {}, ...heads.map((text) => h('th', { scope: 'col' }, text))));
  return h('table', { class: name }, head, h('tbody', {}, ...rows));
}

export function cell(name: string, ...children: readonly (Node | string)[]): HTMLElement {
  return h('td', { 'data-name': name }, h('div', {}, ...children));
}

export function chip(kind: 'good' | 'warn' | 'bad' | 'none', text: string): HTMLElement {
  return h('span', { class: `chip ${kind}` }, text);
}

function empty(text: string): HTMLElement {
  return h('p', { class: 'empty' }, text);
}

function facts(rows: readonly (readonly [string, readonly (Node | string)[]])[]): HTMLElement {
  return h(
    'dl',
    { class: 'facts' },
    ...rows.map(([name, values]) => h('div', {}, h('dt', {}, name), h('dd', {}, ...values))),
  );
}

function bars(rows: readonly (readonly [string, number, string?])[], none: string): HTMLElement {
  if (rows.length === 0) return empty(none);
  const most = Math.max(...rows.map(([, times]) => times));
  return h(
    'ul',
    { class: 'bars' },
    ...rows.map(([words, times, code]) =>
      h(
        'li',
        code === undefined ? {} : { title: code },
        h('span', {}, words),
        h('b', {}, count(times)),
        h('meter', { min: '0', max: String(most), value: String(times), 'aria-hidden': 'true' }),
      ),
    ),
  );
}

function list(counts: Readonly<Record<string, number>>, before: string): string {
  const entries = Object.entries(counts);
  return entries.length === 0 ? '' : before + entries.map(([code, times]) => `${code} ${count(times)}×`).join(', ');
}

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, one) => sum + one, 0);
}
