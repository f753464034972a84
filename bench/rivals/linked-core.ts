// The fastest plain JavaScript that its author could write for the same rules: edges hold their children, digests and
// edges hold each other, media are bits, and whether a group is complete is worked out when an event arrives. A lookup
// then follows one reference a block and probes no map. What is left between this and the WebAssembly core is objects
// scattered over a heap against flat tables, and SIMD. The nested Maps are the reference's design; this is the harder rival.
import { HalvesIndex, halvesOf, type Keyed, repeats, split } from './halves.js';
import { Linked, Order } from './order.js';
import {
  DEFAULT_CAP,
  DEFAULT_MEMBERSHIP_CAP,
  DEPARTURES_AN_EVENT,
  type Rival,
  type RivalEvent,
  type RivalOptions,
  windowBlocks,
} from './rival.js';
import { applyStoreMessage } from './store-messages.js';

const MAX_PREFIXES = 31;
const MAX_GROUPS = 8;

/** Where children hang: the root, an edge, or a hash whose own edge isn't known (yet, or any more). */
class Place extends Linked {
  /** Most hashes have one child, found without a map. */
  only: Edge | null = null;
  /** Further children by the low half of their local hash. */
  others: Map<number, Edge> | null = null;

  find(localLow: number, localHigh: number): Edge | null {
    const { only } = this;
    if (only !== null && only.localLow === localLow && only.localHigh === localHigh) return only;
    if (this.others === null) return null;
    let edge = this.others.get(localLow) ?? null;
    while (edge !== null && edge.localHigh !== localHigh) edge = edge.sameLocal;
    return edge;
  }

  add(edge: Edge): void {
    if (this.only === null) {
      this.only = edge;
      return;
    }
    if (this.others === null) this.others = new Map();
    edge.sameLocal = this.others.get(edge.localLow) ?? null;
    this.others.set(edge.localLow, edge);
  }

  remove(edge: Edge): void {
    if (this.only === edge) {
      this.only = null;
      return;
    }
    const others = this.others!;
    let before = others.get(edge.localLow)!;
    if (before !== edge) {
      while (before.sameLocal !== edge) before = before.sameLocal!;
      before.sameLocal = edge.sameLocal;
      return;
    }
    if (edge.sameLocal !== null) others.set(edge.localLow, edge.sameLocal);
    else others.delete(edge.localLow);
    if (others.size === 0) this.others = null;
  }

  isEmpty(): boolean {
    return this.only === null && this.others === null;
  }

  takeChildrenOf(place: Place): void {
    this.only = place.only;
    this.others = place.others;
  }
}

class Edge extends Place implements Keyed<Edge> {
  conflicted = false;
  /** First 24 bytes of the child's digest, once known. */
  head: string | null = null;
  digest: Digest | null = null;
  /** The digest's, 0 without one. */
  complete = 0;
  clash: Edge | undefined = undefined;
  sameLocal: Edge | null = null;
  /** @param low and high: halves of the child's external hash */
  constructor(
    readonly localLow: number,
    readonly localHigh: number,
    readonly low: number,
    readonly high: number,
    readonly root: boolean,
    readonly parentLow: number,
    readonly parentHigh: number,
    public assumed: boolean,
    public salted: boolean,
  ) {
    super();
  }
}

class Orphans extends Place implements Keyed<Orphans> {
  clash: Orphans | undefined = undefined;
  constructor(
    readonly low: number,
    readonly high: number,
  ) {
    super();
  }
}

class Digest extends Linked implements Keyed<Digest> {
  clash: Digest | undefined = undefined;
  edge: Edge | null = null;
  /** Bit of a prefix id: its object is resident in that medium. */
  cpu = 0;
  disk = 0;
  unknown = 0;
  /** Bit of a group: all its prefixes are resident. */
  complete = 0;
  objects = 0;
  constructor(
    readonly low: number,
    readonly high: number,
    readonly head: string,
  ) {
    super();
  }
}

export class LinkedCore implements Rival {
  readonly #edgeCap: number;
  readonly #digestCap: number;
  readonly #membershipCap: number;
  readonly #ambiguousCap: number;
  readonly #blockSize: number;
  readonly #prefixIds: Map<string, number>;
  readonly #groupOf: number[];
  /** Bits of each group's prefixes. */
  readonly #prefixesOf: number[];
  /** Bits of all full-attention groups, and of all mamba groups. */
  #full = 0;
  #mamba = 0;
  readonly #windows: { group: number; needed: number; verifiedTo: number }[] = [];

  readonly #root = new Place();
  readonly #orphans = new HalvesIndex<Orphans>();
  readonly #byChild = new HalvesIndex<Edge>();
  readonly #touched = new Order<Edge>();
  #conflicted = 0;
  readonly #digests = new HalvesIndex<Digest>();
  readonly #withoutEdge = new Order<Digest>();
  /** low64 as 16 hexadecimal digits. */
  readonly #ambiguous = new Set<string>();
  #memberships = 0;
  /** The last walk, and what was complete at each of its blocks. */
  readonly #path: Edge[] = [];
  #completeness = new Uint8Array(1_024);

  constructor(options: RivalOptions) {
    if (options.prefixes.length > MAX_PREFIXES) throw new RangeError(`at most ${MAX_PREFIXES} prefixes`);
    if (options.groups.length > MAX_GROUPS) throw new RangeError(`at most ${MAX_GROUPS} groups`);
    this.#edgeCap = options.edgeCap ?? DEFAULT_CAP;
    this.#digestCap = options.digestCap ?? this.#edgeCap;
    this.#membershipCap = options.membershipCap ?? DEFAULT_MEMBERSHIP_CAP;
    this.#ambiguousCap = options.ambiguousCap ?? DEFAULT_CAP;
    this.#blockSize = options.blockSize;
    this.#prefixIds = new Map(options.prefixes.map(({ text }, id) => [text, id]));
    this.#groupOf = options.prefixes.map((prefix) => prefix.group);
    this.#prefixesOf = options.groups.map((_, group) =>
      this.#groupOf.reduce((bits, itsGroup, id) => (itsGroup === group ? bits | (1 << id) : bits), 0),
    );
    options.groups.forEach((group, index) => {
      if (group.kind === 'full_attention') this.#full |= 1 << index;
      else if (group.kind === 'mamba') this.#mamba |= 1 << index;
      else this.#windows.push({ group: 1 << index, needed: windowBlocks(group, options.blockSize), verifiedTo: 0 });
    });
  }

  counts(): { edges: number; digests: number; memberships: number } {
    return { edges: this.#byChild.size, digests: this.#digests.size, memberships: this.#memberships };
  }

  // ---- Learning

  learn({ parent, salted, locals, children }: RivalEvent): void {
    if (repeats(children, parent)) return;
    const root = parent === null;
    let { low, high } = split(parent ?? 0n);
    const above = root ? undefined : this.#byChild.get(low, high);
    const assumed = !salted && !root && (above === undefined || above.assumed || above.salted);
    const localHalves = halvesOf(locals);
    const childHalves = halvesOf(children);
    const path = this.#path;
    path.length = 0;
    let place: Place | undefined = root ? this.#root : (above ?? this.#orphans.get(low, high));
    for (let i = 0; i < localHalves.length; i += 2) {
      const localLow = localHalves[i]!;
      const localHigh = localHalves[i + 1]!;
      const childLow = childHalves[i]!;
      const childHigh = childHalves[i + 1]!;
      const known: Edge | null = place === undefined ? null : place.find(localLow, localHigh);
      if (known !== null) {
        if (known.conflicted) break;
        if (known.low !== childLow || known.high !== childHigh) {
          this.#conflict(known);
          break;
        }
        if (known.assumed && !assumed) {
          known.salted = salted;
          known.assumed = false;
        }
        this.#touched.remove(known);
        path.push(known);
        place = known;
      } else {
        const edge = new Edge(localLow, localHigh, childLow, childHigh, root && i === 0, low, high, assumed, salted);
        if (!this.#insert(edge)) break;
        path.push(edge);
        place = edge;
      }
      low = childLow;
      high = childHigh;
    }
    // The event's own edges are out of the list until it ends, so that it can't evict them.
    for (let i = path.length - 1; i >= 0; i--) this.#touched.addNewest(path[i]!);
  }

  /** False when learning stops. */
  #insert(edge: Edge): boolean {
    const { low, high, assumed } = edge;
    const other = this.#byChild.get(low, high);
    if (other !== undefined) {
      if (other.conflicted || (assumed && !other.assumed)) return false;
      if (!other.assumed || assumed) {
        this.#conflict(other);
        return false;
      }
      edge.head = other.head;
      this.#edgeLeaves(other);
    }
    if (this.#byChild.size >= this.#edgeCap) {
      const coldest = this.#touched.oldest;
      if (coldest === null) return false;
      this.#edgeLeaves(coldest);
    }
    // Only now: what left may have changed where this edge's siblings hang.
    let place = this.#placeOf(edge);
    if (place === undefined) {
      const orphans = new Orphans(edge.parentLow, edge.parentHigh);
      this.#orphans.add(orphans);
      place = orphans;
    }
    place.add(edge);
    const orphans = this.#orphans.get(low, high);
    if (orphans !== undefined) {
      edge.takeChildrenOf(orphans);
      this.#orphans.delete(orphans);
    }
    this.#byChild.add(edge);
    const digest = this.#digests.get(low, high);
    if (digest !== undefined) {
      this.#withoutEdge.remove(digest);
      this.#link(digest, edge);
    }
    return true;
  }

  #placeOf(edge: Edge): Place | undefined {
    if (edge.root) return this.#root;
    return this.#byChild.get(edge.parentLow, edge.parentHigh) ?? this.#orphans.get(edge.parentLow, edge.parentHigh);
  }

  #link(digest: Digest, edge: Edge): void {
    digest.edge = edge;
    edge.digest = digest;
    edge.head = digest.head;
    edge.complete = digest.complete;
  }

  #unlink(edge: Edge): void {
    const { digest } = edge;
    if (digest === null) return;
    digest.edge = null;
    edge.digest = null;
    edge.complete = 0;
    this.#withoutEdge.addOldest(digest);
  }

  #conflict(edge: Edge): void {
    edge.conflicted = true;
    this.#touched.remove(edge);
    this.#unlink(edge);
    this.#conflicted++;
    if (this.#conflicted > this.#edgeCap / 16) this.#dropEdgesAndResidency();
  }

  #edgeLeaves(edge: Edge): void {
    const place = this.#placeOf(edge)!;
    place.remove(edge);
    if (place instanceof Orphans && place.isEmpty()) this.#orphans.delete(place);
    this.#byChild.delete(edge);
    if (!edge.isEmpty()) {
      const orphans = new Orphans(edge.low, edge.high);
      orphans.takeChildrenOf(edge);
      this.#orphans.add(orphans);
    }
    this.#touched.remove(edge);
    this.#unlink(edge);
  }

  #dropEdgesAndResidency(): void {
    this.clearResidency();
    this.#root.only = null;
    this.#root.others = null;
    this.#orphans.clear();
    this.#byChild.clear();
    this.#touched.clear();
    this.#path.length = 0;
    this.#conflicted = 0;
  }

  // ---- Residency

  applyBatch(payload: Uint8Array): void {
    applyStoreMessage(payload, this.#prefixIds, this);
  }

  clearResidency(): void {
    this.#digests.forEach((digest) => {
      if (digest.edge === null) return;
      digest.edge.digest = null;
      digest.edge.complete = 0;
    });
    this.#digests.clear();
    this.#withoutEdge.clear();
    this.#memberships = 0;
  }

  stored(text: string, prefix: number, medium: number): void {
    if (this.#ambiguous.size > 0 && this.#ambiguous.has(text.slice(48))) return;
    const head = text.slice(0, 48);
    const low = Number.parseInt(text.slice(56), 16) | 0;
    const high = Number.parseInt(text.slice(48, 56), 16) | 0;
    let digest = this.#digests.get(low, high);
    const edge = digest === undefined ? this.#byChild.get(low, high) : (digest.edge ?? undefined);
    const told = digest === undefined ? edge?.head : digest.head;
    if (told !== undefined && told !== null && told !== head) {
      this.#becomeAmbiguous(text.slice(48), digest);
      return;
    }
    const bit = 1 << prefix;
    const isNewObject = digest === undefined || ((digest.cpu | digest.disk | digest.unknown) & bit) === 0;
    if (isNewObject) {
      if (digest === undefined && this.#digests.size >= this.#digestCap) this.#makeRoomForDigest();
      if (this.#memberships >= this.#membershipCap && !this.#makeRoomForObject(digest, edge)) return;
    }
    if (digest === undefined) {
      digest = new Digest(low, high, head);
      this.#digests.add(digest);
      if (edge !== undefined && !edge.conflicted) this.#link(digest, edge);
      else this.#withoutEdge.addNewest(digest);
    }
    if (isNewObject) {
      digest.objects++;
      this.#memberships++;
    }
    if (medium === 1) digest.cpu |= bit;
    else if (medium === 2) digest.disk |= bit;
    else digest.unknown |= bit;
    if (isNewObject) this.#judgeGroup(digest, this.#groupOf[prefix]!);
    if (digest.edge === null) this.#withoutEdge.touch(digest);
  }

  removed(text: string, prefix: number, media: number): void {
    if (this.#ambiguous.size > 0 && this.#ambiguous.has(text.slice(48))) return;
    const head = text.slice(0, 48);
    const low = Number.parseInt(text.slice(56), 16) | 0;
    const high = Number.parseInt(text.slice(48, 56), 16) | 0;
    const digest = this.#digests.get(low, high);
    const told = digest === undefined ? this.#byChild.get(low, high)?.head : digest.head;
    if (told !== undefined && told !== null && told !== head) {
      this.#becomeAmbiguous(text.slice(48), digest);
      return;
    }
    if (digest === undefined) return;
    const bit = 1 << prefix;
    if (((digest.cpu | digest.disk | digest.unknown) & bit) === 0) return;
    if ((media & 1) !== 0) digest.cpu &= ~bit;
    if ((media & 2) !== 0) digest.disk &= ~bit;
    if ((media & 4) !== 0) digest.unknown &= ~bit;
    if (((digest.cpu | digest.disk | digest.unknown) & bit) !== 0) return;
    digest.objects--;
    this.#memberships--;
    this.#judgeGroup(digest, this.#groupOf[prefix]!);
    if (digest.objects === 0) this.#digestLeaves(digest);
  }

  #judgeGroup(digest: Digest, group: number): void {
    const wanted = this.#prefixesOf[group]!;
    const bit = 1 << group;
    if (((digest.cpu | digest.disk | digest.unknown) & wanted) === wanted) digest.complete |= bit;
    else digest.complete &= ~bit;
    if (digest.edge !== null) digest.edge.complete = digest.complete;
  }

  #becomeAmbiguous(low64: string, digest: Digest | undefined): void {
    if (digest !== undefined) this.#digestLeaves(digest);
    if (this.#ambiguous.size >= this.#ambiguousCap) {
      this.#dropEdgesAndResidency();
      this.#ambiguous.clear();
    }
    this.#ambiguous.add(low64);
  }

  #digestLeaves(digest: Digest): void {
    this.#digests.delete(digest);
    this.#memberships -= digest.objects;
    const { edge } = digest;
    if (edge === null) {
      this.#withoutEdge.remove(digest);
      return;
    }
    edge.digest = null;
    edge.complete = 0;
  }

  #makeRoomForDigest(): void {
    const oldest = this.#withoutEdge.oldest;
    if (oldest !== null) {
      this.#digestLeaves(oldest);
      return;
    }
    let edge = this.#touched.oldest;
    while (edge !== null && edge.digest === null) edge = edge.newer as Edge | null;
    if (edge !== null) this.#digestLeaves(edge.digest!);
  }

  /** Neither the digest whose object needs the room nor its edge makes it. */
  #makeRoomForObject(keptDigest: Digest | undefined, keptEdge: Edge | undefined): boolean {
    for (let departures = 0; this.#memberships >= this.#membershipCap; departures++) {
      if (departures === DEPARTURES_AN_EVENT) return false;
      let oldest = this.#withoutEdge.oldest;
      if (oldest !== null && oldest === keptDigest) oldest = oldest.newer as Digest | null;
      if (oldest !== null) {
        this.#digestLeaves(oldest);
        continue;
      }
      let coldest = this.#touched.oldest;
      if (coldest !== null && coldest === keptEdge) coldest = coldest.newer as Edge | null;
      if (coldest === null) return false;
      if (coldest.digest !== null) this.#digestLeaves(coldest.digest);
      this.#edgeLeaves(coldest);
    }
    return true;
  }

  // ---- Lookup

  lookup(localHashes: BigUint64Array, tokenCount: number): number {
    const most = Math.min(localHashes.length, Math.floor((tokenCount - 1) / this.#blockSize));
    if (most > this.#completeness.length) this.#completeness = new Uint8Array(most * 2);
    const halves = halvesOf(localHashes);
    const path = this.#path;
    const completeness = this.#completeness;
    path.length = 0;
    let place: Place = this.#root;
    for (let i = 0; i < most; i++) {
      const edge = place.find(halves[2 * i]!, halves[2 * i + 1]!);
      if (edge === null || edge.conflicted) break;
      path.push(edge);
      completeness[i] = edge.complete;
      place = edge;
    }
    for (let i = path.length - 1; i >= 0; i--) this.#touched.touch(path[i]!);
    return this.#evaluate(path.length) * this.#blockSize;
  }

  /** The last block at whose end the request can restart, counted from 1; 0 when there is none. */
  #evaluate(walked: number): number {
    const completeness = this.#completeness;
    const full = this.#full;
    const mamba = this.#mamba;
    let end = walked;
    if (full !== 0) {
      end = 0;
      while (end < walked && (completeness[end]! & full) === full) end++;
    }
    // Blocks verifiedTo … of an earlier, higher endpoint are known to be complete.
    for (const window of this.#windows) window.verifiedTo = end + 1;
    next: while (end > 0) {
      if ((completeness[end - 1]! & mamba) !== mamba) {
        end--;
        continue;
      }
      for (const window of this.#windows) {
        const from = Math.max(0, end - window.needed);
        for (let block = Math.min(end, window.verifiedTo - 1); block > from; block--) {
          if ((completeness[block - 1]! & window.group) === 0) {
            end = block - 1; // every endpoint between here and there needs this block
            continue next;
          }
          window.verifiedTo = block;
        }
      }
      return end;
    }
    return 0;
  }
}
