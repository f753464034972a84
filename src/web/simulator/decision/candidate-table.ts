// The table of all candidates: who could have been chosen, at what price, holding what, and why not.
import type { CandidateView } from '../../../router/decision.js';
import type { DecisionAccount } from '../../../sim/observed/types.js';
import { countText } from '../../../sim/report-format.js';
import { h } from '../../console/dom.js';
import { type CandidateColumn, cellText, columnsOf, MAX_CANDIDATES, noteOf, roleOf, sorted } from './candidates.js';
import { capital, workerName } from './sentences.js';
import type { Sum } from './sums.js';

/** The table with what is said around it. It may be ordered by every column. */
export function candidateTable(
  { decision, costUnit }: DecisionAccount,
  candidates: readonly CandidateView[],
  sum: Sum | null,
): (HTMLElement | null)[] {
  const columns = columnsOf(sum?.unit ?? null, costUnit);
  let column = columns[1]!;
  let descending = false;
  const body = h('tbody');
  const heads = columns.map((each) => {
    const button = h('button', { type: 'button' }, each.head, h('small', {}, each.unit));
    const head = h('th', { scope: 'col', 'aria-sort': 'none' }, button);
    button.addEventListener('click', () => {
      descending = each === column ? !descending : false;
      column = each;
      fill();
    });
    return head;
  });
  const fill = () => {
    heads.forEach((head, i) => {
      head.setAttribute('aria-sort', columns[i] !== column ? 'none' : descending ? 'descending' : 'ascending');
    });
    const rows = sorted(candidates, column, descending).slice(0, MAX_CANDIDATES);
    body.replaceChildren(...rows.map((each) => candidateRow(each, columns, decision)));
  };
  fill();
  const more = candidates.length - MAX_CANDIDATES;
  const eligible = candidates.filter(({ notEligible }) => notEligible === null).length;
  return [
    h(
      'p',
      { class: 'soft' },
      `${countText(eligible)} of ${countText(candidates.length)} workers could have been chosen. A click on a head orders them.`,
    ),
    h(
      'div',
      { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'All candidates' },
      h(
        'table',
        { class: 'candidates' },
        h('thead', {}, h('tr', {}, ...heads, h('th', { scope: 'col' }, 'Remark'))),
        body,
      ),
    ),
    more > 0
      ? h('p', { class: 'soft' }, `The first ${MAX_CANDIDATES} in this order; ${countText(more)} more are not listed.`)
      : null,
  ];
}

function candidateRow(
  candidate: CandidateView,
  columns: readonly CandidateColumn[],
  decision: DecisionAccount['decision'],
): HTMLElement {
  const state = candidate.rank === decision.rank ? 'chosen' : candidate.notEligible === null ? '' : 'out';
  return h(
    'tr',
    { class: state },
    ...columns.map((column, i) =>
      i === 0
        ? h('th', { scope: 'row' }, capital(workerName(candidate)), h('small', {}, roleOf(candidate, decision)))
        : h('td', {}, cellText(column.value(candidate))),
    ),
    h('td', { class: 'note' }, noteOf(candidate)),
  );
}
