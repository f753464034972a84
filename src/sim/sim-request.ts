// A request on its way through the simulation.
import type { Lease } from '../router/leases.js';
import type { TraceRequest } from './traces/types.js';

/** Where it stands. */
export const WAITING = 0;
export const FETCHING = 1;
export const PREFILLING = 2;
export const DECODING = 3;
export const ENDED = 4;

export class SimRequest {
  /** Its number in the simulation, from 0: the order in which requests were read. */
  readonly place: number;
  /** Trace's place. */
  readonly index: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Milliseconds after the session's previous request, in the simulation's time; null where only `at` counts. */
  readonly delay: number | null;
  /** Its place in the chain of its session, or null. */
  readonly sessionId: string | null;
  /** When it reached the router, or will. */
  at: number;
  endedAt = 0;
  /** The session's next request, where that waits for this one. */
  follower: SimRequest | null = null;

  /** Nodes of its full blocks; emptied at its end. */
  path: Int32Array;
  readonly fullBlocks: number;
  /** Blocks that may be hit: those before the last token. */
  readonly usableBlocks: number;

  state = WAITING;
  lease: Lease | null = null;
  /** Where the router's shared credit ended, in blocks of the prompt; 0 without. */
  creditedEnd = 0;
  /** Blocks that the router believed the worker to hold. */
  believedLocal = 0;

  // As the worker found and made it.
  gpuBlocks = 0;
  dramBlocks = 0;
  ssdBlocks = 0;
  /** Prompt tokens that are there, found, restored or computed. */
  done = 0;
  /** Prompt tokens of the step that runs. */
  chunk = 0;
  /** Blocks of the path that it holds. */
  held = 0;
  /** Blocks that it has besides, counted only. */
  own = 0;
  generated = 0;
  /** Output tokens that the lease was told of. */
  reported = 0;
  firstTokenAt = 0;

  /**
   * @param at when it is due, by its own time
   * @param delay in the simulation's time
   */
  constructor(
    { index, inputTokens, outputTokens, sessionId }: TraceRequest,
    {
      place,
      at,
      delay,
      path,
      blockSize,
    }: Pick<SimRequest, 'place' | 'at' | 'delay' | 'path'> & { readonly blockSize: number },
  ) {
    this.place = place;
    this.index = index;
    this.inputTokens = inputTokens;
    this.outputTokens = outputTokens;
    this.sessionId = sessionId;
    this.at = at;
    this.delay = delay;
    this.path = path;
    this.fullBlocks = Math.floor(inputTokens / blockSize);
    this.usableBlocks = Math.floor((inputTokens - 1) / blockSize);
  }

  /** Blocks that were found anywhere. */
  get hitBlocks(): number {
    return this.gpuBlocks + this.dramBlocks + this.ssdBlocks;
  }

  /** Served, or refused. */
  get ended(): boolean {
    return this.state === ENDED;
  }

  /** GPU blocks for its prompt and what it generates; the last token's keys and values are never needed. */
  blocksNeeded(blockSize: number): number {
    return Math.ceil((this.inputTokens + Math.max(0, this.outputTokens - 1)) / blockSize);
  }

  /** Its worker is gone: it starts anew. */
  reset(): void {
    this.state = WAITING;
    this.lease = null;
    this.gpuBlocks = 0;
    this.dramBlocks = 0;
    this.ssdBlocks = 0;
    this.done = 0;
    this.chunk = 0;
    this.held = 0;
    this.own = 0;
    this.generated = 0;
    this.reported = 0;
  }
}
