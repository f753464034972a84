// What a simulation is told and what it reports. Every quantity with its unit; every default is a plain guess for a 70B-class model on
// eight-GPU workers, to be replaced by one's own numbers. A simulated part is simulated: the router and its core are the real ones.
import type { BuiltInPolicy } from '../router/roles.js';
import type { RouterSettingsInput } from '../router/settings.js';

/** The simulated engines. */
export interface WorkerModel {
  /** How many. Default 8. */
  readonly count: number;
  /** GPU KV blocks each, of `blockSize` tokens. Default 65,536. */
  readonly gpuBlocks: number;
  /** Prompt tokens computed a second by a worker that does nothing else. Default 20,000. */
  readonly prefillTokensPerSecond: number;
  /** Most prompt tokens computed in one step (chunked prefill). Default 2,048. */
  readonly chunkTokens: number;
  /** Milliseconds of a step that decodes one request … Default 20. */
  readonly decodeStep: number;
  /** … and how much longer it is for each further one. Default 0.2. */
  readonly decodeStepPerRequest: number;
  /** Requests that run at once; later ones wait, first come first served. Default 64. */
  readonly batch: number;
}

/** The simulated shared store. Capacities of 0 mean that there is none. */
export interface StoreModel {
  /** Bytes of memory, of all its nodes together. Default 2e12. */
  readonly dramBytes: number;
  /** Bytes of SSD, to which memory spills; 0 for none. Default 0. */
  readonly ssdBytes: number;
  /** Bytes a second that one worker can fetch. Default 25e9. */
  readonly linkBytesPerSecond: number;
  /** Bytes a second that all workers together can fetch. Default 100e9. */
  readonly totalBytesPerSecond: number;
  /** Bytes a second of the SSDs together. Default 20e9. */
  readonly ssdBytesPerSecond: number;
  /** Milliseconds before the first byte of a fetch. Default 2. */
  readonly latency: number;
}

/** One KV-cache group of the model. */
export interface GroupModel {
  readonly kind: 'full_attention' | 'sliding_window' | 'mamba';
  /** Tokens; only of a sliding window. */
  readonly window: number | null;
  /** Bytes of one block of this group, of all ranks together. */
  readonly bytesPerBlock: number;
}

/** How events reach the router. */
export interface EventModel {
  /** Milliseconds from the fact to the router. Default 5. */
  readonly delay: number;
  /** Up to so many milliseconds more, at random: where it exceeds the time between messages, they overtake each other. Default 0. */
  readonly jitter: number;
  /** Part of the messages that are lost, 0 … 1. Default 0. */
  readonly loss: number;
  /** Milliseconds after which a gap in the store's stream is mended by a reconcile. Default 1,000. */
  readonly reconcileAfter: number;
}

/** A worker or the store starts anew, empty. */
export interface Restart {
  /** Milliseconds of the trace's clock. */
  readonly at: number;
  /** Which worker; null for the store. */
  readonly worker: number | null;
}

/** One simulation. */
export interface SimConfig {
  readonly policy: BuiltInPolicy;
  /** Settings of the router; a shared cache is set where the store holds something. */
  readonly settings: RouterSettingsInput;
  /** Tokens of a block. Default 16; divides 512. */
  readonly blockSize: number;
  readonly workers: WorkerModel;
  readonly store: StoreModel;
  /** Default one full-attention group of 5.24 MB a block (70B, 80 layers, 8 KV heads, 16 tokens, 16 bit). */
  readonly groups: readonly GroupModel[];
  /** Ranks whose objects make a block complete (tensor parallel): the prefixes of each group. Default 2. */
  readonly ranks: number;
  readonly events: EventModel;
  readonly restarts: readonly Restart[];
  /** Time is that of the trace divided by it: 2 is twice the load. Default 1. */
  readonly speedup: number;
  /** Seed of everything that is drawn. Default 1. */
  readonly seed: number;
  /** Bytes of the router's GPU index. Default 64 MiB. */
  readonly indexBytes: number;
  /** Edges that the router's core keeps. Default 262,144. */
  readonly coreEdges: number;
  /** Feed the router with the bytes of real messages, and engine hashes that are really SHA-256. Slow; for checking. Default false. */
  readonly wire: boolean;
}

/** Prompt blocks by where they came from; `full` = all full blocks of the prompts = gpu + dram + ssd + computed. */
export interface TierBlocks {
  readonly full: number;
  readonly gpu: number;
  readonly dram: number;
  readonly ssd: number;
  readonly computed: number;
}

/** Milliseconds. Null where nothing was measured. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly mean: number | null;
}

/** How the router's shared credit compares with what the workers could really restore at that moment. */
export interface CreditReport {
  /** Requests that began at a worker with shared blocks credited; of those that a restart sent twice, each time. */
  readonly credited: number;
  /** … of which exactly what was restorable. */
  readonly right: number;
  /** Less than was restorable; those without any credit included. */
  readonly short: number;
  /** More than was restorable when the worker looked: it had left the store, or the router had not heard. */
  readonly stale: number;
  readonly shortBlocks: number;
  readonly staleBlocks: number;
  /** Decisions without shared credit, by reason. */
  readonly zero: Readonly<Record<string, number>>;
}

/** What one simulation found. Sums are exact whole numbers where they count. */
export interface SimReport {
  readonly policy: string;
  readonly requests: number;
  readonly completed: number;
  /** Larger than a worker's GPU, and so served by none; counted nowhere else. The others are all completed. */
  readonly refused: number;
  readonly tokens: {
    readonly prompt: number;
    readonly cached: number;
    readonly computed: number;
    readonly generated: number;
  };
  readonly blocks: TierBlocks;
  /** What the best choice could have hit: the best worker at each decision, or the store. Workers look later, so where requests wait hits may exceed it. */
  readonly reachableBlocks: number;
  /** What a single cache without limit would hit, requests being served as they arrive. */
  readonly ceilingBlocks: number;
  readonly ttft: Percentiles;
  /** From arrival to the last token. */
  readonly latency: Percentiles;
  /** Milliseconds from the first arrival to the last completion. */
  readonly duration: number;
  /** Most loaded worker's share of busy time over the mean. */
  readonly imbalance: number;
  /** Requests, busy milliseconds, and blocks that were found on its GPU, a worker. */
  readonly perWorker: readonly { readonly requests: number; readonly busy: number; readonly hitBlocks: number }[];
  readonly store: {
    readonly fetchedBytes: number;
    /** Bytes a second, in the busiest whole second of the clock. */
    readonly peakFetch: number;
    readonly putBytes: number;
    readonly dramPeakBytes: number;
    readonly ssdPeakBytes: number;
    /** Blocks of groups that are gone for want of room, from memory and SSD. */
    readonly evictedBlocks: number;
  };
  readonly credit: CreditReport;
  /** What the router itself had to forget at its caps, and messages lost on the way to it. */
  readonly router: {
    readonly indexEvictions: number;
    readonly edgeEvictions: number;
    readonly digestEvictions: number;
    readonly clears: number;
    readonly messages: number;
    readonly lostMessages: number;
  };
}

/** Told now and then. */
export interface SimProgress {
  /** Requests read so far. */
  readonly requests: number;
  /** Milliseconds of the trace's clock. */
  readonly at: number;
}
