// Reads the whole state of a core instance out of its linear memory, in the shape of the model's snapshot, so that the two can be
// compared, and checks what must hold inside it. Independent of the core's own code paths: it knows the layout (assembly/layout.ts, slots.ts,
// records.ts) and follows it by hand.
import { globalOf } from '../../src/core/builds.js';
import type { Core } from '../../src/core/core.js';
import type { EdgeKind, ModelSnapshot } from './model.js';

const LIVE = 1;
const FOLLOWS = 2;
const CONFLICT = 4;
const ROOT = 8;
const DERIVED = 16;
const KNOWN = 1 << 31;
const ASSUMED = 1 << 30;
const SALTED = 1 << 29;
const ORPHAN = 1 << 31;
const FREE = 1 << 30;
/** Bits of a link that hold a record's index, in the tiny builds. */
const LINK_INDEX = 0xff;
const CELL = { generation: 6, recordTop: 7, ambiguousZero: 12, prefixes: 19, groups: 18, derivedEdges: 23 };

const hex = (value: bigint): string => value.toString(16).padStart(16, '0');

/** Numbers of an instance's memory by their place. For the tiny builds, whose record indices take 8 bits. */
class Reader {
  readonly wide: boolean;
  readonly #core: Core;
  readonly #view: DataView;
  readonly #addresses: Record<string, number> = {};

  constructor(core: Core) {
    this.#core = core;
    this.#view = new DataView(core.exports.memory.buffer);
    this.wide = this.at('MEMBER_CAP') > 0;
  }

  at(name: string): number {
    let address = this.#addresses[name];
    if (address === undefined) {
      address = globalOf(this.#core.exports, name);
      this.#addresses[name] = address;
    }
    return address;
  }
  u8(address: number): number {
    return this.#view.getUint8(address);
  }
  u32(address: number): number {
    return this.#view.getUint32(address, true);
  }
  u64(address: number): bigint {
    return this.#view.getBigUint64(address, true);
  }
  bytes(address: number, count: number): string {
    return Buffer.from(this.#view.buffer, address, count).toString('hex');
  }
  cell(index: number): number {
    return this.u32(this.at('CELLS') + index * 4);
  }

  flags(slot: number): number {
    return this.u8(this.at('FLAGS') + slot);
  }
  link(slot: number): number {
    return this.u32(this.at('LINK') + slot * 4);
  }
  child(slot: number): bigint {
    return this.u64(this.at('EXTERNAL') + slot * 8);
  }
  parent(slot: number): bigint {
    return this.u64(this.at('PARENT') + slot * 8);
  }
  next(slot: number): number {
    return this.u32(this.at('NEXT') + slot * 4);
  }
  kind(slot: number): EdgeKind {
    return this.flags(slot) & DERIVED ? 'derived' : 'learned';
  }
  liveSlots(): number[] {
    return Array.from({ length: this.at('SLOTS') - 1 }, (_, i) => i + 1).filter((slot) => this.flags(slot) & LIVE);
  }
  /** Bits of the groups that are complete, as a lookup reads them. */
  done(slot: number): bigint {
    const current = this.u32(this.at('EXTENT_GEN') + (slot >> 4) * 4) === this.cell(CELL.generation);
    if (!current) return 0n;
    return this.wide ? this.u64(this.at('DONE') + slot * 8) : BigInt(this.u8(this.at('DONE') + slot));
  }

  record(index: number): number {
    return this.at('RECORDS') + index * 64;
  }
  /** Records in use. */
  records(): number[] {
    return Array.from({ length: Math.max(0, this.cell(CELL.recordTop) - 1) }, (_, i) => i + 1).filter(
      (index) => this.isOrphan(index) || !(this.u32(this.record(index) + 56) & FREE),
    );
  }
  isOrphan(index: number): boolean {
    return (this.u32(this.record(index) + 56) & ORPHAN) !== 0;
  }
  /** Slots of the edges that a record names: one, or one of each kind. */
  owners(index: number): number[] {
    if (this.isOrphan(index)) return [];
    const [owner, other] = [this.u32(this.record(index) + 56), this.u32(this.record(index) + 60)];
    return other === 0 ? [owner] : [owner, other];
  }
}

const readers = new WeakMap<Core, Reader>();

function readerOf(core: Core): Reader {
  const reader = readers.get(core) ?? new Reader(core);
  readers.set(core, reader);
  return reader;
}

/** What does not hold of an instance's memory, whatever it is to know; empty when all is well. */
export function coreFaults(core: Core): string[] {
  const memory = readerOf(core);
  const faults: string[] = [];
  const check = (holds: boolean, otherwise: () => string) => {
    if (!holds) faults.push(otherwise());
  };
  const live = memory.liveSlots();
  const derived = live.filter((slot) => memory.kind(slot) === 'derived');
  check(memory.cell(CELL.derivedEdges) === derived.length, () => `${derived.length} derived edges, another count`);
  for (const kind of ['learned', 'derived']) {
    const children = live.filter((slot) => memory.kind(slot) === kind).map((slot) => memory.child(slot));
    check(new Set(children).size === children.length, () => `two ${kind} edges lead to one child`);
  }
  for (let slot = 1; slot < memory.at('SLOTS'); slot++) {
    const flags = memory.flags(slot);
    check((flags & LIVE) !== 0 || flags === 0, () => `free slot ${slot} has flags ${flags}`);
    if (!(flags & LIVE)) continue;
    const before = memory.flags(slot - 1);
    const isNext =
      !(flags & ROOT) &&
      (before & (LIVE | DERIVED)) === (flags & (LIVE | DERIVED)) &&
      memory.child(slot - 1) === memory.parent(slot);
    check(((flags & FOLLOWS) !== 0) === isNext, () => `slot ${slot} says wrongly whether it follows the one before`);
    check(
      !(flags & DERIVED) || (memory.link(slot) & KNOWN) !== 0,
      () => `derived edge ${slot} does not know its digest`,
    );
    check(!(flags & DERIVED) || !(flags & CONFLICT), () => `derived edge ${slot} is conflicted`);
  }
  const owned = new Set<number>();
  for (const index of memory.records()) {
    const owners = memory.owners(index);
    check(
      owners.length === 0 || owners[0] !== 0,
      () => `record ${index} has neither an owner nor a place among orphans`,
    );
    check(
      new Set(owners.map((slot) => memory.kind(slot))).size === owners.length,
      () => `record ${index}: owners of a kind`,
    );
    for (const slot of owners) {
      owned.add(slot);
      check((memory.flags(slot) & LIVE) !== 0, () => `record ${index} names slot ${slot}, which is free`);
      check(
        (memory.link(slot) & LINK_INDEX) === index,
        () => `record ${index} names slot ${slot}, which does not name it`,
      );
      check(
        memory.child(slot) === memory.u64(memory.record(index) + 24),
        () => `record ${index} is not slot ${slot}'s child`,
      );
      const highs = [memory.at('HIGH') + slot * 24, memory.record(index)].map((at) => memory.bytes(at, 24));
      check(highs[0] === highs[1], () => `record ${index} and slot ${slot} mean different digests`);
      check(
        memory.done(slot) === memory.done(owners[0]!),
        () => `owners of record ${index} differ in what is complete`,
      );
    }
  }
  for (const slot of live)
    if (!owned.has(slot)) check(memory.done(slot) === 0n, () => `slot ${slot} is complete without a digest`);
  const place = new Map<number, number>();
  for (let slot = memory.next(0); slot !== 0 && place.size <= live.length; slot = memory.next(slot))
    place.set(slot, place.size);
  const unconflicted = live.filter((slot) => !(memory.flags(slot) & CONFLICT));
  check(
    place.size === unconflicted.length && unconflicted.every((slot) => place.has(slot)),
    () => 'the LRU list is not that of the edges without conflict',
  );
  // A derived path is hotter than what is behind it, so that none of its edges leaves before those behind. Room for objects may leave such a gap.
  const slotOf = new Map(derived.map((slot) => [memory.child(slot), slot]));
  for (const slot of derived) {
    if (memory.flags(slot) & ROOT) continue;
    const parent = slotOf.get(memory.parent(slot));
    check(parent !== undefined || memory.wide, () => `derived edge ${slot} has lost its parent`);
    check(
      parent === undefined || place.get(parent)! < place.get(slot)!,
      () => `derived edge ${slot} is hotter than its parent`,
    );
  }
  return faults;
}

/** The core's state as the model would show it. */
export function coreSnapshot(core: Core): ModelSnapshot {
  const memory = readerOf(core);
  const at = (name: string): number => memory.at(name);
  const u64 = (address: number): bigint => memory.u64(address);
  const name = (slot: number): string =>
    `${memory.kind(slot) === 'derived' ? 'derived ' : ''}${hex(memory.child(slot))}`;

  const edges: ModelSnapshot['edges'][number][] = [];
  for (const slot of memory.liveSlots()) {
    const flags = memory.flags(slot);
    const link = memory.link(slot);
    const done = memory.done(slot);
    edges.push({
      kind: memory.kind(slot),
      parent: flags & ROOT ? 'root' : hex(memory.parent(slot)),
      local: hex(u64(at('LOCAL') + slot * 8)),
      child: hex(memory.child(slot)),
      conflicted: (flags & CONFLICT) !== 0,
      assumed: (link & ASSUMED) !== 0,
      salted: (link & SALTED) !== 0,
      high: link & KNOWN ? memory.bytes(at('HIGH') + slot * 24, 24) : null,
      complete: Array.from({ length: 64 }, (_, group) => group).filter((group) => (done >> BigInt(group)) & 1n),
    });
  }
  const keyOf = (edge: (typeof edges)[number]) => `${edge.kind} ${edge.parent}/${edge.local}`;
  edges.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));

  const lru: string[] = [];
  for (let slot = memory.next(0); slot !== 0; slot = memory.next(slot)) {
    lru.push(name(slot));
    if (lru.length > at('SLOTS')) throw new Error('the LRU list is a ring');
  }

  const members = memory.wide ? readMembers(core, memory.cell(CELL.generation)) : null;
  const digests: ModelSnapshot['digests'][number][] = [];
  const orphanOlder = new Map<number, number>();
  for (const index of memory.records()) {
    const record = memory.record(index);
    const objects: [number, number][] = [];
    for (let prefix = 0; prefix < memory.cell(CELL.prefixes); prefix++) {
      const media = members ? (members.get(index)?.get(prefix) ?? 0) : narrowMedia(u64, record, prefix);
      if (media !== 0) objects.push([prefix, media]);
    }
    const owners = memory.owners(index);
    if (owners.length === 0) orphanOlder.set(index, memory.u32(record + 60));
    for (const slot of owners) {
      if ((memory.link(slot) & LINK_INDEX) !== index)
        throw new Error(`record ${index} names slot ${slot}, which does not name it`);
    }
    digests.push({
      low64: hex(u64(record + 24)),
      high: memory.bytes(record, 24),
      hasEdge: owners.length > 0,
      kinds: owners
        .map((slot) => memory.kind(slot))
        .sort()
        .reverse(),
      objects,
    });
  }
  digests.sort((a, b) => (a.low64 < b.low64 ? -1 : 1));

  const withoutEdge: string[] = [];
  const newest = [...orphanOlder.keys()].find((index) => ![...orphanOlder.values()].includes(index));
  for (let index = newest ?? 0; index !== 0; index = orphanOlder.get(index)!)
    withoutEdge.unshift(hex(u64(memory.record(index) + 24)));

  const ambiguous: string[] = memory.cell(CELL.ambiguousZero) ? [hex(0n)] : [];
  for (let place = 0; place < 2 * at('AMBIGUOUS_CAP'); place++) {
    const low = u64(at('AMBIGUOUS_TABLE') + place * 8);
    if (low !== 0n) ambiguous.push(hex(low));
  }

  const stats = core.stats();
  return {
    edges,
    lru,
    digests,
    withoutEdge,
    ambiguous: ambiguous.sort(),
    counters: {
      edges: stats.edges,
      derivedEdges: stats.derivedEdges,
      conflicted: stats.conflicted,
      digests: stats.digests,
      memberships: stats.members,
      repeated: stats.repeatedEvents,
      replaced: stats.replaced,
      outranked: stats.outranked,
      full: stats.fullEvents,
      conflicts: stats.conflicts,
      ambiguities: stats.ambiguities,
      refused: stats.refusedObjects,
      dropsByConflict: stats.conflictDrops,
      dropsByAmbiguity: stats.ambiguityDrops,
      edgeEvictions: stats.edgeEvictions,
      digestEvictions: stats.digestEvictions,
      derivedBlocks: stats.derivedBlocks,
    },
  };
}

function narrowMedia(u64: (address: number) => bigint, record: number, prefix: number): number {
  const bit = (mask: bigint): number => Number((mask >> BigInt(prefix)) & 1n);
  return bit(u64(record + 32)) | (bit(u64(record + 40)) << 1) | (bit(u64(record + 48)) << 2);
}

/** record → prefix → media, from the member table of wide builds. */
function readMembers(core: Core, generation: number): Map<number, Map<number, number>> {
  const view = new DataView(core.exports.memory.buffer);
  const members = new Map<number, Map<number, number>>();
  const table = globalOf(core.exports, 'MEMBER_TABLE');
  for (let place = 0; place < 1 << globalOf(core.exports, 'MEMBER_BITS'); place++) {
    const entry = view.getUint32(table + place * 8, true);
    if (entry === 0 || view.getUint32(table + place * 8 + 4, true) !== generation) continue;
    const record = (entry >>> 13) + 1;
    const ofRecord = members.get(record) ?? new Map<number, number>();
    ofRecord.set((entry >>> 3) & 1023, entry & 7);
    members.set(record, ofRecord);
  }
  return members;
}
