// What a run stands on: its trace as it was read, what was odd about it, and the configuration.
import { configText, factsText, warningLines } from '../../sim/report-table.js';
import { fill, h } from '../console/dom.js';
import { type Run, simulationsOf } from './runs.js';

export function showGround(section: HTMLElement, run: Run | null): void {
  const facts = run?.result?.traces ?? [];
  const config = run === null ? undefined : simulationsOf(run)[0]?.config;
  const odd = facts.flatMap(warningLines);
  fill(
    section,
    h('h2', { id: 'ground-title' }, 'What this stands on'),
    ...facts.map((each) => h('p', { class: 'intro' }, factsText(each))),
    config === undefined ? null : h('pre', { tabindex: '0' }, configText(config)),
    odd.length === 0
      ? null
      : h(
          'details',
          {},
          h('summary', {}, `What was odd about the trace (${odd.length})`),
          h('pre', { tabindex: '0' }, odd.join('\n')),
        ),
    config === undefined
      ? null
      : h(
          'details',
          {},
          h('summary', {}, 'Configuration as JSON'),
          h('pre', { tabindex: '0' }, JSON.stringify(config, null, 2)),
        ),
  );
}
