// Reconcile: residency from the master's key list instead of from events. The list has no sequence, so it counts only together with an
// unbroken stretch of the stream around it (design.md 6): what was received since `begin` is kept and applied again on top.
import { STAGED_BYTES } from '../core/core.js';

/**
 * Most object events of ours kept while a reconcile is open. They and the list become resident in one step, which is to stay below 20 ms on a machine
 * 1.5 times slower than that of the benchmarks: there these take up to 3 ms, 100,000 keys of two ranks 8 ms with nothing in the caches. A stream of
 * 10,000 events a second fills the buffer in 3 s; a list of that length takes less than one.
 */
export const RECONCILE_EVENTS = 32_768;
/** Events a piece of the buffer holds; a message has at most as many. */
const PIECE_EVENTS = 4096;

/** A reconcile under way. Made by `SharedCache.beginReconcile`; good for one `reconcile` call. */
export class ReconcileToken {
  /** Events as the core staged them when they were applied: a fifteenth of their messages, and read already. All pieces but the last are full. */
  #pieces: Uint8Array[] = [];
  #events = 0;
  #first: bigint | null = null;
  #void: string | null = null;

  /** Why the reconcile can't count any more, null while it can. */
  get voided(): string | null {
    return this.#void;
  }
  /** Sequence of the first message received since the beginning. */
  get firstSequence(): bigint | null {
    return this.#first;
  }
  /** Object events kept. */
  get events(): number {
    return this.#events;
  }

  /** Keeps a copy of what a message asked for, as the core has staged it, when it was applied. */
  keep(sequence: bigint, staged: Uint8Array): void {
    if (this.#void !== null) return;
    this.#first ??= sequence;
    const events = staged.length / STAGED_BYTES;
    if (this.#events + events > RECONCILE_EVENTS) {
      this.voidFor('buffer-overflow');
      return;
    }
    for (let from = 0; from < events; ) {
      const used = this.#events % PIECE_EVENTS;
      if (used === 0) this.#pieces.push(new Uint8Array(PIECE_EVENTS * STAGED_BYTES));
      const to = Math.min(events, from + PIECE_EVENTS - used);
      this.#pieces.at(-1)!.set(staged.subarray(from * STAGED_BYTES, to * STAGED_BYTES), used * STAGED_BYTES);
      this.#events += to - from;
      from = to;
    }
  }

  /** What was kept, in its order. */
  *kept(): Generator<Uint8Array> {
    for (const [i, piece] of this.#pieces.entries())
      yield piece.subarray(0, Math.min(PIECE_EVENTS, this.#events - i * PIECE_EVENTS) * STAGED_BYTES);
  }

  /** The stretch broke: nothing buffered is of use. */
  voidFor(reason: string): void {
    this.#void ??= reason;
    this.#pieces = [];
    this.#events = 0;
  }
}

/** What the master said around its key list. */
export interface ReconcileWatermark {
  /** `published_batches + dropped_events` of `/kv_events/status`, read after `beginReconcile` and before the key list. */
  readonly s0: bigint | number;
  /**
   * Sequence of the first message received since `beginReconcile`; null when nothing was received and the status, read again after the
   * list, still said s0.
   */
  readonly firstSequence: bigint | null;
}

/** Why the watermark does not prove that no message fell between list and stream; null when it does. */
export function watermarkFault(received: bigint | null, { s0, firstSequence }: ReconcileWatermark): string | null {
  if (received !== firstSequence) return 'first-sequence-disagrees';
  if (received !== null && received > BigInt(s0) + 1n) return 'slow-joiner';
  return null;
}
