// What metrics promise whatever happens: counters never go down, labels stay few, and predictions are compared over the same requests.
import { Registry } from 'prom-client';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import { createMetrics, type MetricsSources } from '../src/server/metrics.js';
import { FAMILIES } from '../src/server/metrics-families.js';
import { BoundedCodes, workerLabel } from '../src/server/metrics-labels.js';
import { MonotoneSeries, REMOVED, type Sample } from '../src/server/metrics-monotone.js';
import { countRequests } from '../src/server/metrics-requests.js';
import { endedRequest, noPrompts } from './support/ended-request.js';
import { metricsPage } from './support/metrics-page.js';
import { Random } from './support/random.js';

const sample = (value: number, ...labels: string[]): Sample => ({ labels, value });

test('a source that begins anew goes on from where it was', () => {
  const series = new MonotoneSeries([]);
  assert.equal(series.read([sample(5)]), [sample(5)]);
  assert.equal(series.read([sample(2)]), [sample(7)]);
  assert.equal(series.read([sample(3)]), [sample(8)]);
  assert.equal(series.read([]), [sample(8)], 'what is not said stays');
});

test('a worker that goes leaves its counts to (removed), and begins anew when it comes back', () => {
  const series = new MonotoneSeries(['worker', 'dp_rank', 'cause']);
  series.read([sample(5, 'a', '0', 'gap'), sample(1, 'a', '1', 'gap'), sample(2, 'b', '0', 'stale')]);
  assert.equal(series.read([sample(2, 'b', '0', 'stale')]), [
    sample(2, 'b', '0', 'stale'),
    sample(6, REMOVED, '', 'gap'),
  ]);
  assert.equal(series.read([sample(1, 'a', '0', 'gap')]), [
    sample(6, REMOVED, '', 'gap'),
    sample(1, 'a', '0', 'gap'),
    sample(2, REMOVED, '', 'stale'),
  ]);
});

test('sums over workers never go down, whatever comes, goes and begins anew', () => {
  const random = new Random(5);
  const series = new MonotoneSeries(['worker', 'dp_rank']);
  const counts = new Map<string, number>();
  let last = 0;
  for (let step = 0; step < 2000; step++) {
    const worker = `w${random.int(6)}`;
    const what = random.int(10);
    if (what === 0) counts.delete(worker);
    else if (what === 1) counts.set(worker, random.int(3));
    else counts.set(worker, (counts.get(worker) ?? 0) + random.int(4));
    const shown = series.read([...counts].map(([name, value]) => sample(value, name, '0')));
    const sum = shown.reduce((all, { value }) => all + value, 0);
    assert.ok(sum >= last, `step ${step}: ${sum} after ${last}`);
    assert.ok(shown.length <= counts.size + 1);
    last = sum;
  }
});

test('series of the same labels are one', () => {
  const series = new MonotoneSeries(['reason']);
  assert.equal(series.read([sample(2, 'other'), sample(3, 'other')]), [sample(5, 'other')]);
});

test('codes are few, and look like codes', () => {
  const codes = new BoundedCodes();
  const shown = new Set(Array.from({ length: 1000 }, (_, i) => codes.of(`code-${i}`)));
  assert.is(shown.size, 65);
  assert.is(codes.of('code-3'), 'code-3');
  assert.is(codes.of('code-999'), 'other');
  const fresh = new BoundedCodes();
  for (const text of ['', 'tell me a story', 'a"b', 'x'.repeat(65), 'line\nbreak']) assert.is(fresh.of(text), 'other');
  assert.is(workerLabel('w'.repeat(1000)).length, 128);
  assert.is(workerLabel(12n), '12');
});

async function counted(...requests: Parameters<typeof endedRequest>[0][]) {
  const registry = new Registry();
  const observer = countRequests(registry);
  for (const request of requests) observer.ended(endedRequest(request));
  return metricsPage(await registry.metrics());
}

test('predicted and reported tokens are those of the same requests', async () => {
  const page = await counted(
    { predictedTokens: 64, cachedTokens: 48, promptTokens: 100 },
    { predictedTokens: 32, cachedTokens: 80, promptTokens: 100 },
    { predictedTokens: 640, cachedTokens: null },
    { predictedTokens: 640, cachedTokens: 640, outcome: 'failed', status: 502 },
    { predictedTokens: 640, cachedTokens: null, outcome: 'cancelled', status: 0 },
    { kind: 'route', predictedTokens: 640, cachedTokens: null },
  );
  assert.is(page.sum('moonroute_compared_requests_total'), 2);
  assert.is(page.sum('moonroute_unreported_requests_total'), 1);
  assert.is(page.sum('moonroute_compared_prompt_tokens_total'), 200);
  assert.is(page.sum('moonroute_predicted_cached_tokens_total'), 96);
  assert.is(page.sum('moonroute_reported_cached_tokens_total'), 128);
  assert.is(page.sum('moonroute_overpredicted_tokens_total'), 16);
  assert.is(page.sum('moonroute_underpredicted_tokens_total'), 48);
  assert.is(page.sum('moonroute_requests_total', { outcome: 'cancelled', code: '0' }), 1);
  assert.is(page.sum('moonroute_first_byte_seconds_count'), 5, 'a decision alone has no first byte');
});

test('a request that was not routed counts as a request and as nothing else', async () => {
  const blocks = { device: 0, host: 0, disk: 0, shared: 0, request: 0 };
  const page = await counted({ outcome: 'refused', status: 400, blocks, promptTokens: 9 });
  assert.is(page.sum('moonroute_requests_total', { outcome: 'refused', code: '400' }), 1);
  assert.is(page.sum('moonroute_prompt_tokens_total'), 0);
  assert.is(page.sum('moonroute_decision_seconds_count'), 0);
});

test('credit is counted by tier, with its denominator, and times in seconds', async () => {
  const blocks = { device: 3, host: 2, disk: 1, shared: 4, request: 12 };
  const page = await counted({ blocks, decisionTime: 0.05, firstByteTime: 20, totalTime: 1500 }, { blocks });
  for (const [tier, times] of [
    ['device', 6],
    ['host', 4],
    ['disk', 2],
    ['shared', 8],
  ] as const) {
    assert.is(page.sum('moonroute_credited_blocks_total', { tier }), times);
  }
  assert.is(page.sum('moonroute_ended_request_blocks_total'), 24);
  assert.is(page.sum('moonroute_decision_seconds_bucket', { le: '0.00005' }), 1);
  assert.is(page.sum('moonroute_first_byte_seconds_bucket', { le: '0.025' }), 2);
  assert.is(page.sum('moonroute_request_seconds_bucket', { le: '1' }), 1);
});

test('families have names with their units, unlike each other, and a label list that is bounded', () => {
  const names = FAMILIES.map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  for (const { name, kind, labels, help } of FAMILIES) {
    assert.match(name, /^moonroute_[a-z_]+$/);
    assert.is(name.endsWith('_total'), kind === 'counter', name);
    assert.not.match(name, /_(ms|millis|milliseconds|kb|mb)(_|$)/);
    assert.ok(labels.length <= 3 && help.length > 10, name);
  }
});

test('series stay bounded when workers come and go, and users send whatever they like', async () => {
  const router = await Router.create({ index: { bytes: 1 << 20 } });
  const live = LiveStreams.open(router);
  const names = new Set<string>();
  const sources: MetricsSources = {
    router,
    live,
    registry: { list: () => [] },
    prompts: { stats: () => ({ ...noPrompts(), notProven: Object.fromEntries([...names].map((name) => [name, 1])) }) },
  };
  const metrics = createMetrics(sources);
  const sizes: number[] = [];
  for (let round = 0; round < 200; round++) {
    names.add(`a prompt of user ${round}`).add(`code-${round}`);
    live.addWorker({ id: `worker-${round}`, events: 'tcp://127.0.0.1:1' });
    if (round >= 4) live.removeWorker(`worker-${round - 4}`);
    metrics.observer.ended(
      endedRequest({ id: `r${round}`, model: `model of user ${round}`, status: 200 + (round % 300) }),
    );
    metrics.observer.fault(`what went wrong for user ${round}`);
    if (round % 20 !== 19) continue;
    const page = metricsPage(await metrics.text());
    sizes.push(page.samples.filter(({ name }) => name.startsWith('moonroute_')).length);
    assert.not.match(page.text, /user \d/, 'nothing that a user chose is shown');
  }
  live.close();
  router.dispose();
  assert.ok(Math.max(...sizes) < 700, `${sizes}`);
  assert.ok(sizes.at(-1)! - sizes.at(-3)! <= 10, `it grows: ${sizes}`);
});

test('who asks while a page is being made gets that page, and the next one is new', async () => {
  const router = await Router.create({ index: { bytes: 1 << 20 } });
  const live = LiveStreams.open(router);
  let reads = 0;
  const stats = () => {
    reads++;
    return router.stats();
  };
  const workers = () => router.workers();
  const sources = { router: { stats, workers, contract: null }, live, registry: { list: () => [] } };
  const metrics = createMetrics({ ...sources, prompts: { stats: noPrompts } });
  const [one, other] = await Promise.all([metrics.text(), metrics.text()]);
  assert.is(one, other);
  assert.is(reads, 1);
  await metrics.text();
  assert.is(reads, 2);
  live.close();
  router.dispose();
});

test('a gauge without a source is not shown as 0', async () => {
  const router = await Router.create({ index: { bytes: 1 << 20 } });
  const live = LiveStreams.open(router);
  const metrics = createMetrics({ router, live, registry: { list: () => [] }, prompts: { stats: noPrompts } });
  const page = metricsPage(await metrics.text());
  live.close();
  router.dispose();
  assert.equal(page.find('moonroute_store_connected'), []);
  assert.equal(page.find('moonroute_store_evidence_age_seconds'), []);
  assert.is(page.sum('moonroute_open_leases'), 0);
  assert.is(page.find('moonroute_open_leases').length, 1);
  assert.ok(page.find('process_cpu_seconds_total').length === 1, 'the process under its usual names');
  assert.match(metrics.contentType, /^text\/plain; version=0\.0\.4/);
});

test.run();
