// Random traffic for indexes of prefixes: prompts from a small vocabulary of sessions that share beginnings and branch off, announced by
// ranks that name blocks alike or each in its own way, with removals from the middle, re-stores, renames, clears and unknown parents.
import {
  type IndexedBlocks,
  type IndexTier,
  indexedBlocks,
  type PrefixIndexLike,
} from '../../src/core/prefix-types.js';
import type { Random } from './random.js';

/** How ranks name blocks: all alike, each in its own way, or some alike and some not. */
export type Naming = 'shared' | 'own' | 'mixed';

export interface TrafficShape {
  readonly ranks: number;
  readonly naming: Naming;
  /** Different chains that prompts are put together from. */
  readonly sessions: number;
  /** Different local hashes; few of them make sessions begin alike. */
  readonly alphabet: number;
  /** Blocks of the longest prompt. */
  readonly depth: number;
  /** Of 100 operations, how many remove blocks. */
  readonly removals: number;
  /** Of 1,000 operations, how many clear a rank. */
  readonly clears: number;
  /** Names that collide, second names, parents that nobody knows. */
  readonly hostile: boolean;
}

export type PrefixOperation =
  | { readonly kind: 'stored'; readonly rank: number; readonly tier: IndexTier; readonly blocks: IndexedBlocks }
  | {
      readonly kind: 'removed';
      readonly rank: number;
      readonly tier: IndexTier;
      readonly lows: Uint32Array;
      readonly at: number;
      readonly count: number;
    }
  | { readonly kind: 'clear'; readonly rank: number };

/** What the index answers. */
export function apply(
  index: Pick<PrefixIndexLike, 'stored' | 'removed' | 'clear'>,
  operation: PrefixOperation,
): string | number {
  const { kind, rank } = operation;
  if (kind === 'stored') return index.stored(rank, operation.tier, operation.blocks);
  if (kind === 'removed') return index.removed(rank, operation.tier, operation.lows, operation.at, operation.count);
  index.clear(rank);
  return 'cleared';
}

const MASK = (1n << 64n) - 1n;
/** Values that a table might take for its own marks. */
const ODD = [0n, MASK, 1n, 1n << 63n, 1n << 32n, 0xffff_ffffn];
/** Likely ranks: the first, the last, and both sides of a word. */
const HOT = [0, 1, 31, 32, 63, 64];

/** One step of a 64-bit mix; good enough that names don't collide by chance. */
function mix(state: bigint, value: bigint): bigint {
  const product = ((state ^ value) * 0x9e3779b97f4a7c15n + 0x632be59bd9b4e019n) & MASK;
  return product ^ (product >> 29n);
}

export class PrefixTraffic {
  readonly #random: Random;
  readonly #shape: TrafficShape;
  readonly #salt: bigint;

  constructor(random: Random, shape: TrafficShape) {
    this.#random = random;
    this.#shape = shape;
    this.#salt = random.bigint64();
  }

  /** Local hashes of a prompt: a session's beginning, often with another session's end. */
  prompt(): BigUint64Array {
    const random = this.#random;
    const { sessions, depth } = this.#shape;
    const length = random.between(1, depth);
    const branch = random.chance(0.4) ? random.int(length) : length;
    const [first, second] = [random.int(sessions), random.int(sessions)];
    return BigUint64Array.from({ length }, (_, i) => this.#local(i < branch ? first : second, i));
  }

  rank(): number {
    const { ranks } = this.#shape;
    if (!this.#random.chance(0.4)) return this.#random.int(ranks);
    const rank = this.#random.pick([...HOT, ranks - 1]);
    return rank < ranks ? rank : 0;
  }

  /** External hashes of a prompt's blocks, as the rank names them when all goes well. */
  names(rank: number, prompt: BigUint64Array): BigUint64Array {
    let name = mix(this.#salt, BigInt(this.#family(rank)));
    return prompt.map((local) => {
      name = mix(name, local);
      return name;
    });
  }

  operation(): PrefixOperation {
    const random = this.#random;
    const { removals, clears } = this.#shape;
    const rank = this.rank();
    if (random.int(1_000) < clears) return { kind: 'clear', rank };
    const tier = random.pick(['device', 'device', 'device', 'host', 'disk'] as const);
    const prompt = this.prompt();
    const names = this.#spoilt(this.names(rank, prompt));
    if (random.int(100) < removals) return this.#removal(rank, tier, names);
    const from = random.chance(0.5) ? 0 : random.int(prompt.length);
    let parent = from === 0 ? null : names[from - 1]!;
    if (this.#shape.hostile && random.chance(0.03)) parent = random.pick([random.bigint64(), ...ODD]);
    // The event's blocks often stand somewhere within longer arrays.
    const before = random.chance(0.5) ? 0 : from;
    const blocks = indexedBlocks(parent, names.slice(before), prompt.slice(before), random.chance(0.8));
    const at = from - before;
    return { kind: 'stored', rank, tier, blocks: { ...blocks, at, count: blocks.count - at } };
  }

  #local(session: number, at: number): bigint {
    const drawn = mix(mix(this.#salt, BigInt(session)), BigInt(at));
    const symbol = Number((drawn >> 20n) % BigInt(this.#shape.alphabet));
    return symbol < 2 ? ODD[symbol]! : mix(this.#salt, BigInt(symbol));
  }

  /** Ranks of one family name blocks alike. */
  #family(rank: number): number {
    const { naming } = this.#shape;
    if (naming === 'shared') return 0;
    if (naming === 'own') return rank + 3;
    return rank % 3 === 0 ? rank + 3 : rank % 3;
  }

  /** The names, some replaced by such as other blocks have too, or by another family's. */
  #spoilt(names: BigUint64Array): BigUint64Array {
    const random = this.#random;
    if (!this.#shape.hostile || random.chance(0.7)) return names;
    if (random.chance(0.5)) names[random.int(names.length)] = random.pick(ODD);
    else for (let i = random.int(names.length); i < names.length; i++) names[i] = mix(7n, names[i]!);
    return names;
  }

  /** Mostly the end of a prompt, last block first, as engines evict; else single blocks from anywhere, or all. */
  #removal(rank: number, tier: IndexTier, names: BigUint64Array): PrefixOperation {
    const random = this.#random;
    const kind = random.int(10);
    let hashes: BigUint64Array = names.slice(random.int(names.length)).reverse();
    if (kind < 3) hashes = BigUint64Array.of(random.pick([...names]), random.pick([...names]));
    else if (kind < 4) hashes = names;
    else if (kind < 5) hashes = BigUint64Array.of(random.bigint64(), random.pick(ODD), names[0]!);
    const at = random.int(2);
    return {
      kind: 'removed',
      rank,
      tier,
      lows: new Uint32Array(BigUint64Array.of(...new Array<bigint>(at).fill(5n), ...hashes).buffer),
      at,
      count: hashes.length,
    };
  }
}
