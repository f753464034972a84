// Which events a mutation of the store fires, by generation: the table of spec/mooncake-events.md 4 as data. Generation A has hooks in a few
// places and is silent everywhere else, however much changes; its eviction hooks look at what is left, and so always say `cpu`.
// Generations B and C compare the media before and after.
import type { Announcement, EventMedium, Generation } from './types.js';

/** What may happen to an object. */
export type Operation =
  | 'put'
  | 'upsert-start'
  | 'upsert-end'
  | 'writer-died'
  | 'remove'
  | 'batch-remove'
  | 'remove-by-regex'
  | 'remove-all'
  | 'evict'
  | 'quota-evict'
  | 'unmount-segment'
  | 'client-crash'
  | 'replica-clear'
  | 'offload'
  | 'appear-on-disk'
  | 'evict-disk'
  | 'unmount-local-disk'
  | 'promote'
  | 'copy'
  | 'move';

/** One object's media around a mutation, in the order `cpu`, `disk`. */
export interface Change {
  readonly tenant: string;
  readonly key: string;
  readonly group: string | null;
  readonly before: readonly EventMedium[];
  readonly after: readonly EventMedium[];
  /** What the client wrote, where it wrote. */
  readonly written: EventMedium | null;
}

type Said = readonly [kind: 'stored' | 'removed', medium: EventMedium];
type Rule = (change: Change) => readonly Said[];

const silent: Rule = () => [];
/** By the type of replica that the client says it has written. */
const storedAsWritten: Rule = ({ written }) => (written === null ? [] : [['stored', written]]);
/** One event, whatever the object had. */
const removedOnce: Rule = ({ before }) => [['removed', before.includes('cpu') ? 'cpu' : 'disk']];
/** Only when nothing is left, and then `cpu`. */
const removedWhenLast: Rule = ({ after }) => (after.length === 0 ? [['removed', 'cpu']] : []);

const lost: Rule = ({ before, after }) =>
  before.filter((medium) => !after.includes(medium)).map((medium) => ['removed', medium]);
const gained: Rule = ({ before, after }) =>
  after.filter((medium) => !before.includes(medium)).map((medium) => ['stored', medium]);
/** What has changed. */
const delta: Rule = (change) => [...lost(change), ...gained(change)];
/** A commit says every medium that there is: the content may be new where the media are not. */
const committed: Rule = (change) => [...lost(change), ...change.after.map((medium): Said => ['stored', medium])];

const A: Readonly<Record<Operation, Rule>> = {
  put: storedAsWritten,
  'upsert-start': silent,
  'upsert-end': storedAsWritten,
  'writer-died': silent,
  remove: removedOnce,
  'batch-remove': silent,
  'remove-by-regex': silent,
  'remove-all': silent,
  evict: removedWhenLast,
  'quota-evict': silent,
  'unmount-segment': silent,
  'client-crash': silent,
  'replica-clear': silent,
  offload: silent,
  'appear-on-disk': silent,
  'evict-disk': removedWhenLast,
  'unmount-local-disk': silent,
  promote: silent,
  copy: silent,
  move: silent,
};

const C: Readonly<Record<Operation, Rule>> = {
  put: committed,
  'upsert-start': delta,
  'upsert-end': committed,
  'writer-died': delta,
  remove: delta,
  'batch-remove': delta,
  'remove-by-regex': delta,
  'remove-all': delta,
  evict: delta,
  'quota-evict': delta,
  'unmount-segment': delta,
  'client-crash': delta,
  'replica-clear': delta,
  offload: delta,
  'appear-on-disk': delta,
  'evict-disk': delta,
  'unmount-local-disk': delta,
  promote: delta,
  copy: delta,
  move: delta,
};

const RULES: Readonly<Record<Generation, Readonly<Record<Operation, Rule>>>> = { A, B: C, C };

/**
 * The events of one object's change. `oplog`: the master runs with `--enable_oplog`, in which generation A returns before it would publish a
 * removal.
 */
export function announcementsOf(
  generation: Generation,
  operation: Operation,
  change: Change,
  oplog: boolean,
): Announcement[] {
  const { tenant, key, group } = change;
  return RULES[generation]
    [operation](change)
    .filter(([kind]) => !(oplog && generation === 'A' && kind === 'removed'))
    .map(([kind, medium]) => ({ kind, tenant, key, group, medium }));
}

/** Whether RemoveAll says `cleared` of a tenant that it has emptied. */
export function saysCleared(generation: Generation): boolean {
  return generation !== 'A';
}
