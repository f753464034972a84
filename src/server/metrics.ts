// `/metrics` in Prometheus' text format. What the router's rooms count already is read when it is asked for; requests are counted as they end;
// numbers of the process come under their usual names. Labels are few and bounded, and hold neither prompts nor users nor models.
import { setImmediate } from 'node:timers';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { LiveStreams } from '../live/live-streams.js';
import type { PlaneStreams } from '../live/plane/route/plane-streams.js';
import type { Router } from '../router/router.js';
import { derivationOf, type HashingConfig, LEARNED } from './derivation.js';
import { FAMILIES, type Family, type Label, type Snapshot } from './metrics-families.js';
import { BoundedCodes } from './metrics-labels.js';
import { MonotoneSeries, type Sample, summed } from './metrics-monotone.js';
import { countRequests } from './metrics-requests.js';
import type { PromptReader, RequestObserver, WorkerRegistry } from './types.js';

/** What is read. */
export interface MetricsSources {
  readonly router: Pick<Router, 'stats' | 'workers' | 'contract'>;
  readonly live: Pick<LiveStreams, 'status'>;
  /** Default none. */
  readonly plane?: Pick<PlaneStreams, 'status'> | null;
  readonly registry: Pick<WorkerRegistry, 'list'>;
  readonly prompts: Pick<PromptReader, 'stats'>;
  /** Default: hashes are learned. */
  readonly sharedCache?: HashingConfig;
}

export interface Metrics {
  readonly observer: RequestObserver;
  /** The page of now; who asks while one is being made gets that one. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** Labels whose values are codes. */
const CODES: ReadonlySet<Label> = new Set(['reason', 'cause', 'code', 'outcome', 'source']);

/** Milliseconds of work after which others get their turn: a page of a thousand ranks is a tenth of a second of it. */
const TURN = 4;

/** Makes the metrics of one server; once a process, for the numbers of the process are observed from then on. */
export function createMetrics(sources: MetricsSources): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const observer = countRequests(registry);
  const fills = new Map(FAMILIES.map((family) => [family.name, filler(family, registry)]));
  const page = async (): Promise<string> => {
    const seen = snapshotOf(sources);
    const parts: string[] = [];
    let turn = performance.now();
    for (const { name } of registry.getMetricsAsArray()) {
      fills.get(name)?.(seen);
      parts.push(await registry.getSingleMetricAsString(name));
      if (performance.now() - turn < TURN) continue;
      await new Promise((resolve) => setImmediate(resolve));
      turn = performance.now();
    }
    return `${parts.join('\n\n')}\n`;
  };
  // One at a time: an older snapshot after a newer one would look like counters that began anew.
  let underWay: Promise<string> | null = null;
  return {
    observer,
    text() {
      underWay ??= page().finally(() => {
        underWay = null;
      });
      return underWay;
    },
    contentType: registry.contentType,
  };
}

function snapshotOf({
  router,
  live,
  plane = null,
  registry,
  prompts,
  sharedCache = LEARNED,
}: MetricsSources): Snapshot {
  const stats = router.stats();
  return {
    stats,
    workers: router.workers(),
    live: live.status(),
    plane: plane?.status() ?? null,
    registered: registry.list(),
    prompts: prompts.stats(),
    derivation: derivationOf(stats, router.contract, sharedCache),
  };
}

/** Registers a family; what comes back sets its series to what was seen. */
function filler(family: Family, registry: Registry): (seen: Snapshot) => void {
  const { name, help, kind, labels, read } = family;
  const options = { name, help, labelNames: labels, registers: [registry] };
  const codes = labels.map((label) => (CODES.has(label) ? new BoundedCodes() : null));
  const bounded = (seen: Snapshot): Sample[] =>
    [...read(seen)].map(({ labels: values, value }) => ({
      labels: values.map((one, i) => codes[i]?.of(one) ?? one),
      value,
    }));
  const named = (values: readonly string[]) => Object.fromEntries(labels.map((label, i) => [label, values[i]!]));
  if (kind === 'gauge') {
    const gauge = new Gauge(options);
    return (seen) => {
      gauge.reset();
      if (labels.length === 0) gauge.remove(); // reset leaves a 0, which would be said of what is not there
      for (const sample of summed(bounded(seen)).values()) gauge.set(named(sample.labels), sample.value);
    };
  }
  const counter = new Counter(options);
  const series = new MonotoneSeries(labels);
  return (seen) => {
    counter.reset();
    for (const sample of series.read(bounded(seen))) counter.inc(named(sample.labels), sample.value);
  };
}
