// Reconciles from what a recording has of the master's HTTP: a key list replaces residency where the stream was unbroken around it, by the
// same rule and the same code as live (design.md 6). A window opens with the recorder's `poll` line, before the first question; recordings
// that have none open it with the status, which is later and so refuses more.
import type { ReconcileToken } from '../cache/reconcile.js';
import type { SharedCache } from '../cache/shared-cache.js';
import type { RecordedKeys } from '../live/recording.js';

/** How reconciles ended. */
export interface ReconcileCounts {
  accepted: number;
  readonly refused: Record<string, number>;
}

interface Window {
  readonly token: ReconcileToken;
  /** Null until the first status of this window. */
  s0: bigint | null;
  /** Whole, once the list is. */
  list: readonly string[] | null;
}

export class RecordedReconciles {
  readonly #cache: SharedCache;
  readonly counts: ReconcileCounts = { accepted: 0, refused: {} };
  #window: Window | null = null;
  #polled = false;
  /** Pieces of a list that is not whole yet. */
  #pieces: string[] = [];
  /** The last list that was whole. */
  #last: readonly string[] | null = null;

  constructor(cache: SharedCache) {
    this.#cache = cache;
  }

  /** Whether a list is under way, which a break of the stream must void. */
  get open(): boolean {
    return this.#window !== null && this.#window.token.voided === null;
  }

  poll(): void {
    this.#polled = true;
    this.#begin();
  }

  status(body: string): void {
    const s0 = sequenceOf(body);
    const window = this.#window;
    if (window?.list != null) {
      if (s0 === window.s0) this.#settle(window);
      else this.#refuse(window.token.voided ?? 'status-moved');
    }
    if (s0 === null) {
      this.#window = null;
      return;
    }
    if (!this.#polled) this.#begin();
    if (this.#window !== null) this.#window.s0 ??= s0;
  }

  keys({ n, at, keys }: RecordedKeys): void {
    let list = this.#last;
    if (keys !== null) {
      if (at === 0) this.#pieces = [];
      // A piece is missing: the list is never whole.
      if (at === this.#pieces.length) for (const key of keys) this.#pieces.push(key);
      if (this.#pieces.length < n) return;
      list = this.#pieces;
      this.#pieces = [];
    } else if (n === 0) list = [];
    if (list?.length !== n) return;
    this.#last = list;
    const window = this.#window;
    if (window === null || window.s0 === null) return;
    window.list = list;
    this.received();
  }

  /** A message of the stream has been applied. */
  received(): void {
    const window = this.#window;
    if (window?.list == null) return;
    const { firstSequence, voided } = window.token;
    if (firstSequence !== null || voided !== null) this.#settle(window);
  }

  #begin(): void {
    this.#window = { token: this.#cache.beginReconcile(), s0: null, list: null };
  }

  #settle({ token, s0, list }: Window): void {
    this.#window = null;
    const { firstSequence } = token;
    const result = this.#cache.reconcile(token, list!, { s0: s0!, firstSequence });
    if (result.accepted) this.counts.accepted++;
    else this.#refuse(result.reason);
  }

  #refuse(reason: string): void {
    this.#window = null;
    this.counts.refused[reason] = (this.counts.refused[reason] ?? 0) + 1;
  }
}

/** The sequence that the master's status stands for; null where it says none. */
function sequenceOf(body: string): bigint | null {
  let status: { published_batches?: unknown; dropped_events?: unknown };
  try {
    status = JSON.parse(body);
  } catch {
    return null;
  }
  const { published_batches: published, dropped_events: dropped } = status ?? {};
  return Number.isSafeInteger(published) && Number.isSafeInteger(dropped)
    ? BigInt(published as number) + BigInt(dropped as number)
    : null;
}
