// Three answers to "how far can this request restart from the store?", each a search over all endpoints with a
// predicate written from the description in spec/vllm-store.md 4 and 5 (and, for the last, assembly/README.md):
//   bruteForceHit  what vLLM's coordinator grants for the bound n − 1
//   workerHit      what vLLM's worker reports: it asks for n and, told "all of it", asks again for n − 1
//   visibleHit     what a router may credit, which sees only boundaries at the ends of learned edges
// The first two know every object; `randomCase` makes stores and requests to compare the three on.
import type { GroupKind } from './model.js';
import type { Random } from './random.js';

export interface StoreGroup {
  readonly kind: GroupKind;
  /** Tokens per object. */
  readonly blockSize: number;
  /** Tokens; null unless the kind is sliding_window. */
  readonly window: number | null;
  /** How many prefixes (ranks) must hold an object before it counts. */
  readonly prefixes: number;
}

export interface StoreCase {
  /** H: tokens per digest. */
  readonly hashBlock: number;
  /** The coordinator's alignment without partial hits: LCM of the groups' blocks. */
  readonly lcm: number;
  readonly partial: boolean;
  /** b: tokens per learned edge. */
  readonly blockSize: number;
  readonly groups: readonly StoreGroup[];
  /** Objects in the store: [group, index of a prefix in that group, index of a digest]; digest i ends at (i + 1)·H. */
  readonly present: readonly (readonly [number, number, number])[];
  /** n */
  readonly tokenCount: number;
}

/** Groups with the same specification, which vLLM asks together: an object counts when every one of them has it. */
interface Unit extends StoreGroup {
  readonly members: number[];
}

/** Whether all groups of the unit have their whole object at this boundary (in tokens). */
type Has = (unit: Unit, boundary: number) => boolean;

/** Units in the order in which vLLM asks them: full attention first, otherwise as the store lists them. */
function unitsInOrder(groups: readonly StoreGroup[]): Unit[] {
  const units = new Map<string, Unit>();
  groups.forEach((group, index) => {
    const name = `${group.kind} ${group.blockSize} ${group.window}`;
    const unit = units.get(name);
    if (unit === undefined) units.set(name, { ...group, members: [index] });
    else unit.members.push(index);
  });
  const all = [...units.values()];
  const isFull = (unit: Unit): boolean => unit.kind === 'full_attention';
  return [...all.filter(isFull), ...all.filter((unit) => !isFull(unit))];
}

/** Presence of whole objects, cut off at the last boundary of which the request has a digest. */
function presence(store: StoreCase): Has {
  const { hashBlock, groups, tokenCount } = store;
  const ranks = new Map<string, Set<number>>();
  for (const [group, prefix, digest] of store.present) {
    const name = `${group} ${(digest + 1) * hashBlock}`;
    const there = ranks.get(name) ?? new Set();
    ranks.set(name, there.add(prefix));
  }
  return (unit, boundary) =>
    boundary > 0 &&
    boundary <= tokenCount &&
    boundary % hashBlock === 0 &&
    unit.members.every((group) => ranks.get(`${group} ${boundary}`)?.size === groups[group]!.prefixes);
}

/** Blocks of the window that must be there before an endpoint; the query's own token needs none. */
const windowBlocks = (unit: StoreGroup): number => Math.ceil((unit.window! - 1) / unit.blockSize);

function windowHolds(unit: Unit, end: number, has: Has): boolean {
  const from = Math.max(0, end - windowBlocks(unit) * unit.blockSize);
  for (let boundary = end; boundary > from; boundary -= unit.blockSize) if (!has(unit, boundary)) return false;
  return true;
}

/** The largest number in (0, from] that holds, else 0. */
function largest(from: number, holds: (end: number) => boolean): number {
  let end = Math.max(0, from);
  while (end > 0 && !holds(end)) end--;
  return end;
}

/** How far a full-attention unit serves, asked with a bound: whole blocks, then (partial hits) one tail object. */
function reachOf(unit: Unit, bound: number, store: StoreCase, has: Has): number {
  let run = 0;
  while (run + unit.blockSize <= bound && has(unit, run + unit.blockSize)) run += unit.blockSize;
  if (!store.partial || unit.blockSize <= store.hashBlock) return run;
  const tail = largest(Math.min(bound, run + unit.blockSize - store.hashBlock), (end) => end <= run || has(unit, end));
  return Math.max(run, tail);
}

/** The coordinator's answer for a bound in tokens. */
function coordinatorHit(store: StoreCase, bound: number): number {
  const { hashBlock, lcm, partial } = store;
  const has = presence(store);
  const units = unitsInOrder(store.groups);
  if (!partial) {
    return largest(bound, (end) => {
      if (end % lcm !== 0) return false;
      return units.every((unit) => {
        if (unit.kind === 'full_attention') return end % unit.blockSize === 0 && reachOf(unit, end, store, has) >= end;
        return unit.kind === 'mamba' ? has(unit, end) : windowHolds(unit, end, has);
      });
    });
  }
  // Full attention is asked once, one unit after the other, each with what the one before left; afterwards its reach
  // is only a lid. The other units then lower the common endpoint until all of them hold there.
  let lid = bound;
  for (const unit of units) if (unit.kind === 'full_attention') lid = reachOf(unit, lid, store, has);
  return largest(lid, (end) =>
    units.every((unit) => {
      if (unit.kind === 'full_attention') return true;
      if (unit.kind === 'mamba') return has(unit, end) && (unit.blockSize > hashBlock || end % unit.blockSize === 0);
      return end % unit.blockSize === 0 && windowHolds(unit, end, has);
    }),
  );
}

/** What vLLM's coordinator grants when asked, as the reference's oracle asks, with the bound n − 1. */
export function bruteForceHit(store: StoreCase): number {
  return coordinatorHit(store, store.tokenCount - 1);
}

/** What vLLM's worker reports as restorable: the two-pass rule. */
export function workerHit(store: StoreCase): number {
  const n = store.tokenCount;
  const alignment = store.partial ? store.hashBlock : store.lcm;
  const alignDown = (tokens: number): number => Math.max(0, Math.floor(tokens / alignment) * alignment);
  const hit = coordinatorHit(store, alignDown(n));
  return n > 0 && hit >= n ? coordinatorHit(store, alignDown(n - 1)) : hit;
}

/**
 * The Lookup rule of assembly/README.md over the objects at the ends of learned edges.
 * @param learnedBlocks how many of the request's edges, from the root, are known
 */
export function visibleHit(store: StoreCase, learnedBlocks = Number.POSITIVE_INFINITY): number {
  const { hashBlock, lcm, partial, blockSize, tokenCount: n } = store;
  const present = presence(store);
  const walkable = Math.floor((partial ? n : n - 1) / blockSize);
  const walked = Math.max(0, Math.min(walkable, learnedBlocks)) * blockSize;
  const units = unitsInOrder(store.groups);
  const seen: Has = (unit, boundary) => boundary % blockSize === 0 && boundary <= walked && present(unit, boundary);

  /** Every multiple of the unit's block up to `end` is seen. */
  const wholeTo = (unit: Unit, end: number): boolean =>
    end <= 0 || (seen(unit, end) && wholeTo(unit, end - unit.blockSize));
  /** The unit serves `end`: by whole blocks, or by a tail object at or behind `end` in the block that follows them. */
  const serves = (unit: Unit, end: number, bound: number): boolean => {
    for (let run = 0; run <= bound; run += unit.blockSize) {
      if (!wholeTo(unit, run)) return false;
      if (end <= run) return true;
      const runEndsHere = run + unit.blockSize > bound || !seen(unit, run + unit.blockSize);
      if (!runEndsHere || !partial || unit.blockSize <= hashBlock) continue;
      for (let tail = end; tail <= Math.min(bound, run + unit.blockSize - hashBlock); tail++)
        if (seen(unit, tail)) return true;
    }
    return false;
  };
  const largestEndpoint = (bound: number): number => {
    let lid = bound;
    for (const unit of units) {
      const asked = lid;
      if (unit.kind === 'full_attention') lid = largest(asked, (end) => serves(unit, end, asked));
    }
    return largest(lid, (end) => {
      if (end % blockSize !== 0 || (!partial && end % lcm !== 0)) return false;
      return units.every((unit) => {
        if (unit.kind === 'full_attention') return true;
        if (unit.kind === 'mamba') return seen(unit, end);
        return end % unit.blockSize === 0 && windowHolds(unit, end, seen);
      });
    });
  };

  const hit = largestEndpoint(walked);
  return hit === n && hit > 0 ? largestEndpoint(n - 1) : hit;
}

/**
 * Whether a router that knows all edges and objects sees as much as the worker, whatever is stored: then, and only then,
 * is `visibleHit` equal to `workerHit` for every residency of this geometry.
 */
export function seesAsMuchAsTheWorker({ hashBlock, blockSize, partial, groups }: StoreCase): boolean {
  const full = groups.filter((group) => group.kind === 'full_attention');
  const windows = groups.filter((group) => group.kind === 'sliding_window');
  const onEdges = (group: StoreGroup): boolean => group.blockSize % blockSize === 0;
  // Every block of a run and of a window has to end where an edge does; of a window of one block only the endpoint.
  if (!full.every(onEdges) || !windows.every((group) => onEdges(group) || windowBlocks(group) <= 1)) return false;
  // Endpoints and tails between the ends of edges are missed, unless a window that has no others rules them out.
  return (
    !partial ||
    blockSize === hashBlock ||
    (windows.some(onEdges) && full.every((group) => group.blockSize === blockSize))
  );
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
const lcmOf = (sizes: readonly number[]): number => sizes.reduce((a, b) => (a / gcd(a, b)) * b, 1);

/** A geometry that an engine can have: blocks are multiples of H, partial hits are on iff a mamba block exceeds H. */
function randomGeometry(random: Random): Omit<StoreCase, 'present' | 'tokenCount'> {
  const hashBlock = random.pick([1, 1, 2, 3, 4, 4, 8, 16]);
  const spans = random.chance(0.85) ? [1, 1, 2, 2, 4, 8] : [1, 2, 3, 4, 6];
  const blockOf = (): number => hashBlock * random.pick(spans);
  const fullAttention = (): Omit<StoreGroup, 'prefixes'> => ({
    kind: 'full_attention',
    blockSize: blockOf(),
    window: null,
  });
  const slidingWindow = (): Omit<StoreGroup, 'prefixes'> => {
    const blockSize = blockOf();
    const blocks = random.pick([1, 1, 2, 3, 5, 100]);
    // From one block to more than the prompt; just below, at and just above a block's edge.
    const window = Math.max(2, blocks * blockSize + random.pick([-1, 0, 1, 2]));
    return { kind: 'sliding_window', blockSize, window };
  };
  const partialWanted = random.chance(0.6);
  const mamba = (): Omit<StoreGroup, 'prefixes'> => ({
    kind: 'mamba',
    blockSize: partialWanted ? blockOf() : hashBlock,
    window: null,
  });
  const shapes: Omit<StoreGroup, 'prefixes'>[] = [];
  const count = random.between(1, 4);
  if (random.chance(0.93)) shapes.push(fullAttention());
  if (shapes.length > 0 && count > 1 && random.chance(0.25))
    shapes.push(random.chance(0.4) ? { ...shapes[0]! } : fullAttention());
  while (shapes.length < count) shapes.push(random.chance(0.5) ? mamba() : slidingWindow());
  if (shapes.length > 2 && random.chance(0.15)) shapes[2] = { ...shapes[1]! };
  // Two spans of full attention with partial hits, the shape in which the order of asking matters.
  if (random.chance(0.08))
    shapes.splice(0, count, fullAttention(), fullAttention(), { ...mamba(), blockSize: blockOf() });
  random.shuffle(shapes);
  // Full and sliding attention of one engine share their shards; mamba may need more of them.
  const attentionPrefixes = random.pick([1, 1, 2, 3, 4]);
  const mambaPrefixes = random.chance(0.7) ? attentionPrefixes : random.between(1, 4);
  const groups = shapes.map((shape) => ({
    ...shape,
    prefixes: shape.kind === 'mamba' ? mambaPrefixes : attentionPrefixes,
  }));
  const main = groups.find((group) => group.kind === 'full_attention') ?? random.pick(groups);
  return {
    hashBlock,
    lcm: lcmOf(groups.map((group) => group.blockSize)),
    partial: groups.some((group) => group.kind === 'mamba' && group.blockSize > hashBlock),
    blockSize: main.blockSize,
    groups,
  };
}

/** A random store and request: mostly what producers write (runs, late windows, single states), with faults in it. */
export function randomCase(random: Random): StoreCase {
  const geometry = randomGeometry(random);
  const { hashBlock, lcm, partial, blockSize, groups } = geometry;
  const digests = Math.min(160, random.between(1, Math.max(6, Math.ceil((random.between(1, 5) * lcm) / hashBlock))));
  const end = digests * hashBlock;

  const alignment = random.pick([1, hashBlock, blockSize, lcm]);
  const length = random.chance(0.2) ? random.between(0, end + blockSize) : random.between(Math.floor(end * 0.6), end);
  const aligned = Math.floor(length / alignment) * alignment;
  const tokenCount = Math.max(0, random.chance(0.5) ? aligned : aligned + random.pick([-1, 1, 0]));

  // A few points where an earlier prompt ended: states and windows are written there.
  const point = (): number => random.between(1, digests) * hashBlock;
  const points = [end, ...Array.from({ length: random.between(0, 4) }, point)].map((at) => {
    const step = random.pick([hashBlock, blockSize, lcm]);
    return Math.max(hashBlock, Math.floor(at / step) * step);
  });
  const nearEnd = Math.floor(tokenCount / hashBlock) * hashBlock;
  if (nearEnd > 0 && random.chance(0.5)) points.push(nearEnd);

  const present: [number, number, number][] = [];
  const holes = random.pick([0, 0, 0.02, 0.1, 0.3]);
  const missingRanks = random.pick([0, 0, 0.01, 0.1]);
  const density = random.pick([0.3, 0.6, 0.9, 1]);
  groups.forEach((group, index) => {
    const { kind, prefixes } = group;
    const boundaries = new Set<number>();
    const step = group.blockSize;
    const pattern = random.int(8);
    if (pattern === 0) {
      for (let at = hashBlock; at <= end; at += hashBlock) if (random.chance(density)) boundaries.add(at);
    } else if (pattern === 1 || kind === 'full_attention') {
      const run = random.chance(0.5) ? end : random.pick(points);
      for (let at = step; at <= run; at += step) boundaries.add(at);
    }
    if (kind === 'sliding_window') {
      const blocks = Math.min(Math.ceil(group.window! / step), Math.ceil(end / step)) + random.pick([-1, 0, 0, 1]);
      for (const at of points) {
        const last = Math.floor(at / step) * step;
        for (let i = 0; i < blocks; i++) boundaries.add(last - i * step);
      }
    }
    if (kind === 'mamba') for (const at of points) boundaries.add(partial ? at : Math.floor(at / step) * step);
    // The tail object of a prompt that ended inside a full-attention block.
    if (kind === 'full_attention' && partial) for (const at of points) if (random.chance(0.8)) boundaries.add(at);
    if (random.chance(0.1)) boundaries.add(point());
    for (const at of boundaries) {
      if (at <= 0 || random.chance(holes)) continue;
      for (let prefix = 0; prefix < prefixes; prefix++)
        if (!random.chance(missingRanks)) present.push([index, prefix, at / hashBlock - 1]);
    }
  });
  return { ...geometry, present, tokenCount };
}
