// A decision's account as elements: sentence first, then sum, runner-up, hindsight, what was found, reasons, candidates.
import type { CandidateView } from '../../../router/decision.js';
import type { DecisionAccount, RequestRow } from '../../../sim/observed/types.js';
import { countText, NOTHING, timeText } from '../../../sim/report-format.js';
import { h } from '../../console/dom.js';
import { candidateTable } from './candidate-table.js';
import {
  amountText,
  capital,
  choiceSentence,
  computedOf,
  decidingSentence,
  foundSentences,
  hindsight,
  insteadSentence,
  reasonTexts,
  signedText,
  workerName,
} from './sentences.js';
import { barScale, type Compared, candidateOf, compared, piecesOf, type Sum, sumOf } from './sums.js';

const HINDSIGHT = {
  right: ['good', 'Right, in hindsight'],
  wrong: ['bad', 'Wrong, in hindsight'],
  equal: ['plain', 'It made no difference'],
  unknown: ['plain', 'Not known which was better'],
} as const;

export function accountOf(account: DecisionAccount): HTMLElement[] {
  const { decision, row } = account;
  const chosen = sumFor(account, candidateOf(decision, decision.rank));
  const other = sumFor(account, candidateOf(decision, decision.runnerUp?.rank));
  const parts: (HTMLElement | null)[] = [
    leadOf(account, chosen, other),
    chosen === null ? null : sumSection(account, chosen, other),
    insteadSection(account),
    section('What the worker found', ...foundSentences(row, decision).map((words) => h('p', {}, words))),
    reasonsSection(account),
    decision.candidates === null
      ? null
      : section('All candidates', ...candidateTable(account, decision.candidates, chosen)),
  ];
  return parts.filter((part) => part !== null);
}

function sumFor({ decision, row, blockSize }: DecisionAccount, candidate: CandidateView | undefined): Sum | null {
  const terms = candidate?.terms ?? (candidate === undefined ? null : decision.terms);
  return sumOf(terms, {
    prefillTokens: candidate?.load.prefillTokens ?? 0,
    promptTokens: row.promptTokens,
    blockSize: blockSize ?? null,
  });
}

function section(title: string, ...children: readonly (Node | string | null)[]): HTMLElement {
  return h('section', {}, h('h3', {}, title), ...children);
}

function leadOf(account: DecisionAccount, chosen: Sum | null, other: Sum | null): HTMLElement {
  const { row } = account;
  const deciding = chosen === null || other === null ? null : decidingSentence(chosen, other);
  return h(
    'div',
    { class: 'lead' },
    h('p', { class: 'choice' }, choiceSentence(account)),
    deciding === null ? null : h('p', {}, deciding),
    h(
      'p',
      { class: 'soft' },
      `Policy ${account.decision.policy} · ${countText(row.promptTokens)} prompt tokens, ${countText(row.full)} full blocks · arrived ${timeText(row.at)} into the run`,
    ),
  );
}

// ---- the sum ----

function sumSection({ decision }: DecisionAccount, chosen: Sum, other: Sum | null): HTMLElement {
  const scale = barScale([chosen, other]);
  const name = capital(workerName(decision));
  const otherName = decision.runnerUp === null ? null : capital(workerName(decision.runnerUp));
  const rows = compared(chosen, other);
  const numbers = (values: readonly (number | null)[]) =>
    values.map((value) => h('td', {}, value === null ? NOTHING : amountText(value)));
  const difference = (a: number, b: number | null) =>
    h('td', { class: 'difference' }, b === null ? NOTHING : signedText(b - a));
  return section(
    'The price, term by term',
    h(
      'div',
      { class: 'bars' },
      barOf(`${name}, chosen`, chosen, scale),
      other === null ? null : barOf(`${otherName}, runner-up`, other, scale),
    ),
    keysOf(rows),
    h(
      'div',
      { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'The price, term by term' },
      h(
        'table',
        { class: 'sum' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...['Term', name, ...(other === null ? [] : [otherName!, 'Difference'])].map((head, i) =>
              h('th', { scope: 'col' }, head, i === 0 ? null : h('small', {}, chosen.unit)),
            ),
          ),
        ),
        h(
          'tbody',
          {},
          ...rows.map((row) =>
            h(
              'tr',
              {},
              h('th', { scope: 'row' }, row.name, h('small', {}, row.hint)),
              ...numbers(other === null ? [row.chosen] : [row.chosen, row.other]),
              other === null ? null : difference(row.chosen, row.other),
            ),
          ),
        ),
        h(
          'tfoot',
          {},
          h(
            'tr',
            {},
            h('th', { scope: 'row' }, 'Price', h('small', {}, 'the sum; less is better')),
            ...numbers(other === null ? [chosen.total] : [chosen.total, other.total]),
            other === null ? null : difference(chosen.total, other.total),
          ),
        ),
      ),
    ),
  );
}

function barOf(name: string, sum: Sum, scale: number): HTMLElement {
  const pieces = piecesOf(sum, scale).map(({ key, kind, from, to }) => {
    const piece = h('span', { class: `piece ${kind} ${key}` });
    piece.style.left = `${100 * from}%`;
    piece.style.width = `${100 * (to - from)}%`;
    return piece;
  });
  const words = sum.unit === 'ms' ? timeText(sum.total) : `${amountText(sum.total)} blocks`;
  return h(
    'div',
    { class: 'priced' },
    h('span', { class: 'name' }, name),
    h('span', { class: 'total' }, words),
    h('div', { class: 'track', 'aria-hidden': 'true' }, ...pieces),
  );
}

function keysOf(rows: readonly Compared[]): HTMLElement {
  const items = rows
    .filter(({ key }) => key !== 'unused')
    .map(({ key, kind, name }) =>
      h(
        'li',
        {},
        h('span', { class: `key piece ${kind} ${key}` }),
        key === 'before' ? 'left to compute' : name.replace('− ', 'saved: '),
      ),
    );
  return h('ul', { class: 'keys', 'aria-hidden': 'true' }, ...items);
}

// ---- hindsight ----

function insteadSection({ row, counterfactual, decision }: DecisionAccount): HTMLElement {
  if (counterfactual === null)
    return section('Had it gone elsewhere', h('p', {}, 'There was no runner-up to send it to.'));
  const [kind, verdict] = HINDSIGHT[hindsight(row, counterfactual)];
  const time = (value: number) => (Number.isNaN(value) ? NOTHING : timeText(value));
  const lines: readonly (readonly [string, (row: RequestRow) => string])[] = [
    ['Waited', (one) => time(one.begunAt - one.at)],
    ['Fetched for', (one) => (one.fetchedAt > one.begunAt ? time(one.fetchedAt - one.begunAt) : NOTHING)],
    ['First token after', (one) => time(one.firstTokenAt - one.at)],
    ['Blocks from GPU', (one) => countText(one.gpu)],
    ['Blocks from the store', (one) => countText(one.dram + one.ssd)],
    ['Blocks computed', (one) => countText(computedOf(one))],
  ];
  return section(
    'Had it gone to the runner-up',
    h('p', {}, insteadSentence(row, counterfactual), ' ', h('span', { class: `chip ${kind}` }, verdict)),
    h(
      'div',
      { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Had it gone to the runner-up' },
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...['', `As it went: ${workerName(decision)}`, `Instead: worker ${counterfactual.worker}`].map((head) =>
              head === '' ? h('td') : h('th', { scope: 'col' }, head),
            ),
          ),
        ),
        h(
          'tbody',
          {},
          ...lines.map(([name, of]) =>
            h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, of(row)), h('td', {}, of(counterfactual))),
          ),
        ),
      ),
    ),
  );
}

// ---- reasons ----

function reasonsSection({ decision }: DecisionAccount): HTMLElement | null {
  const texts = reasonTexts(decision);
  if (texts.length === 0) return null;
  const { shared } = decision.blocks;
  const lead =
    shared > 0
      ? `The router counted on ${countText(shared)} blocks of the store beyond the worker’s own, and on no more because:`
      : 'The router counted on nothing from the store because:';
  return section(
    'Why the store’s credit ends where it does',
    h('p', {}, lead),
    h(
      'ul',
      { class: 'reasons' },
      ...texts.map(({ lead: words, text, missing }) =>
        h(
          'li',
          {},
          h('strong', {}, `${words}. `),
          text,
          missing.length === 0
            ? null
            : h('ul', { class: 'missing' }, ...missing.map((key) => h('li', {}, h('code', {}, key)))),
        ),
      ),
    ),
  );
}
