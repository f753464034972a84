// Every figure of every simulation side by side, as the command prints them, and why decisions credited nothing from the store.
import { FIGURES, figureText, zeroReasons } from '../../sim/report-figures.js';
import { countText } from '../../sim/report-format.js';
import type { SimRun } from '../../sim/report-types.js';
import { runText } from '../../sim/sweep.js';
import { h } from '../console/dom.js';
import { madeOf, noteOf } from './figure-notes.js';
import { explain, howButton } from './how.js';

export function allFigures(runs: readonly SimRun[]): HTMLElement {
  const span = String(runs.length + 1);
  const section = (title: string) =>
    h('tr', { class: 'section' }, h('th', { colspan: span, scope: 'colgroup' }, title));
  const rows = FIGURES.flatMap(({ title, figures }) => [
    section(title),
    ...figures.map((figure) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row' }, figure.label, ' ', howButton(figure.label, noteOf(figure))),
        ...runs.map(({ report }) =>
          h('td', {}, explain(h('span', {}, figureText(figure, report)), madeOf(figure, report))),
        ),
      ),
    ),
  ]);
  const codes = [...new Set(runs.flatMap(({ report }) => zeroReasons(report).map(([code]) => code)))];
  if (codes.length > 0) {
    rows.push(section('Decisions without shared credit, by reason'));
    for (const code of codes)
      rows.push(
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, code),
          ...runs.map(({ report }) => h('td', {}, countText(report.credit.zero[code] ?? 0))),
        ),
      );
  }
  const label = 'All figures';
  return h(
    'div',
    { class: 'box', tabindex: '0', role: 'region', 'aria-label': label },
    h(
      'table',
      { class: 'all' },
      h('caption', { class: 'unseen' }, label),
      h('thead', {}, h('tr', {}, h('td', {}), ...runs.map((run) => h('th', { scope: 'col' }, runText(run))))),
      h('tbody', {}, ...rows),
    ),
  );
}
