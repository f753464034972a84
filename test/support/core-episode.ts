// One contract's life in a core and in its model side by side: each step is taken by both, and what they answer must be the same.
import { encode } from '@msgpack/msgpack';
import * as assert from 'uvu/assert';
import type { Contract, Hashing } from '../../src/contract/descriptor.js';
import { globalOf } from '../../src/core/builds.js';
import type { Core, CoreExplanation, ReadEvent } from '../../src/core/core.js';
import { type DigestRecords, LOW, MASK, PAGE, PAGE_PREFIXES, RECORD_WORDS } from '../../src/core/digest-records.js';
import { Numbers } from '../../src/core/numbers.js';
import { planOf } from '../../src/core/plan.js';
import { coreFaults, coreSnapshot } from './core-state.js';
import { type Block, type Prompt, randomCount, randomEvent, randomQuery } from './core-traffic.js';
import { CoreModel, type Derived, type ModelDigest, type ModelEvent, type ModelHit } from './model.js';
import type { Random } from './random.js';

const CAPS = {
  tiny: { edgeCap: 64, ambiguousCap: 8 },
  'tiny-wide': { edgeCap: 64, ambiguousCap: 8, wide: true, membershipCap: 256 },
} as const;
/** Fewer than a store message may have. */
const BATCH_EVENTS = 4_000;
/** Hash blocks that the host derives first; then as many again as are known. */
const HOST_FIRST_PART = 128;
/** Counters that say what is rather than what has happened. */
const LIVE_COUNTS: readonly string[] = ['edges', 'derivedEdges', 'conflicted', 'digests', 'memberships'];

const numbers = new Numbers();

export interface EpisodeOptions {
  readonly build: keyof typeof CAPS;
  readonly contract: Contract;
  readonly hashing: Hashing;
  /** How often something contradicts. */
  readonly evil: number;
  /**
   * Whether derived edges get the keys that the host makes, by way of its own calls, or those that the prompts name, by way of the core's exports.
   */
  readonly keys: 'of the host' | 'of the prompts';
}

export class Episode {
  readonly core: Core;
  readonly model: CoreModel;
  readonly #random: Random;
  readonly #prompts: readonly Prompt[];
  readonly #options: EpisodeOptions;
  readonly #prefixes: readonly { readonly text: string; readonly group: number }[];
  readonly #before: Record<string, number>;
  /** What the host's keys stand for, and the other way round. */
  readonly #keys = new Map<string, bigint>();
  readonly #inputs = new Map<bigint, string>();

  /** Configures the core. */
  constructor(core: Core, random: Random, prompts: readonly Prompt[], options: EpisodeOptions) {
    const { build, contract, hashing } = options;
    this.core = core;
    this.#random = random;
    this.#prompts = prompts;
    this.#options = options;
    this.#prefixes = prefixesOf(contract);
    const plan = planOf(contract, hashing);
    core.configure(plan, random.bigint64(), contract.hashRule);
    this.#before = { ...coreSnapshot(core).counters };
    this.model = new CoreModel({
      ...CAPS[build],
      learns: plan.learned !== null,
      contract: {
        blockSize: contract.mainEventBlockSize,
        lcm: contract.lcmBlockSize,
        hashBlock: contract.hashBlockSize,
        partial: contract.partialHashHits,
        groups: contract.groups.map(({ kind, blockSize, slidingWindow }) => ({
          kind,
          blockSize,
          window: slidingWindow,
        })),
        prefixes: this.#prefixes.map(({ group }) => group),
      },
    });
  }

  /** Learns from an event or two. */
  learn(prompt: Prompt): void {
    const random = this.#random;
    const { evil } = this.#options;
    const event = randomEvent(random, prompt, this.#prompts, evil);
    const more = random.chance(0.3) ? [randomEvent(random, prompt, this.#prompts, evil)] : [];
    const events = [event, ...more.filter((next) => sameForm(event, next))];
    if (random.chance(0.5)) for (const one of events) learnFromArrays(this.core, one);
    else {
      const read = readEvents(events).map((one) => ({ event: one }));
      this.core.learnRead(numbers, read, 0, read.length, event.salted);
    }
    for (const one of events) this.model.learn(one);
  }

  distrust(prompt: Prompt): void {
    const { blocks, ...rest } = randomEvent(this.#random, prompt, this.#prompts, this.#options.evil);
    const event = { ...rest, blocks: blocks.slice(0, 2) };
    const [read] = readEvents([event]);
    this.core.distrust(numbers, 0, event.blocks.length, read!.wholeDigests);
    this.model.distrust(event.blocks.map(({ child }) => child));
  }

  /** A batch about objects of neighbouring blocks of the prompt. */
  store(prompt: Prompt): void {
    const random = this.#random;
    const blocks = this.#storedBlocks(prompt, random.chance(0.5) ? 16 : 64);
    const gaps = random.pick([0, 0, 0.02, 0.3]);
    const events: unknown[] = [];
    const remove = random.chance(0.15);
    for (const block of blocks) {
      const high = random.chance(this.#options.evil) ? random.hex(24) : block.high;
      const digest = { high, low64: block.child };
      for (const [prefix, { text }] of this.#prefixes.entries()) {
        if (random.chance(gaps) || events.length === BATCH_EVENTS) continue;
        const disk = random.chance(0.3);
        const generationA = random.chance(0.5);
        const media = disk ? 2 : 1;
        events.push({
          event_type: remove ? 'removed' : 'stored',
          object_key: `${text}@${hexDigest({ ...block, high })}`,
          medium: disk ? 'disk' : 'cpu',
          dp_rank: generationA ? null : 0,
        });
        if (!remove) this.model.stored(digest, prefix, media);
        else this.model.removed(digest, prefix, generationA ? 7 : media | 4);
      }
    }
    const outcome = this.core.applyPayload(encode([0, events, 0]));
    assert.is(outcome.outcome, 'applied');
  }

  /** Neighbouring main event blocks or hash blocks. */
  #storedBlocks({ blocks, spans }: Prompt, most: number): readonly Block[] {
    const random = this.#random;
    const chain = spans.length > 0 && random.chance(0.7) ? spans : blocks;
    const from = random.chance(0.5) ? 0 : random.int(chain.length);
    return chain.slice(from, from + random.between(1, most));
  }

  clear(): void {
    this.core.clearResidency();
    this.model.clearResidency();
  }

  /** A key list of some prompts' objects. */
  reconcile(): void {
    const random = this.#random;
    const digests = new Map<string, { digest: ModelDigest; prefixes: number[] }>();
    for (let i = 0; i < random.between(1, 4); i++) {
      for (const block of this.#storedBlocks(random.pick(this.#prompts), 40)) {
        const high = random.chance(this.#options.evil) ? random.hex(24) : block.high;
        const prefixes = [...this.#prefixes.keys()].filter(() => random.chance(0.95));
        if (prefixes.length > 0)
          digests.set(hexDigest({ ...block, high }), { digest: { high, low64: block.child }, prefixes });
      }
    }
    const listed = random.shuffle([...digests.values()]);
    this.core.replaceResidency(recordsOf(listed));
    this.model.replaceResidency(listed);
  }

  /** Looks a prompt up along learned edges; returns the hit in tokens. */
  lookup(prompt: Prompt): number {
    const size = this.#options.contract.mainEventBlockSize;
    const { locals, tokens } = randomQuery(this.#random, prompt, size);
    const hit = this.core.lookup(this.core.loadLocals(BigUint64Array.from(locals)), tokens) * size;
    assert.is(hit, this.model.lookup(locals, tokens).hit, `lookup of ${locals.length} blocks, ${tokens} tokens`);
    return hit;
  }

  explain(prompt: Prompt): void {
    const size = this.#options.contract.mainEventBlockSize;
    const { locals, tokens } = randomQuery(this.#random, prompt, size);
    const said = this.core.explain(this.core.loadLocals(BigUint64Array.from(locals)), tokens);
    this.#compareExplanations(said, this.model.lookup(locals, tokens, { touch: false }), size);
  }

  #compareExplanations(said: CoreExplanation, expected: ModelHit, blockSize: number): void {
    assert.is(said.hit * blockSize, expected.hit, 'explain');
    assert.is(said.walked, expected.walked, 'walked');
    for (const { group, block, missing } of said.blocked) {
      assert.not(expected.completeAt(block, group), `group ${group} was said to lack block ${block}`);
      assert.ok(missing.length > 0 && missing.every((prefix) => this.#prefixes[prefix]!.group === group));
    }
  }

  /**
   * Derives a beginning of the prompt and looks it up, or explains it; returns how deriving ended, and the hit in tokens. Never more is credited than
   * a lookup would that knew every digest, and not less unless deriving was cut short.
   */
  derive({ spans, tokens: all, extraKeys }: Prompt): { ended: Derived; hit: number } {
    const random = this.#random;
    const size = this.#options.contract.hashBlockSize;
    const tokens = all.subarray(0, random.chance(0.3) ? all.length : random.between(1, all.length));
    const blocks = Math.floor(tokens.length / size);
    const count = randomCount(random, tokens.length, size);
    const digests = spans.slice(0, blocks).map(({ child, high }) => ({ low64: child, high }));
    const { ended, keys, keyed } =
      this.#options.keys === 'of the host'
        ? this.#deriveByHost(tokens, blocks, digests, extraKeys)
        : this.#deriveByExports(tokens, spans.slice(0, blocks), digests, extraKeys);
    let hit: number;
    const known = keys.slice(0, keyed);
    if (random.chance(0.2)) {
      const expected = this.model.lookupDerived(known, count, { touch: false });
      const said = this.core.explain(keyed, count, 'derived');
      this.#compareExplanations(said, expected, size);
      hit = said.hit * size;
    } else {
      hit = this.core.exports.lookupDerived(keyed, count) * size;
      const expected = this.model.lookupDerived(known, count);
      assert.is(hit, expected.hit, `derived lookup of ${blocks} blocks, ${count} tokens; ${ended}`);
    }
    const most = this.model.hitOfDigests(digests, count);
    assert.ok(ended === 'cut' ? hit <= most : hit === most, `${hit} of ${most} tokens that are there; ${ended}`);
    return { ended, hit };
  }

  #deriveByHost(tokens: Uint32Array, blocks: number, digests: readonly ModelDigest[], extraKeys: Prompt['extraKeys']) {
    const keyed = this.core.prepareDerived(tokens, extraKeys);
    const keys = this.#requestKeys(blocks);
    this.#checkKeys(tokens, keys.slice(0, keyed), digests, extraKeys);
    let ended: Derived = 'end';
    let to = 0;
    while (to < blocks && ended === 'end') {
      const from = to;
      to += Math.min(Math.max(from, HOST_FIRST_PART), blocks - from);
      ended = this.model.derive(keys, digests, from, to);
    }
    assert.is(keyed, to, 'blocks derived');
    return { ended, keys, keyed };
  }

  /** In parts cut at random, once in a while from behind what is known. */
  #deriveByExports(
    tokens: Uint32Array,
    spans: readonly Block[],
    digests: readonly ModelDigest[],
    extraKeys: Prompt['extraKeys'],
  ) {
    const random = this.#random;
    const size = this.#options.contract.hashBlockSize;
    this.core.digestBehind(null, new Uint32Array(0), extraKeys); // puts the extra keys in place
    const keys = spans.map(({ local }) => local);
    const { exports } = this.core;
    const input = new Uint32Array(exports.memory.buffer, globalOf(exports, 'INPUT'), tokens.length);
    this.core.loadLocals(BigUint64Array.from(keys));
    let ended: Derived = 'end';
    let to = keys.length > 0 && random.chance(0.05) ? random.int(keys.length) : 0;
    while (to < keys.length && ended === 'end') {
      const from = to;
      to = random.chance(0.5) ? keys.length : random.between(from + 1, keys.length);
      input.set(tokens.subarray(from * size, to * size));
      ended = this.model.derive(keys, digests, from, to);
      assert.is(exports.derive(from, to), ended === 'end' ? 1 : 0, `blocks ${from} to ${to}: ${ended}`);
    }
    return { ended, keys, keyed: to };
  }

  #requestKeys(blocks: number): bigint[] {
    const { exports } = this.core;
    return [...new BigUint64Array(exports.memory.buffer, globalOf(exports, 'REQUEST'), blocks)];
  }

  /** Equal keys mean equal input to the hash, the parent left out, and the other way round. */
  #checkKeys(
    tokens: Uint32Array,
    keys: readonly bigint[],
    digests: readonly ModelDigest[],
    { loraName, rawSalt }: Prompt['extraKeys'],
  ): void {
    const size = this.#options.contract.hashBlockSize;
    for (const [i, key] of keys.entries()) {
      const extras = [loraName, i === 0 ? rawSalt : null].filter((extra) => extra).join('\0');
      const input = `${tokens.subarray(i * size, (i + 1) * size).join(' ')}\0${extras}`;
      assert.is(this.#keys.get(input) ?? key, key, `one key for one input; block ${i} of ${digests.length}`);
      assert.is(this.#inputs.get(key) ?? input, input, 'one input for one key');
      this.#keys.set(input, key);
      this.#inputs.set(key, input);
    }
  }

  /** Asks for a digest by the one before it; returns whether it was told. */
  digestBehind({ spans, tokens, extraKeys }: Prompt): boolean {
    const size = this.#options.contract.hashBlockSize;
    const from = this.#random.int(spans.length);
    const to = this.#random.between(from + 1, spans.length);
    const parent = spans[from - 1];
    const known = parent === undefined || this.model.isDerived(parent.child);
    const halves = parent && { low: Number(parent.child & 0xffff_ffffn), high: Number(parent.child >> 32n) };
    const said = this.core.digestBehind(halves ?? null, tokens.subarray(from * size, to * size), extraKeys);
    const expected = known ? hexDigest(spans[to - 1]!) : null;
    assert.is(said && Buffer.from(said).toString('hex'), expected, `digest of block ${to - 1} from ${from}`);
    return known;
  }

  /** Nothing may be wrong inside the core. */
  check(): void {
    assert.equal(coreFaults(this.core), []);
  }

  /** Compares the whole state. */
  compare(where: string): void {
    const seen = coreSnapshot(this.core);
    const expected = this.model.snapshot();
    // The core's event counters go on over contracts; the model is made anew.
    const counters = Object.fromEntries(
      Object.entries(seen.counters).map(([name, count]) => [
        name,
        LIVE_COUNTS.includes(name) ? count : count - this.#before[name]!,
      ]),
    );
    assert.equal({ ...seen, counters }, JSON.parse(JSON.stringify(expected)), where);
  }
}

/** The contract's required prefixes, in the order of their ids. */
export function prefixesOf({ groups }: Contract): { text: string; group: number }[] {
  return groups.flatMap(({ keyPrefixes, groupId }) => keyPrefixes.map((text) => ({ text, group: groupId })));
}

const hexDigest = ({ high, child }: Block): string => high + child.toString(16).padStart(16, '0');

/** What a key list comes to that names these objects. */
function recordsOf(listed: readonly { digest: ModelDigest; prefixes: readonly number[] }[]): DigestRecords {
  const words: number[] = [];
  for (const { digest, prefixes } of listed) {
    for (const page of new Set(prefixes.map((prefix) => Math.floor(prefix / PAGE_PREFIXES)))) {
      const record = new Uint32Array(RECORD_WORDS);
      const high = Buffer.from(digest.high, 'hex');
      for (let word = 0; word < LOW; word++) record[word] = high.readUInt32LE(word * 4);
      record.set([Number(digest.low64 & 0xffff_ffffn), Number(digest.low64 >> 32n)], LOW);
      for (const prefix of prefixes) {
        const bit = prefix - page * PAGE_PREFIXES;
        if (bit >= 0 && bit < PAGE_PREFIXES) record[MASK + (bit >> 5)]! |= 1 << (bit & 31);
      }
      record[PAGE] = page;
      words.push(...record);
    }
  }
  return {
    words: Uint32Array.from(words),
    count: words.length / RECORD_WORDS,
    digests: listed.length,
    objects: listed.reduce((sum, { prefixes }) => sum + prefixes.length, 0),
  };
}

/** The event's digests back to back, null where it carries 64-bit hashes. */
function digestsOf({ blocks }: ModelEvent): Uint8Array | null {
  if (blocks[0]?.high === undefined) return null;
  return Buffer.from(blocks.map((b) => b.high! + b.child.toString(16).padStart(16, '0')).join(''), 'hex');
}

function learnFromArrays(core: Core, event: ModelEvent): void {
  core.loadLocals(BigUint64Array.from(event.blocks, (block) => block.local));
  core.learn({
    parent: event.parent,
    salted: event.salted,
    lows: BigUint64Array.from(event.blocks, (block) => block.child),
    digests: digestsOf(event),
  });
}

/** Whether two events may be learned in one go. */
function sameForm(a: ModelEvent, b: ModelEvent): boolean {
  return a.salted === b.salted && (digestsOf(a) === null) === (digestsOf(b) === null);
}

/** The same events as a reader lays them out in `numbers`, one behind the other. */
function readEvents(events: readonly ModelEvent[]): ReadEvent[] {
  const blocks = events.flatMap((event) => event.blocks);
  const digests = digestsOf({ ...events[0]!, blocks });
  numbers.load(
    new Uint32Array(0),
    BigUint64Array.from(blocks, (block) => block.child),
    digests,
  );
  for (const [i, { local }] of blocks.entries()) numbers.setLocal(i, local);
  let hashesAt = 0;
  return events.map((event) => {
    const first = hashesAt;
    hashesAt += event.blocks.length;
    const parent = event.parent ?? 0n;
    const header = [
      Number(parent & 0xffff_ffffn),
      Number(parent >> 32n),
      event.blocks.length,
      event.parent === null ? 0 : 1,
    ];
    return {
      wholeDigests: digests !== null,
      hashesAt: first,
      writeHeader(to: Uint32Array, at: number) {
        to.set(header, at);
        return event.blocks.length;
      },
    };
  });
}
