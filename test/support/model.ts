// The core as plain Maps and BigInt: what `assembly/README.md` says, rule by rule, and nothing else. It is slow and
// meant to be obviously right; the WebAssembly core has to show the same snapshot after every step. It was written
// from the rule book alone. Where the rule book leaves a choice, the choice taken here is marked "Choice:".

export type GroupKind = 'full_attention' | 'sliding_window' | 'mamba';

export interface ModelGroup {
  readonly kind: GroupKind;
  /** Tokens per object of this group. */
  readonly blockSize: number;
  /** Sliding window in tokens, null for other kinds. */
  readonly window: number | null;
}

/** The part of a contract that the core knows. All sizes in tokens. */
export interface ModelContract {
  /** b: span of one learned edge. A derived edge spans `hashBlock`. */
  readonly blockSize: number;
  /** A: the coordinator's alignment. */
  readonly lcm: number;
  /** H: tokens per digest. */
  readonly hashBlock: number;
  /** Whether the coordinator grants partial hash hits. */
  readonly partial: boolean;
  readonly groups: readonly ModelGroup[];
  /** prefix id → index of its group. */
  readonly prefixes: readonly number[];
}

export interface ModelOptions {
  readonly edgeCap: number;
  /** Default: the edge cap. */
  readonly digestCap?: number;
  readonly ambiguousCap: number;
  /** Wide builds keep one entry for each (digest, prefix) and bound their number. */
  readonly wide?: boolean;
  /** Wide builds only. */
  readonly membershipCap?: number;
  /** There are learned edges (default), not derived ones alone. */
  readonly learns?: boolean;
  readonly contract: ModelContract;
}

export interface ModelBlock {
  readonly local: bigint;
  readonly child: bigint;
  /** First 24 bytes of the child's digest, 48 lowercase hexadecimal digits. */
  readonly high?: string | undefined;
}

export interface ModelEvent {
  /** null = root. */
  readonly parent: bigint | null;
  readonly salted: boolean;
  readonly blocks: readonly ModelBlock[];
}

/** Learned from a worker's event, or computed from a prompt's tokens. Each kind has a key space of its own. */
export type EdgeKind = 'learned' | 'derived';
const KINDS: readonly EdgeKind[] = ['learned', 'derived'];

/**
 * How deriving a prompt ended: all its blocks are known now; full attention lacks an object, so that no more of them can count; or it can't
 * be said, since the path found no room, met an ambiguous hash, or was pushed out since its last part.
 */
export type Derived = 'end' | 'gap' | 'cut';

export interface ModelDigest {
  /** First 24 bytes, 48 lowercase hexadecimal digits. */
  readonly high: string;
  /** Last 8 bytes, big endian. */
  readonly low64: bigint;
}

export interface ModelHit {
  /** Tokens that may be credited. */
  readonly hit: number;
  /** Edges walked. */
  readonly walked: number;
  /** Whether the group is complete at the end of the walked block with this index (0 … walked − 1), now. */
  completeAt(block: number, group: number): boolean;
}

export interface ModelSnapshot {
  readonly edges: readonly {
    kind: EdgeKind;
    parent: string;
    local: string;
    child: string;
    conflicted: boolean;
    assumed: boolean;
    salted: boolean;
    high: string | null;
    /** Groups that are complete for its child as far as the edge is concerned: what a lookup would read. */
    complete: number[];
  }[];
  /** Children of the edges in the LRU list, hottest first; those of derived edges with the word before them. */
  readonly lru: readonly string[];
  readonly digests: readonly {
    low64: string;
    high: string;
    hasEdge: boolean;
    /** Of the edges that it is linked with. */
    kinds: EdgeKind[];
    objects: [number, number][];
  }[];
  /** low64 of the digests without an edge, oldest first. */
  readonly withoutEdge: readonly string[];
  readonly ambiguous: readonly string[];
  readonly counters: ModelCounters & {
    edges: number;
    derivedEdges: number;
    conflicted: number;
    digests: number;
    memberships: number;
  };
}

export interface ModelCounters {
  repeated: number;
  replaced: number;
  outranked: number;
  full: number;
  conflicts: number;
  ambiguities: number;
  refused: number;
  dropsByConflict: number;
  dropsByAmbiguity: number;
  edgeEvictions: number;
  digestEvictions: number;
  /** Digests computed. */
  derivedBlocks: number;
}

interface Edge {
  readonly kind: EdgeKind;
  readonly parent: bigint | null;
  readonly local: bigint;
  readonly child: bigint;
  conflicted: boolean;
  assumed: boolean;
  salted: boolean;
  high: string | null;
}

interface Digest {
  readonly low64: bigint;
  readonly high: string;
  /** prefix id → media (cpu 1, disk 2, unknown 4); never 0. */
  readonly objects: Map<number, number>;
}

/** Room for one object may cost this many departures in a wide build. */
const DEPARTURES_AN_EVENT = 256;
/** Blocks derived before the first look whether they count; twice as many each time. */
const FIRST_PART = 16;
/** More conflicted edges than this part of the edge cap drop everything. */
const CONFLICTED_PART = 16;

const hex = (value: bigint): string => value.toString(16).padStart(16, '0');
const keyOf = (kind: EdgeKind, parent: bigint | null, local: bigint): string =>
  `${kind} ${parent === null ? 'root' : hex(parent)}/${hex(local)}`;

export class CoreModel {
  readonly options: ModelOptions;
  readonly #contract: ModelContract;
  readonly #digestCap: number;
  readonly #units: ModelUnit[];
  /** Ids of each group's prefixes. */
  readonly #prefixesOf: readonly (readonly number[])[];

  readonly #byKey = new Map<string, Edge>();
  /** At most one of each kind a child. */
  readonly #byChild: Readonly<Record<EdgeKind, Map<bigint, Edge>>> = { learned: new Map(), derived: new Map() };
  /** Edges that are not conflicted, coldest first. */
  readonly #lru = new Set<Edge>();
  #conflicted = 0;

  readonly #digests = new Map<bigint, Digest>();
  /** low64 of resident digests without an edge, oldest first. */
  #withoutEdge = new Set<bigint>();
  readonly #ambiguous = new Set<bigint>();
  #memberships = 0;
  /** All that the store holds is known: told whole, and nothing of it forgotten since. */
  #whole = false;

  readonly counters: ModelCounters = {
    repeated: 0,
    replaced: 0,
    outranked: 0,
    full: 0,
    conflicts: 0,
    ambiguities: 0,
    refused: 0,
    dropsByConflict: 0,
    dropsByAmbiguity: 0,
    edgeEvictions: 0,
    digestEvictions: 0,
    derivedBlocks: 0,
  };

  constructor(options: ModelOptions) {
    this.options = options;
    this.#contract = options.contract;
    this.#digestCap = options.digestCap ?? options.edgeCap;
    this.#units = unitsOf(options.contract.groups);
    const { groups, prefixes } = options.contract;
    this.#prefixesOf = groups.map((_, group) => [...prefixes.keys()].filter((prefix) => prefixes[prefix] === group));
  }

  // ---- Learned edges -------------------------------------------------------------------------------------------

  learn({ parent, salted, blocks }: ModelEvent): void {
    const named = [...(parent === null ? [] : [parent]), ...blocks.map((block) => block.child)];
    if (new Set(named).size !== named.length) {
      this.counters.repeated++;
      return;
    }
    const parentEdge = parent === null ? undefined : this.#byChild.learned.get(parent);
    // Choice: a conflicted parent counts by its own flags, as any known edge does.
    const assumed = !salted && parent !== null && (parentEdge === undefined || parentEdge.assumed || parentEdge.salted);
    // While the event runs its own edges stand outside the LRU list, ahead of it; so an empty list means that the
    // coldest edge is one of this event's. A drop of everything may leave strangers here, which are then not put back.
    const own: Edge[] = [];
    let previous = parent;
    for (const block of blocks) {
      const edge = this.#learnBlock(previous, block, salted, assumed);
      if (edge === null) break;
      this.#lru.delete(edge);
      own.push(edge);
      previous = block.child;
    }
    this.#becomeHottest(own);
  }

  /** Edges that stood outside the LRU list go to its hot end in their order, but for those that have been dropped since. */
  #becomeHottest(own: readonly Edge[]): void {
    for (const edge of own.toReversed()) if (this.#byChild[edge.kind].get(edge.child) === edge) this.#lru.add(edge);
  }

  /** The block's edge, touched or inserted, or null when learning stops before the next block. */
  #learnBlock(parent: bigint | null, block: ModelBlock, salted: boolean, assumed: boolean): Edge | null {
    const high = block.high ?? null;
    const known = this.#byKey.get(keyOf('learned', parent, block.local));
    if (known !== undefined) {
      if (known.conflicted) return null;
      if (known.child !== block.child) {
        this.#conflict(known);
        return null;
      }
      if (known.assumed && !assumed) {
        known.salted = salted;
        known.assumed = false;
      }
      if (high !== null && known.high === null) known.high = high;
      else if (high !== null && known.high !== high) this.#becomeAmbiguous(block.child);
      return known;
    }
    let inherited: string | null = null;
    const other = this.#byChild.learned.get(block.child);
    if (other !== undefined) {
      if (other.conflicted) return null;
      if (other.assumed && !assumed) {
        inherited = other.high;
        this.#edgeLeaves(other);
        this.counters.replaced++;
      } else if (assumed && !other.assumed) {
        this.counters.outranked++;
        return null;
      } else {
        this.#conflict(other);
        return null;
      }
    }
    if (!this.#makeRoomForEdge()) return null;
    const edge: Edge = {
      kind: 'learned',
      parent,
      local: block.local,
      child: block.child,
      conflicted: false,
      assumed,
      salted,
      high: inherited ?? high,
    };
    this.#insert(edge);
    const digest = this.#digests.get(block.child);
    this.#withoutEdge.delete(block.child);
    const told = digest?.high ?? inherited;
    // Choice: a `high` that differs from the one inherited from a replaced edge makes the low64 ambiguous as well.
    if (high !== null && told !== null && told !== high) this.#becomeAmbiguous(block.child);
    else if (digest !== undefined) edge.high = digest.high;
    return edge;
  }

  /** False where all edges in the LRU list are the event's or the prompt's own. */
  #makeRoomForEdge(): boolean {
    if (this.#byKey.size < this.options.edgeCap) return true;
    const coldest = first(this.#lru, () => true);
    if (coldest === undefined) {
      this.counters.full++;
      return false;
    }
    this.#edgeLeaves(coldest);
    this.counters.edgeEvictions++;
    return true;
  }

  #insert(edge: Edge): void {
    this.#byKey.set(keyOf(edge.kind, edge.parent, edge.local), edge);
    this.#byChild[edge.kind].set(edge.child, edge);
  }

  distrust(children: readonly bigint[]): void {
    for (const child of children) {
      const edge = this.#byChild.learned.get(child);
      if (edge !== undefined && !edge.conflicted) this.#conflict(edge);
    }
  }

  #conflict(edge: Edge): void {
    edge.conflicted = true;
    this.#conflicted++;
    this.counters.conflicts++;
    this.#lru.delete(edge);
    // Choice: the digest of an edge that became conflicted stands where that of an edge that left would.
    this.#becomesOldestWithoutEdge(edge.child);
    if (this.#conflicted > this.options.edgeCap / CONFLICTED_PART) {
      this.counters.dropsByConflict++;
      this.#dropEdgesAndResidency();
    }
  }

  #edgeLeaves(edge: Edge): void {
    this.#byKey.delete(keyOf(edge.kind, edge.parent, edge.local));
    this.#byChild[edge.kind].delete(edge.child);
    this.#lru.delete(edge);
    this.#becomesOldestWithoutEdge(edge.child);
  }

  /** An edge to it is no more: unless the other kind has one, it is the oldest of those without. */
  #becomesOldestWithoutEdge(low64: bigint): void {
    if (this.#digests.has(low64) && this.#kindsOf(low64).length === 0)
      this.#withoutEdge = new Set([low64, ...this.#withoutEdge]);
  }

  #dropEdgesAndResidency(): void {
    this.#byKey.clear();
    for (const kind of KINDS) this.#byChild[kind].clear();
    this.#lru.clear();
    this.#conflicted = 0;
    this.clearResidency();
  }

  // ---- Derived edges -------------------------------------------------------------------------------------------

  /**
   * Derives blocks `from` … `to` − 1 of a prompt; those before `from` should be known. `keys` and `digests` are those of all its blocks: the
   * engine's digests as anyone can compute them, and a key for each that stands for its tokens and extra keys.
   */
  derive(keys: readonly bigint[], digests: readonly ModelDigest[], from: number, to: number): Derived {
    if (this.#digests.size === 0) return 'gap'; // whatever the prompt is, nothing of it is complete
    // As while an event is learned, the prompt's own edges stand outside the LRU list, ahead of it.
    const own = this.#walk('derived', keys.slice(0, to));
    for (const edge of own) this.#lru.delete(edge);
    const ended = own.length < from ? 'cut' : this.#deriveBehind(own, keys, digests, to);
    this.#becomeHottest(own);
    return ended;
  }

  #deriveBehind(own: Edge[], keys: readonly bigint[], digests: readonly ModelDigest[], to: number): Derived {
    const hasGap = () => this.#hasGap(own.length, (block, group) => this.#isCompleteBehind(own[block]!, group));
    for (let part = FIRST_PART; own.length < to; part *= 2) {
      if (hasGap()) return 'gap';
      const end = Math.min(own.length + part, to);
      this.counters.derivedBlocks += end - own.length;
      while (own.length < end) {
        const edge = this.#deriveBlock(own.at(-1)?.child ?? null, keys[own.length]!, digests[own.length]!);
        if (edge === null) return 'cut';
        this.#lru.delete(edge);
        own.push(edge);
      }
    }
    return hasGap() ? 'gap' : 'end';
  }

  /** The edge inserted or found, or null when deriving stops before the block. */
  #deriveBlock(parent: bigint | null, local: bigint, { low64, high }: ModelDigest): Edge | null {
    if (this.#ambiguous.has(low64)) return null;
    const other = this.#byChild.derived.get(low64);
    if (other !== undefined) {
      // Room for objects may have taken the parent and left its child.
      if (other.high === high && this.#byKey.get(keyOf('derived', parent, local)) === other) return other;
      // Choice: one digest under two keys, which takes two keys for the same input, stays under its first.
      if (other.high !== high) this.#becomeAmbiguous(low64);
      return null;
    }
    if (!this.#makeRoomForEdge()) return null;
    const flags = { conflicted: false, assumed: false, salted: false };
    const edge: Edge = { kind: 'derived', parent, local, child: low64, ...flags, high };
    this.#insert(edge);
    this.#withoutEdge.delete(low64);
    const resident = this.#digests.get(low64);
    if (resident !== undefined && resident.high !== high) this.#becomeAmbiguous(low64);
    // Ambiguity may have dropped everything, this edge too.
    return this.#byChild.derived.get(low64) === edge ? edge : null;
  }

  /** Whether the digest is known as a derived edge's child. */
  isDerived(low64: bigint): boolean {
    return this.#byChild.derived.has(low64);
  }

  // ---- Residency -----------------------------------------------------------------------------------------------

  /** @param medium one of 1 (cpu), 2 (disk), 4 (unknown) */
  stored(digest: ModelDigest, prefix: number, medium: number): void {
    if (!this.#mayBeKept(digest)) return;
    const { high, low64 } = digest;
    const already = this.#digests.get(low64);
    if (already === undefined && this.#digests.size >= this.#digestCap) this.#makeRoomForDigest(low64);
    const isNewObject = already === undefined || !already.objects.has(prefix);
    if (this.options.wide && isNewObject && !this.#makeRoomForObject(low64)) {
      // Choice: a refused object changes nothing of its digest, neither its place in the order nor the edge's `high`.
      this.counters.refused++;
      this.#whole = false;
      return;
    }
    let kept = already;
    if (kept === undefined) {
      kept = { low64, high, objects: new Map() };
      this.#digests.set(low64, kept);
      // Choice: a conflicted edge isn't linked, so its unknown `high` stays unknown.
      for (const kind of this.#kindsOf(low64)) this.#byChild[kind].get(low64)!.high = high;
    }
    const media = kept.objects.get(prefix) ?? 0;
    if (this.options.wide ? media === 0 : (media & medium) === 0) this.#memberships++;
    kept.objects.set(prefix, media | medium);
    if (this.#kindsOf(low64).length === 0) {
      this.#withoutEdge.delete(low64);
      this.#withoutEdge.add(low64);
    }
  }

  /** @param mediaMask the media that are cleared: sum of 1 (cpu), 2 (disk), 4 (unknown) */
  removed(digest: ModelDigest, prefix: number, mediaMask: number): void {
    if (!this.#mayBeKept(digest)) return;
    const kept = this.#digests.get(digest.low64);
    const media = kept?.objects.get(prefix);
    if (kept === undefined || media === undefined) return;
    const left = media & ~mediaMask;
    if (left !== 0) kept.objects.set(prefix, left);
    else kept.objects.delete(prefix);
    if (!this.options.wide) this.#memberships -= bitCount(media) - bitCount(left);
    else if (left === 0) this.#memberships--;
    if (kept.objects.size === 0) this.#digestLeaves(kept);
  }

  /**
   * Replaces residency by what is listed, in medium unknown. Where not all of it fits, digests with an edge come first; a digest comes whole or
   * not at all, and none leaves for it.
   */
  replaceResidency(listed: readonly { digest: ModelDigest; prefixes: readonly number[] }[]): void {
    this.clearResidency();
    const cap = this.options.wide ? (this.options.membershipCap ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const place = ({ digest, prefixes }: (typeof listed)[number]) => {
      for (const prefix of prefixes) this.stored(digest, prefix, 4);
    };
    const objects = listed.reduce((sum, { prefixes }) => sum + prefixes.length, 0);
    if (listed.length <= this.#digestCap && objects <= cap) {
      this.#whole = true;
      for (const one of listed) place(one);
      return;
    }
    for (const withEdge of [true, false]) {
      for (const one of listed) {
        const { low64 } = one.digest;
        if (this.#kindsOf(low64).length > 0 !== withEdge) continue;
        if (this.#digests.size >= this.#digestCap && !this.#digests.has(low64)) continue;
        if (this.#memberships + one.prefixes.length <= cap) place(one);
      }
    }
  }

  clearResidency(): void {
    this.#digests.clear();
    this.#withoutEdge.clear();
    this.#memberships = 0;
    this.#whole = false;
  }

  /** A contract change: edges, residency and the ambiguous set go. Choice: the counters of what happened stay. */
  dropAll(): void {
    this.#dropEdgesAndResidency();
    this.#ambiguous.clear();
  }

  /** What stored and removed do first: false when the event ends here. */
  #mayBeKept({ high, low64 }: ModelDigest): boolean {
    if (this.#ambiguous.has(low64)) {
      this.#whole = false;
      return false;
    }
    // A conflicted edge is still "the edge whose child it is".
    const resident = this.#digests.get(low64);
    const highs = resident ? [resident.high] : KINDS.map((kind) => this.#byChild[kind].get(low64)?.high ?? high);
    if (highs.every((told) => told === high)) return true;
    this.#becomeAmbiguous(low64);
    return false;
  }

  #becomeAmbiguous(low64: bigint): void {
    if (this.#ambiguous.has(low64)) return;
    const digest = this.#digests.get(low64);
    if (digest !== undefined) this.#digestLeaves(digest);
    if (this.#ambiguous.size >= this.options.ambiguousCap) {
      this.counters.dropsByAmbiguity++;
      this.#dropEdgesAndResidency();
      this.#ambiguous.clear();
    }
    this.#ambiguous.add(low64);
    this.counters.ambiguities++;
    this.#whole = false;
  }

  /** Kinds of the edges that a digest of this low64 is linked with. */
  #kindsOf(low64: bigint): EdgeKind[] {
    return KINDS.filter((kind) => this.#byChild[kind].get(low64)?.conflicted === false);
  }

  #digestLeaves(digest: Digest): void {
    this.#digests.delete(digest.low64);
    this.#withoutEdge.delete(digest.low64);
    for (const media of digest.objects.values()) this.#memberships -= this.options.wide ? 1 : bitCount(media);
  }

  #evictDigest(low64: bigint): void {
    this.#digestLeaves(this.#digests.get(low64)!);
    this.counters.digestEvictions++;
    this.#whole = false;
  }

  #makeRoomForDigest(low64: bigint): void {
    const spared = this.options.learns === false ? this.#digestCap / 2 : -1;
    if (this.#withoutEdge.size <= spared && this.#coldestDigestLeaves(low64)) return;
    // With equal caps, when all digests have an edge all edges have a digest, and the coldest edge is the first one.
    const victim =
      first(this.#withoutEdge, () => true) ?? first(this.#lru, (edge) => this.#digests.has(edge.child))?.child;
    if (victim !== undefined) this.#evictDigest(victim);
  }

  /**
   * Derived edges alone: the coldest edge's digest goes, and colder edges without one; not the stored digest's own edge, nor its parents. Only so many
   * edges are looked at.
   */
  #coldestDigestLeaves(low64: bigint): boolean {
    let needed = false;
    for (const edge of [...this.#lru].slice(0, DEPARTURES_AN_EVENT)) {
      if (this.#digests.has(edge.child)) {
        this.#evictDigest(edge.child);
        return true;
      }
      needed ||= edge.child === low64;
      if (needed) continue;
      this.#edgeLeaves(edge);
      this.counters.edgeEvictions++;
    }
    return false;
  }

  /**
   * The membership cap of wide builds: the oldest digest without an edge goes, else the coldest edge together with its
   * digest; the digest that is being stored, and the edge whose child it is, are passed over.
   */
  #makeRoomForObject(low64: bigint): boolean {
    const cap = this.options.membershipCap ?? Number.POSITIVE_INFINITY;
    for (let departures = 0; this.#memberships >= cap; departures++) {
      if (departures === DEPARTURES_AN_EVENT) return false;
      const oldest = first(this.#withoutEdge, (other) => other !== low64);
      if (oldest !== undefined) {
        this.#evictDigest(oldest);
        continue;
      }
      const coldest = first(this.#lru, (edge) => edge.child !== low64);
      if (coldest === undefined) return false;
      if (this.#digests.has(coldest.child)) this.#evictDigest(coldest.child);
      this.#edgeLeaves(coldest);
      this.counters.edgeEvictions++;
    }
    return true;
  }

  // ---- Lookup --------------------------------------------------------------------------------------------------

  /**
   * @param localHashes the request's local hashes, one a block
   * @param tokenCount n, the request's tokens
   */
  lookup(localHashes: readonly bigint[], tokenCount: number, { touch = true } = {}): ModelHit {
    return this.#lookup('learned', localHashes, tokenCount, touch);
  }

  /** The same along derived edges, a hash block each. */
  lookupDerived(keys: readonly bigint[], tokenCount: number, { touch = true } = {}): ModelHit {
    return this.#lookup('derived', keys, tokenCount, touch);
  }

  #lookup(kind: EdgeKind, locals: readonly bigint[], tokenCount: number, touch: boolean): ModelHit {
    const blockSize = this.#spanOf(kind);
    const most = Math.floor((this.#contract.partial ? tokenCount : tokenCount - 1) / blockSize);
    const path = this.#walk(kind, locals.slice(0, Math.max(0, most)));
    if (touch) {
      for (const edge of path) this.#lru.delete(edge);
      this.#becomeHottest(path);
    }
    const completeAt = (block: number, group: number): boolean => this.#isCompleteBehind(path[block]!, group);
    const walked = path.length;
    return { hit: this.#hit(blockSize, walked, tokenCount, completeAt), walked, completeAt };
  }

  /** What a lookup would credit if it knew all digests of the prompt, one a hash block. */
  hitOfDigests(digests: readonly ModelDigest[], tokenCount: number): number {
    const { hashBlock, partial } = this.#contract;
    const most = Math.min(digests.length, Math.floor((partial ? tokenCount : tokenCount - 1) / hashBlock));
    const completeAt = (block: number, group: number): boolean => {
      const { low64, high } = digests[block]!;
      return this.#digests.get(low64)?.high === high && this.#isComplete(low64, group);
    };
    return this.#hit(hashBlock, most, tokenCount, completeAt);
  }

  /** Tokens of an edge. */
  #spanOf(kind: EdgeKind): number {
    return kind === 'learned' ? this.#contract.blockSize : this.#contract.hashBlock;
  }

  #walk(kind: EdgeKind, locals: readonly bigint[]): Edge[] {
    const path: Edge[] = [];
    for (const local of locals) {
      const edge = this.#byKey.get(keyOf(kind, path.at(-1)?.child ?? null, local));
      if (edge === undefined || edge.conflicted) break;
      path.push(edge);
    }
    return path;
  }

  #hit(blockSize: number, walked: number, tokenCount: number, completeAt: ModelHit['completeAt']): number {
    // The last boundary that counts; n itself only if the walk got there, which partial hits alone allow.
    const hit = this.#largestEndpoint(blockSize, walked * blockSize, completeAt);
    const asksAgain =
      hit === tokenCount || (!this.#whole && this.#contract.partial && walked * blockSize === tokenCount);
    if (hit === 0 || !asksAgain) return hit;
    return Math.min(hit, this.#largestEndpoint(blockSize, tokenCount - 1, completeAt));
  }

  /** The largest endpoint ≤ `bound`, judged from boundaries ≤ `bound` alone; 0 when there is none. */
  #largestEndpoint(blockSize: number, bound: number, completeAt: ModelHit['completeAt']): number {
    const visible = visibleIn(blockSize, completeAt);
    for (let end = Math.floor(bound / blockSize) * blockSize; end > 0; end -= blockSize) {
      if (this.#isEndpoint(end, bound, visible)) return end;
    }
    return 0;
  }

  #isEndpoint(end: number, bound: number, visible: Visible): boolean {
    const { lcm, partial, groups } = this.#contract;
    if (!partial && end % lcm !== 0) return false;
    if (partial && groups.some((group) => group.kind === 'sliding_window' && end % group.blockSize !== 0)) return false;
    if (end > this.#fullReach(bound, visible)) return false;
    return this.#units.every((unit) => {
      if (unit.kind === 'full_attention') return true;
      if (unit.kind === 'mamba') return visible(unit, end);
      const needed = Math.ceil((unit.window! - 1) / unit.blockSize);
      for (let i = 0, boundary = end; i < needed && boundary > 0; i++, boundary -= unit.blockSize)
        if (!visible(unit, boundary)) return false;
      return true;
    });
  }

  /** How far all of them serve, each asked as far as the one before. */
  #fullReach(bound: number, visible: Visible): number {
    let reach = bound;
    for (const unit of this.#units) if (unit.kind === 'full_attention') reach = this.#reach(unit, reach, visible);
    return reach;
  }

  /** How far a full-attention unit serves, judged from boundaries ≤ `bound`, which lies on the walked path. */
  #reach(unit: ModelUnit, bound: number, visible: Visible): number {
    const { partial, hashBlock } = this.#contract;
    const run = runOf(unit, bound, visible);
    if (!partial || unit.blockSize <= hashBlock) return run;
    let tail = Math.min(bound, run + unit.blockSize - hashBlock);
    while (tail > run && !visible(unit, tail)) tail--;
    return Math.max(run, tail);
  }

  /** Whether full attention reaches as far as it does within the first `known` hash blocks whatever lies behind them. */
  #hasGap(known: number, completeAt: ModelHit['completeAt']): boolean {
    const { hashBlock, groups } = this.#contract;
    const bound = known * hashBlock;
    const least = this.#fullReach(bound, visibleIn(hashBlock, completeAt));
    const allBehind: ModelHit['completeAt'] = (block, group) => block >= known || completeAt(block, group);
    const farBehind = groups.reduce((sum, { blockSize }) => sum + blockSize, bound + hashBlock);
    return least === this.#fullReach(farBehind, visibleIn(hashBlock, allBehind));
  }

  /** What the edge knows of its child: nothing once it is conflicted. */
  #isCompleteBehind(edge: Edge, group: number): boolean {
    return !edge.conflicted && this.#isComplete(edge.child, group);
  }

  #isComplete(low64: bigint, group: number): boolean {
    const digest = this.#digests.get(low64);
    if (digest === undefined) return false;
    return this.#prefixesOf[group]!.every((prefix) => digest.objects.has(prefix));
  }

  // ---- What a test compares ------------------------------------------------------------------------------------

  snapshot(): ModelSnapshot {
    return {
      edges: [...this.#byKey.keys()].sort().map((key) => {
        const edge = this.#byKey.get(key)!;
        return {
          kind: edge.kind,
          parent: edge.parent === null ? 'root' : hex(edge.parent),
          local: hex(edge.local),
          child: hex(edge.child),
          conflicted: edge.conflicted,
          assumed: edge.assumed,
          salted: edge.salted,
          high: edge.high,
          complete: this.#contract.groups
            .map((_, group) => group)
            .filter((group) => this.#isCompleteBehind(edge, group)),
        };
      }),
      lru: [...this.#lru]
        .reverse()
        .map(({ kind, child }) => (kind === 'learned' ? hex(child) : `derived ${hex(child)}`)),
      digests: [...this.#digests.values()]
        .map((digest) => ({
          low64: hex(digest.low64),
          high: digest.high,
          hasEdge: this.#kindsOf(digest.low64).length > 0,
          kinds: this.#kindsOf(digest.low64),
          objects: [...digest.objects].sort((a, b) => a[0] - b[0]),
        }))
        .sort((a, b) => (a.low64 < b.low64 ? -1 : 1)),
      withoutEdge: [...this.#withoutEdge].map(hex),
      ambiguous: [...this.#ambiguous].map(hex).sort(),
      counters: { ...this.fills(), ...this.counters },
    };
  }

  /** How full the tables are; memberships are (object, medium) pairs, in wide builds objects. */
  fills(): { edges: number; derivedEdges: number; conflicted: number; digests: number; memberships: number } {
    return {
      edges: this.#byKey.size,
      derivedEdges: this.#byChild.derived.size,
      conflicted: this.#conflicted,
      digests: this.#digests.size,
      memberships: this.#memberships,
    };
  }
}

/** Groups of equal kind, block size and window, which count together. */
interface ModelUnit extends ModelGroup {
  readonly groups: number[];
}

/** Whether every group of the unit is complete at this boundary of the walked path. */
type Visible = (unit: ModelUnit, boundary: number) => boolean;

/** `completeAt`, which counts blocks of `blockSize` tokens, asked by boundary. */
function visibleIn(blockSize: number, completeAt: ModelHit['completeAt']): Visible {
  return (unit, boundary) =>
    boundary > 0 &&
    boundary % blockSize === 0 &&
    unit.groups.every((group) => completeAt(boundary / blockSize - 1, group));
}

/** The run of complete boundaries of the unit's own block size from the start, up to `bound`. */
function runOf(unit: ModelUnit, bound: number, visible: Visible): number {
  let run = 0;
  while (run + unit.blockSize <= bound && visible(unit, run + unit.blockSize)) run += unit.blockSize;
  return run;
}

function unitsOf(groups: readonly ModelGroup[]): ModelUnit[] {
  const units: ModelUnit[] = [];
  groups.forEach((group, index) => {
    const same = units.find(
      (unit) => unit.kind === group.kind && unit.blockSize === group.blockSize && unit.window === group.window,
    );
    if (same === undefined) units.push({ ...group, groups: [index] });
    else same.groups.push(index);
  });
  return units;
}

/** The first item, in the set's order, that fits. */
function first<T>(items: ReadonlySet<T>, fits: (item: T) => boolean): T | undefined {
  for (const item of items) if (fits(item)) return item;
  return undefined;
}

function bitCount(media: number): number {
  return (media & 1) + ((media >> 1) & 1) + ((media >> 2) & 1);
}
