// The reference design (spec/kv-events.md 5) the way one writes it first in JavaScript: nested Maps keyed by the hashes themselves, presence by
// digest and prefix, order of last touch in an insertion-ordered Set with one persistent iterator for eviction (asking for a fresh
// iterator each time would rescan tombstones and flatter whoever is compared). The project's aims are stated against this one.
import {
  DEFAULT_CAP,
  DEFAULT_MEMBERSHIP_CAP,
  type Rival,
  type RivalEvent,
  type RivalOptions,
  windowBlocks,
} from './rival.js';
import { applyStoreMessage } from './store-messages.js';

interface Edge {
  readonly parent: bigint | null;
  readonly local: bigint;
  readonly child: bigint;
  conflicted: boolean;
}

interface Digest {
  readonly text: string;
  /** prefix id → media. */
  readonly objects: Map<number, number>;
}

export class NestedMapCore implements Rival {
  readonly #options: RivalOptions;
  readonly #edgeCap: number;
  readonly #digestCap: number;
  readonly #memberCap: number;
  readonly #groupPrefixes: number[][];
  readonly #prefixIds: Map<string, number>;
  readonly #edges = new Map<bigint | null, Map<bigint, Edge>>();
  readonly #byChild = new Map<bigint, Edge>();
  /** Coldest first. */
  readonly #touched = new Set<Edge>();
  #coldest: Iterator<Edge>;
  readonly #digests = new Map<bigint, Digest>();
  #oldestDigest: Iterator<bigint>;
  readonly #ambiguous = new Set<bigint>();
  #members = 0;

  constructor(options: RivalOptions) {
    this.#options = options;
    this.#edgeCap = options.edgeCap ?? DEFAULT_CAP;
    this.#digestCap = options.digestCap ?? this.#edgeCap;
    this.#memberCap = options.membershipCap ?? DEFAULT_MEMBERSHIP_CAP;
    this.#prefixIds = new Map(options.prefixes.map(({ text }, id) => [text, id]));
    this.#groupPrefixes = options.groups.map((_, group) =>
      options.prefixes.flatMap((p, id) => (p.group === group ? id : [])),
    );
    this.#coldest = this.#touched.values();
    this.#oldestDigest = this.#digests.keys();
  }

  learn({ parent, locals, children }: RivalEvent): void {
    const own: Edge[] = [];
    let previous = parent;
    for (let i = 0; i < locals.length; i++) {
      const local = locals[i]!;
      const child = children[i]!;
      let edge = this.#edges.get(previous)?.get(local);
      if (edge !== undefined) {
        if (edge.conflicted) break;
        if (edge.child !== child) {
          this.#conflict(edge);
          break;
        }
      } else {
        const other = this.#byChild.get(child);
        if (other !== undefined) {
          this.#conflict(other);
          break;
        }
        if (this.#byChild.size >= this.#edgeCap) this.#evictEdge();
        edge = { parent: previous, local, child, conflicted: false };
        let siblings = this.#edges.get(previous);
        if (siblings === undefined) {
          siblings = new Map();
          this.#edges.set(previous, siblings);
        }
        siblings.set(local, edge);
        this.#byChild.set(child, edge);
        this.#touched.add(edge);
      }
      own.push(edge);
      previous = child;
    }
    this.#touch(own);
  }

  applyBatch(payload: Uint8Array): void {
    applyStoreMessage(payload, this.#prefixIds, this);
  }

  stored(text: string, prefix: number, medium: number): void {
    const low = BigInt(`0x${text.slice(48)}`);
    if (this.#ambiguous.has(low)) return;
    let digest = this.#digests.get(low);
    if (digest !== undefined && digest.text !== text) {
      this.#ambiguous.add(low);
      this.#dropDigest(low, digest);
      return;
    }
    if (digest === undefined) {
      if (this.#digests.size >= this.#digestCap) this.#evictDigest();
      digest = { text, objects: new Map() };
      this.#digests.set(low, digest);
    }
    const media = digest.objects.get(prefix) ?? 0;
    if (media === 0) {
      if (this.#members >= this.#memberCap) this.#evictDigest();
      this.#members++;
    }
    digest.objects.set(prefix, media | medium);
  }

  removed(text: string, prefix: number, media: number): void {
    const low = BigInt(`0x${text.slice(48)}`);
    const digest = this.#digests.get(low);
    const held = digest?.objects.get(prefix);
    if (digest === undefined || held === undefined || digest.text !== text) return;
    if (held & ~media) {
      digest.objects.set(prefix, held & ~media);
      return;
    }
    digest.objects.delete(prefix);
    this.#members--;
    if (digest.objects.size === 0) this.#digests.delete(low);
  }

  clearResidency(): void {
    this.#digests.clear();
    this.#members = 0;
  }

  lookup(localHashes: BigUint64Array, tokenCount: number): number {
    const { blockSize, groups } = this.#options;
    const limit = Math.min(localHashes.length, Math.floor((tokenCount - 1) / blockSize));
    const path: Edge[] = [];
    let parent: bigint | null = null;
    for (let i = 0; i < limit; i++) {
      const edge: Edge | undefined = this.#edges.get(parent)?.get(localHashes[i]!);
      if (edge === undefined || edge.conflicted) break;
      path.push(edge);
      parent = edge.child;
    }
    this.#touch(path);
    const full = groups.flatMap(({ kind }, g) => (kind === 'full_attention' ? g : []));
    let reach = 0;
    while (reach < path.length && full.every((g) => this.#complete(path[reach]!.child, g))) reach++;
    // Backwards from there: what a window has verified once is not looked at again.
    const verified = groups.map(() => Number.POSITIVE_INFINITY);
    search: for (let end = reach; end > 0; end--) {
      for (let g = 0; g < groups.length; g++) {
        const group = groups[g]!;
        if (group.kind === 'mamba' && !this.#complete(path[end - 1]!.child, g)) continue search;
        if (group.kind !== 'sliding_window') continue;
        const low = Math.max(0, end - windowBlocks(group, blockSize));
        let at = Math.min(verified[g]!, end);
        while (at > low && this.#complete(path[at - 1]!.child, g)) at--;
        verified[g] = at;
        if (at > low) {
          end = at;
          continue search;
        }
      }
      return end * blockSize;
    }
    return 0;
  }

  counts(): { edges: number; digests: number; memberships: number } {
    return { edges: this.#byChild.size, digests: this.#digests.size, memberships: this.#members };
  }

  #complete(child: bigint, group: number): boolean {
    const digest = this.#digests.get(child);
    if (digest === undefined) return false;
    for (const prefix of this.#groupPrefixes[group]!) if (!digest.objects.has(prefix)) return false;
    return true;
  }

  /** Last to first, so that a parent ends hotter than its child. */
  #touch(path: readonly Edge[]): void {
    for (let i = path.length - 1; i >= 0; i--) {
      const edge = path[i]!;
      if (this.#touched.delete(edge)) this.#touched.add(edge);
    }
  }

  #conflict(edge: Edge): void {
    edge.conflicted = true;
    this.#touched.delete(edge);
  }

  #evictEdge(): void {
    const next = this.#coldest.next();
    if (next.done) {
      this.#coldest = this.#touched.values();
      if (this.#touched.size > 0) this.#evictEdge();
      return;
    }
    const edge = next.value;
    this.#touched.delete(edge);
    this.#byChild.delete(edge.child);
    const siblings = this.#edges.get(edge.parent)!;
    siblings.delete(edge.local);
    if (siblings.size === 0) this.#edges.delete(edge.parent);
  }

  #evictDigest(): void {
    const next = this.#oldestDigest.next();
    if (next.done) {
      this.#oldestDigest = this.#digests.keys();
      if (this.#digests.size > 0) this.#evictDigest();
      return;
    }
    this.#dropDigest(next.value, this.#digests.get(next.value)!);
  }

  #dropDigest(low: bigint, digest: Digest): void {
    this.#members -= digest.objects.size;
    this.#digests.delete(low);
  }
}
