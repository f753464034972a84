// What an observed simulation leaves besides its report: how it went over time, what became of each request, and what was where. All in columns, so
// that a page can draw a hundred thousand requests. Times are milliseconds of the simulation's clock (the trace's, divided by the speed-up),
// counted from the first arrival. Blocks are the simulation's blocks.
import type { Decision } from '../../router/decision.js';

/**
 * Equal buckets of time; when the simulation outgrows them, each two become one. Bucket `i` covers `step` milliseconds from `i × step` on. All lines share
 * one piece of memory.
 */
export interface SimSeries {
  readonly step: number;
  readonly buckets: number;
  /** Prompt blocks of the requests that a worker began in the bucket, by where it found them. full = gpu + dram + ssd + computed. */
  readonly gpu: Float64Array;
  readonly dram: Float64Array;
  readonly ssd: Float64Array;
  readonly computed: Float64Array;
  /** What the best choice could have hit, for the requests that arrived in the bucket, and their full blocks. */
  readonly reachable: Float64Array;
  readonly arrivedBlocks: Float64Array;
  readonly arrived: Float64Array;
  /** Bytes that came from the store in the bucket. */
  readonly fetchedBytes: Float64Array;
  /** Bytes that were put into the store, and that left it for want of room. */
  readonly putBytes: Float64Array;
  readonly evictedBytes: Float64Array;
  /** At the bucket's end: bytes in the store's memory and on its SSD. */
  readonly storeDram: Float64Array;
  readonly storeSsd: Float64Array;
  readonly workers: readonly WorkerSeries[];
}

export interface WorkerSeries {
  /** Milliseconds of the bucket that it computed. */
  readonly busy: Float64Array;
  /** At the bucket's end: requests that run and that wait, and shareable blocks on its GPU. */
  readonly running: Float64Array;
  readonly waiting: Float64Array;
  readonly resident: Float64Array;
  /** In the bucket: blocks that left its GPU for want of room. */
  readonly evicted: Float64Array;
}

/** One request as it went; NaN where it has not come so far. */
export interface RequestRow {
  /** Its place in the order of the trace, from 0. */
  readonly request: number;
  readonly worker: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Arrival at the router; when the worker began it; when what it fetched was there (begin, if nothing was); first and last token. */
  readonly at: number;
  readonly begunAt: number;
  readonly fetchedAt: number;
  readonly firstTokenAt: number;
  readonly endedAt: number;
  /** Full prompt blocks by where they came from. */
  readonly full: number;
  readonly gpu: number;
  readonly dram: number;
  readonly ssd: number;
  /** Shared blocks that the router counted on (0 without), and that were more or less than could be restored: positive for short, negative for stale. */
  readonly credited: number;
  readonly creditError: number;
  /** Price of the chosen worker and of the runner-up, in the policy's unit; the runner-up's is NaN where it was the only candidate. */
  readonly cost: number;
  readonly runnerUpCost: number;
  readonly runnerUp: number;
}

/**
 * How a list of requests is ordered: by arrival; longest to its first token; most prompt blocks computed; most blocks from the store; credit farthest from
 * what could be restored; least between the price of the chosen worker and the runner-up's.
 */
export type RequestOrder = 'arrival' | 'slowest' | 'most-computed' | 'most-fetched' | 'credit-error' | 'closest-call';

/** Quantiles of a time, equally spaced: the value at place `i` of `n + 1` is that of part i / n. Empty while nothing was measured. */
export type Quantiles = Float64Array;

/** What charts are drawn from. */
export interface SimPicture {
  readonly policy: string;
  /** Milliseconds so far. */
  readonly now: number;
  readonly finished: boolean;
  readonly series: SimSeries;
  readonly ttft: Quantiles;
  readonly latency: Quantiles;
  readonly requests: number;
}

/** A place that holds blocks. */
export type SimPlace = number | 'store';

/** A span of one request on a worker: what a timeline draws as a bar with parts. */
export interface RequestSpan {
  readonly row: RequestRow;
  /** Line of bars, from 0: spans on one line don't overlap. −1 for what only waits. */
  readonly lane: number;
}

/** Blocks of prompts that begin alike (equal first node: one system prompt, or one session), as a place held them. */
export interface ResidencyRow {
  /** Number of the family, by first appearance. */
  readonly family: number;
  /** The first request that had it, and how many did. */
  readonly firstRequest: number;
  readonly requests: number;
  /** Blocks held at the end of each pixel column of the view; of the store, in memory and on SSD together. */
  readonly held: Float64Array;
  /** Blocks that came in the column: computed, or put by workers. */
  readonly stored: Float64Array;
  /** … restored from the store (of a worker), or read from it (of the store). */
  readonly fetched: Float64Array;
  /** … and that left for want of room. */
  readonly evicted: Float64Array;
}

/** What a timeline shows of one place between two times. */
export interface TimelineView {
  readonly place: SimPlace;
  readonly from: number;
  readonly to: number;
  /** Columns of `held` and its kin. */
  readonly columns: number;
  /** Of a worker, that touch the view, by lane; at most `MAX_SPANS`, the longest. */
  readonly spans: readonly RequestSpan[];
  readonly lanes: number;
  readonly spansLeftOut: number;
  /** All families together, and those that moved or held most, most first. */
  readonly total: ResidencyRow;
  readonly families: readonly ResidencyRow[];
  readonly familiesLeftOut: number;
  /** Blocks that the place has room for; of the store, in blocks of the main group. */
  readonly capacity: number;
  /** Milliseconds up to which movements were recorded: less than the simulation's end when the record was full. */
  readonly recordedTo: number;
}

/** One decision as the router explains it, and what would have come of another. */
export interface DecisionAccount {
  readonly row: RequestRow;
  /** With candidates and reasons; without its lease. Cost is in `costUnit`. */
  readonly decision: Omit<Decision, 'lease'>;
  readonly costUnit: 'blocks' | 'ms' | 'turns' | 'none';
  /** The request's way had it gone to the runner-up, everything before being equal: simulated, not estimated. Null without a runner-up. */
  readonly counterfactual: RequestRow | null;
  /** Tokens of a block, where it is told: with it a page can say how much of the credit was more than there was to compute. */
  readonly blockSize?: number;
}
