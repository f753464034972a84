// The core's numbers by name. Positions are those of assembly/cells.ts: cells are what is, counters what has happened since the
// instance was made.

const CELLS = {
  edges: 0,
  conflicted: 1,
  digests: 2,
  members: 3,
  digestsWithoutEdge: 4,
  ambiguous: 5,
  generation: 6,
  derivedEdges: 23,
} as const;

const COUNTERS = {
  learned: 0,
  repeatedEvents: 1,
  replaced: 2,
  outranked: 3,
  fullEvents: 4,
  conflicts: 5,
  conflictDrops: 6,
  edgeEvictions: 7,
  ambiguities: 8,
  ambiguityDrops: 9,
  digestEvictions: 10,
  clears: 11,
  skippedAmbiguous: 12,
  refusedObjects: 13,
  lookups: 14,
  walkedBlocks: 15,
  runs: 16,
  movedSlots: 17,
  storedObjects: 18,
  removedObjects: 19,
  derivedBlocks: 20,
} as const;

/**
 * Use of every table, and what has happened. `members` counts (object, medium) pairs in builds whose only cap is that of digests
 * (`caps.members` is null), objects otherwise. `runs` / `walkedBlocks` says how scattered the walked chains lie in memory.
 */
export interface CoreStats extends Record<keyof typeof CELLS | keyof typeof COUNTERS, number> {
  readonly caps: {
    readonly edges: number;
    readonly digests: number;
    readonly members: number | null;
    readonly ambiguous: number;
  };
  /** Bytes of linear memory, reserved at start. */
  readonly memoryBytes: number;
}

/** Reads the numbers from views over the core's memory. */
export function readStats(
  cells: Uint32Array,
  counters: BigUint64Array,
): Record<keyof typeof CELLS | keyof typeof COUNTERS, number> {
  const stats: Record<string, number> = {};
  for (const [name, index] of Object.entries(CELLS)) stats[name] = cells[index]!;
  for (const [name, index] of Object.entries(COUNTERS)) stats[name] = Number(counters[index]!);
  return stats as Record<keyof typeof CELLS | keyof typeof COUNTERS, number>;
}
