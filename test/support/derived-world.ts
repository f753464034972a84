// A core that derives, and the world around it: prompts that share beginnings (some under adapters and salts) and a store that changes. Every digest
// and key is made with node:crypto, and what a lookup should say is a search over the model's own set of objects (brute-force.ts).
import { createHash } from 'node:crypto';
import { KeyList } from '../../src/cache/key-list.js';
import { KeyPrefixes } from '../../src/cache/key-prefixes.js';
import type { Contract, HashRule } from '../../src/contract/descriptor.js';
import { descriptorFromCase } from '../../src/contract/from-case.js';
import { validateContract } from '../../src/contract/validate.js';
import type { Core, CoreExplanation } from '../../src/core/core.js';
import type { ExtraKeys } from '../../src/core/engine-hash.js';
import { seedOf } from '../../src/core/local-hash.js';
import { type Plan, planOf } from '../../src/core/plan.js';
import { randomCase, type StoreCase, visibleHit, workerHit } from './brute-force.js';
import { vllmDigests } from './engine-digests.js';
import { removed, stored, storePayload } from './messages.js';
import type { Random } from './random.js';

const EVENTS_A_MESSAGE = 1024;
/** Digests that the tiny builds hold. */
const SMALL = 64;
const SEEDS = ['0', '1', 'vllm-none-hash'] as const;

export type Geometry = Omit<StoreCase, 'present' | 'tokenCount'>;

type Algorithm = HashRule['algorithm'];

/** vLLM's digests by SHA-256 over canonical CBOR (spec/vllm-store.md 7): the array of parent, tokens and extra keys or null. */
export function cborDigests(tokens: Uint32Array, hashBlock: number, seed: string, extraKeys: ExtraKeys): Buffer[] {
  const head = (major: number, value: number): Buffer => {
    const bytes = value < 24 ? 0 : value < 0x100 ? 1 : value < 0x1_0000 ? 2 : 4;
    const out = Buffer.alloc(1 + bytes);
    out[0] = (major << 5) | (bytes === 0 ? value : 23 + Math.log2(bytes) + 1);
    if (bytes > 0) out.writeUIntBE(value, 1, bytes);
    return out;
  };
  const text = (value: string) => Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
  const digests: Buffer[] = [];
  let parent = hash(text(seed));
  for (let at = 0; at + hashBlock <= tokens.length; at += hashBlock) {
    const extras = [extraKeys.loraName, at === 0 ? extraKeys.rawSalt : null].filter((extra) => !!extra);
    parent = hash(
      Buffer.concat([
        head(4, 3),
        head(2, parent.length),
        parent,
        head(4, hashBlock),
        ...Array.from(tokens.subarray(at, at + hashBlock), (token) => head(0, token)),
        ...(extras.length === 0 ? [Buffer.of(0xf6)] : [head(4, extras.length), ...extras.map((extra) => text(extra!))]),
      ]),
    );
    digests.push(parent);
  }
  return digests;
}

/** A geometry that an engine can have, of at most so many prefixes. */
export function randomGeometry(random: Random): Geometry {
  const { present: _objects, tokenCount: _count, ...geometry } = randomCase(random);
  return geometry;
}

/** The contract to derive under. */
export function derivedContract(
  { hashBlock, lcm, partial, blockSize, groups }: Geometry,
  seed: string,
  algorithm: Algorithm,
): Contract {
  const descriptor = descriptorFromCase({
    hash_block_size: hashBlock,
    coordinator_alignment: lcm,
    partial_hash_hits: partial,
    main_event_block_size: groups.some(({ kind }) => kind === 'full_attention') ? blockSize : null,
    groups: groups.map(({ kind, blockSize: block_size, window, prefixes }, group_id) => ({
      ...{ group_id, kind, block_size, window },
      prefixes: Array.from({ length: prefixes }, (_, rank) => `p@m@tp_rank:${rank}@group:${group_id}`),
    })),
  });
  const seed_policy = seed === 'vllm-none-hash' ? seed : `pythonhashseed-${seed}`;
  return validateContract(
    { ...descriptor, hash: { ...descriptor.hash, algorithm, seed_policy } },
    { hashing: 'derived' },
  );
}

export interface WorldPrompt extends ExtraKeys {
  readonly tokens: Uint32Array;
  /** Of each hash block, in hex. */
  readonly digests: readonly string[];
}

export interface WorldShape {
  readonly prompts: number;
  /** Hash blocks of the longest prompt. */
  readonly blocks: number;
  /** Most digests in the store. */
  readonly storeDigests?: number;
  /** Most objects in it. */
  readonly storeObjects?: number;
  /** Part of what enters the store that the core never hears of, 0 … 1; then nothing is ever listed to it. */
  readonly missed?: number;
}

export class World {
  readonly contract: Contract;
  readonly plan: Plan;
  readonly prompts: WorldPrompt[] = [];
  /** Keys of the objects in the store. */
  readonly objects = new Set<string>();
  readonly #keys: readonly (readonly string[])[];
  readonly #hashRule: HashRule;
  /** Main event blocks that an event has taught, as digests. */
  readonly #learned = new Set<string>();

  constructor(
    readonly core: Core,
    readonly geometry: Geometry,
    readonly random: Random,
    readonly shape: WorldShape,
  ) {
    const seed = random.pick(SEEDS);
    this.contract = derivedContract(geometry, seed, random.pick(['sha256', 'sha256', 'sha256_cbor']));
    this.#hashRule = this.contract.hashRule;
    this.plan = planOf(this.contract, 'both');
    this.#keys = geometry.groups.map((_, group) =>
      this.plan.prefixes.filter((prefix) => prefix.group === group).map(({ text }) => text),
    );
    core.configure(this.plan, random.bigint64(), this.#hashRule);
    this.#listAll();
    for (let i = 0; i < shape.prompts; i++) this.prompts.push(this.#randomPrompt());
  }

  #randomPrompt(): WorldPrompt {
    const { random } = this;
    const { hashBlock } = this.geometry;
    const count = random.between(1, this.shape.blocks * hashBlock);
    const parent = this.prompts.length > 0 && random.chance(0.7) ? random.pick(this.prompts) : null;
    const shared = parent === null ? 0 : random.int(parent.tokens.length + 1);
    // Ids of every length that pickle knows.
    const most = random.pick([0x100, 0x1_0000, 0x8000_0000, 0x1_0000_0000]);
    const tokens = Uint32Array.from({ length: count }, (_, i) =>
      i < shared ? parent!.tokens[i]! : Math.floor((random.uint32() / 0x1_0000_0000) * most),
    );
    const name = () => (random.chance(0.25) ? random.pick(['a', 'b', 'лора', 'ä'.repeat(200)]) : null);
    const same = parent !== null && random.chance(0.7);
    const loraName = same ? (parent.loraName ?? null) : name();
    const rawSalt = same ? (parent.rawSalt ?? null) : name();
    const { algorithm, seed } = this.#hashRule;
    const digests =
      algorithm === 'sha256'
        ? vllmDigests(tokens, hashBlock, { seed, loraName, cacheSalt: rawSalt })
        : cborDigests(tokens, hashBlock, seed, { loraName, rawSalt });
    return { tokens, loraName, rawSalt, digests: digests.map((digest) => digest.toString('hex')) };
  }

  /** Keys of objects that producers would write for a prompt, with faults in it: runs, late windows, single states and tails. */
  #written({ digests }: WorldPrompt): string[] {
    const { random } = this;
    const { groups, hashBlock, lcm, partial, blockSize } = this.geometry;
    const end = digests.length * hashBlock;
    const keys: string[] = [];
    if (end === 0) return keys;
    const points = [end, ...Array.from({ length: random.int(3) }, () => random.between(1, digests.length) * hashBlock)];
    const aligned = points.flatMap((at) => {
      const step = random.pick([hashBlock, blockSize, lcm]);
      return [at, Math.floor(at / step) * step];
    });
    const holes = random.pick([0, 0, 0.02, 0.2]);
    const missingRanks = random.pick([0, 0, 0.05]);
    groups.forEach((group, index) => {
      const { kind, blockSize: step, window } = group;
      const ends = new Set<number>();
      if (random.chance(0.12)) {
        for (let at = hashBlock; at <= end; at += hashBlock) if (random.chance(0.7)) ends.add(at);
      } else if (kind === 'full_attention' || random.chance(0.15)) {
        const run = random.chance(0.6) ? end : random.pick(points);
        for (let at = step; at <= run; at += step) ends.add(at);
        if (partial) for (const at of points) ends.add(at);
      } else if (kind === 'mamba') {
        for (const at of aligned) ends.add(partial ? at : Math.floor(at / step) * step);
      } else {
        const blocks = Math.min(Math.ceil(window! / step), Math.ceil(end / step)) + random.pick([-1, 0, 0, 1]);
        for (const at of aligned) for (let i = 0; i < blocks; i++) ends.add(Math.floor(at / step) * step - i * step);
      }
      for (const at of ends) {
        if (at <= 0 || at > end || random.chance(holes)) continue;
        for (const prefix of this.#keys[index]!)
          if (!random.chance(missingRanks)) keys.push(`${prefix}@${digests[at / hashBlock - 1]}`);
      }
    });
    return keys;
  }

  /** Whether the core knows all that is stored. */
  get known(): boolean {
    if (this.shape.missed !== undefined) return false;
    return this.core.digestCap > SMALL || this.shape.storeDigests !== undefined;
  }

  #fits(keys: readonly string[]): boolean {
    const { storeDigests = Number.POSITIVE_INFINITY, storeObjects = Number.POSITIVE_INFINITY } = this.shape;
    if (storeDigests === Number.POSITIVE_INFINITY && storeObjects === Number.POSITIVE_INFINITY) return true;
    const all = new Set([...this.objects, ...keys]);
    return all.size <= storeObjects && new Set([...all].map((key) => key.slice(-64))).size <= storeDigests;
  }

  #send(events: readonly unknown[]): void {
    for (let first = 0; first < events.length; first += EVENTS_A_MESSAGE) {
      const { outcome } = this.core.applyPayload(storePayload(events.slice(first, first + EVENTS_A_MESSAGE)));
      if (outcome !== 'applied') throw new Error(`a message was ${outcome}`);
    }
  }

  /** What a producer writes for one of the prompts enters the store, as far as it may have room. */
  store(prompt = this.random.pick(this.prompts)): void {
    let keys = this.#written(prompt);
    while (keys.length > 0 && !this.#fits(keys)) keys = keys.slice(0, Math.floor(keys.length / 2));
    for (const key of keys) this.objects.add(key);
    const { missed = 0 } = this.shape;
    const told = missed === 0 ? keys : keys.filter(() => !this.random.chance(missed));
    this.#send(told.map((key) => stored(key, { medium: this.random.pick(['cpu', 'disk']) })));
  }

  /** Some objects go. */
  remove(share = this.random.pick([0.02, 0.1, 0.5])): void {
    const gone = [...this.objects].filter(() => this.random.chance(share));
    for (const key of gone) this.objects.delete(key);
    // An object may be in either medium.
    this.#send(gone.flatMap((key) => [removed(key, { medium: 'cpu' }), removed(key, { medium: 'disk' })]));
  }

  /** The master's key list is another than what its events said. */
  reconcile(): void {
    const { random } = this;
    if (this.shape.missed !== undefined) return;
    for (const key of [...this.objects]) if (random.chance(0.1)) this.objects.delete(key);
    const more = this.#written(random.pick(this.prompts));
    if (this.#fits(more)) for (const key of more) this.objects.add(key);
    this.#listAll();
  }

  /** The core is told all that the store holds. */
  #listAll(): void {
    if (this.shape.missed !== undefined) return;
    const list = new KeyList({
      prefixes: new KeyPrefixes(this.plan.prefixes.map(({ text }) => text)),
      digestCap: this.core.digestCap,
      warm: (words, first, end) => this.core.warm(words, first, end),
    });
    for (const key of this.objects) list.addKey(key);
    this.core.replaceResidency(list.prepare());
  }

  /** The store started anew, empty; the core is told so, unless it misses things. */
  clear(): void {
    this.objects.clear();
    this.core.clearResidency();
    this.#listAll();
  }

  /** A worker announces a prompt's first main event blocks; those of salted ones are not learned here. */
  learn(): void {
    const { random, core, plan } = this;
    const prompt = random.pick(this.prompts);
    if (plan.learned === null || prompt.rawSalt) return;
    const { blockSize, hashBlock } = this.geometry;
    const blocks = random.between(0, Math.floor(prompt.tokens.length / blockSize));
    if (blocks === 0) return;
    const ends = Array.from({ length: blocks }, (_, i) => prompt.digests[((i + 1) * blockSize) / hashBlock - 1]!);
    core.hashTokens(prompt.tokens.subarray(0, blocks * blockSize), blockSize, seedOf(prompt.loraName, null));
    const digests = Buffer.from(ends.join(''), 'hex');
    const lows = BigUint64Array.from(ends, (digest) => BigInt(`0x${digest.slice(48)}`));
    core.learn({ parent: null, lows, digests: random.chance(0.5) ? digests : null, salted: false });
    for (const digest of ends) this.#learned.add(digest);
  }

  /** One of the prompts, with some of its last tokens left out. */
  asked(): { prompt: WorldPrompt; tokenCount: number } {
    const { random } = this;
    const prompt = random.pick(this.prompts);
    const most = prompt.tokens.length;
    const step = random.pick([1, this.geometry.hashBlock, this.geometry.lcm]);
    const cut = random.chance(0.5) ? most : random.between(1, most);
    const end = Math.floor(cut / step) * step + random.pick([0, 0, 1, -1]);
    return { prompt, tokenCount: Math.max(1, Math.min(most, end)) };
  }

  /** The model's store, as far as it matters to the prompt. */
  storeCase({ digests }: WorldPrompt, tokenCount: number): StoreCase {
    const present: [number, number, number][] = [];
    this.#keys.forEach((prefixes, group) => {
      prefixes.forEach((prefix, rank) => {
        digests.forEach((digest, at) => {
          if (this.objects.has(`${prefix}@${digest}`)) present.push([group, rank, at]);
        });
      });
    });
    return { ...this.geometry, present, tokenCount };
  }

  /** What vLLM's worker would report. */
  expected(prompt: WorldPrompt, tokenCount: number): number {
    return workerHit(this.storeCase(prompt, tokenCount));
  }

  /** Tokens credited along derived edges. */
  derived(prompt: WorldPrompt, tokenCount: number): number {
    const given = prompt.tokens.subarray(0, tokenCount);
    return this.core.lookupDerived(given, tokenCount, prompt) * this.geometry.hashBlock;
  }

  /** How that comes about. */
  explained(prompt: WorldPrompt, tokenCount: number): CoreExplanation {
    const blocks = this.core.prepareDerived(prompt.tokens.subarray(0, tokenCount), prompt);
    return this.core.explain(blocks, tokenCount, 'derived');
  }

  /** Tokens credited along learned edges, and what a router can see along them; null where no edges are learned. */
  learnedHit(prompt: WorldPrompt, tokenCount: number): { credited: number; expected: number } | null {
    if (this.plan.learned === null || prompt.rawSalt) return null;
    const { blockSize, hashBlock } = this.geometry;
    const seed = seedOf(prompt.loraName, null);
    const credited = this.core.lookupTokens(prompt.tokens.subarray(0, tokenCount), tokenCount, blockSize, seed);
    let known = 0;
    while (this.#learned.has(prompt.digests[((known + 1) * blockSize) / hashBlock - 1] ?? '')) known++;
    return { credited: credited * blockSize, expected: visibleHit(this.storeCase(prompt, tokenCount), known) };
  }

  /** Keys of the objects that a note of the explanation says are missing, of which some are there or are of another block. */
  wrongNotes(prompt: WorldPrompt, { blocked }: CoreExplanation): string[] {
    return blocked.flatMap(({ group, block, digest, missing }) => {
      const own = prompt.digests[block];
      if (digest !== own) return [`block ${block} of group ${group} is said to be ${digest}, not ${own}`];
      const said = missing.map((id) => `${this.plan.prefixes[id]!.text}@${own}`);
      const gone = this.#keys[group]!.map((prefix) => `${prefix}@${own}`).filter((key) => !this.objects.has(key));
      return said.join() === gone.join() && gone.length > 0 ? [] : [`said ${said.join()}; missing are ${gone.join()}`];
    });
  }
}
