// A router of one worker that listens to a master over real sockets, and what tests ask of the two: what is credited, and whether that much
// could be restored.
import { type LiveOptions, LiveStreams } from '../../src/live/live-streams.js';
import type { StoreStreamStatus } from '../../src/live/store-status.js';
import type { RouterOptions } from '../../src/router/router-options.js';
import { until } from './fleet-worker.js';
import type { ContractShape, Prompt } from './messages.js';
import { RouterPool } from './router-pool.js';

/** Where a master listens. */
export interface MasterPlace {
  readonly eventsEndpoint: string;
  readonly httpUrl: string;
}

export interface LivePoolOptions {
  readonly keeper?: NonNullable<LiveOptions['store']>['keeper'];
  readonly http?: NonNullable<LiveOptions['store']>['http'];
  /** False: the master's HTTP is not configured. */
  readonly withHttp?: boolean;
  readonly shape?: ContractShape;
  readonly router?: RouterOptions;
  readonly log?: LiveOptions['log'];
}

/** The router, its pool and its streams. */
export class LivePool {
  private constructor(
    readonly pool: RouterPool,
    readonly live: LiveStreams,
  ) {}

  static async open(masters: MasterPlace | readonly MasterPlace[], options: LivePoolOptions = {}): Promise<LivePool> {
    const { keeper, http, withHttp = true, shape, router = {}, log } = options;
    const pool = await RouterPool.shared(1, router, shape);
    const live = LiveStreams.open(pool.router, {
      store: {
        masters: [masters].flat().map(({ eventsEndpoint, httpUrl }) => ({
          events: eventsEndpoint,
          http: withHttp ? httpUrl : null,
        })),
        ...(keeper === undefined ? {} : { keeper }),
        ...(http === undefined ? {} : { http }),
      },
      ...(log === undefined ? {} : { log }),
    });
    return new LivePool(pool, live);
  }

  get store(): StoreStreamStatus {
    return this.live.status().store!;
  }

  /** A prompt whose hashes the worker has announced, and which it does not hold any more. */
  learned(name: number, blocks: number): Prompt {
    const prompt = this.pool.prompt(name, blocks);
    this.pool.announce(0, prompt);
    this.pool.evict(0, prompt);
    return prompt;
  }

  keys(prompt: Prompt): string[] {
    return prompt.keys(this.pool.contract);
  }

  /** Blocks of the store that a request for the prompt counts on. */
  credit(prompt: Prompt): number {
    const { blocks, lease } = this.pool.route(prompt);
    lease.cancel(0);
    return blocks.shared;
  }

  /** Blocks that could be restored, given the keys that are there. */
  restorable(prompt: Prompt, truth: ReadonlySet<string>): number {
    const { groups } = this.pool.contract;
    const perBlock = this.keys(prompt).length / prompt.blocks;
    if (groups.length !== 1) throw new Error('one full-attention group only');
    const keys = this.keys(prompt);
    let blocks = 0;
    while (
      blocks < prompt.blocks &&
      keys.slice(blocks * perBlock, (blocks + 1) * perBlock).every((key) => truth.has(key))
    )
      blocks++;
    return blocks;
  }

  /** Waits until a reconcile has been accepted that began after now. */
  async reconciled(): Promise<void> {
    const now = performance.now();
    await until('a reconcile', () => {
      const { lastReconcile } = this.store;
      return lastReconcile !== null && lastReconcile.age < performance.now() - now;
    });
  }

  async credits(prompt: Prompt, blocks: number): Promise<void> {
    await until(`${blocks} blocks of credit`, () => this.credit(prompt) === blocks);
  }

  async close(): Promise<void> {
    await this.live.close();
    this.pool.router.dispose();
  }
}
