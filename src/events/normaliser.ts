// From what a worker wrote to what a router may use. Each event passes the same gates in the same order (spec/kv-events.md 1.9):
// ownership, locality, medium, attention group, cache namespace. An event that a gate stops is dropped with the gate's reason; what
// passes carries its tier, its namespace and whether it may teach the shared cache.
//
// Two things must be remembered between events, by publisher (a worker's rank): which groups are which, for removals and older releases
// name a group without its kind; and the namespaces of blocks, for only a chain's first block names it. Both are bounded.
import { sharedNumbers } from '../core/numbers.js';
import type { RemovedEvent, StoredEvent, WorkerEvent } from '../wire/vllm.js';
import type { EventShape } from '../wire/worker-event.js';
import { attentionOf } from './attention.js';
import { type EligibilityReason, whyIneligible } from './eligibility.js';
import { ownNamespace } from './namespace.js';
import { AMBIGUOUS, type Life, type NamespaceLimits, NamespaceTable } from './namespace-table.js';
import { type Tier, tierOf } from './tiers.js';

/** Why an event was dropped: the field's labels, for dashboards that know them. */
export type DropReason =
  | 'ignored_event'
  | 'non_local_locality'
  | 'unknown_medium'
  | 'unsupported_ownership'
  | 'unknown_ownership'
  | 'ambiguous_cache_namespace'
  | 'non_main_attention_kind'
  | 'unknown_kind'
  | 'non_main_attention_group'
  | 'unlearned_group_idx';

/** Blocks that entered a tier of a worker. */
export interface NormalisedStored {
  readonly kind: 'stored';
  readonly tier: Tier;
  /** The cache namespace of all its blocks, null when they have none. */
  readonly namespace: string | null;
  /** Why it may not teach the shared cache; null when it may. It counts for GPU overlap either way. */
  readonly ineligible: EligibilityReason | 'ambiguous-namespace' | null;
  /** Its publisher has announced one of its blocks, or its parent, under another namespace: nothing said of these blocks can be believed. */
  readonly contradicts: boolean;
  readonly event: StoredEvent;
}

/** Blocks that left a tier of a worker. */
export interface NormalisedRemoved {
  readonly kind: 'removed';
  readonly tier: Tier;
  readonly event: RemovedEvent;
}

/** Everything left the worker's rank. */
export interface NormalisedCleared {
  readonly kind: 'cleared';
}

/** An event that means nothing to a router. */
export interface DroppedEvent {
  readonly kind: 'dropped';
  readonly reason: DropReason;
  readonly event: WorkerEvent;
}

/** What became of an event. */
export type NormalisedEvent = NormalisedStored | NormalisedRemoved | NormalisedCleared | DroppedEvent;

/** Kinds of groups remembered a publisher; real models have a handful. */
const GROUPS_KEPT = 256;
const CLEARED: NormalisedCleared = { kind: 'cleared' };

/** What is remembered of one publisher. Make it with `EventNormaliser.publisher`. */
export interface PublisherState {
  /** Whether a group is main attention, by its index in events. */
  readonly groups: Map<number, boolean>;
  life: Life;
  /** The shape of its last stored event, from which all was learned. */
  lastShape: Readonly<EventShape> | null;
}

/** What a stored event's shape alone decides. */
interface ShapeVerdict {
  readonly shape: Readonly<EventShape> | null;
  readonly tokenPairs: boolean;
  /** Why it stops before the group gate. */
  readonly dropped: DropReason | null;
  readonly tier: Tier;
  readonly attention: ReturnType<typeof attentionOf> | null;
  /** The namespace that it names itself. */
  readonly own: string | null;
  readonly ineligible: EligibilityReason | null;
}

const NO_VERDICT: ShapeVerdict = {
  shape: null,
  tokenPairs: false,
  dropped: 'ignored_event',
  tier: 'device',
  attention: null,
  own: null,
  ineligible: null,
};

/** The gates, and the memory of namespaces that all publishers share. */
export class EventNormaliser {
  readonly #namespaces: NamespaceTable;
  #last: ShapeVerdict = NO_VERDICT;

  constructor(limits: Partial<NamespaceLimits> = {}) {
    this.#namespaces = new NamespaceTable(limits);
  }

  /** A publisher of which nothing is known yet: a new one, or one whose memory is to be forgotten. */
  publisher(): PublisherState {
    return { groups: new Map(), life: this.#namespaces.newLife(), lastShape: null };
  }

  /** Use of the namespace memory. */
  get namespaces(): ReturnType<NamespaceTable['stats']> {
    return this.#namespaces.stats();
  }

  /** Passes one event of a publisher through the gates, in the order in which they were published. */
  normalise(publisher: PublisherState, event: WorkerEvent): NormalisedEvent {
    switch (event.type) {
      case 'stored':
        return this.#stored(publisher, event);
      case 'removed':
        return this.#removed(publisher, event);
      case 'ignored':
        return { kind: 'dropped', reason: 'ignored_event', event };
      case 'cleared': {
        if (event.ownership !== null) return { kind: 'dropped', reason: ownedBy(event.ownership), event };
        publisher.life = this.#namespaces.newLife();
        return CLEARED;
      }
    }
  }

  #stored(publisher: PublisherState, event: StoredEvent): NormalisedEvent {
    const verdict = this.#verdict(event);
    const { dropped, tier, own, ineligible } = verdict;
    if (dropped !== null) return { kind: 'dropped', reason: dropped, event };
    // Disk and external tiers pass as they are: no group and no namespace is learned from them.
    if (!isNear(tier)) return { kind: 'stored', tier, namespace: own, ineligible, contradicts: false, event };
    if (publisher.lastShape !== event.shape) learnGroup(publisher, event.groupIdx, verdict.attention);
    publisher.lastShape = event.shape;
    const reason = whyNotMain(publisher, event.groupIdx, verdict.attention);
    if (reason !== null) return { kind: 'dropped', reason, event };
    if (own === null && this.#namespaces.empty) {
      return { kind: 'stored', tier, namespace: null, ineligible, contradicts: false, event };
    }
    return this.#inNamespace(publisher, event, verdict);
  }

  /** What the shape decides; kept, since the next event mostly has the same. */
  #verdict(event: StoredEvent): ShapeVerdict {
    const last = this.#last;
    if (event.shape === last.shape && event.tokenPairs === last.tokenPairs) return last;
    const own = ownNamespace(event);
    const verdict: ShapeVerdict = {
      shape: event.shape,
      tokenPairs: event.tokenPairs,
      dropped: whyElsewhere(event),
      tier: tierOf(event.medium) ?? 'device',
      attention: event.specKind === null ? null : attentionOf(event.specKind),
      own,
      ineligible: whyIneligible(event, own),
    };
    this.#last = verdict;
    return verdict;
  }

  #inNamespace(
    publisher: PublisherState,
    event: StoredEvent,
    { tier, own, ineligible }: ShapeVerdict,
  ): NormalisedEvent {
    const table = this.#namespaces;
    const known = event.hasParent ? table.find(publisher.life, event.parentLow, event.parentHigh) : null;
    if (known === AMBIGUOUS && own === null) return { kind: 'dropped', reason: 'ambiguous_cache_namespace', event };
    const inherited = known === AMBIGUOUS ? null : known;
    const namespace = own ?? inherited;
    const misplaced = known === AMBIGUOUS || (inherited !== null && inherited !== namespace);
    const contradicts = this.#tag(publisher, event, tier, namespace) || misplaced;
    return {
      kind: 'stored',
      tier,
      namespace,
      ineligible: ineligible ?? (contradicts ? 'ambiguous-namespace' : null),
      contradicts,
      event,
    };
  }

  /**
   * Remembers the namespace of the event's blocks; true when one of them is known under another. That blocks have none is believed of the
   * device tier alone: what is offloaded to the host is announced without its salt.
   */
  #tag({ life }: PublisherState, event: StoredEvent, tier: Tier, namespace: string | null): boolean {
    const table = this.#namespaces;
    if (namespace === null && (table.empty || tier !== 'device')) return false;
    const numbers = event.place(sharedNumbers());
    return table.tag(life, numbers.lows, event.hashesAt * 2, event.blockCount, namespace);
  }

  #removed(publisher: PublisherState, event: RemovedEvent): NormalisedEvent {
    const elsewhere = whyElsewhere(event);
    if (elsewhere !== null) return { kind: 'dropped', reason: elsewhere, event };
    const tier = tierOf(event.medium) ?? 'device';
    if (!isNear(tier)) return { kind: 'removed', tier, event };
    const attention = event.specKind === null ? null : attentionOf(event.specKind);
    const reason = whyNotMain(publisher, event.groupIdx, attention);
    if (reason !== null) return { kind: 'dropped', reason, event };
    if (!this.#namespaces.empty) {
      const numbers = event.place(sharedNumbers());
      this.#namespaces.remove(publisher.life, numbers.lows, event.hashesAt * 2, event.blockCount);
    }
    return { kind: 'removed', tier, event };
  }
}

function isNear(tier: Tier): boolean {
  return tier === 'device' || tier === 'host_pinned';
}

function ownedBy(owner: string): DropReason {
  return owner === 'kvcr' ? 'unsupported_ownership' : 'unknown_ownership';
}

/** The gates before the group's, in order: ownership, locality, medium. */
function whyElsewhere({ ownership, locality, medium }: StoredEvent | RemovedEvent): DropReason | null {
  if (ownership !== null) return ownedBy(ownership);
  if (locality !== null && locality !== 'LOCAL') return 'non_local_locality';
  return tierOf(medium) === null ? 'unknown_medium' : null;
}

/** Only stored events that name a group and its kind teach which it is. */
function learnGroup({ groups }: PublisherState, group: number | null, attention: ShapeVerdict['attention']): void {
  if (group === null || attention === null) return;
  if (groups.size < GROUPS_KEPT || groups.has(group)) groups.set(group, attention === 'main');
}

/** The kind decides where it is given, else what was learned of the group; of an unknown group only number 0 passes. */
function whyNotMain(
  { groups }: PublisherState,
  group: number | null,
  attention: ShapeVerdict['attention'],
): DropReason | null {
  if (attention !== null) {
    if (attention === 'main') return null;
    return attention === 'other' ? 'non_main_attention_kind' : 'unknown_kind';
  }
  if (group === null) return null;
  const isMain = groups.get(group);
  if (isMain !== undefined) return isMain ? null : 'non_main_attention_group';
  return group === 0 ? null : 'unlearned_group_idx';
}
