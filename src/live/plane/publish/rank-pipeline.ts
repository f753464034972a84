// The way of one rank's events from the worker to the transport's queue: de-duplicated, coalesced, cut where no message could carry them, numbered from 1
// without a gap, kept by the local indexer, and queued. No clock and no socket: times are handed in.
import type { RouterEvent } from '../../../wire/envelope/types.js';
import { BatchQueue } from './batch.js';
import { Coalescer } from './coalesce.js';
import { type DedupStats, RefCounts } from './dedup.js';
import { blocksOf, type Draft, numbered } from './draft.js';
import { BATCH_CAPS, type BatchCaps, splitDraft } from './split.js';

/** Who keeps the events that went out; the local indexer. */
export interface EventKeeper {
  apply(event: RouterEvent): void;
}

export interface RankPipelineOptions {
  /** Milliseconds that an event may wait for its neighbours; 0 until the end of its native batch, which is the default. */
  readonly batchingTimeout?: number;
  /** Blocks whose references are counted. */
  readonly trackedBlocks?: number;
  /** What one message carries; asked each time, for a transport may be told less by another server. */
  readonly caps?: () => BatchCaps;
  readonly keeper?: EventKeeper | null;
}

/** Counts since it was made. */
export interface RankPipelineStats {
  readonly dedup: DedupStats;
  readonly eventsIn: number;
  readonly eventsOut: number;
  readonly blocksOut: number;
  /** Events that went into the one before them. */
  readonly merged: number;
  /** Events of which de-duplication left nothing. */
  readonly deduplicated: number;
  readonly lastEventId: bigint;
  /** What waits for the transport, and what never went out since too much did. */
  readonly queuedEvents: number;
  readonly queuedBlocks: number;
  readonly droppedEvents: number;
}

/** One rank's. */
export class RankPipeline {
  readonly queue: BatchQueue;
  readonly #counts: RefCounts;
  readonly #coalescer: Coalescer;
  readonly #caps: () => BatchCaps;
  readonly #keeper: EventKeeper | null;
  #lastEventId = 0n;
  #eventsIn = 0;
  #eventsOut = 0;
  #blocksOut = 0;
  #deduplicated = 0;

  /** @throws ConfigError `batching-timeout`, `publish-tracked` */
  constructor({ batchingTimeout, trackedBlocks, caps = () => BATCH_CAPS, keeper = null }: RankPipelineOptions = {}) {
    this.queue = new BatchQueue(caps);
    this.#counts = new RefCounts(trackedBlocks);
    this.#coalescer = new Coalescer(batchingTimeout);
    this.#caps = caps;
    this.#keeper = keeper;
  }

  get lastEventId(): bigint {
    return this.#lastEventId;
  }
  /** When `tick` has something to do; null: it has not. */
  get dueAt(): number | null {
    return this.#coalescer.dueAt;
  }

  /** Takes the events of one native batch in. */
  batch(drafts: readonly Draft[], now: number): void {
    const out: Draft[] = [];
    for (const draft of drafts) {
      this.#eventsIn++;
      const passed = this.#counts.pass(draft);
      if (passed === null) this.#deduplicated++;
      else this.#coalescer.add(passed, now, out);
    }
    this.#coalescer.endOfBatch(out);
    this.#emit(out);
  }

  /** What has waited for long enough goes on. */
  tick(now: number): void {
    const out: Draft[] = [];
    this.#coalescer.tick(now, out);
    this.#emit(out);
  }

  /** What is pending goes on. */
  flush(): void {
    const out: Draft[] = [];
    this.#coalescer.flush(out);
    this.#emit(out);
  }

  stats(): RankPipelineStats {
    return {
      dedup: this.#counts.stats(),
      eventsIn: this.#eventsIn,
      eventsOut: this.#eventsOut,
      blocksOut: this.#blocksOut,
      merged: this.#coalescer.merged,
      deduplicated: this.#deduplicated,
      lastEventId: this.#lastEventId,
      queuedEvents: this.queue.events,
      queuedBlocks: this.queue.blocks,
      droppedEvents: this.queue.dropped,
    };
  }

  #emit(drafts: readonly Draft[]): void {
    for (const draft of drafts) {
      for (const piece of splitDraft(draft, this.#caps())) {
        const event = numbered(piece, ++this.#lastEventId);
        this.#eventsOut++;
        this.#blocksOut += blocksOf(event.data);
        this.#keeper?.apply(event);
        this.queue.push(event);
      }
    }
  }
}
