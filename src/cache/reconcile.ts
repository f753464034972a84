// Reconcile: residency from the master's key list instead of from events. The list has no sequence, so it counts only together with an
// unbroken stretch of the stream around it (design.md 6): what was received since `begin` is kept and applied again on top.
import type { ReconcileObject } from '../core/core.js';

/** Most messages kept while a reconcile is open. */
export const RECONCILE_MESSAGES = 4096;
/** Most bytes of their payloads. */
export const RECONCILE_BYTES = 64 << 20;

/** A reconcile under way. Made by `SharedCache.beginReconcile`; good for one `reconcile` call. */
export class ReconcileToken {
  readonly #payloads: Uint8Array[] = [];
  #bytes = 0;
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
  get payloads(): readonly Uint8Array[] {
    return this.#payloads;
  }

  /** Keeps a copy of a message that was applied. */
  keep(sequence: bigint, payload: Uint8Array): void {
    if (this.#void !== null) return;
    this.#first ??= sequence;
    this.#bytes += payload.length;
    if (this.#payloads.length === RECONCILE_MESSAGES || this.#bytes > RECONCILE_BYTES) this.voidFor('buffer-overflow');
    else this.#payloads.push(payload.slice());
  }

  /** The stretch broke: nothing buffered is of use. */
  voidFor(reason: string): void {
    this.#void ??= reason;
    this.#payloads.length = 0;
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

const DIGEST = /^[0-9a-f]{64}$/;

/** The keys that are objects of the contract, each once, sorted by digest; others are counted. `prefixes`: prefix → id. */
export function objectsOfKeys(
  keys: Iterable<string>,
  prefixes: ReadonlyMap<string, number>,
): { objects: ReconcileObject[]; foreign: number; malformed: number } {
  const objects: ReconcileObject[] = [];
  let foreign = 0;
  let malformed = 0;
  for (const key of keys) {
    const at = key.lastIndexOf('@');
    const prefix = at < 0 ? undefined : prefixes.get(key.slice(0, at));
    const digest = key.slice(at + 1);
    if (prefix === undefined) foreign++;
    else if (DIGEST.test(digest)) objects.push({ digest, prefix });
    else malformed++;
  }
  objects.sort((a, b) => (a.digest < b.digest ? -1 : a.digest > b.digest ? 1 : a.prefix - b.prefix));
  const once = objects.filter(({ digest, prefix }, i) => {
    const before = objects[i - 1];
    return before?.digest !== digest || before.prefix !== prefix;
  });
  return { objects: once, foreign, malformed };
}
