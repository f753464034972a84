// Two runs side by side: what differs in their settings, and for each simulation that both have, A's figures with their difference from B's.
import type { SimRun } from '../../sim/report-types.js';
import { runText } from '../../sim/sweep.js';
import { fill, h } from '../console/dom.js';
import { type Run, simulationsOf } from './runs.js';
import { differences } from './settings-words.js';
import { policyTable, type TableRow } from './table.js';
import { sameTrace } from './trace-file.js';

/** The simulations of both, paired: by policy and sweep point, else by policy, and each of B once. */
export function pairs(a: Run, b: Run): { readonly of: SimRun; readonly beside: SimRun | null }[] {
  const left = [...simulationsOf(b)];
  const take = (fits: (run: SimRun) => boolean) => {
    const place = left.findIndex(fits);
    return place < 0 ? null : left.splice(place, 1)[0]!;
  };
  const exact = simulationsOf(a).map((of) => ({ of, beside: take((run) => runText(run) === runText(of)) }));
  return exact.map(({ of, beside }) => ({ of, beside: beside ?? take(({ policy }) => policy === of.policy) }));
}

/** Fills the section, or hides it where there is nothing to compare. */
export function showComparison(section: HTMLElement, a: Run | null, b: Run | null): void {
  section.hidden = a === null || b === null;
  if (a === null || b === null) return;
  const rows = pairs(a, b).flatMap(({ of, beside }): TableRow[] =>
    beside === null
      ? []
      : [
          { label: `A · ${runText(of)}`, note: null, report: of.report, base: beside.report },
          { label: `B · ${runText(beside)}`, note: null, report: beside.report, base: null },
        ],
  );
  const words = differences(b.settings, a.settings);
  fill(
    section,
    h('h2', { id: 'comparison-title' }, `Run ${a.number} (A) beside run ${b.number} (B)`),
    h(
      'p',
      { class: 'intro' },
      words.length === 0 ? 'Their settings are the same. ' : `From B to A: ${words.join('; ')}. `,
      sameTrace(a.trace, b.trace) ? '' : 'They ran on different traces, so compare with care. ',
      'Differences are of A from B.',
    ),
    rows.length === 0
      ? h('p', { class: 'intro' }, a.result === null ? 'Run A has no results yet.' : 'They have no policy in common.')
      : policyTable('Both runs, policy by policy', rows),
  );
}
