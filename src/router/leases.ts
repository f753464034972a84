// Leases: a routing decision opens one, and what its caller reports through it feeds the rank's load (design.md 7). Both sides hold each
// other weakly. The table knows a lease only as its load share, which it gets back from a finalization registry when the caller drops the
// lease without ending it; the lease knows its table only by a link that the collector, or `dispose`, may empty. So neither a forgotten
// request nor a discarded router leaks. What a caller attaches lives on the lease alone: as long as the request, and no longer.
//
// Times are milliseconds from any origin, of one clock a table. Token counts of reports are totals so far, so that a report which comes
// twice or late does no harm. Engines' numbers are not trusted: one that can't be meant is ignored and counted.
import { shown } from '../contract/descriptor.js';
import { ConfigError, MoonrouteError } from '../errors.js';
import {
  DEFAULT_MAX_OPEN_LEASES,
  type LeaseHandlers,
  type LeaseObservation,
  type LeaseObserver,
  type LeaseOptions,
  type LeaseOutcome,
  type LeaseRequest,
  type LeaseStats,
  MAX_OPEN_LEASES,
} from './lease-types.js';
import { type LoadShare, type LoadTable, prefillTokensOf } from './load.js';

/** Longest prompt, and most generated tokens of a request. */
const MAX_TOKENS = 0xffff_ffff;

/** A way to an object that does not keep it alive, where the engine has weak references, and that can be cut. */
class Link<T extends WeakKey> {
  #target: WeakRef<T> | { deref(): T | undefined } | null;

  constructor(target: T) {
    this.#target = typeof WeakRef === 'function' ? new WeakRef(target) : { deref: () => target };
  }

  /** The target, undefined when it is gone. */
  follow(): T | undefined {
    return this.#target?.deref();
  }

  cut(): void {
    this.#target = null;
  }
}

type Count = Exclude<keyof LeaseStats, 'detectsAbandoned'>;

/** The table's side of its leases. */
class Ledger {
  readonly link: Link<Ledger>;
  readonly counts: Record<Count, number> = {
    open: 0,
    opened: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    abandoned: 0,
    untracked: 0,
    late: 0,
    malformed: 0,
    orphaned: 0,
    observerFaults: 0,
  };
  /** What it is told at a lease's collection is the lease's share, which does not know the lease. */
  readonly registry: FinalizationRegistry<LoadShare> | null;
  readonly #observer: LeaseObserver | null;

  constructor(observer: LeaseObserver | null) {
    const link = new Link<Ledger>(this);
    this.link = link;
    this.#observer = observer;
    this.registry =
      typeof FinalizationRegistry === 'function'
        ? new FinalizationRegistry((share) => link.follow()?.close(share, 'abandoned'))
        : null;
  }

  track(lease: Lease, share: LoadShare): void {
    this.counts.opened++;
    this.counts.open++;
    this.registry?.register(lease, share, share);
  }

  close(share: LoadShare, how: LeaseOutcome | 'abandoned'): void {
    share.close();
    this.counts.open--;
    this.counts[how]++;
  }

  end(share: LoadShare, observation: LeaseObservation): void {
    this.registry?.unregister(share);
    this.close(share, observation.outcome);
    if (share.forgotten) {
      this.counts.orphaned++;
      return;
    }
    try {
      this.#observer?.leaseEnded(observation);
    } catch {
      this.counts.observerFaults++;
    }
  }
}

/**
 * One request's claim on its rank. Whoever serves the request keeps it and reports through it; dropped without an end it counts as
 * abandoned. Once its router is gone it changes nothing there, but its handlers still hear of what is reported.
 */
export class Lease {
  /** Index of the rank in the load table. */
  readonly rank: number;
  readonly #request: Required<LeaseRequest>;
  readonly #link: Link<Ledger> | null;
  readonly #share: LoadShare | null;
  readonly #openedAt: number;
  readonly #handlers: LeaseHandlers[] = [];
  #admittedAt: number | null = null;
  #prefilledAt: number | null = null;
  #generatedTokens = 0;
  #outcome: LeaseOutcome | null = null;

  /** Made by `LeaseTable.open`. */
  constructor(request: Required<LeaseRequest>, now: number, link: Link<Ledger> | null, share: LoadShare | null) {
    this.rank = request.rank;
    this.#request = request;
    this.#openedAt = now;
    this.#link = link;
    this.#share = share;
  }

  /** How it ended, null while it is open. */
  get outcome(): LeaseOutcome | null {
    return this.#outcome;
  }

  /** Has the handlers called for what is reported from now on. They live as long as the lease. */
  attach(handlers: LeaseHandlers): void {
    this.#handlers.push(handlers);
  }

  /** The engine took the request out of its queue. The first report counts, and none after the first token. */
  admitted(now: number): void {
    if (this.#isLate() || this.#admittedAt !== null || this.#prefilledAt !== null) return;
    this.#admittedAt = now;
    this.#tell((handlers) => handlers.admitted?.(now));
  }

  /** Chunked prefill: the first `tokens` tokens of the prompt are in the rank's cache, found there, restored or computed. */
  prefillProgress(tokens: number): void {
    if (this.#isLate() || this.#isMalformed(tokens)) return;
    this.#share?.prefillLeft(prefillTokensOf(this.#request.promptTokens, tokens));
  }

  /** The whole prompt is prefilled: the first token is there. The first report counts. */
  prefilled(now: number): void {
    if (!this.#isLate()) this.#prefilled(now);
  }

  /** The request has `generatedTokens` tokens of output. The first one says that the prompt is prefilled. */
  progress(generatedTokens: number, now: number): void {
    if (this.#isLate() || this.#isMalformed(generatedTokens) || generatedTokens <= this.#generatedTokens) return;
    this.#generatedTokens = generatedTokens;
    const { promptTokens, blockSize } = this.#request;
    this.#share?.growTo(Math.ceil((promptTokens + generatedTokens) / blockSize));
    this.#prefilled(now);
    if (this.#outcome !== null) return; // a handler ended it
    this.#tell((handlers) => handlers.progress?.(generatedTokens, now));
  }

  /** The request was served. `cachedTokens` is what the engine said of its prompt. The first end counts. */
  complete(now: number, numbers?: { readonly cachedTokens?: number | null } | null): void {
    this.#end('completed', now, numbers?.cachedTokens ?? null);
  }

  /** The worker refused the request, or lost it. The first end counts. */
  fail(now: number): void {
    this.#end('failed', now, null);
  }

  /** The client went away, which is nobody's fault. The first end counts. */
  cancel(now: number): void {
    this.#end('cancelled', now, null);
  }

  #prefilled(now: number): void {
    if (this.#prefilledAt !== null) return;
    this.#prefilledAt = now;
    this.#share?.prefillLeft(0);
    this.#tell((handlers) => handlers.prefilled?.(now));
  }

  #end(outcome: LeaseOutcome, now: number, cachedTokens: number | null): void {
    if (this.#outcome !== null) return;
    this.#outcome = outcome;
    const usable = cachedTokens !== null && !this.#isMalformed(cachedTokens, this.#request.promptTokens);
    const observation = this.#observed(outcome, now, usable ? cachedTokens : null);
    if (this.#share !== null) this.#link?.follow()?.end(this.#share, observation);
    this.#tell((handlers) => handlers.ended?.(observation));
  }

  #observed(outcome: LeaseOutcome, now: number, cachedTokens: number | null): LeaseObservation {
    const { rank, promptTokens, localTokens, sharedTokens, prefix } = this.#request;
    return Object.freeze({
      outcome,
      rank,
      promptTokens,
      localTokens,
      sharedTokens,
      prefix,
      endedAt: now,
      queueTime: between(this.#openedAt, this.#admittedAt),
      prefillTime: between(this.#admittedAt, this.#prefilledAt),
      timeToFirstToken: between(this.#openedAt, this.#prefilledAt),
      totalTime: between(this.#openedAt, now),
      generatedTokens: this.#generatedTokens,
      cachedTokens,
    });
  }

  #isLate(): boolean {
    if (this.#outcome !== null) this.#count('late');
    return this.#outcome !== null;
  }

  #isMalformed(tokens: number, most = MAX_TOKENS): boolean {
    const malformed = !isWhole(tokens, 0, most);
    if (malformed) this.#count('malformed');
    return malformed;
  }

  #count(what: 'late' | 'malformed'): void {
    const ledger = this.#link?.follow();
    if (ledger !== undefined) ledger.counts[what]++;
  }

  #tell(call: (handlers: LeaseHandlers) => void): void {
    const faults: unknown[] = [];
    for (const handlers of [...this.#handlers]) {
      try {
        call(handlers);
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (faults.length > 0) throw faults[0];
  }
}

/** Opens leases and counts how they end. Owned by the router, with the load table that they change. */
export class LeaseTable {
  readonly #load: LoadTable;
  readonly #maxOpen: number;
  readonly #ledger: Ledger;
  #disposed = false;

  /** @throws {ConfigError} `max-open-leases` */
  constructor(load: LoadTable, { maxOpen = DEFAULT_MAX_OPEN_LEASES, observer = null }: LeaseOptions = {}) {
    if (!isWhole(maxOpen, 1, MAX_OPEN_LEASES)) {
      throw new ConfigError(
        'max-open-leases',
        `maxOpen is ${shown(maxOpen)}; give a whole number from 1 to ${MAX_OPEN_LEASES} (default ${DEFAULT_MAX_OPEN_LEASES}).`,
      );
    }
    this.#load = load;
    this.#maxOpen = maxOpen;
    this.#ledger = new Ledger(observer);
  }

  /**
   * Opens a lease. With `maxOpen` open, or after `dispose`, the request is served all the same: its lease is untracked, adds no load and
   * tells the observer nothing.
   * @throws {MoonrouteError} `lease-request` when a number of the request can't be meant
   */
  open(request: LeaseRequest, now: number): Lease {
    const copy = this.#checked(request);
    const { counts, link } = this.#ledger;
    if (this.#disposed || counts.open >= this.#maxOpen) {
      counts.untracked++;
      return new Lease(copy, now, null, null);
    }
    const { rank, promptTokens, localTokens, blockSize, tracksPrefill } = copy;
    const prefillTokens = tracksPrefill ? prefillTokensOf(promptTokens, localTokens) : 0;
    const share = this.#load.open(rank, prefillTokens, Math.ceil(promptTokens / blockSize));
    const lease = new Lease(copy, now, link, share);
    this.#ledger.track(lease, share);
    return lease;
  }

  stats(): LeaseStats {
    return { ...this.#ledger.counts, detectsAbandoned: this.#ledger.registry !== null };
  }

  /** The router ends: all load is forgotten, and open leases change nothing any more. */
  dispose(): void {
    this.#disposed = true;
    this.#ledger.link.cut();
    this.#ledger.counts.open = 0;
    this.#load.forgetAll();
  }

  #checked(request: LeaseRequest): Required<LeaseRequest> {
    const {
      rank,
      promptTokens,
      localTokens,
      sharedTokens = 0,
      blockSize,
      tracksPrefill = true,
      prefix = null,
    } = request;
    const wrong = [
      isWhole(rank, 0, this.#load.ranks - 1) ? null : `rank is ${rank}, the load table has ${this.#load.ranks}`,
      isWhole(promptTokens, 0, MAX_TOKENS) ? null : `promptTokens is ${promptTokens}`,
      isWhole(localTokens, 0, MAX_TOKENS) ? null : `localTokens is ${localTokens}`,
      isWhole(sharedTokens, 0, MAX_TOKENS) ? null : `sharedTokens is ${sharedTokens}`,
      isWhole(blockSize, 1, MAX_TOKENS) ? null : `blockSize is ${blockSize}`,
    ].find((text) => text !== null);
    if (wrong !== undefined) {
      throw new MoonrouteError(
        'lease-request',
        `a lease can't be opened: ${wrong}. Give whole numbers below 2^32 and a rank of the table.`,
      );
    }
    // Field by field: whatever else the caller's object holds must not live as long as the lease.
    return { rank, promptTokens, localTokens, sharedTokens, blockSize, tracksPrefill, prefix };
  }
}

function isWhole(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

/** The time between, null when one end is unknown or the clock went backwards. */
function between(from: number | null, to: number | null): number | null {
  if (from === null || to === null) return null;
  const time = to - from;
  return Number.isFinite(time) && time >= 0 ? time : null;
}
