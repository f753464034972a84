// The dashboard that is shipped, against the metrics of a running router: every query can be read, every metric and label in it is really there,
// rates are taken of counters alone, and what a legend names is in the result.
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { FAMILIES } from '../src/server/metrics-families.js';
import { post, until, zeromq } from './support/fleet-worker.js';
import { type MetricsPage, metricsPage } from './support/metrics-page.js';
import { readQuery } from './support/promql.js';
import { ServiceOverFleet } from './support/running-service.js';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const dashboard = JSON.parse(readFileSync('dashboards/moonroute.json', 'utf8')) as {
  readonly schemaVersion: number;
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
};
const shown = dashboard.panels.filter(({ type }) => type !== 'row');
const queries = shown.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr, legend: legendFormat, query: readQuery(expr) })),
);
/** What Prometheus itself puts on every series. */
const PROMETHEUS = ['instance', 'job'];

test('the reader of queries refuses what it can’t read', () => {
  const wrong = [
    'sum(rate(a_total{x="1"}[5m])',
    'rate(a_total)',
    'a_total[5m]',
    'rate(a_total[nonsense])',
    'sum by tier (a)',
    'a{b}',
    'a{b="c"} d',
    'nosuch(a, b)',
    'histogram_quantile(a)',
    'a ? b',
  ];
  for (const text of wrong) assert.throws(() => readQuery(text), undefined, text);
  const { selectors, groups, kept } = readQuery('sum by (le, tier) (rate(a_total{x=~"1"}[5m])) / scalar(sum(b))');
  assert.equal(selectors, [
    { metric: 'a_total', labels: ['x'], counted: true },
    { metric: 'b', labels: [], counted: false },
  ]);
  assert.equal(
    groups.map(({ label }) => label),
    ['le', 'tier'],
  );
  assert.equal(kept, ['le', 'tier']);
});

test('the dashboard is one that Grafana 10 opens', () => {
  assert.ok(dashboard.schemaVersion >= 38);
  assert.is(dashboard.uid, 'moonroute');
  assert.is(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  for (const { title, description = '', targets = [], gridPos } of shown) {
    assert.ok(description.length > 5, `${title} says what it shows`);
    assert.ok(targets.length > 0, title);
    assert.ok(gridPos.x + gridPos.w <= 24, title);
  }
  const overlap = (a: Panel, b: Panel) =>
    a.gridPos.x < b.gridPos.x + b.gridPos.w &&
    b.gridPos.x < a.gridPos.x + a.gridPos.w &&
    a.gridPos.y < b.gridPos.y + b.gridPos.h &&
    b.gridPos.y < a.gridPos.y + a.gridPos.h;
  dashboard.panels.forEach((a, i) => {
    for (const b of dashboard.panels.slice(i + 1)) assert.not.ok(overlap(a, b), `${a.title} and ${b.title}`);
  });
  const variables = new Set(dashboard.templating.list.map(({ name }) => name));
  for (const { expr } of queries) {
    for (const [, name] of expr.matchAll(/\$(?!__)\{?(\w+)/g)) assert.ok(variables.has(name!), `$${name}`);
  }
});

test('rates are per labels: an aggregation’s labels are what a legend may name', () => {
  for (const { title, legend, query } of queries) {
    for (const [, label] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
      if (query.kept !== null) assert.ok(query.kept.includes(label!), `${title}: {{${label}}} was summed away`);
    }
  }
});

/** Labels of a metric: those seen, or where nothing has happened yet those that it is declared with. */
function labelsOf(page: MetricsPage, metric: string): readonly string[] | null {
  const [sample] = page.find(metric);
  if (sample !== undefined) return Object.keys(sample.labels);
  return page.kinds.has(metric) ? (FAMILIES.find(({ name }) => name === metric)?.labels ?? null) : null;
}

function kindOf(page: MetricsPage, metric: string): string | undefined {
  const family = metric.replace(/_(bucket|sum|count)$/, '');
  return page.kinds.get(metric) ?? (page.kinds.get(family) === 'histogram' ? 'counter' : undefined);
}

if (zeromq !== null) {
  test('every metric and label of the dashboard is on the page of a running router', async () => {
    const fleet = { workers: 2, worker: { latency: { timeScale: 0 }, gpuBlocks: 300 } };
    const pool = await ServiceOverFleet.start(fleet, { sharedCache: { hashing: 'both' } });
    try {
      const chat = { messages: [{ role: 'user', content: 'hello there' }], max_tokens: 2 };
      for (let i = 0; i < 12; i++) await pool.ask(i % 3, 200 + 32 * i);
      await pool.heard();
      const said = [
        await post(`${pool.url}/v1/chat/completions`, { model: 'moonroute/simulated-70b', ...chat }),
        await fetch(`${pool.url}/v1/completions`, {
          method: 'POST',
          body: '{',
          headers: { 'content-type': 'application/json' },
        }),
        await post(`${pool.url}/v1/completions`, { prompt: [1, 2, 3], prompt_embeds: 'x', max_tokens: 1 }),
      ];
      for (const response of said) await response.arrayBuffer();
      await pool.fleet.workers[0]!.restart();
      await pool.fleet.master!.restart();
      const { live } = pool.running.service;
      await until('the restarts to be noticed', () => {
        const { workers, store } = live.status();
        return workers.some(({ rebuilds }) => rebuilds['restarted'] === 1) && (store?.reconciled ?? 0) > 1;
      });
      const page = metricsPage(await (await fetch(`${pool.url}/metrics`)).text());

      const unseen = new Set<string>();
      for (const { title, query, legend } of queries) {
        for (const { metric, labels, counted } of query.selectors) {
          const known = labelsOf(page, metric);
          assert.ok(known !== null, `${title}: ${metric} is not on the page`);
          if (page.find(metric).length === 0) unseen.add(metric);
          const kind = kindOf(page, metric);
          assert.is(kind === 'counter', counted, `${title}: ${metric} is a ${kind}`);
          for (const label of labels) {
            assert.ok([...known, ...PROMETHEUS].includes(label), `${title}: ${metric} has no ${label}`);
          }
          if (query.kept !== null) continue;
          for (const [, label] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
            assert.ok([...known, ...PROMETHEUS].includes(label!), `${title}: ${metric} has no ${label}`);
          }
        }
        for (const { label, metrics } of query.groups) {
          for (const metric of metrics) {
            assert.ok(labelsOf(page, metric)!.includes(label), `${title}: ${metric} has no ${label}`);
          }
        }
      }
      // What did not happen here: faults of policies, events that can't be read or used, reconciles that did not count, differences that last.
      const expected = ['policy_faults', 'ineligible_events', 'unindexed_events', 'rejected_events'];
      expected.push('unreadable_worker_messages', 'store_voided_reconciles', 'store_drifts', 'store_learning_refusals');
      const without = [...unseen].filter((metric) => !expected.some((name) => metric === `moonroute_${name}_total`));
      assert.equal(without, [], 'seen on the page with their labels');

      for (const { definition } of dashboard.templating.list) {
        const [, metric, label] = /^label_values\((\w+)(?:\{[^}]*\})?, (\w+)\)$/.exec(definition ?? '') ?? [];
        if (definition === undefined) continue;
        assert.ok(metric !== undefined && page.find(metric).length > 0, definition);
        assert.ok([...labelsOf(page, metric)!, ...PROMETHEUS].includes(label!), definition);
      }

      // And they answer: what was reached is no more than what could be, and that no more than there was.
      const [achieved, reachable, request] = ['achieved', 'reachable', 'request'].map((name) =>
        page.sum(`moonroute_${name}_blocks_total`),
      );
      assert.ok(
        achieved! > 0 && achieved! <= reachable! && reachable! < request!,
        `${achieved} ${reachable} ${request}`,
      );
      assert.ok(page.sum('moonroute_compared_requests_total') >= 12);
      assert.is(page.sum('moonroute_overpredicted_tokens_total'), 0);
      assert.ok(page.sum('moonroute_unproven_prompts_total') >= 1);
      assert.ok(page.sum('moonroute_faults_total') >= 1);
    } finally {
      await pool.close();
    }
  });

  test('a worker that is removed leaves no series of its own, and no sum goes down', async () => {
    const pool = await ServiceOverFleet.start({ workers: 2, worker: { latency: { timeScale: 0 } } });
    try {
      for (let i = 0; i < 8; i++) await pool.ask(i, 200);
      await pool.heard();
      const read = async () => metricsPage(await (await fetch(`${pool.url}/metrics`)).text());
      const before = await read();
      const { registry } = pool.running.service;
      const { id, url, events, replay, topic, dpRanks, contract } = registry.get('worker-0')!;
      assert.ok(registry.remove('worker-0'));
      const between = await read();
      await registry.add({ id, url, events, replay, topic, dpRanks, contract });
      const after = await read();
      const counters = [...before.kinds].filter(([name, kind]) => kind === 'counter' && name.startsWith('moonroute_'));
      for (const [name] of counters) {
        assert.ok(between.sum(name) >= before.sum(name), `${name} after the removal`);
        assert.ok(after.sum(name) >= between.sum(name), `${name} after it came back`);
      }
      const own = between.samples.filter(({ labels }) => labels['worker'] === 'worker-0');
      assert.equal(own, []);
      assert.ok(between.sum('moonroute_stream_batches_total', { worker: '(removed)' }) > 0);
    } finally {
      await pool.close();
    }
  });
}

test.run();
