// What is shown of the run in front (A), and of the one beside it (B): the answer, charts, timeline, requests. Drawn at most once a frame, and only what changed.

import type { SimPicture } from '../../sim/observed/types.js';
import { hitShare } from '../../sim/report-figures.js';
import { factsText } from '../../sim/report-table.js';
import type { SimRun } from '../../sim/report-types.js';
import { runText } from '../../sim/sweep.js';
import type { SimConfig } from '../../sim/types.js';
import { byId, fill, h } from '../console/dom.js';
import { CapacityChart, FetchChart, type Labelled, LoadChart, pngOf, TiersChart, TtftChart } from './charts/index.js';
import type { Client } from './client.js';
import { pairs, showComparison } from './compare.js';
import { DecisionPanel } from './decision/index.js';
import { oncePerFrame } from './dom-events.js';
import { showGround } from './ground.js';
import { bestOf, headline, soFar } from './headline.js';
import { RequestList } from './requests/index.js';
import { type Run, type RunState, simulationsOf } from './runs.js';
import { legend, policyTable, type TableRow } from './table.js';
import { allFigures } from './table-all.js';
import { Timeline } from './timeline/index.js';

/** Lines of one chart: more could not be told apart. */
const MOST_LINES = 12;
/** Simulations that stand side by side as buttons; more are a list. */
const MOST_BUTTONS = 8;
/** Where a run has ended without any result. */
const NOTHING_FOUND: Readonly<Partial<Record<RunState, string>>> = {
  failed: 'This run failed: the message says why.',
  cancelled: 'Cancelled before anything was complete.',
};
/** Elements of the charts. */
const CHARTS = ['tiers', 'capacity', 'ttft', 'load', 'fetch'] as const;

export interface ShownOptions {
  readonly client: Client;
  /** The capacity line was let go at so many bytes. */
  readonly capacity: (bytes: number) => void;
}

export class Shown {
  readonly #tiers = new TiersChart(byId('tiers'), { compare: true });
  readonly #capacity: CapacityChart;
  readonly #ttft = new TtftChart(byId('ttft'));
  readonly #load = new LoadChart(byId('load'));
  readonly #fetch = new FetchChart(byId('fetch'));
  readonly #timeline: Timeline;
  readonly #requests: RequestList;
  readonly #decision: DecisionPanel;
  a: Run | null = null;
  b: Run | null = null;
  /** The simulation that was chosen, by its text; null to follow the one that runs, and then the best. */
  #chosen: string | null = null;
  #base: string | null = null;
  #asked = { answer: false, charts: false };
  /** What timeline and requests show. */
  #looked = '';
  /** What timeline, requests and decision ask about: it stays while another simulation runs ahead. */
  #into = { run: 0, simulation: 0 };

  /** Draws the charts, or also what only a completed simulation changes. */
  readonly draw = {
    charts: () => {
      this.#asked.charts = true;
      this.#soon();
    },
    all: () => {
      this.#asked = { answer: true, charts: true };
      this.#soon();
    },
  };

  readonly #soon = oncePerFrame(() => {
    const { answer, charts } = this.#asked;
    this.#asked = { answer: false, charts: false };
    if (answer) this.#drawAnswer();
    if (charts) this.#drawCharts();
    if (answer) this.#look();
  });

  constructor({ client, capacity }: ShownOptions) {
    const here = () => this.#into;
    const open = (request: number) => this.#decision.open(request);
    this.#capacity = new CapacityChart(byId('capacity'), {
      onCapacity: (bytes, final) => {
        const ssd = (this.a === null ? undefined : simulationsOf(this.a)[0])?.config.store.ssdBytes ?? 0;
        if (final) capacity(Math.max(0, bytes - ssd));
      },
    });
    this.#timeline = new Timeline(byId('timeline'), {
      ask: (place, from, to, columns, families) => {
        const { run, simulation } = here();
        return client.timeline(run, simulation, place, from, to, columns, families);
      },
      onRequest: open,
    });
    this.#requests = new RequestList(byId('requests'), {
      ask: (order, from, count) => {
        const { run, simulation } = here();
        return client.requests(run, simulation, order, from, count);
      },
      onRequest: open,
    });
    this.#decision = new DecisionPanel(byId('decision'), {
      ask: (request, signal) => {
        const { run, simulation } = here();
        return client.decision(run, simulation, request, signal);
      },
    });
  }

  /** Puts a run in front, and one beside it. */
  show(a: Run | null, b: Run | null): void {
    this.a = a;
    this.b = b === a ? null : b;
    this.draw.all();
  }

  /** Pictures of the charts that are shown. */
  pictures(): Promise<Blob[]> {
    return Promise.all(
      CHARTS.map((id) => byId(id))
        .filter((host) => !host.parentElement!.hidden)
        .map(pngOf),
    );
  }

  /** The headline as text, for those who hear it. */
  get answer(): string {
    return byId('headline').textContent ?? '';
  }

  /** The place of the simulation that is shown. */
  #simulation(): number {
    const run = this.a;
    if (run === null) return 0;
    const labels = labelsOf(run);
    const chosen = this.#chosen === null ? -1 : labels.indexOf(this.#chosen);
    if (chosen >= 0) return chosen;
    if (run.state === 'running') return Math.max(0, run.pictures.length - 1);
    const runs = simulationsOf(run);
    return Math.max(0, runs.indexOf(bestOf(runs)!));
  }

  // ---- the answer ----

  #drawAnswer(): void {
    const run = this.a;
    const runs = run === null ? [] : simulationsOf(run);
    const base = this.#baseOf(runs, run?.state === 'running');
    byId('shown').textContent = run === null ? '' : shownText(run);
    const said = headline(runs, base, run?.curve ?? null);
    const nothing = run === null ? '' : (NOTHING_FOUND[run.state] ?? '');
    if (said.length > 0 || run?.state !== 'running')
      byId('headline').replaceChildren(...(said.length > 0 ? said : [nothing]));
    const rows = runs.map((each): TableRow => {
      const note = each.partial ? 'partial' : each === base && runs.length > 1 ? 'baseline' : null;
      return { label: runText(each), note, report: each.report, base: each === base ? null : (base?.report ?? null) };
    });
    const host = byId('policies');
    if (rows.length === 0) host.replaceChildren();
    else
      host.replaceChildren(
        h('div', { class: 'above' }, legend(), runs.length > 1 && base !== null ? this.#baseChooser(runs, base) : null),
        policyTable('Policies side by side', rows),
        this.#details('All figures', () => allFigures(runs)),
      );
    showComparison(byId('comparison'), run, this.b);
    showGround(byId('ground'), run);
  }

  /** The one that was chosen; else round-robin, or the last one once all are there. */
  #baseOf(runs: readonly SimRun[], more: boolean): SimRun | null {
    const chosen = runs.find((run) => runText(run) === this.#base);
    return chosen ?? runs.find(({ policy }) => policy === 'round-robin') ?? (more ? null : (runs.at(-1) ?? null));
  }

  #baseChooser(runs: readonly SimRun[], base: SimRun): HTMLElement {
    const select = h(
      'select',
      { id: 'base' },
      ...runs.map((run) => h('option', { selected: run === base }, runText(run))),
    );
    select.addEventListener('change', () => {
      this.#base = select.value;
      this.draw.all();
      requestAnimationFrame(() => requestAnimationFrame(() => byId('base')?.focus()));
    });
    return h('label', { class: 'choose' }, 'compared with ', select);
  }

  readonly #open = new Set<string>();

  /** Made when it is opened, and open again when its place is drawn anew. */
  #details(title: string, make: () => HTMLElement): HTMLElement {
    const details = h('details', {}, h('summary', {}, title));
    const fillIt = () => {
      if (details.childElementCount === 1) details.append(make());
    };
    if (this.#open.has(title)) {
      details.open = true;
      fillIt();
    }
    details.addEventListener('toggle', () => {
      if (details.open) {
        this.#open.add(title);
        fillIt();
      } else this.#open.delete(title);
    });
    return details;
  }

  // ---- charts ----

  #drawCharts(): void {
    const run = this.a;
    const place = this.#simulation();
    this.#drawChosen(run, place);
    if (run === null) return;
    const running = run.state === 'running';
    for (const id of CHARTS)
      byId(id).parentElement!.hidden = !running && (id === 'capacity' ? run.curve === null : run.pictures.length === 0);
    const begun = run.pictures[place];
    if (run.result === null && running)
      byId('headline').textContent = begun === undefined ? '' : soFar(labelsOf(run)[place]!, begun);
    const both = this.b === null ? [] : pairs(run, this.b);
    const runs = simulationsOf(run);
    const a = labelled(run, place, this.b === null ? '' : 'A · ');
    const beside = both.find(({ of }) => of === runs[place])?.beside ?? null;
    const b = beside === null ? null : labelled(this.b!, simulationsOf(this.b!).indexOf(beside), 'B · ');
    this.#tiers.show(a, b);
    this.#load.show(a, b);
    const all = this.#lines(run);
    this.#ttft.show(all);
    const config = runs[place]?.config ?? runs[0]?.config;
    this.#fetch.show(all, {
      total: config?.store.totalBytesPerSecond ?? Number.NaN,
      link: config?.store.linkBytesPerSecond ?? Number.NaN,
      ssd: (config?.store.ssdBytes ?? 0) > 0 ? config!.store.ssdBytesPerSecond : Number.NaN,
    });
    this.#capacity.show(run.curve, {
      storeBytes: config === undefined ? 0 : storeBytes(config),
      other: this.b?.curve ?? null,
      simulated: runs.map((each) => ({
        label: runText(each),
        bytes: storeBytes(each.config),
        share: hitShare(each.report) ?? 0,
      })),
    });
  }

  /** All simulations of A, and of B, as lines of one chart. */
  #lines(run: Run): Labelled[] {
    const of = (each: Run, prefix: string) =>
      each.pictures.map((_, place) => labelled(each, place, prefix)).filter((one) => one !== null);
    const lines = this.b === null ? of(run, '') : [...of(run, 'A · '), ...of(this.b, 'B · ')];
    return lines.slice(0, MOST_LINES);
  }

  #drawChosen(run: Run | null, place: number): void {
    const labels = run === null ? [] : labelsOf(run);
    const host = byId('chosen');
    const what = 'Simulation that is shown';
    const choose = (label: string) => {
      this.#chosen = label;
      this.draw.all();
    };
    if (labels.length > MOST_BUTTONS) {
      const options = labels.map((label, i) => h('option', { selected: i === place }, label));
      fill(host, h('select', { 'aria-label': what }, ...options));
      const select = host.querySelector('select')!;
      select.onchange = () => choose(select.value);
      return;
    }
    const buttons = labels.map((label, i) =>
      h('button', { type: 'button', 'aria-pressed': String(i === place) }, label),
    );
    fill(
      host,
      labels.length < 2 ? null : h('div', { class: 'segments', role: 'group', 'aria-label': what }, ...buttons),
    );
    for (const [i, button] of host.querySelectorAll('button').entries()) button.onclick = () => choose(labels[i]!);
  }

  // ---- one simulation, looked into ----

  #look(): void {
    const run = this.a;
    const place = this.#simulation();
    const simulated = run === null ? undefined : simulationsOf(run)[place];
    const picture = run?.pictures[place];
    const ready = run?.alive === true && simulated !== undefined && picture?.finished === true;
    const looked = ready ? `${run.number}:${place}` : '';
    if (looked === this.#looked) return;
    this.#looked = looked;
    this.#decision.close();
    byId('time').hidden = !ready;
    byId('each').hidden = !ready;
    if (!ready) {
      this.#timeline.show(null);
      return;
    }
    this.#into = { run: run.number, simulation: place };
    const { workers, store, groups } = simulated.config;
    this.#timeline.show({
      workers: workers.count,
      end: picture.now,
      hasStore: store.dramBytes + store.ssdBytes > 0,
      label: runText(simulated),
      // Of several groups a block has no one size.
      ...(groups.length === 1 ? { blockBytes: groups[0]!.bytesPerBlock } : {}),
    });
    this.#requests.show(picture.requests, simulated.config.policy);
  }
}

/** Names of a run's simulations as far as they have come. */
/** The whole store, which the curve is over. */
const storeBytes = ({ store }: SimConfig): number => store.dramBytes + store.ssdBytes;

const labelsOf = (run: Run): string[] =>
  run.pictures.map((picture, place) => {
    const done = simulationsOf(run)[place];
    return done === undefined
      ? run.standing?.simulation === place
        ? run.standing.label
        : picture.policy
      : runText(done);
  });

function labelled(run: Run, place: number, prefix: string): Labelled | null {
  const picture: SimPicture | undefined = run.pictures[place];
  return picture === undefined ? null : { label: `${prefix}${labelsOf(run)[place]}`, picture };
}

function shownText(run: Run): string {
  const [facts] = run.result?.traces ?? [];
  const about = facts === undefined ? '' : ` · ${factsText(facts)}`;
  const state = run.state === 'running' || run.state === 'finished' ? '' : ` · ${run.state}`;
  return `Run ${run.number}${state}${about}`;
}
