// The workers of a router: which ranks they have, under which compact number each of these is known below, what they serve, and how each
// stands to the contract in force. A number that becomes free is given to the next rank, so whoever removes a rank must have everything
// forgotten that is kept under its number before another one is added (router.ts does).
import type { Contract } from '../contract/descriptor.js';
import { ConfigError, MoonrouteError } from '../errors.js';
import { publisherKey, type Source } from '../events/worker-events.js';
import { type Admission, ContractAdmission, type ContractOffer, type RankAdmission } from './admission.js';
import { type CheckedWorker, type WorkerId, workerKey } from './worker-info.js';

/** A worker's rank. */
export interface RankSlot {
  /** Its compact number. */
  readonly rank: number;
  readonly source: Source;
  worker: CheckedWorker;
  /** How it stands to the contract in force, as last decided. */
  admission: RankAdmission;
}

/** What is in force now. */
export interface ContractInForce {
  readonly contract: Contract | null;
  readonly admission: Admission;
}

/** Holds workers and gives their ranks numbers from 0 on. */
export class WorkerTable {
  readonly #workers = new Map<string, { checked: CheckedWorker; slots: Map<number, RankSlot> }>();
  readonly #byRank: (RankSlot | null)[];
  /** Workers by their numbers on an event plane. */
  readonly #byPlane = new Map<bigint, CheckedWorker>();
  readonly #admission: ContractAdmission;
  #slots: readonly RankSlot[] = [];
  #inForce: ContractInForce;

  /** @param ranks most ranks, of all workers together */
  constructor(ranks: number, { strict }: { readonly strict: boolean }) {
    this.#byRank = new Array<RankSlot | null>(ranks).fill(null);
    this.#admission = new ContractAdmission({ strict });
    this.#inForce = { contract: null, admission: this.#admission.decide() };
  }

  /** Every rank, by number. */
  get slots(): readonly RankSlot[] {
    return this.#slots;
  }

  /** What was decided last. */
  get inForce(): ContractInForce {
    return this.#inForce;
  }

  /** What was last said of a worker; undefined when there is none of that name. */
  infoOf(id: WorkerId): CheckedWorker | undefined {
    return this.#workers.get(workerKey(id))?.checked;
  }

  /** A worker's ranks; empty when there is none of that name. */
  ranksOf(id: WorkerId): readonly RankSlot[] {
    return [...(this.#workers.get(workerKey(id))?.slots.values() ?? [])];
  }

  /** A worker's rank as its events number it; undefined when it has none of that number. */
  rankOf(id: WorkerId, dpRank: number): RankSlot | undefined {
    return this.#workers.get(workerKey(id))?.slots.get(dpRank);
  }

  /** The worker of that number on an event plane; undefined when there is none. */
  planeWorker(planeId: bigint): CheckedWorker | undefined {
    return this.#byPlane.get(planeId);
  }

  /**
   * Adds a worker, or replaces what is known of one: ranks that it still has keep their numbers. Returns those that it no longer has.
   * @throws ConfigError `worker-plane-id` for the number of another one; MoonrouteError `router-full` when there are not so many numbers left; nothing has changed then
   */
  set(checked: CheckedWorker): readonly RankSlot[] {
    const before = this.#workers.get(checked.key)?.slots ?? new Map<number, RankSlot>();
    const stays = (dpRank: number) => dpRank >= checked.start && dpRank < checked.start + checked.size;
    this.#refuseOverflow(checked, before.size);
    this.#refuseTwice(checked);
    const offer = offerOf(checked);
    const removed = [...before.values()].filter(({ source }) => !stays(source.dpRank));
    for (const slot of removed) this.#free(slot);
    const slots = new Map<number, RankSlot>();
    for (let dpRank = checked.start; dpRank < checked.start + checked.size; dpRank++) {
      const slot = before.get(dpRank) ?? this.#take({ workerId: checked.id, dpRank }, checked);
      slot.worker = checked;
      slots.set(dpRank, slot);
      this.#admission.set(slot.source, offer);
    }
    this.#forgetPlane(checked.key);
    if (checked.planeId !== null) this.#byPlane.set(checked.planeId, checked);
    this.#workers.set(checked.key, { checked, slots });
    this.#refresh();
    return removed;
  }

  /** Removes a worker; returns the ranks that it had. */
  remove(id: WorkerId): readonly RankSlot[] {
    const removed = this.ranksOf(id);
    for (const slot of removed) this.#free(slot);
    this.#forgetPlane(workerKey(id));
    this.#workers.delete(workerKey(id));
    this.#refresh();
    return removed;
  }

  /** Decides which contract is in force, and notes on every rank how it stands to it. */
  decide(): ContractInForce {
    const admission = this.#admission.decide();
    for (const slot of this.#slots) {
      slot.admission = admission.ranks.get(publisherKey(slot.source.workerId, slot.source.dpRank))!;
    }
    const teacher = this.#slots.find((slot) => slot.admission.code === 'admitted');
    const contract = teacher?.worker.contract ?? null;
    this.#inForce = { contract: contract !== null && 'fingerprint' in contract ? contract : null, admission };
    return this.#inForce;
  }

  #refuseOverflow({ id, size }: CheckedWorker, before: number): void {
    const total = this.#byRank.length;
    const free = total - (this.#slots.length - before);
    if (size <= free) return;
    throw new MoonrouteError(
      'router-full',
      `worker ${id} has ${size} ranks, and ${free} of the router's ${total} are free for it. Make the router with more (index.ranks), or remove workers that have left.`,
    );
  }

  #refuseTwice({ id, key, planeId }: CheckedWorker): void {
    const other = planeId === null ? undefined : this.#byPlane.get(planeId);
    if (other === undefined || other.key === key) return;
    throw new ConfigError(
      'worker-plane-id',
      `worker ${id}: planeId ${planeId} is that of worker ${other.id}; give each the number under which its events are published.`,
    );
  }

  #forgetPlane(key: string): void {
    const planeId = this.#workers.get(key)?.checked.planeId ?? null;
    if (planeId !== null) this.#byPlane.delete(planeId);
  }

  /** Gives a rank the lowest free number: small numbers keep what is kept by number small. */
  #take(source: Source, worker: CheckedWorker): RankSlot {
    const rank = this.#byRank.indexOf(null);
    const slot = { rank, source, worker, admission: { source, code: 'no-contract', text: null } as const };
    this.#byRank[rank] = slot;
    return slot;
  }

  #free({ rank, source }: RankSlot): void {
    this.#byRank[rank] = null;
    this.#admission.remove(source);
  }

  #refresh(): void {
    this.#slots = this.#byRank.filter((slot) => slot !== null);
  }
}

function offerOf({ contract }: CheckedWorker): ContractOffer {
  return contract === null || 'invalid' in contract ? contract : contract.fingerprint;
}
