// Workers' messages into what the router knows: first the shared cache learns from the whole message, then the GPU index takes it, which
// may reject an unknown parent (design.md 7). The order matters twice: what the index refuses has taught all the same, and only afterwards
// may local hashes be made over in place (multimodal blocks). Whatever the wire brings is counted, never thrown.
import type { SharedCache } from '../cache/shared-cache.js';
import { sharedNumbers } from '../core/numbers.js';
import type { IndexedBlocks, IndexTier, PrefixIndexLike, StoreOutcome } from '../core/prefix-types.js';
import { WireError } from '../errors.js';
import type { NormalisedStored } from '../events/normaliser.js';
import { type BlocksStopped, routerBlocks } from '../events/router-blocks.js';
import type { Tier } from '../events/tiers.js';
import type { Source, WorkerEvents, WorkerMessage } from '../events/worker-events.js';
import type { WorkerId } from './worker-info.js';
import type { RankSlot, WorkerTable } from './workers.js';

/** How a message ended. */
export type WorkerMessageFate =
  | 'applied'
  | 'unreadable' //     nothing of it had any effect
  | 'unknown-worker' // no worker of that name was added
  | 'unknown-rank' //   the worker was added without that data-parallel rank
  | 'other-rank' //     it is of another rank than the stream that brought it
  | 'gpu-events-off' // use_kv_events is false
  | 'disposed'; //      the router has ended

/** What became of a worker's message. */
export interface WorkerMessageResult {
  readonly fate: WorkerMessageFate;
  /** Null where it was not read. */
  readonly sequence: bigint | null;
  readonly source: Source | null;
  /** Blocks that the shared cache learned, or knew already. */
  readonly learned: number;
  /** Blocks that the index took. */
  readonly stored: number;
  /** Blocks taken out of the index that it knew the rank to hold. */
  readonly removed: number;
  /** Events that could not be read, or whose blocks the index did not take whole. */
  readonly rejected: number;
  /** A removal may have been missed: have the rank's messages replayed, or call `rebuildWorker`. */
  readonly lostRemoval: boolean;
  /** What was wrong, for `unreadable`. */
  readonly detail: string | null;
}

/** What became of a decoded stored event. */
export interface DecodedResult {
  /** Blocks that the shared cache learned, or knew already. */
  readonly learned: number;
  readonly outcome: StoreOutcome | 'gpu-events-off';
}

/** Counts since the router was made. */
export interface GpuEventStats {
  /** Fates of messages. */
  readonly messages: Readonly<Record<string, number>>;
  readonly learnedBlocks: number;
  readonly storedBlocks: number;
  readonly removedBlocks: number;
  /** Stored events that the index did not take whole, by cause. */
  readonly notIndexed: Readonly<Record<string, number>>;
  /** Parts of the index that were emptied on demand. */
  readonly rebuilt: number;
}

/** What the messages go into. */
export interface GpuEventParts {
  readonly workers: WorkerTable;
  readonly events: WorkerEvents;
  readonly cache: SharedCache | null;
  readonly index: PrefixIndexLike;
  /** Tokens of a block of the index. */
  readonly blockSize: number;
  readonly imageTokenId: number | null;
  /** False: messages are not looked at. */
  readonly useKvEvents: boolean;
}

/** Most blocks that the index takes at once (core/prefix-types.ts). */
export const INDEX_EVENT_BLOCKS = 65_536;

/** Tiers of events as the index has them. */
export const TIERS: Readonly<Record<Tier, IndexTier>> = {
  device: 'device',
  host_pinned: 'host',
  disk: 'disk',
  external: 'disk',
};

type NotIndexed = BlocksStopped | 'unknown-parent' | 'no-room';

/** Takes workers' messages in. */
export class GpuEvents {
  readonly #parts: GpuEventParts;
  readonly #messages = new Map<WorkerMessageFate, number>();
  readonly #notIndexed = new Map<NotIndexed, number>();
  #learned = 0;
  #stored = 0;
  #removed = 0;
  #rebuilt = 0;

  constructor(parts: GpuEventParts) {
    this.#parts = parts;
  }

  /**
   * Takes one message in, as its three frames, which may be reused afterwards. `dpRank`: the rank whose stream brought it, where that is known; what
   * is of another one would stay when that stream is lost.
   */
  take(id: WorkerId, frames: readonly Uint8Array[], dpRank?: number): WorkerMessageResult {
    const { workers, events, useKvEvents } = this.#parts;
    if (!useKvEvents) return this.without('gpu-events-off');
    const worker = workers.infoOf(id);
    if (worker === undefined) return this.without('unknown-worker');
    let message: WorkerMessage;
    try {
      message = events.read(worker.id, frames);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      return this.without('unreadable', { lostRemoval: true, detail: error.message });
    }
    const { sequence, source } = message;
    if (dpRank !== undefined && source.dpRank !== dpRank) {
      const detail = `a message of rank ${source.dpRank} came over the stream of rank ${dpRank}`;
      return this.without('other-rank', { sequence, source, detail });
    }
    const slot = workers.rankOf(worker.id, source.dpRank);
    if (slot === undefined) return this.without('unknown-rank', { sequence, source });
    return this.#apply(slot, message);
  }

  /**
   * Takes one decoded stored event of a rank in: what a simulation and an event plane have in place of messages. `teaches` false: it is for the
   * index alone.
   */
  takeStored(slot: RankSlot, tier: IndexTier, blocks: IndexedBlocks, teaches = true): DecodedResult {
    const { cache, index, useKvEvents } = this.#parts;
    if (!useKvEvents) return { learned: 0, outcome: 'gpu-events-off' };
    const learned = teaches && tier === 'device' ? (cache?.observeBlocks(slot.source, blocks).blocks ?? 0) : 0;
    const outcome = index.stored(slot.rank, tier, blocks);
    this.#learned += learned;
    if (outcome === 'stored') this.#stored += blocks.count;
    else tally(this.#notIndexed, outcome);
    return { learned, outcome };
  }

  /** The rank contradicts itself about decoded blocks: what the shared cache learned about them earns no credit any more. Whether it took that. */
  takeContradicted(slot: RankSlot, lows: Uint32Array, at: number, count: number): boolean {
    const { cache, useKvEvents } = this.#parts;
    return useKvEvents && (cache?.distrustBlocks(slot.source, { lows, at, count }) ?? false);
  }

  /** Takes one decoded removal in, likewise; how many of the blocks the rank was known to hold there. */
  takeRemoved(slot: RankSlot, tier: IndexTier, lows: Uint32Array, at: number, count: number): number {
    if (!this.#parts.useKvEvents) return 0;
    const known = this.#remove(slot.rank, tier, lows, at, count);
    this.#removed += known;
    return known;
  }

  /** Everything of the rank left it: one decoded clear, likewise. */
  takeCleared({ rank }: RankSlot): void {
    if (this.#parts.useKvEvents) this.#parts.index.clear(rank);
  }

  /** Counts a message that has no effect, and is its answer. */
  without(fate: WorkerMessageFate, said: Partial<WorkerMessageResult> = {}): WorkerMessageResult {
    tally(this.#messages, fate);
    const nothing = { learned: 0, stored: 0, removed: 0, rejected: 0, lostRemoval: false };
    return { fate, sequence: null, source: null, ...nothing, detail: null, ...said };
  }

  /** Empties the index of a rank: what it holds is told anew, or not believed any more. */
  rebuild({ rank }: RankSlot): void {
    this.#rebuilt++;
    this.#parts.index.clear(rank);
  }

  stats(): GpuEventStats {
    return {
      messages: Object.fromEntries(this.#messages),
      learnedBlocks: this.#learned,
      storedBlocks: this.#stored,
      removedBlocks: this.#removed,
      notIndexed: Object.fromEntries(this.#notIndexed),
      rebuilt: this.#rebuilt,
    };
  }

  #apply({ rank }: RankSlot, message: WorkerMessage): WorkerMessageResult {
    const { cache, index } = this.#parts;
    const learned = cache?.observeMessage(message) ?? 0;
    let stored = 0;
    let removed = 0;
    let rejected = message.rejected.length;
    for (const event of message.events) {
      if (event.kind === 'stored') {
        const taken = this.#index(rank, event);
        stored += taken.blocks;
        if (!taken.whole) rejected++;
      } else if (event.kind === 'removed') {
        const numbers = event.event.place(sharedNumbers());
        const { hashesAt, blockCount } = event.event;
        removed += this.#remove(rank, TIERS[event.tier], numbers.lows, hashesAt, blockCount);
      } else if (event.kind === 'cleared') {
        index.clear(rank);
      }
    }
    this.#learned += learned;
    this.#stored += stored;
    this.#removed += removed;
    tally(this.#messages, 'applied');
    const { sequence, source, lostRemoval } = message;
    return { fate: 'applied', sequence, source, learned, stored, removed, rejected, lostRemoval, detail: null };
  }

  /** Takes blocks of any number out of the index; how many the rank was known to hold there. */
  #remove(rank: number, tier: IndexTier, lows: Uint32Array, at: number, count: number): number {
    let known = 0;
    for (let done = 0; done < count; done += INDEX_EVENT_BLOCKS) {
      const part = Math.min(INDEX_EVENT_BLOCKS, count - done);
      known += this.#parts.index.removed(rank, tier, lows, at + done, part);
    }
    return known;
  }

  /** Puts a stored event's blocks into the index; says how many, and whether those are all. */
  #index(rank: number, stored: NormalisedStored): { readonly blocks: number; readonly whole: boolean } {
    const { index, blockSize, imageTokenId } = this.#parts;
    const { event, tier, ineligible } = stored;
    const { numbers, hashesAt, count, stopped } = routerBlocks(stored, { blockSize, imageTokenId });
    if (stopped !== null) tally(this.#notIndexed, stopped);
    for (let done = 0; done < count; done += INDEX_EVENT_BLOCKS) {
      const at = hashesAt + done;
      const outcome = index.stored(rank, TIERS[tier], {
        lows: numbers.lows,
        locals: numbers.locals,
        at,
        count: Math.min(INDEX_EVENT_BLOCKS, count - done),
        hasParent: done > 0 || event.hasParent,
        parentLow: done > 0 ? numbers.lows[2 * at - 2]! : event.parentLow,
        parentHigh: done > 0 ? numbers.lows[2 * at - 1]! : event.parentHigh,
        eligible: ineligible === null,
      });
      if (outcome !== 'stored') {
        tally(this.#notIndexed, outcome);
        return { blocks: done, whole: false };
      }
    }
    return { blocks: count, whole: stopped === null };
  }
}

function tally<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
