// The core against the model: tens of thousands of random operations on builds whose caps are small enough to be hit all the time, with
// the whole state compared, not only the answers. The seed is printed; MOONROUTE_SEED=n repeats a run, MOONROUTE_OPS=n lengthens it.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Contract, ContractGroup, GroupKind } from '../src/contract/descriptor.js';
import type { Core, ReadEvent } from '../src/core/core.js';
import { Numbers } from '../src/core/numbers.js';
import { planOf } from '../src/core/plan.js';
import { coreSnapshot } from './support/core-state.js';
import { loadCore } from './support/cores.js';
import { CoreModel, type ModelEvent } from './support/model.js';
import { setClearGeneration } from './support/poke.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const OPERATIONS = Number(process.env['MOONROUTE_OPS'] ?? 60_000);
const numbers = new Numbers();
const EPISODE = 1_500;
const COMPARE_EVERY = 25;
console.log(`differential-core: seed ${seed}, ${OPERATIONS} operations a build`);

const CAPS = {
  tiny: { edgeCap: 64, ambiguousCap: 8 },
  'tiny-wide': { edgeCap: 64, ambiguousCap: 8, wide: true, membershipCap: 256 },
} as const;

/** A random geometry that a validated contract could have. */
function randomContract(random: Random, wide: boolean): Contract {
  const hash = random.pick([1, 2, 4]);
  const main = hash * random.pick([1, 1, 2, 4]);
  const kinds: GroupKind[] = ['full_attention'];
  const extra = random.pick([0, 1, 2, wide ? 11 : 3]);
  for (let i = 0; i < extra; i++) kinds.push(random.pick(['full_attention', 'sliding_window', 'mamba'] as const));
  const prefixesOf = wide ? random.pick([1, 3, 12]) : random.pick([1, 1, 2, 3]);
  const groups: ContractGroup[] = kinds.map((kind, groupId) => {
    let blockSize = main;
    let slidingWindow: number | null = null;
    if (kind === 'full_attention' && groupId > 0) blockSize = main * random.pick([1, 1, 2, 3]);
    if (kind === 'mamba') blockSize = hash * random.pick([1, 2, 4, 8]);
    if (kind === 'sliding_window') {
      blockSize = main * random.pick([1, 1, 2]);
      slidingWindow = random.pick([2, blockSize, blockSize + 1, 2 * blockSize + 1, 3 * blockSize, 5 * blockSize + 3]);
      if (slidingWindow < 2) slidingWindow = 2;
      if (random.chance(0.3)) [blockSize, slidingWindow] = [hash, 2]; // needs its last block only: may be finer than main
    }
    const keyPrefixes = Array.from({ length: prefixesOf }, (_, rank) => `p@m@tp_rank:${rank}@group:${groupId}`).sort();
    return { groupId, kind, blockSize, slidingWindow, keyPrefixes };
  });
  const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
  const lcm = [main, ...groups.map((group) => group.blockSize)].reduce((a, b) => (a / gcd(a, b)) * b, 1);
  const partialHashHits = groups.some((group) => group.kind === 'mamba' && group.blockSize > hash);
  return {
    revision: '',
    adapter: '',
    mainEventBlockSize: main,
    hashBlockSize: hash,
    lcmBlockSize: lcm,
    partialHashHits,
    gpuToStoreGroup: groups.map((_, i) => i),
    mainEventGroup: 0,
    groups,
    fingerprint: '',
  };
}

interface Node {
  local: bigint;
  child: bigint;
  high: string;
  next: Node[];
}

/** Prompts that share beginnings: what an honest fleet would announce. */
function randomForest(random: Random): Node[][] {
  const chains: Node[][] = [];
  const node = (): Node => ({ local: random.bigint64(), child: random.bigint64(), high: random.hex(24), next: [] });
  const roots = random.pick([1, 2, 5]);
  for (let root = 0; root < roots; root++) {
    let stem = Array.from({ length: random.between(1, 24) }, node);
    chains.push(stem);
    for (let branch = 0; branch < 3; branch++) {
      stem = [...stem.slice(0, random.int(stem.length)), ...Array.from({ length: random.between(1, 12) }, node)];
      chains.push(stem);
    }
  }
  return chains;
}

const hexDigest = ({ high, child }: Node): string => high + child.toString(16).padStart(16, '0');

for (const build of ['tiny', 'tiny-wide'] as const) {
  test(`${build}: answers and the whole state are those of the model`, async () => {
    const random = new Random(seed ^ (build === 'tiny' ? 1 : 2));
    const core = await loadCore(build);
    const counts = {
      learn: 0,
      distrust: 0,
      store: 0,
      clear: 0,
      lookup: 0,
      hits: 0,
      explain: 0,
      compact: 0,
      wraps: 0,
      states: 0,
    };
    let before: Record<string, number> = {};
    for (let done = 0; done < OPERATIONS; ) {
      const contract = randomContract(random, build === 'tiny-wide');
      const prefixes = contract.groups.flatMap((group) =>
        group.keyPrefixes.map((text) => ({ text, group: group.groupId })),
      );
      if (prefixes.length > (build === 'tiny' ? 64 : 1024)) continue;
      core.configure(planOf(contract), random.bigint64());
      before = coreSnapshot(core).counters as unknown as Record<string, number>;
      const model = new CoreModel({
        ...CAPS[build],
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
          prefixes: prefixes.map(({ group }) => group),
        },
      });
      const chains = randomForest(random);
      const evil = random.chance(0.5) ? 0.02 : 0.002; // how often something contradicts
      if (random.chance(0.2)) {
        setClearGeneration(core, 0xffff_fffe);
        counts.wraps++;
      }
      const where = `seed ${seed}, build ${build}, operation`;
      for (let i = 0; i < EPISODE && done < OPERATIONS; i++, done++) {
        const chain = random.pick(chains);
        const roll = random.int(100);
        if (roll < 30) {
          counts.learn++;
          const event = randomEvent(random, chain, chains, evil);
          const more = random.chance(0.3) ? [randomEvent(random, chain, chains, evil)] : [];
          const alike = more.filter((next) => sameForm(event, next));
          if (random.chance(0.5)) for (const one of [event, ...alike]) learnFromArrays(core, one);
          else {
            const read = readEvents([event, ...alike]).map((one) => ({ event: one }));
            core.learnRead(numbers, read, 0, read.length, event.salted);
          }
          assert.ok(event.blocks.length > 0);
          for (const one of [event, ...alike]) model.learn(one);
        } else if (roll === 30 && random.chance(5 * evil)) {
          counts.distrust++;
          const { blocks, ...rest } = randomEvent(random, chain, chains, evil);
          const event = { ...rest, blocks: blocks.slice(0, 2) };
          const [read] = readEvents([event]);
          core.distrust(numbers, 0, event.blocks.length, read!.wholeDigests);
          model.distrust(event.blocks.map(({ child }) => child));
        } else if (roll < 60) {
          counts.store++;
          applyRandomBatch(random, core, model, chain, prefixes, evil);
        } else if (roll < 62) {
          counts.clear++;
          core.clearResidency();
          model.clearResidency();
        } else if (roll < 92) {
          counts.lookup++;
          const { locals, tokens } = randomQuery(random, chain, contract.mainEventBlockSize);
          const blocks = core.loadLocals(BigUint64Array.from(locals));
          const hit = core.lookup(blocks, tokens) * contract.mainEventBlockSize;
          const expected = model.lookup(locals, tokens);
          assert.is(hit, expected.hit, `${where} ${done}: lookup of ${locals.length} blocks, ${tokens} tokens`);
          if (hit > 0) counts.hits++;
          if (random.chance(0.3)) {
            core.compact(random.pick([1, 7, 64]));
            counts.compact++;
          }
        } else {
          counts.explain++;
          const { locals, tokens } = randomQuery(random, chain, contract.mainEventBlockSize);
          const blocks = core.loadLocals(BigUint64Array.from(locals));
          const said = core.explain(blocks, tokens);
          const expected = model.lookup(locals, tokens, { touch: false });
          assert.is(said.hit * contract.mainEventBlockSize, expected.hit, `${where} ${done}: explain`);
          assert.is(said.walked, expected.walked, `${where} ${done}: walked`);
          for (const { group, block, missing } of said.blocked) {
            assert.not(
              expected.completeAt(block, group),
              `${where} ${done}: group ${group} was said to lack block ${block}`,
            );
            assert.ok(missing.length > 0 && missing.every((prefix) => prefixes[prefix]!.group === group));
          }
        }
        if (i % COMPARE_EVERY === 0 || i === EPISODE - 1) {
          counts.states++;
          compareStates(core, model, before, `${where} ${done}`);
        }
      }
    }
    console.log(`  ${build}: ${JSON.stringify(counts)}`);
    for (const [what, count] of Object.entries(counts)) assert.ok(count > 0, `no ${what} happened`);
    assert.ok(core.stats().movedSlots > 0, 'compaction moved nothing');
    const { counters } = coreSnapshot(core);
    for (const name of [
      'repeated',
      'replaced',
      'outranked',
      'full',
      'conflicts',
      'ambiguities',
      'dropsByConflict',
      'dropsByAmbiguity',
      'edgeEvictions',
      'digestEvictions',
    ] as const) {
      assert.ok(counters[name] > 0, `${name} never happened`);
    }
  });
}

function compareStates(core: Core, model: CoreModel, before: Record<string, number>, where: string): void {
  const seen = coreSnapshot(core);
  const expected = model.snapshot();
  // The core's event counters go on over contracts; the model is made anew.
  const counters = Object.fromEntries(
    Object.entries(seen.counters).map(([name, count]) => [name, name in LIVE_COUNTS ? count : count - before[name]!]),
  );
  assert.equal({ ...seen, counters }, JSON.parse(JSON.stringify(expected)), where);
}

const LIVE_COUNTS = { edges: 1, conflicted: 1, digests: 1, memberships: 1 };

function randomEvent(random: Random, chain: readonly Node[], chains: readonly Node[][], evil: number): ModelEvent {
  const from = random.chance(0.5) ? 0 : random.int(chain.length);
  const to = random.between(from + 1, chain.length);
  const withDigests = random.chance(0.3);
  const blocks = chain
    .slice(from, to)
    .map(({ local, child, high }) => ({ local, child, high: withDigests ? high : undefined }));
  const twist = () => random.int(blocks.length);
  let parent = from === 0 ? null : chain[from - 1]!.child;
  if (random.chance(evil)) blocks[twist()]!.child = random.bigint64(); // the same tokens, another child
  if (random.chance(evil)) blocks[twist()]!.local = random.bigint64(); // the same child, other tokens
  if (random.chance(evil) && withDigests) blocks[twist()]!.high = random.hex(24); // two digests under one low64
  if (random.chance(evil)) blocks[twist()]!.child = random.pick(random.pick(chains)).child; // a child of elsewhere, or repeated
  if (random.chance(evil)) blocks[twist()]!.child = 0n;
  if (random.chance(evil)) parent = random.bigint64();
  if (random.chance(evil)) {
    // longer than the cap
    const blocksOfOne = Array.from({ length: 80 }, () => ({
      local: random.bigint64(),
      child: random.bigint64(),
      high: undefined,
    }));
    return { parent: null, salted: false, blocks: blocksOfOne };
  }
  return { parent, salted: random.chance(0.1), blocks };
}

function applyRandomBatch(
  random: Random,
  core: Core,
  model: CoreModel,
  chain: readonly Node[],
  prefixes: readonly { text: string; group: number }[],
  evil: number,
): void {
  const from = random.chance(0.5) ? 0 : random.int(chain.length);
  const nodes = chain.slice(from, from + random.between(1, 16));
  const gaps = random.pick([0, 0, 0.02, 0.3]);
  const events: unknown[] = [];
  const remove = random.chance(0.15);
  for (const node of nodes) {
    const high = random.chance(evil) ? random.hex(24) : node.high;
    const digest = { high, low64: node.child };
    for (const [prefix, { text }] of prefixes.entries()) {
      if (random.chance(gaps)) continue;
      const disk = random.chance(0.3);
      const generationA = random.chance(0.5);
      const media = disk ? 2 : 1;
      events.push({
        event_type: remove ? 'removed' : 'stored',
        object_key: `${text}@${hexDigest({ ...node, high })}`,
        medium: disk ? 'disk' : 'cpu',
        dp_rank: generationA ? null : 0,
      });
      if (!remove) model.stored(digest, prefix, media);
      else model.removed(digest, prefix, generationA ? 7 : media | 4);
    }
  }
  const outcome = core.applyPayload(encode([0, events, 0]));
  assert.is(outcome.outcome, 'applied');
}

function randomQuery(random: Random, chain: readonly Node[], blockSize: number): { locals: bigint[]; tokens: number } {
  const locals = chain.slice(0, random.between(1, chain.length)).map(({ local }) => local);
  if (random.chance(0.1)) locals.push(random.bigint64());
  const tokens = Math.max(1, locals.length * blockSize + random.pick([0, 0, 1, -1, blockSize - 1, -blockSize]));
  return { locals, tokens };
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

test.run();
