// A picture of a simulation for charts, from a few numbers a bucket.
import type { SimPicture, SimSeries, WorkerSeries } from '../../src/sim/observed/types.js';

type Columns = 'gpu' | 'dram' | 'ssd' | 'computed' | 'reachable' | 'arrivedBlocks' | 'fetchedBytes';

export interface PictureParts {
  /** Milliseconds of a bucket, and how far the simulation has come. */
  readonly step: number;
  readonly now: number;
  readonly series?: Partial<Record<Columns, readonly number[]>>;
  readonly workers?: readonly Partial<Record<keyof WorkerSeries, readonly number[]>>[];
  /** More room than is used: columns of a run that goes on. */
  readonly spare?: number;
}

export function chartPicture({ step, now, series = {}, workers = [], spare = 3 }: PictureParts): SimPicture {
  const buckets = Math.ceil(now / step);
  const column = (values: readonly number[] = []) => {
    const made = new Float64Array(buckets + spare).fill(Number.NaN, buckets);
    made.set(values.slice(0, buckets));
    return made;
  };
  const of = (name: Columns) => column(series[name]);
  const made: SimSeries = {
    step,
    buckets,
    gpu: of('gpu'),
    dram: of('dram'),
    ssd: of('ssd'),
    computed: of('computed'),
    reachable: of('reachable'),
    arrivedBlocks: of('arrivedBlocks'),
    arrived: column(),
    fetchedBytes: of('fetchedBytes'),
    putBytes: column(),
    evictedBytes: column(),
    storeDram: column(),
    storeSsd: column(),
    workers: workers.map((worker) => ({
      busy: column(worker.busy),
      running: column(worker.running),
      waiting: column(worker.waiting),
      resident: column(worker.resident),
      evicted: column(worker.evicted),
    })),
  };
  const none = new Float64Array(0);
  return { policy: 'kv', now, finished: false, series: made, ttft: none, latency: none, requests: 0 };
}
