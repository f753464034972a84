// The reference design (spec/kv-events.md 5) in good plain JavaScript: hash maps for edges, children and digests, a map
// of objects in each digest, and a lookup that probes them block by block. The evaluation is the careful one: full
// attention forwards until its first gap, then backwards from there, so that no object is asked for twice.
//
// Chosen by measurement: Maps keyed by a 32-bit fold of the hashes, with the hashes compared as 32-bit halves and the
// rare clash chained, are faster than nested Maps keyed by bigint; and links are faster than an insertion-ordered Map
// as order of last touch (see order.ts).
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

class Edge extends Linked implements Keyed<Edge> {
  conflicted = false;
  /** First 24 bytes of the child's digest, once known. */
  head: string | null = null;
  clash: Edge | undefined = undefined;
  /** Another edge whose parent and local hash fold to the same key. */
  sameStep: Edge | undefined = undefined;
  /** @param low and high: halves of the child's external hash; those of the root are 0 and `root` is true */
  constructor(
    readonly root: boolean,
    readonly parentLow: number,
    readonly parentHigh: number,
    readonly localLow: number,
    readonly localHigh: number,
    readonly low: number,
    readonly high: number,
    public assumed: boolean,
    public salted: boolean,
  ) {
    super();
  }
}

class Digest extends Linked implements Keyed<Digest> {
  clash: Digest | undefined = undefined;
  /** prefix id → media; an object that is in no medium is not listed. */
  readonly objects = new Map<number, number>();
  constructor(
    readonly low: number,
    readonly high: number,
    readonly head: string,
  ) {
    super();
  }
}

function fold(parentLow: number, parentHigh: number, localLow: number): number {
  return Math.imul(parentLow ^ parentHigh, 0x9e3779b1) ^ localLow;
}

export class MapCore implements Rival {
  readonly #edgeCap: number;
  readonly #digestCap: number;
  readonly #membershipCap: number;
  readonly #ambiguousCap: number;
  readonly #blockSize: number;
  readonly #prefixIds: Map<string, number>;
  /** Prefix ids of every full-attention group, of every mamba group, and of each sliding-window group. */
  readonly #full: number[];
  readonly #mamba: number[];
  readonly #windows: { prefixes: number[]; needed: number; verifiedTo: number }[];

  readonly #steps = new Map<number, Edge>();
  readonly #byChild = new HalvesIndex<Edge>();
  readonly #touched = new Order<Edge>();
  #conflicted = 0;
  readonly #digests = new HalvesIndex<Digest>();
  readonly #withoutEdge = new Order<Digest>();
  /** low64 as 16 hexadecimal digits. */
  readonly #ambiguous = new Set<string>();
  #memberships = 0;
  /** The last walk; kept so that a lookup allocates nothing. */
  readonly #path: Edge[] = [];

  constructor(options: RivalOptions) {
    this.#edgeCap = options.edgeCap ?? DEFAULT_CAP;
    this.#digestCap = options.digestCap ?? this.#edgeCap;
    this.#membershipCap = options.membershipCap ?? DEFAULT_MEMBERSHIP_CAP;
    this.#ambiguousCap = options.ambiguousCap ?? DEFAULT_CAP;
    this.#blockSize = options.blockSize;
    this.#prefixIds = new Map(options.prefixes.map(({ text }, id) => [text, id]));
    const prefixesOf = (belongs: (group: number) => boolean): number[] =>
      options.prefixes.flatMap((prefix, id) => (belongs(prefix.group) ? [id] : []));
    this.#full = prefixesOf((group) => options.groups[group]!.kind === 'full_attention');
    this.#mamba = prefixesOf((group) => options.groups[group]!.kind === 'mamba');
    this.#windows = options.groups.flatMap((group, index) =>
      group.kind !== 'sliding_window'
        ? []
        : [
            {
              prefixes: prefixesOf((other) => other === index),
              needed: windowBlocks(group, options.blockSize),
              verifiedTo: 0,
            },
          ],
    );
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
    for (let i = 0; i < localHalves.length; i += 2) {
      const childLow = childHalves[i]!;
      const childHigh = childHalves[i + 1]!;
      const edge = this.#learnBlock(
        new Edge(
          root && i === 0,
          low,
          high,
          localHalves[i]!,
          localHalves[i + 1]!,
          childLow,
          childHigh,
          assumed,
          salted,
        ),
      );
      if (edge === null) break;
      path.push(edge);
      low = childLow;
      high = childHigh;
    }
    // The event's own edges are out of the list until it ends, so that it can't evict them.
    for (let i = path.length - 1; i >= 0; i--) this.#touched.addNewest(path[i]!);
  }

  /** The edge that now stands for the block, or null when learning stops. */
  #learnBlock(edge: Edge): Edge | null {
    const { low, high, assumed } = edge;
    const known = this.#step(edge.root, edge.parentLow, edge.parentHigh, edge.localLow, edge.localHigh);
    if (known !== undefined) {
      if (known.conflicted) return null;
      if (known.low !== low || known.high !== high) {
        this.#conflict(known);
        return null;
      }
      if (known.assumed && !assumed) {
        known.salted = edge.salted;
        known.assumed = false;
      }
      this.#touched.remove(known);
      return known;
    }
    const other = this.#byChild.get(low, high);
    if (other !== undefined) {
      if (other.conflicted || (assumed && !other.assumed)) return null;
      if (!other.assumed || assumed) {
        this.#conflict(other);
        return null;
      }
      edge.head = other.head;
      this.#edgeLeaves(other);
    }
    if (this.#byChild.size >= this.#edgeCap) {
      const coldest = this.#touched.oldest;
      if (coldest === null) return null;
      this.#edgeLeaves(coldest);
    }
    const key = fold(edge.parentLow, edge.parentHigh, edge.localLow);
    edge.sameStep = this.#steps.get(key);
    this.#steps.set(key, edge);
    this.#byChild.add(edge);
    const digest = this.#digests.get(low, high);
    if (digest !== undefined) {
      this.#withoutEdge.remove(digest);
      edge.head = digest.head;
    }
    return edge;
  }

  #step(root: boolean, parentLow: number, parentHigh: number, localLow: number, localHigh: number): Edge | undefined {
    let edge = this.#steps.get(fold(parentLow, parentHigh, localLow));
    while (
      edge !== undefined &&
      (edge.localLow !== localLow ||
        edge.localHigh !== localHigh ||
        edge.parentLow !== parentLow ||
        edge.parentHigh !== parentHigh ||
        edge.root !== root)
    )
      edge = edge.sameStep;
    return edge;
  }

  #conflict(edge: Edge): void {
    edge.conflicted = true;
    this.#touched.remove(edge);
    const digest = this.#digests.get(edge.low, edge.high);
    if (digest !== undefined) this.#withoutEdge.addOldest(digest);
    this.#conflicted++;
    if (this.#conflicted > this.#edgeCap / 16) this.#dropEdgesAndResidency();
  }

  #edgeLeaves(edge: Edge): void {
    const key = fold(edge.parentLow, edge.parentHigh, edge.localLow);
    let before = this.#steps.get(key)!;
    if (before === edge) {
      if (edge.sameStep === undefined) this.#steps.delete(key);
      else this.#steps.set(key, edge.sameStep);
    } else {
      while (before.sameStep !== edge) before = before.sameStep!;
      before.sameStep = edge.sameStep;
    }
    this.#byChild.delete(edge);
    this.#touched.remove(edge);
    const digest = this.#digests.get(edge.low, edge.high);
    if (digest !== undefined) this.#withoutEdge.addOldest(digest);
  }

  #dropEdgesAndResidency(): void {
    this.#steps.clear();
    this.#byChild.clear();
    this.#touched.clear();
    this.#path.length = 0;
    this.#conflicted = 0;
    this.clearResidency();
  }

  // ---- Residency

  applyBatch(payload: Uint8Array): void {
    applyStoreMessage(payload, this.#prefixIds, this);
  }

  clearResidency(): void {
    this.#digests.clear();
    this.#withoutEdge.clear();
    this.#memberships = 0;
  }

  stored(text: string, prefix: number, medium: number): void {
    if (this.#ambiguous.size > 0 && this.#ambiguous.has(text.slice(48))) return;
    const head = text.slice(0, 48);
    const low = Number.parseInt(text.slice(56), 16) | 0;
    const high = Number.parseInt(text.slice(48, 56), 16) | 0;
    const edge = this.#byChild.get(low, high);
    let digest = this.#digests.get(low, high);
    const told = digest === undefined ? edge?.head : digest.head;
    if (told !== undefined && told !== null && told !== head) {
      this.#becomeAmbiguous(text.slice(48), digest);
      return;
    }
    const linked = edge !== undefined && !edge.conflicted;
    const media = digest?.objects.get(prefix);
    if (media !== undefined) {
      digest!.objects.set(prefix, media | medium);
    } else {
      if (digest === undefined && this.#digests.size >= this.#digestCap) this.#makeRoomForDigest();
      if (this.#memberships >= this.#membershipCap && !this.#makeRoomForObject(digest, edge)) return;
      if (digest === undefined) {
        digest = new Digest(low, high, head);
        this.#digests.add(digest);
        if (linked) edge.head = head;
        else this.#withoutEdge.addNewest(digest);
      }
      digest.objects.set(prefix, medium);
      this.#memberships++;
    }
    if (!linked) this.#withoutEdge.touch(digest!);
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
    const resident = digest?.objects.get(prefix);
    if (resident === undefined) return;
    const left = resident & ~media;
    if (left !== 0) {
      digest!.objects.set(prefix, left);
      return;
    }
    digest!.objects.delete(prefix);
    this.#memberships--;
    if (digest!.objects.size === 0) this.#digestLeaves(digest!);
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
    this.#memberships -= digest.objects.size;
    const edge = this.#byChild.get(digest.low, digest.high);
    if (edge === undefined || edge.conflicted) this.#withoutEdge.remove(digest);
  }

  #makeRoomForDigest(): void {
    const oldest = this.#withoutEdge.oldest;
    if (oldest !== null) {
      this.#digestLeaves(oldest);
      return;
    }
    for (let edge = this.#touched.oldest; edge !== null; edge = edge.newer as Edge | null) {
      const digest = this.#digests.get(edge.low, edge.high);
      if (digest !== undefined) {
        this.#digestLeaves(digest);
        return;
      }
    }
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
      const digest = this.#digests.get(coldest.low, coldest.high);
      if (digest !== undefined) this.#digestLeaves(digest);
      this.#edgeLeaves(coldest);
    }
    return true;
  }

  // ---- Lookup

  lookup(localHashes: BigUint64Array, tokenCount: number): number {
    const most = Math.min(localHashes.length, Math.floor((tokenCount - 1) / this.#blockSize));
    const halves = halvesOf(localHashes);
    const path = this.#path;
    path.length = 0;
    let low = 0;
    let high = 0;
    for (let i = 0; i < most; i++) {
      const edge = this.#step(i === 0, low, high, halves[2 * i]!, halves[2 * i + 1]!);
      if (edge === undefined || edge.conflicted) break;
      path.push(edge);
      low = edge.low;
      high = edge.high;
    }
    for (let i = path.length - 1; i >= 0; i--) this.#touched.touch(path[i]!);
    return this.#evaluate(path) * this.#blockSize;
  }

  /** The last block at whose end the request can restart, counted from 1; 0 when there is none. */
  #evaluate(path: readonly Edge[]): number {
    let end = path.length;
    if (this.#full.length > 0) {
      end = 0;
      while (end < path.length && this.#isComplete(path[end]!, this.#full)) end++;
    }
    // Blocks verifiedTo … of an earlier, higher endpoint are known to be complete.
    for (const window of this.#windows) window.verifiedTo = end + 1;
    next: while (end > 0) {
      if (this.#mamba.length > 0 && !this.#isComplete(path[end - 1]!, this.#mamba)) {
        end--;
        continue;
      }
      for (const window of this.#windows) {
        const from = Math.max(0, end - window.needed);
        for (let block = Math.min(end, window.verifiedTo - 1); block > from; block--) {
          if (!this.#isComplete(path[block - 1]!, window.prefixes)) {
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

  #isComplete(edge: Edge, prefixes: readonly number[]): boolean {
    const digest = this.#digests.get(edge.low, edge.high);
    if (digest === undefined) return false;
    for (const prefix of prefixes) if (!digest.objects.has(prefix)) return false;
    return true;
  }
}
