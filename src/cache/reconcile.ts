// Reconcile: residency from the master's key list instead of from events. The list has no sequence, so it counts only together with an
// unbroken stretch of the stream around it (design.md 6): what was received since `begin` is kept and applied again on top.
import { STAGED_BYTES } from '../core/core.js';

/**
 * Most object events of ours kept while a reconcile is open. They and the list become resident in one step, which is to stay below 20 ms on a machine
 * 1.5 times slower than that of the benchmarks: there these take up to 3 ms, 100,000 keys of two ranks 8 ms with nothing in the caches. A stream of
 * 10,000 events a second fills the buffer in 3 s; a list of that length takes less than one.
 */
export const RECONCILE_EVENTS = 32_768;
/** Most messages, those without events of ours among them: more than a master sends while its list is read. */
export const RECONCILE_MESSAGES = 1_048_576;
/** Events a piece of the buffer holds; a message has at most as many. */
const PIECE_EVENTS = 4096;

/** Most events of messages older than the list that are looked at: those that were under way when the counters were read. */
const MOST_LISTED_EVENTS = 4096;
// A staged event (assembly/objects.ts): its object is all that stands before its kind.
const KIND_AT = 34;
const REMOVED = 2;
const CLEARED = 3;

/** A reconcile under way. Made by `SharedCache.beginReconcile`; good for one `reconcile` call. */
export class ReconcileToken {
  /** Events as the core staged them when they were applied: a fifteenth of their messages, and read already. All pieces but the last are full. */
  #pieces: Uint8Array[] = [];
  #events = 0;
  /** Of each message, the events kept up to its end. Their sequences are contiguous from the first one's on: a gap voids. */
  readonly #ends: number[] = [];
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
    if (this.#events + events > RECONCILE_EVENTS || this.#ends.length === RECONCILE_MESSAGES) {
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
    this.#ends.push(this.#events);
  }

  /** What was kept of the messages behind sequence `s0`, in its order. */
  *keptBehind(s0: bigint): Generator<Uint8Array> {
    const skip = this.#upTo(s0);
    for (const [i, piece] of this.#pieces.entries()) {
      const first = Math.max(0, skip - i * PIECE_EVENTS);
      const end = Math.min(PIECE_EVENTS, this.#events - i * PIECE_EVENTS);
      if (first < end) yield piece.subarray(first * STAGED_BYTES, end * STAGED_BYTES);
    }
  }

  /**
   * What the messages up to `s0` take from a list that was read after s0. The list has all that they say, and what has happened since, so what they
   * store must not come back. Yet the master's counters run ahead of its sequence where a send failed (spec/mooncake-events.md 2), and
   * then some of these messages are younger than the list: so what they remove, and do not store again, is taken out. Null where that can't
   * be told cheaply: they clear everything, or they are many.
   */
  removalsUpTo(s0: bigint): Uint8Array | null {
    const events = this.#upTo(s0);
    if (events > MOST_LISTED_EVENTS) return null;
    const said = new Set<string>();
    const removals = new Uint8Array(events * STAGED_BYTES);
    let bytes = 0;
    for (let i = events - 1; i >= 0; i--) {
      const at = (i % PIECE_EVENTS) * STAGED_BYTES;
      const event = this.#pieces[Math.floor(i / PIECE_EVENTS)]!.subarray(at, at + STAGED_BYTES);
      const kind = event[KIND_AT]!;
      if (kind === CLEARED) return null;
      const object = String.fromCharCode(...event.subarray(0, KIND_AT));
      if (said.has(object)) continue;
      said.add(object);
      if (kind !== REMOVED) continue;
      removals.set(event, bytes);
      bytes += STAGED_BYTES;
    }
    return removals.subarray(0, bytes);
  }

  /** Events kept of the messages up to sequence `s0`. */
  #upTo(s0: bigint): number {
    if (this.#first === null || s0 < this.#first) return 0;
    const messages = Number(s0 - this.#first) + 1;
    return this.#ends[Math.min(messages, this.#ends.length) - 1] ?? 0;
  }

  /** The stretch broke: nothing buffered is of use. */
  voidFor(reason: string): void {
    this.#void ??= reason;
    this.#pieces = [];
    this.#ends.length = 0;
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
