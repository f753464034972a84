// The ranks that may serve a request, as columns: what each of them holds of the prompt and how busy it is. One table is made with the
// router and filled anew for every request, so that deciding among a thousand ranks makes no object for each.
import type { PrefixDepths } from '../core/prefix-types.js';
import type { ForeignLoad } from './foreign-load.js';
import type { RankHealth } from './health.js';
import type { LoadTable } from './load.js';
import type { SharedHit } from './shared-credit.js';
import type { RankSlot } from './workers.js';

/** Who may serve a request. */
export interface Demands {
  /** Keys of the only workers allowed (`workerKey`); null for all. */
  readonly allowed: ReadonlySet<string> | null;
  /** The adapter that is asked for; null for none. */
  readonly loraName: string | null;
  readonly now: number;
}

/** Why a rank is no candidate. */
export type OutCode = 'draining' | 'not-allowed' | 'adapter-missing' | 'resting';

/** Candidates of one request. A candidate is an index, 0 … count − 1; columns hold further than that what earlier requests left. */
export class Candidates {
  count = 0;
  readonly slots: RankSlot[] = [];
  /** Blocks of the prompt on its device, then further ones in its host memory, then on its disk or in its external tier. */
  readonly device: Float64Array;
  readonly host: Float64Array;
  readonly disk: Float64Array;
  /** So many blocks from the prompt's start could come from the store; 0 for a rank that may not be credited. */
  readonly sharedEnd: Float64Array;
  readonly activeRequests: Float64Array;
  readonly prefillTokens: Float64Array;
  readonly decodeBlocks: Float64Array;
  /** What the policy says: finite, less being better; else the candidate is not chosen. */
  readonly costs: Float64Array;
  /** The least prefill tokens of any. */
  minPrefillTokens = 0;
  /** No rank lists the adapter that is asked for, so that all are candidates. */
  adapterUnknown = false;
  /** Every rank rests, so that all are candidates. */
  allResting = false;

  constructor(ranks: number) {
    const column = () => new Float64Array(ranks);
    this.device = column();
    this.host = column();
    this.disk = column();
    this.sharedEnd = column();
    this.activeRequests = column();
    this.prefillTokens = column();
    this.decodeBlocks = column();
    this.costs = column();
  }

  /**
   * Gathers the ranks that may serve: not draining, allowed, with the adapter if any lists it, and not resting if not all do. A missing
   * adapter comes before health, for a worker without it would refuse the request.
   */
  gather(slots: readonly RankSlot[], demands: Demands, health: RankHealth): void {
    const { loraName, now } = demands;
    const open = slots.filter((slot) => whyClosed(slot, demands) === null);
    const listing = loraName === null ? open : open.filter((slot) => lists(slot, loraName));
    this.adapterUnknown = listing.length === 0 && open.length > 0;
    const able = this.adapterUnknown ? open : listing;
    const well = able.filter(({ rank }) => !health.isOut(rank, now));
    this.allResting = well.length === 0 && able.length > 0;
    const chosen = this.allResting ? able : well;
    this.count = chosen.length;
    for (let i = 0; i < chosen.length; i++) this.slots[i] = chosen[i]!;
    this.slots.length = chosen.length;
  }

  /** Why a rank is not among those gathered last, with the same demands; null when it is. */
  whyOut(slot: RankSlot, demands: Demands, health: RankHealth): OutCode | null {
    const closed = whyClosed(slot, demands);
    if (closed !== null) return closed;
    if (!this.adapterUnknown && demands.loraName !== null && !lists(slot, demands.loraName)) return 'adapter-missing';
    return !this.allResting && health.isOut(slot.rank, demands.now) ? 'resting' : null;
  }

  /**
   * Fills in what they hold and how busy they are, by this router's own leases and by what other routers have put onto them (`foreign`; null where
   * there is none). No store is credited yet.
   */
  fill({ device, host, disk }: PrefixDepths, load: LoadTable, foreign: ForeignLoad | null): void {
    this.minPrefillTokens = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.count; i++) {
      const { rank } = this.slots[i]!;
      const { activeRequests, prefillTokens, decodeBlocks } = load.of(rank);
      this.device[i] = device[rank]!;
      this.host[i] = host[rank]! - device[rank]!;
      this.disk[i] = disk[rank]! - host[rank]!;
      this.sharedEnd[i] = 0;
      this.activeRequests[i] = activeRequests;
      this.prefillTokens[i] = prefillTokens;
      this.decodeBlocks[i] = decodeBlocks;
      this.minPrefillTokens = Math.min(this.minPrefillTokens, prefillTokens);
    }
    if (foreign !== null) this.#burden(foreign);
  }

  #burden(foreign: ForeignLoad): void {
    this.minPrefillTokens = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.count; i++) {
      const { rank } = this.slots[i]!;
      this.activeRequests[i]! += foreign.activeRequests[rank]!;
      this.prefillTokens[i]! += foreign.prefillTokens[rank]!;
      this.decodeBlocks[i]! += foreign.decodeBlocks[rank]!;
      this.minPrefillTokens = Math.min(this.minPrefillTokens, this.prefillTokens[i]!);
    }
  }

  /** Credits the ranks under the contract in force with what the store could restore for them. */
  credit({ end, unproven }: Pick<SharedHit, 'end' | 'unproven'>): void {
    for (let i = 0; i < this.count; i++) {
      const { admission, source } = this.slots[i]!;
      const own = unproven === null || unproven.proves(source) ? end : unproven.end;
      this.sharedEnd[i] = admission.code === 'admitted' ? own : 0;
    }
  }

  /** Blocks that a candidate's own tiers hold. */
  local(at: number): number {
    return this.device[at]! + this.host[at]! + this.disk[at]!;
  }

  /** Blocks of the store past those. */
  shared(at: number): number {
    return Math.max(0, this.sharedEnd[at]! - this.local(at));
  }

  /** Blocks that it could have without computing them. */
  reach(at: number): number {
    return Math.max(this.local(at), this.sharedEnd[at]!);
  }
}

function whyClosed({ worker }: RankSlot, { allowed }: Demands): 'draining' | 'not-allowed' | null {
  if (worker.draining) return 'draining';
  return allowed !== null && !allowed.has(worker.key) ? 'not-allowed' : null;
}

function lists({ worker }: RankSlot, loraName: string): boolean {
  return worker.adapters.has(loraName);
}
