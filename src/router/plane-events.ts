// Events of a plane into what the router knows. Their publishers have read, normalised and hashed what the workers wrote, so what is left here is the
// order and the caution of the direct path (gpu-events.ts): eligible blocks of the device teach the shared cache first, and then the index takes them.
//
// A plane must never teach what the direct path would not, so when in doubt nothing is learned:
// - A plane's event says with one bit that its hashes cover text, LoRA name and namespace, and not whether there is a namespace; edges under one
//   are marked so, for an unsalted store of the same hash must not replace them. Publishers therefore say eligible only of blocks without one.
//   LoRA needs nothing: its name is in the local hashes.
// - Blocks with multimodal information, and places that contradict their parents, teach nothing whatever the bit says (spec/kv-events.md 5.5).
// - Where the contract has no main event group nothing is learned from events at all; the shared cache sees to that.
// - Derived hashes are proven from tokens, and a plane brings none: its ranks prove nothing, and get derived credit only where the seed is vouched for.
// - Blocks about which a worker contradicts itself (`contradicts`) end the credit of what was learned about them, as on the direct path, and before
//   anything else, whatever the event says otherwise: one of the domain cache_owner has that effect and no other. No honest engine does so: its
//   hashes cover the namespace, and two namespaces never share one.
// Of 32-byte hashes a plane has the low 64 bits, so a slot learns its digest from the store, as with engines that send numbers.
import type { IndexedBlocks } from '../core/prefix-types.js';
import type { RouterEvent, StoredData } from '../wire/envelope/types.js';
import { type GpuEvents, INDEX_EVENT_BLOCKS, TIERS } from './gpu-events.js';
import type { RankSlot, WorkerTable } from './workers.js';

/** How an event ended. */
export type PlaneEventFate =
  | 'applied'
  | 'unknown-worker' // no worker has that number (`WorkerInfo.planeId`)
  | 'unknown-rank' //   the worker was added without that data-parallel rank
  | 'cache-owner' //    of a cache that outlives its workers: not supported, and never a worker's
  | 'gpu-events-off' // use_kv_events is false
  | 'disposed'; //      the router has ended

/** What became of an event. */
export interface PlaneEventResult {
  readonly fate: PlaneEventFate;
  /** Blocks that the shared cache learned, or knew already. */
  readonly learned: number;
  /** Blocks that the index took. */
  readonly stored: number;
  /** Blocks taken out of the index that it knew the rank to hold. */
  readonly removed: number;
  /** False where the index did not take all blocks of a store. */
  readonly whole: boolean;
}

/** Counts since the router was made. */
export interface PlaneEventStats {
  /** Events by fate. */
  readonly events: Readonly<Record<string, number>>;
  /** Eligible stores of the device tier that teach nothing, by cause. */
  readonly notTaught: Readonly<Record<string, number>>;
  /** Blocks about which their workers contradict themselves, so that they earn no credit any more. */
  readonly contradicted: number;
}

/** What the events go into. */
export interface PlaneEventParts {
  readonly workers: WorkerTable;
  readonly gpuEvents: GpuEvents;
  readonly useKvEvents: boolean;
}

/** Why an event that says eligible teaches nothing. */
type NotTaught = 'multimodal' | 'start-position';

/** Takes a plane's events in. */
export class PlaneEvents {
  readonly #parts: PlaneEventParts;
  readonly #fates = new Map<PlaneEventFate, number>();
  readonly #notTaught = new Map<NotTaught, number>();
  #contradicted = 0;

  constructor(parts: PlaneEventParts) {
    this.#parts = parts;
  }

  /** Takes one event in. Never throws for what the wire brought. */
  take(event: RouterEvent): PlaneEventResult {
    const { workers, useKvEvents } = this.#parts;
    if (!useKvEvents) return this.without('gpu-events-off');
    const worker = workers.planeWorker(event.workerId);
    if (worker === undefined) return this.without('unknown-worker');
    const slot = workers.rankOf(worker.id, event.dpRank);
    if (slot === undefined) return this.without('unknown-rank');
    if (event.contradicts) this.#distrust(slot, event);
    if (event.domain === 'cache_owner') return this.without('cache-owner');
    tally(this.#fates, 'applied');
    return this.#apply(slot, event);
  }

  /** Counts an event that has no effect, and is its answer. */
  without(fate: PlaneEventFate): PlaneEventResult {
    tally(this.#fates, fate);
    return { fate, learned: 0, stored: 0, removed: 0, whole: true };
  }

  stats(): PlaneEventStats {
    return {
      events: Object.fromEntries(this.#fates),
      notTaught: Object.fromEntries(this.#notTaught),
      contradicted: this.#contradicted,
    };
  }

  #distrust(slot: RankSlot, { data }: RouterEvent): void {
    if (data.kind === 'cleared') return;
    const { hashes } = data;
    if (this.#parts.gpuEvents.takeContradicted(slot, wordsOf(hashes), 0, hashes.length))
      this.#contradicted += hashes.length;
  }

  #apply(slot: RankSlot, event: RouterEvent): PlaneEventResult {
    const { gpuEvents } = this.#parts;
    const { data } = event;
    const done = { fate: 'applied' as const, learned: 0, stored: 0, removed: 0, whole: true };
    if (data.kind === 'stored') return { ...done, ...this.#store(slot, event, data) };
    if (data.kind === 'cleared') {
      gpuEvents.takeCleared(slot);
      return done;
    }
    const lows = wordsOf(data.hashes);
    const count = data.hashes.length;
    for (let at = 0; at < count; at += INDEX_EVENT_BLOCKS) {
      const part = Math.min(INDEX_EVENT_BLOCKS, count - at);
      done.removed += gpuEvents.takeRemoved(slot, TIERS[event.tier], lows, at, part);
    }
    return done;
  }

  #store(
    slot: RankSlot,
    { tier, eligible: said, contradicts }: RouterEvent,
    data: StoredData,
  ): Pick<PlaneEventResult, 'learned' | 'stored' | 'whole'> {
    const { parent, hashes, locals } = data;
    const eligible = said && !contradicts;
    const plain = eligible && !isMultimodal(data);
    const refused = eligible && tier === 'device' ? whyNotTaught(data) : null;
    if (refused !== null) tally(this.#notTaught, refused);
    const lows = wordsOf(hashes);
    const localWords = wordsOf(locals);
    let learned = 0;
    let stored = 0;
    let before = parent;
    for (let at = 0; at < hashes.length; at += INDEX_EVENT_BLOCKS) {
      const count = Math.min(INDEX_EVENT_BLOCKS, hashes.length - at);
      const blocks: IndexedBlocks = {
        ...{ lows, locals: localWords, at, count },
        hasParent: before !== null,
        parentLow: Number((before ?? 0n) & 0xffff_ffffn),
        parentHigh: Number((before ?? 0n) >> 32n),
        eligible: plain,
      };
      const taken = this.#parts.gpuEvents.takeStored(slot, TIERS[tier], blocks, refused === null);
      learned += taken.learned;
      if (taken.outcome !== 'stored') return { learned, stored, whole: false };
      stored += count;
      before = hashes[at + count - 1]!;
    }
    return { learned, stored, whole: true };
  }
}

function whyNotTaught(data: StoredData): NotTaught | null {
  if (isMultimodal(data)) return 'multimodal';
  const { parent, startPosition } = data;
  return startPosition !== null && (parent === null) !== (startPosition === 0) ? 'start-position' : null;
}

function isMultimodal({ mm }: StoredData): boolean {
  return mm?.some((info) => info !== null && info !== undefined) ?? false;
}

/** The same numbers as pairs of words, the low one first (as on every machine that runs this). */
function wordsOf({ buffer, byteOffset, length }: BigUint64Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length * 2);
}

function tally<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
