// From a worker's message to events for the plane: the same blocks that a router with the worker's own stream would index, hashed, in the same order, and
// whether they may teach a shared cache.
//
// Who reads the plane has no more than `sce` to go by, so it says yes only where the direct path (cache/shared-cache.ts) learns without a further word:
// - no cache namespace: the envelope can't say that blocks are salted, which decides how their edges replace others. No hints for salted prompts then.
// - dense events of whole blocks: token i belongs to block ⌊i / blockSize⌋.
// - one main group: events of a second group that passes for main attention teach nothing, unless it is the one that was named.
// - what contradicts itself about its blocks' namespace teaches nothing, ends what was taught about them, of whatever tier it is, and is never taught again.
// One thing is not told: where blocks that came without a namespace come again under one, the direct path finds two edges to one block and believes
// neither; what salted blocks would teach is not sent, so here the first stays believed. No honest engine does so: its hashes cover the namespace.
import type { NormalisedStored } from '../../../events/normaliser.js';
import { type BlocksStopped, routerBlocks } from '../../../events/router-blocks.js';
import type { WorkerMessage } from '../../../events/worker-events.js';
import type { EventData, RouterEvent } from '../../../wire/envelope/types.js';
import { Contradicted } from './contradicted.js';
import { contradiction, type Draft } from './draft.js';

export interface IntakeOptions {
  readonly workerId: bigint;
  /** Tokens of a router's block. */
  readonly blockSize: number;
  /** The model's image token; null if unknown. */
  readonly imageTokenId?: number | null;
  /** The group whose blocks may teach. Null: the first one that comes. */
  readonly mainGroup?: number | null;
  /** What the worker has contradicted itself about; dumps need it too. */
  readonly contradicted?: Contradicted;
}

/** Counts since it was made. */
export interface IntakeStats {
  /** Events that became events for the plane. */
  readonly events: number;
  readonly blocks: number;
  /** Stored events whose blocks were not all taken, by cause. */
  readonly stopped: Readonly<Record<string, number>>;
  /** Stored events of which a router could learn directly, but not over the plane, by cause. */
  readonly withheld: Readonly<Record<string, number>>;
  /** Blocks about which the worker has contradicted itself, and such that are forgotten since there were too many. */
  readonly contradicted: number;
  readonly contradictedForgotten: number;
}

type Withheld = 'namespace' | 'layout' | 'group' | 'contradicted';

const NO_HASHES = new BigUint64Array(0);

/** Makes one worker's messages into drafts. */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #stopped = new Map<BlocksStopped, number>();
  readonly #withheld = new Map<Withheld, number>();
  readonly #contradicted: Contradicted;
  #mainGroup: number | null;
  #events = 0;
  #blocks = 0;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#contradicted = options.contradicted ?? new Contradicted();
    this.#mainGroup = options.mainGroup ?? null;
  }

  /** The message's events, which own their numbers. */
  take({ source: { dpRank }, events }: WorkerMessage): Draft[] {
    const drafts: Draft[] = [];
    for (const event of events) {
      if (event.kind === 'stored') {
        const data = this.#storedOf(event);
        const beyond = event.contradicts ? this.#contradictedBeyond(event, data.hashes.length) : NO_HASHES;
        if (data.hashes.length > 0) {
          const eligible = this.#mayTeach(event, data.hashes);
          drafts.push(this.#draft(dpRank, event.tier, data, eligible, event.contradicts));
          this.#blocks += data.hashes.length;
        }
        if (beyond.length > 0) drafts.push(contradiction({ workerId: this.#options.workerId, dpRank }, beyond));
      } else if (event.kind === 'removed') {
        const hashes = event.event.blockHashes.low64;
        if (hashes.length > 0) drafts.push(this.#draft(dpRank, event.tier, { kind: 'removed', hashes }, false));
      } else if (event.kind === 'cleared') {
        drafts.push(this.cleared(dpRank));
      }
    }
    this.#events += drafts.length;
    return drafts;
  }

  /** The worker began anew, maybe with other groups. */
  newLife(): void {
    this.#mainGroup = this.#options.mainGroup ?? null;
  }

  /** All that the rank holds is gone, or not known any more. */
  cleared(dpRank: number): Draft {
    return this.#draft(dpRank, 'device', { kind: 'cleared' }, false);
  }

  stats(): IntakeStats {
    return {
      events: this.#events,
      blocks: this.#blocks,
      stopped: Object.fromEntries(this.#stopped),
      withheld: Object.fromEntries(this.#withheld),
      contradicted: this.#contradicted.size,
      contradictedForgotten: this.#contradicted.forgotten,
    };
  }

  /** Keeps in mind all blocks of a contradiction; gives those that no store carries, since a router could not take them. */
  #contradictedBeyond({ event }: NormalisedStored, taken: number): BigUint64Array {
    const hashes = event.blockHashes.low64;
    this.#contradicted.add(hashes);
    return hashes.slice(taken);
  }

  #draft(dpRank: number, tier: RouterEvent['tier'], data: EventData, eligible: boolean, contradicts = false): Draft {
    const { workerId } = this.#options;
    return { workerId, dpRank, tier, domain: null, data, eligible, contradicts, sessionId: null, stateSource: null };
  }

  #storedOf(stored: NormalisedStored): Extract<EventData, { kind: 'stored' }> {
    const { event } = stored;
    const { blockSize, imageTokenId = null } = this.#options;
    const taken = routerBlocks(stored, { blockSize, imageTokenId });
    if (taken.stopped !== null) tally(this.#stopped, taken.stopped);
    const parent = event.hasParent ? (BigInt(event.parentHigh) << 32n) | BigInt(event.parentLow) : null;
    // Local hashes cover multimodal objects already; what these are is of no use to a router.
    return { kind: 'stored', parent, startPosition: null, hashes: taken.hashes, locals: taken.locals, mm: null };
  }

  #mayTeach(stored: NormalisedStored, hashes: BigUint64Array): boolean {
    if (stored.ineligible !== null) return false;
    const withheld = this.#contradicted.hasAny(hashes) ? 'contradicted' : this.#whyWithheld(stored);
    if (withheld !== null) tally(this.#withheld, withheld);
    return withheld === null;
  }

  #whyWithheld({ namespace, event, tier }: NormalisedStored): Withheld | null {
    if (namespace !== null) return 'namespace';
    // Elsewhere nothing is learned; there the flag only must not spoil what the device's blocks have proven.
    if (tier !== 'device') return null;
    if (!event.wellLaid) return 'layout';
    if (event.groupIdx === null) return null;
    this.#mainGroup ??= event.groupIdx;
    return event.groupIdx === this.#mainGroup ? null : 'group';
  }
}

function tally<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
