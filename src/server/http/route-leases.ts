// Leases of decisions that somebody else carries out (`POST /route`): kept here by name, since the router keeps none alive, until they are reported
// ended or have not been heard of for too long. Their number is bounded.
import { randomBytes } from 'node:crypto';
import type { Lease } from '../../router/leases.js';
import type { Caller } from './auth.js';
import { ApiError } from './errors.js';

/** Most leases that are kept at once. */
const MAX_LEASES = 65_536;
/** How often is looked for leases that have expired. */
const LOOK_EVERY_MS = 1000;

/** What can be reported of a lease. */
export const LEASE_REPORTS = ['admitted', 'prefilled', 'progress', 'complete', 'fail', 'cancel'] as const;
export type LeaseReport = (typeof LEASE_REPORTS)[number];

interface Kept {
  readonly lease: Lease;
  /** Who opened it. */
  readonly owner: string;
  expires: number;
}

export class RouteLeases {
  readonly #kept = new Map<string, Kept>();
  readonly #lifetime: number;
  #timer: ReturnType<typeof setInterval> | null = null;

  /** @param lifetime milliseconds since a lease was heard of last */
  constructor(lifetime: number) {
    this.#lifetime = lifetime;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** @throws ApiError 503 `too-many-leases` */
  refuseFull(): void {
    if (this.#kept.size < MAX_LEASES) return;
    throw new ApiError(503, 'too-many-leases', `${MAX_LEASES} leases are open; end some, or ask without a lease.`);
  }

  /** Keeps a lease for whoever opened it. Returns its name, which nobody can guess. */
  keep(lease: Lease, owner: Caller): string {
    const id = `mr-${randomBytes(16).toString('hex')}`;
    this.#kept.set(id, { lease, owner: owner.id, expires: performance.now() + this.#lifetime });
    this.#timer ??= unreferenced(setInterval(() => this.#expire(performance.now()), LOOK_EVERY_MS));
    return id;
  }

  /**
   * A report, from whoever opened the lease or from an administrator. That a worker failed is believed of administrators alone: otherwise any client
   * could have workers passed over. @throws ApiError 404 `unknown-lease`
   */
  report(
    id: string,
    what: LeaseReport,
    numbers: { readonly generated: number; readonly cached: number | null },
    caller: Caller,
  ): void {
    const kept = this.#kept.get(id);
    if (kept === undefined || (kept.owner !== caller.id && !caller.isAdmin)) {
      throw new ApiError(404, 'unknown-lease', 'there is no such lease; it has ended, or expired.');
    }
    const { lease } = kept;
    const now = performance.now();
    kept.expires = now + this.#lifetime;
    if (numbers.generated > 0) lease.progress(numbers.generated, now);
    if (what === 'admitted') lease.admitted(now);
    else if (what === 'prefilled') lease.prefilled(now);
    else if (what === 'complete') lease.complete(now, { cachedTokens: numbers.cached });
    else if (what === 'fail' && caller.isAdmin) lease.fail(now);
    else if (what === 'fail' || what === 'cancel') lease.cancel(now);
    if (lease.outcome !== null) this.#forget(id);
  }

  /** Who asked is not heard of any more: its request counts as gone. */
  #expire(now: number): void {
    for (const [id, { lease, expires }] of this.#kept) {
      if (expires > now) continue;
      lease.cancel(now);
      this.#forget(id);
    }
  }

  #forget(id: string): void {
    this.#kept.delete(id);
    if (this.#kept.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

/** A timer for which no process stays up; browsers' timers are numbers and need nothing. */
function unreferenced<T>(timer: T): T {
  (timer as { unref?: () => void }).unref?.();
  return timer;
}
