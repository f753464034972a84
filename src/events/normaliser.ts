// From what a worker wrote to what a router may use. Each event passes the same gates in the same order (spec/kv-events.md 1.9):
// ownership, locality, medium, attention group, cache namespace. An event that a gate stops is dropped with the gate's reason; what
// passes carries its tier, its namespace and whether it may teach the shared cache.
//
// Two things must be remembered between events, by publisher (a worker's rank): which groups are which, for removals and older releases
// name a group without its kind; and the namespaces of blocks, for only a chain's first block names it. Both are bounded.
import { sharedNumbers } from '../core/numbers.js';
import type { RemovedEvent, StoredEvent, WorkerEvent } from '../wire/vllm.js';
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
}

/** The gates, and the memory of namespaces that all publishers share. */
export class EventNormaliser {
  readonly #namespaces: NamespaceTable;

  constructor(limits: Partial<NamespaceLimits> = {}) {
    this.#namespaces = new NamespaceTable(limits);
  }

  /** A publisher of which nothing is known yet: a new one, or one whose memory is to be forgotten. */
  publisher(): PublisherState {
    return { groups: new Map(), life: this.#namespaces.newLife() };
  }

  /** Use of the namespace memory. */
  get namespaces(): ReturnType<NamespaceTable['stats']> {
    return this.#namespaces.stats();
  }

  /** Passes one event of a publisher through the gates, in the order in which they were published. */
  normalise(publisher: PublisherState, event: WorkerEvent): NormalisedEvent {
    if (event.type === 'ignored') return { kind: 'dropped', reason: 'ignored_event', event };
    if (event.ownership !== null) {
      const reason = event.ownership === 'kvcr' ? 'unsupported_ownership' : 'unknown_ownership';
      return { kind: 'dropped', reason, event };
    }
    if (event.type === 'cleared') {
      publisher.life = this.#namespaces.newLife();
      return CLEARED;
    }
    if (event.locality !== null && event.locality !== 'LOCAL') {
      return { kind: 'dropped', reason: 'non_local_locality', event };
    }
    const tier = tierOf(event.medium);
    if (tier === null) return { kind: 'dropped', reason: 'unknown_medium', event };
    const near = tier === 'device' || tier === 'host_pinned';
    if (event.type === 'removed')
      return near ? this.#removed(publisher, event, tier) : { kind: 'removed', tier, event };
    return near ? this.#stored(publisher, event, tier) : far(event, tier);
  }

  #stored(publisher: PublisherState, event: StoredEvent, tier: Tier): NormalisedEvent {
    learnGroup(publisher, event);
    const reason = whyNotMain(publisher, event);
    if (reason !== null) return { kind: 'dropped', reason, event };
    const own = ownNamespace(event);
    const table = this.#namespaces;
    const known =
      event.hasParent && !table.empty ? table.find(publisher.life, event.parentLow, event.parentHigh) : null;
    if (known === AMBIGUOUS && own === null) return { kind: 'dropped', reason: 'ambiguous_cache_namespace', event };
    const inherited = known === AMBIGUOUS ? null : known;
    const namespace = own ?? inherited;
    let ineligible: NormalisedStored['ineligible'] = whyIneligible(event, own);
    if (known === AMBIGUOUS || (inherited !== null && inherited !== namespace)) ineligible ??= 'ambiguous-namespace';
    if (this.#tag(publisher, event, tier, namespace)) ineligible ??= 'ambiguous-namespace';
    return { kind: 'stored', tier, namespace, ineligible, event };
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

  #removed(publisher: PublisherState, event: RemovedEvent, tier: Tier): NormalisedEvent {
    const reason = whyNotMain(publisher, event);
    if (reason !== null) return { kind: 'dropped', reason, event };
    if (!this.#namespaces.empty) {
      const numbers = event.place(sharedNumbers());
      this.#namespaces.remove(publisher.life, numbers.lows, event.hashesAt * 2, event.blockCount);
    }
    return { kind: 'removed', tier, event };
  }
}

/** Disk and external tiers pass as they are: no group and no namespace is learned from them. */
function far(event: StoredEvent, tier: Tier): NormalisedStored {
  const namespace = ownNamespace(event);
  return { kind: 'stored', tier, namespace, ineligible: whyIneligible(event, namespace), event };
}

/** Only stored events that name a group and its kind teach which it is. */
function learnGroup({ groups }: PublisherState, { groupIdx, specKind }: StoredEvent): void {
  if (groupIdx === null || specKind === null) return;
  const isMain = attentionOf(specKind) === 'main';
  const known = groups.get(groupIdx);
  if (known === isMain || (known === undefined && groups.size >= GROUPS_KEPT)) return;
  groups.set(groupIdx, isMain);
}

/** The kind decides where it is given, else what was learned of the group; of an unknown group only number 0 passes. */
function whyNotMain(publisher: PublisherState, { groupIdx, specKind }: StoredEvent | RemovedEvent): DropReason | null {
  if (specKind !== null) {
    const attention = attentionOf(specKind);
    if (attention === 'main') return null;
    return attention === 'other' ? 'non_main_attention_kind' : 'unknown_kind';
  }
  if (groupIdx === null) return null;
  const isMain = publisher.groups.get(groupIdx);
  if (isMain !== undefined) return isMain ? null : 'non_main_attention_group';
  return groupIdx === 0 ? null : 'unlearned_group_idx';
}
