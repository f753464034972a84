// The last decisions, newest first. Rows are made once, when a request is first heard of, so that an open one stays open and nothing that is read
// moves under the reader but by new rows above it.
import type { RequestData } from '../../server/console-data.js';
import { TIERS } from './chart.js';
import { h } from './dom.js';
import { clockTime, count, milliseconds, plural } from './format.js';
import { cell, chip, table } from './panels.js';
import { choiceWords, creditWords, rankName, termRows } from './why.js';

const HEADS = ['Time', 'Request', 'Worker', 'Cached', 'Why', 'First byte'];
/** Rows before the reader asks for all. */
const FEW = 25;

export class RequestTable {
  readonly #table = table('requests', HEADS, []);
  readonly #body = this.#table.querySelector('tbody')!;
  readonly #empty = h('p', { class: 'empty' }, 'No request yet. Send one to /v1/completions, and then again.');
  readonly #more = h('button', { type: 'button', hidden: true });
  readonly #most: number;
  #all = false;

  /** @param most rows that are kept */
  constructor(box: HTMLElement, most: number) {
    this.#most = most;
    box.append(this.#empty, this.#table, this.#more);
    this.#more.addEventListener('click', () => {
      this.#all = !this.#all;
      this.#trim();
    });
    this.#trim();
  }

  add(requests: readonly RequestData[]): void {
    if (requests.length === 0) return;
    this.#body.prepend(...requests.map(rowOf).reverse());
    this.#trim();
  }

  clear(): void {
    this.#body.replaceChildren();
    this.#trim();
  }

  #trim(): void {
    while (this.#body.rows.length > this.#most) this.#body.rows[this.#body.rows.length - 1]!.remove();
    const { length } = this.#body.rows;
    [...this.#body.rows].forEach((row, i) => {
      row.hidden = !this.#all && i >= FEW;
    });
    this.#empty.hidden = length > 0;
    this.#table.hidden = length === 0;
    this.#more.hidden = length <= FEW;
    this.#more.textContent = this.#all ? `Show the last ${FEW}` : `Show all ${length}`;
  }
}

function rowOf(request: RequestData): HTMLTableRowElement {
  const { at, id, kind, model } = request;
  const routed = request.decision.blocks.request > 0;
  return h(
    'tr',
    { 'data-number': String(request.number) },
    cell('Time', h('time', { datetime: new Date(at).toISOString() }, clockTime(at))),
    cell(
      'Request',
      h('span', { class: 'name', title: id }, kind),
      outcomeOf(request),
      h(
        'small',
        {},
        [routed ? plural(request.promptTokens, 'token') : '', model].filter((part) => part !== '').join(' · '),
      ),
    ),
    cell('Worker', routed ? rankName(request) : '–'),
    cell('Cached', ...(routed ? cachedOf(request) : ['–'])),
    cell('Why', ...(routed ? whyOf(request) : [unroutedWords(request)])),
    cell('First byte', request.firstByteTime === null ? '–' : milliseconds(request.firstByteTime)),
  );
}

function unroutedWords({ outcome, status }: RequestData): string {
  if (outcome === 'cancelled') return 'The client went before it was routed.';
  return `Not routed: answered with status ${status}.`;
}

function outcomeOf({ outcome, status, retried }: RequestData): Node {
  const kinds = { completed: 'good', failed: 'bad', cancelled: 'warn', refused: 'warn' } as const;
  const words =
    outcome === 'completed' ? (retried ? 'on second try' : '') : `${outcome}${status > 0 ? ` ${status}` : ''}`;
  return words === '' ? document.createTextNode('') : chip(outcome === 'completed' ? 'warn' : kinds[outcome], words);
}

function cachedOf({ decision: { blocks } }: RequestData): Node[] {
  const parts = TIERS.filter(([tier]) => blocks[tier] > 0);
  const cached = parts.reduce((sum, [tier]) => sum + blocks[tier], 0);
  const segments = parts.map(([tier]) => {
    const segment = h('span', { class: tier });
    segment.style.width = `${(100 * blocks[tier]) / blocks.request}%`;
    return segment;
  });
  const words = parts.map(([tier, name]) => `${name} ${count(blocks[tier])}`).join(', ');
  return [
    h('span', { class: 'segments', 'aria-hidden': 'true' }, ...segments),
    h('small', {}, `${count(cached)} of ${plural(blocks.request, 'block')}${words === '' ? '' : ` (${words})`}`),
  ];
}

function whyOf(request: RequestData): Node[] {
  const credit = creditWords(request);
  const { cachedTokens, predictedTokens, generatedTokens, decisionTime, totalTime } = request;
  const said = cachedTokens === null ? 'did not say' : `${count(cachedTokens)} tokens`;
  const rows: (readonly [string, string])[] = [
    ...termRows(request),
    ['Predicted', `${count(predictedTokens)} tokens cached`],
    ['The engine says', said],
    ['Generated', plural(generatedTokens, 'token')],
    ['Decision took', milliseconds(decisionTime)],
    ['Request took', milliseconds(totalTime)],
    ['Tokens from', request.source],
    ['Request id', request.id],
  ];
  const terms = h('dl', { class: 'terms' });
  const details = h('details', {}, h('summary', {}, choiceWords(request)), terms);
  // Most are never opened.
  details.addEventListener('toggle', () => {
    if (terms.childElementCount > 0) return;
    terms.append(...rows.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
  });
  return credit === null ? [details] : [details, h('small', {}, credit)];
}
