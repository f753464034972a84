// Reads the whole state of a core instance out of its linear memory, in the shape of the model's snapshot, so that the two can be
// compared. Independent of the core's own code paths: it knows the layout (assembly/layout.ts, slots.ts, residency.ts) and follows it by hand.
import { globalOf } from '../../src/core/builds.js';
import type { Core } from '../../src/core/core.js';
import type { ModelSnapshot } from './model.js';

const LIVE = 1;
const CONFLICT = 4;
const ROOT = 8;
const KNOWN = 1 << 31;
const ASSUMED = 1 << 30;
const SALTED = 1 << 29;
const ORPHAN = 1 << 31;
const FREE = 1 << 30;
const CELL = { generation: 6, recordTop: 7, ambiguousZero: 12, prefixes: 19, groups: 18 };

const hex = (value: bigint): string => value.toString(16).padStart(16, '0');

/** The core's state as the model would show it. For the tiny builds, whose record indices take 8 bits. */
export function coreSnapshot(core: Core): ModelSnapshot {
  const { exports } = core;
  const at = (name: string): number => globalOf(exports, name);
  const view = new DataView(exports.memory.buffer);
  const u32 = (address: number): number => view.getUint32(address, true);
  const u64 = (address: number): bigint => view.getBigUint64(address, true);
  const bytes = (address: number, count: number): string =>
    Buffer.from(exports.memory.buffer, address, count).toString('hex');
  const cell = (index: number): number => u32(at('CELLS') + index * 4);
  const wide = at('MEMBER_CAP') > 0;

  const edges: ModelSnapshot['edges'][number][] = [];
  for (let slot = 1; slot < at('SLOTS'); slot++) {
    const flags = view.getUint8(at('FLAGS') + slot);
    if (!(flags & LIVE)) continue;
    const link = u32(at('LINK') + slot * 4);
    edges.push({
      parent: flags & ROOT ? 'root' : hex(u64(at('PARENT') + slot * 8)),
      local: hex(u64(at('LOCAL') + slot * 8)),
      child: hex(u64(at('EXTERNAL') + slot * 8)),
      conflicted: (flags & CONFLICT) !== 0,
      assumed: (link & ASSUMED) !== 0,
      salted: (link & SALTED) !== 0,
      high: link & KNOWN ? bytes(at('HIGH') + slot * 24, 24) : null,
    });
  }
  edges.sort((a, b) => (`${a.parent}/${a.local}` < `${b.parent}/${b.local}` ? -1 : 1));

  const lru: string[] = [];
  for (let slot = u32(at('NEXT')); slot !== 0; slot = u32(at('NEXT') + slot * 4)) {
    lru.push(hex(u64(at('EXTERNAL') + slot * 8)));
    if (lru.length > at('SLOTS')) throw new Error('the LRU list is a ring');
  }

  const record = (index: number): number => at('RECORDS') + index * 64;
  const members = wide ? readMembers(core, view, cell(CELL.generation)) : null;
  const digests: ModelSnapshot['digests'][number][] = [];
  const orphanOlder = new Map<number, number>();
  for (let index = 1; index < cell(CELL.recordTop); index++) {
    const owner = u32(record(index) + 56);
    const orphan = (owner & ORPHAN) !== 0;
    if (!orphan && owner & FREE) continue;
    const objects: [number, number][] = [];
    for (let prefix = 0; prefix < cell(CELL.prefixes); prefix++) {
      const media = wide ? (members!.get(index)?.get(prefix) ?? 0) : narrowMedia(u64, record(index), prefix);
      if (media !== 0) objects.push([prefix, media]);
    }
    if (orphan) orphanOlder.set(index, u32(record(index) + 60));
    else if ((u32(at('LINK') + owner * 4) & 0xff) !== index) {
      throw new Error(`record ${index} names slot ${owner}, which does not name it`);
    }
    digests.push({ low64: hex(u64(record(index) + 24)), high: bytes(record(index), 24), hasEdge: !orphan, objects });
  }
  digests.sort((a, b) => (a.low64 < b.low64 ? -1 : 1));

  const withoutEdge: string[] = [];
  const newest = [...orphanOlder.keys()].find((index) => ![...orphanOlder.values()].includes(index));
  for (let index = newest ?? 0; index !== 0; index = orphanOlder.get(index)!)
    withoutEdge.unshift(hex(u64(record(index) + 24)));

  const ambiguous: string[] = cell(CELL.ambiguousZero) ? [hex(0n)] : [];
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
    },
  };
}

function narrowMedia(u64: (address: number) => bigint, record: number, prefix: number): number {
  const bit = (mask: bigint): number => Number((mask >> BigInt(prefix)) & 1n);
  return bit(u64(record + 32)) | (bit(u64(record + 40)) << 1) | (bit(u64(record + 48)) << 2);
}

/** record → prefix → media, from the member table of wide builds. */
function readMembers(core: Core, view: DataView, generation: number): Map<number, Map<number, number>> {
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
