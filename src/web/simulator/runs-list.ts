// The runs that are kept, newest first: what is new in each, which one is shown (A) and which one stands beside it (B), and its files.
import { figureOf, figureText } from '../../sim/report-figures.js';
import { fill, h } from '../console/dom.js';
import { madeOf } from './figure-notes.js';
import { bestOf } from './headline.js';
import { explain } from './how.js';
import { type Run, type RunState, simulationsOf } from './runs.js';

export interface RunsListOptions {
  readonly show: (run: Run) => void;
  /** Beside the one that is shown; null for none. */
  readonly compare: (run: Run | null) => void;
  readonly remove: (run: Run) => void;
  readonly export: (run: Run, form: 'json' | 'csv') => void;
  readonly pictures: () => void;
  readonly link: () => void;
}

const STATES: Readonly<Record<RunState, string>> = {
  running: 'running',
  finished: '',
  cancelled: 'cancelled, partial',
  failed: 'failed',
};

/** What buttons are called by those who only hear them. */
const SPOKEN: Readonly<Record<string, (run: number) => string>> = {
  a: (run) => `A: show run ${run}`,
  b: (run) => `B: put run ${run} beside it`,
  json: (run) => `JSON of run ${run}`,
  csv: (run) => `CSV of run ${run}`,
  remove: (run) => `Remove run ${run}`,
};

export class RunsList {
  readonly #options: RunsListOptions;
  readonly #rows = h('tbody', {});
  readonly #pictures = h('button', { type: 'button' }, 'PNG of all charts');

  constructor(section: HTMLElement, options: RunsListOptions) {
    this.#options = options;
    this.#pictures.addEventListener('click', () => options.pictures());
    const link = h('button', { type: 'button' }, 'Copy link');
    link.addEventListener('click', () => options.link());
    section.append(
      h(
        'div',
        { class: 'heading' },
        h('h2', { id: 'runs-title' }, 'Runs'),
        h('div', { class: 'tools' }, link, this.#pictures),
      ),
      h(
        'div',
        { class: 'box', tabindex: '0', role: 'region', 'aria-label': 'Runs that are kept' },
        h(
          'table',
          { class: 'runs' },
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              ...['run', 'what is new in it', 'best policy', 'hit', 'TTFT p50', 'show, beside', 'files'].map((text) =>
                h('th', { scope: 'col' }, text),
              ),
              h('td', {}),
            ),
          ),
          this.#rows,
        ),
      ),
    );
  }

  show(runs: readonly Run[], a: Run | null, b: Run | null): void {
    const focused = document.activeElement?.id ?? '';
    this.#pictures.disabled = a === null;
    fill(this.#rows, ...[...runs].reverse().map((run) => this.#row(run, a, b, runs.length)));
    // Rows are made anew; whoever stood on a button of one stays there.
    if (focused.startsWith('run-')) document.getElementById(focused)?.focus();
    this.#listen(runs);
  }

  #row(run: Run, a: Run | null, b: Run | null, count: number): HTMLElement {
    const best = bestOf(simulationsOf(run));
    const value = (key: string) =>
      best === null
        ? '–'
        : explain(h('span', {}, figureText(figureOf(key), best.report)), madeOf(figureOf(key), best.report));
    const button = (what: string, label: string, pressed: boolean | null, disabled = false) =>
      h(
        'button',
        {
          type: 'button',
          id: `run-${run.number}-${what}`,
          'data-run': String(run.number),
          'data-what': what,
          'aria-pressed': pressed === null ? null : String(pressed),
          disabled,
          'aria-label': SPOKEN[what]!(run.number),
        },
        label,
      );
    return h(
      'tr',
      { class: run === a ? 'a' : run === b ? 'b' : null },
      h('th', { scope: 'row' }, String(run.number)),
      h('td', { class: 'words' }, run.words, STATES[run.state] === '' ? null : h('small', {}, STATES[run.state])),
      h('td', {}, best?.policy ?? '–'),
      h('td', {}, value('hit_share')),
      h('td', {}, value('ttft_p50_ms')),
      h('td', { class: 'pick' }, button('a', 'A', run === a), button('b', 'B', run === b, run === a || count < 2)),
      h(
        'td',
        { class: 'pick' },
        button('json', 'JSON', null, !run.alive || run.result === null),
        button('csv', 'CSV', null, !run.alive || run.result === null),
      ),
      h('td', {}, button('remove', 'Remove', null, run.state === 'running')),
    );
  }

  #listen(runs: readonly Run[]): void {
    for (const button of this.#rows.querySelectorAll<HTMLButtonElement>('button')) {
      const run = runs.find(({ number }) => String(number) === button.dataset['run'])!;
      button.onclick = () => this.#act(button.dataset['what']!, run, button.getAttribute('aria-pressed') === 'true');
    }
  }

  #act(what: string, run: Run, pressed: boolean): void {
    if (what === 'a') this.#options.show(run);
    else if (what === 'b') this.#options.compare(pressed ? null : run);
    else if (what === 'remove') this.#options.remove(run);
    else this.#options.export(run, what as 'json' | 'csv');
  }
}
