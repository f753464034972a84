// How a simulation went over time, in a bounded number of equal buckets: when time outgrows them each two become one, so that a second and a year cost
// the same. What flows is added up in a bucket; what stands is noted at its end.
import type { SimSeries, WorkerSeries } from './types.js';

/** Most buckets … */
export const MAX_BUCKETS = 512;
/** … and with more workers than so many, for each of which there are five lines. */
export const MANY_WORKERS = 64;
export const MAX_BUCKETS_OF_MANY = 128;
/** Milliseconds of a bucket at first. */
const FIRST_STEP = 1;

const FLOWS = [
  'gpu',
  'dram',
  'ssd',
  'computed',
  'reachable',
  'arrivedBlocks',
  'arrived',
  'fetchedBytes',
  'putBytes',
  'evictedBytes',
] as const;
const LEVELS = ['storeDram', 'storeSsd'] as const;
const WORKER_FLOWS = ['busy', 'evicted'] as const;
const WORKER_LEVELS = ['running', 'waiting', 'resident'] as const;

export type Flow = (typeof FLOWS)[number];
export type Level = (typeof LEVELS)[number];
export type WorkerFlow = (typeof WORKER_FLOWS)[number];
export type WorkerLevel = (typeof WORKER_LEVELS)[number];

/** What stands now, with what stood at the ends of buckets. */
interface LevelLine {
  now: number;
  readonly ends: Float64Array;
}

type Lines<FlowName extends string, LevelName extends string> = {
  readonly flows: Readonly<Record<FlowName, Float64Array>>;
  readonly levels: Readonly<Record<LevelName, LevelLine>>;
};

export class SeriesRecorder {
  readonly #room: number;
  readonly #whole: Lines<Flow, Level>;
  readonly #workers: readonly Lines<WorkerFlow, WorkerLevel>[];
  readonly #flows: readonly Float64Array[];
  readonly #levels: readonly LevelLine[];
  #step = FIRST_STEP;
  /** The bucket that time is in. */
  #bucket = 0;

  constructor(workers: number) {
    this.#room = workers > MANY_WORKERS ? MAX_BUCKETS_OF_MANY : MAX_BUCKETS;
    this.#whole = linesOf(FLOWS, LEVELS, this.#room);
    this.#workers = Array.from({ length: workers }, () => linesOf(WORKER_FLOWS, WORKER_LEVELS, this.#room));
    const all = [this.#whole, ...this.#workers];
    this.#flows = all.flatMap(({ flows }) => Object.values<Float64Array>(flows));
    this.#levels = all.flatMap(({ levels }) => Object.values<LevelLine>(levels));
  }

  get bytes(): number {
    return (this.#flows.length + this.#levels.length) * this.#room * 8;
  }

  /** It is `time` now: what stands has stood until then. */
  turnTo(time: number): void {
    while (time >= this.#step * this.#room) this.#double();
    const bucket = Math.floor(time / this.#step);
    if (bucket <= this.#bucket) return;
    for (const { now, ends } of this.#levels) ends.fill(now, this.#bucket, bucket);
    this.#bucket = bucket;
  }

  /** Adds to the bucket of a time that is not in the future. */
  add(flow: Flow, time: number, amount: number): void {
    this.#whole.flows[flow][this.#bucketOf(time)]! += amount;
  }

  addOf(worker: number, flow: WorkerFlow, time: number, amount: number): void {
    this.#workers[worker]!.flows[flow][this.#bucketOf(time)]! += amount;
  }

  /** Adds `perMs` for each millisecond from `from` to `to`. */
  spread(flow: Flow, from: number, to: number, perMs: number): void {
    this.#spread(this.#whole.flows[flow], from, to, perMs);
  }

  spreadOf(worker: number, flow: WorkerFlow, from: number, to: number, perMs: number): void {
    this.#spread(this.#workers[worker]!.flows[flow], from, to, perMs);
  }

  change(level: Level, by: number): void {
    this.#whole.levels[level].now += by;
  }

  changeOf(worker: number, level: WorkerLevel, by: number): void {
    this.#workers[worker]!.levels[level].now += by;
  }

  /** What stands, to nothing. */
  clear(level: Level): void {
    this.#whole.levels[level].now = 0;
  }

  clearOf(worker: number, level: WorkerLevel): void {
    this.#workers[worker]!.levels[level].now = 0;
  }

  /** All of it up to now, copied; the lines share one piece of memory, so that they are handed on as one. */
  series(): SimSeries {
    const buckets = this.#bucket + 1;
    for (const { now, ends } of this.#levels) ends[this.#bucket] = now;
    const memory = new Float64Array((this.#flows.length + this.#levels.length) * buckets);
    let end = 0;
    const copy = (line: Float64Array): Float64Array => {
      const begin = end;
      end += buckets;
      memory.set(line.subarray(0, buckets), begin);
      return memory.subarray(begin, end);
    };
    const workers = this.#workers.map((lines) => copied(lines, copy) as WorkerSeries);
    return { step: this.#step, buckets, ...copied(this.#whole, copy), workers };
  }

  #bucketOf(time: number): number {
    return Math.min(this.#bucket, Math.max(0, Math.floor(time / this.#step)));
  }

  #spread(line: Float64Array, from: number, to: number, perMs: number): void {
    const step = this.#step;
    const last = this.#bucketOf(to);
    for (let bucket = this.#bucketOf(from); bucket <= last; bucket++) {
      const begin = Math.max(from, bucket * step);
      const end = bucket === last ? to : Math.min(to, (bucket + 1) * step);
      if (end > begin) line[bucket]! += (end - begin) * perMs;
    }
  }

  /** Each two buckets become one. */
  #double(): void {
    const half = this.#room / 2;
    for (const line of this.#flows) {
      for (let i = 0; i < half; i++) line[i] = line[i * 2]! + line[i * 2 + 1]!;
      line.fill(0, half);
    }
    for (const { ends } of this.#levels) for (let i = 0; i < half; i++) ends[i] = ends[i * 2 + 1]!;
    this.#step *= 2;
    this.#bucket = Math.floor(this.#bucket / 2);
  }
}

function linesOf<FlowName extends string, LevelName extends string>(
  flows: readonly FlowName[],
  levels: readonly LevelName[],
  room: number,
): Lines<FlowName, LevelName> {
  return {
    flows: byName(flows, () => new Float64Array(room)),
    levels: byName(levels, () => ({ now: 0, ends: new Float64Array(room) })),
  };
}

function byName<Name extends string, Value>(names: readonly Name[], make: () => Value): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, make()])) as Record<Name, Value>;
}

/** Each line, by name, as `copy` makes it. */
function copied<FlowName extends string, LevelName extends string>(
  { flows, levels }: Lines<FlowName, LevelName>,
  copy: (line: Float64Array) => Float64Array,
): Record<FlowName | LevelName, Float64Array> {
  return Object.fromEntries([
    ...Object.entries<Float64Array>(flows).map(([name, line]) => [name, copy(line)]),
    ...Object.entries<LevelLine>(levels).map(([name, { ends }]) => [name, copy(ends)]),
  ]) as Record<FlowName | LevelName, Float64Array>;
}
