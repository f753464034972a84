// The benchmark's rivals give the answers that the model gives, on random histories at small caps and below them: a
// rival that forgets sooner, or evaluates less, would be a rival of something else. The whole wire path is taken.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LinkedCore } from '../bench/rivals/linked-core.js';
import { NestedMapCore } from '../bench/rivals/nested-map.js';
import type { Rival, RivalGroup, RivalOptions } from '../bench/rivals/rival.js';
import { CoreModel } from './support/model.js';
import { Random } from './support/random.js';
import { applyJudged, judgeBatch } from './support/store-batch-model.js';

const SEED = Number(process.env['MOONROUTE_SEED'] ?? 20_260_917);
const BLOCK = 16;

/** Rivals that keep every rule; the nested Maps keep those of honest histories below the caps, which is what they are measured on. */
const rivals: readonly [name: string, new (options: RivalOptions) => Rival][] = [['LinkedCore', LinkedCore]];

/** Prompts as a tree: node k has the parent k / branch, and its own local hash and digest. */
class World {
  readonly locals: bigint[] = [];
  readonly digests: string[] = [];
  constructor(
    readonly nodes: number,
    readonly branch: number,
    random: Random,
  ) {
    for (let i = 0; i < nodes; i++) {
      // Few low halves, so that hashes clash in them.
      const local = random.chance(0.3)
        ? (random.bigint64() & ~0xffff_ffffn) | BigInt(random.int(4))
        : random.bigint64();
      this.locals.push(local);
      const low = random.chance(0.3) ? `0000000${random.int(4)}` : random.hex(4);
      this.digests.push(random.hex(28) + low);
    }
  }
  child(node: number): bigint {
    return BigInt(`0x${this.digests[node]!.slice(48)}`);
  }
  parent(node: number): number | null {
    return node < this.branch ? null : Math.floor(node / this.branch) - 1;
  }
  /** From the first block to this node. */
  path(node: number): number[] {
    const path: number[] = [];
    for (let at: number | null = node; at !== null; at = this.parent(at)) path.unshift(at);
    return path;
  }
}

interface Counts {
  hits: number;
  lookups: number;
  operations: number;
}

function run(
  Core: new (options: RivalOptions) => Rival,
  random: Random,
  {
    wide,
    caps,
    operations,
    honest = false,
  }: { wide: boolean; caps: { edges: number; memberships: number }; operations: number; honest?: boolean },
): Counts {
  const groups: RivalGroup[] = Array.from({ length: random.between(1, 4) }, (_, index) => {
    const kind =
      index === 0 && random.chance(0.9) ? 'full_attention' : random.pick(['sliding_window', 'mamba'] as const);
    const window = kind === 'sliding_window' ? Math.max(2, random.int(6) * BLOCK + random.pick([0, 1, 2])) : null;
    return { kind, window };
  });
  const ranks = random.between(1, 2);
  const prefixes = groups.flatMap((_, group) =>
    Array.from({ length: ranks }, (_, rank) => ({ text: `p@m@tp_rank:${rank}@group:${group}`, group })),
  );
  random.shuffle(prefixes);
  const ambiguousCap = 24;
  const rival = new Core({
    edgeCap: caps.edges,
    membershipCap: wide ? caps.memberships : Number.POSITIVE_INFINITY,
    ambiguousCap,
    blockSize: BLOCK,
    groups,
    prefixes,
  });
  const model = new CoreModel({
    edgeCap: caps.edges,
    ambiguousCap,
    wide,
    membershipCap: caps.memberships,
    contract: {
      blockSize: BLOCK,
      lcm: BLOCK,
      hashBlock: BLOCK,
      partial: false,
      groups: groups.map((group) => ({ ...group, blockSize: BLOCK })),
      prefixes: prefixes.map((prefix) => prefix.group),
    },
  });
  const texts = prefixes.map((prefix) => prefix.text);
  const world = new World(400, random.pick([2, 3, 20]), random);
  const counts: Counts = { hits: 0, lookups: 0, operations };
  const node = (): number => random.int(world.nodes);

  for (let i = 0; i < operations; i++) {
    const kind = random.int(100);
    if (kind < 30) {
      const whole = world.path(node());
      const from = random.chance(0.6) ? 0 : random.int(whole.length);
      const path = whole.slice(from);
      let parent = from === 0 ? null : world.child(whole[from - 1]!);
      if (!honest && random.chance(0.02)) parent = random.bigint64(); // a stranger: learned as assumed
      const wrong = !honest && random.chance(0.01) ? random.int(path.length) : -1;
      const locals = path.map((at) => world.locals[at]!);
      const children = path.map((at, index) => world.child(index === wrong ? node() : at));
      const salted = !honest && random.chance(0.1);
      rival.learn({ parent, salted, locals: BigUint64Array.from(locals), children: BigUint64Array.from(children) });
      model.learn({ parent, salted, blocks: locals.map((local, index) => ({ local, child: children[index]! })) });
    } else if (kind < 70) {
      const payload = encode([i, batchOf(random, world, texts, node, honest), 0]);
      rival.applyBatch(payload);
      applyJudged(model, judgeBatch(payload, texts));
    } else {
      const path = world.path(node());
      const locals = path.map((at) => world.locals[at]!);
      const tokens = locals.length * BLOCK + random.pick([0, 1, 1, 5, -BLOCK]);
      const hit = rival.lookup(BigUint64Array.from(locals), tokens);
      assert.is(hit, model.lookup(locals, tokens).hit, `operation ${i}, ${JSON.stringify(groups)}`);
      counts.lookups++;
      if (hit > 0) counts.hits++;
    }
    const { edges, digests, memberships } = rival.counts();
    const expected = model.fills();
    assert.equal([edges, digests], [expected.edges, expected.digests], `operation ${i}`);
    if (wide) assert.is(memberships, expected.memberships);
  }
  return counts;
}

function batchOf(
  random: Random,
  world: World,
  prefixes: readonly string[],
  node: () => number,
  honest: boolean,
): unknown[] {
  const events: unknown[] = [];
  const removal = random.chance(0.25);
  for (const at of removal ? [node()] : world.path(node())) {
    for (const prefix of prefixes) {
      if (random.chance(0.02)) continue;
      const kind = removal || random.chance(0.01) ? 'removed' : 'stored';
      let digest = world.digests[at]!;
      if (!honest && random.chance(0.0003)) digest = random.hex(24) + digest.slice(48);
      const fields: Record<string, unknown> = {
        event_type: kind,
        type: kind === 'stored' ? 'BlockStored' : 'BlockRemoved',
        tenant_id: 'default',
        medium: random.pick(['cpu', 'cpu', 'disk']),
        dp_rank: random.chance(0.5) ? null : 0,
        object_key: `${prefix}@${digest}`,
      };
      const fault = random.int(4_000);
      if (fault === 0) fields['medium'] = 'gpu';
      else if (fault === 1) fields['type'] = 'AllBlocksCleared';
      else if (fault === 2) Object.assign(fields, { event_type: 'cleared', type: null });
      else if (fault < 40) fields['tenant_id'] = 'acme';
      else if (fault < 80) fields['object_key'] = `other@${digest}`;
      else if (fault < 120) fields['event_type'] = null;
      events.push(fields);
    }
  }
  return events;
}

for (const [name, Core] of rivals) {
  const histories: readonly [what: string, wide: boolean, caps: { edges: number; memberships: number }][] = [
    ['below the caps', false, { edges: 4_096, memberships: 100_000 }],
    ['at the caps of edges and digests', false, { edges: 64, memberships: 100_000 }],
    ['at the membership cap', true, { edges: 128, memberships: 150 }],
    ['at a membership cap that refuses', true, { edges: 2_048, memberships: 12 }],
  ];
  for (const [what, wide, caps] of histories) {
    test(`${name}: the model’s answers ${what}`, () => {
      const random = new Random(SEED);
      let hits = 0;
      for (let i = 0; i < 12; i++) hits += run(Core, random, { wide, caps, operations: 1_000 }).hits;
      assert.ok(hits > (caps.memberships < 100 ? 50 : 400), `${hits} hits`);
    });
  }
}

for (const [name, Core] of rivals) {
  test(`${name}: as many departures for one object as the model allows`, () => {
    for (const cold of [254, 255, 256, 257]) {
      const options = { edgeCap: 1_024, membershipCap: 1, ambiguousCap: 8 };
      const groups: RivalGroup[] = [{ kind: 'mamba', window: null }];
      const rival = new Core({ ...options, blockSize: BLOCK, groups, prefixes: [{ text: 'p', group: 0 }] });
      const shape = { blockSize: BLOCK, lcm: BLOCK, hashBlock: BLOCK, partial: false, prefixes: [0] };
      const contract = { ...shape, groups: groups.map((group) => ({ ...group, blockSize: BLOCK })) };
      const model = new CoreModel({ ...options, wide: true, contract });
      // The only object belongs to the hottest edge; all others are in the way of its departure.
      for (let hash = 1n; hash <= cold + 1; hash++) {
        rival.learn({
          parent: null,
          salted: false,
          locals: BigUint64Array.of(hash),
          children: BigUint64Array.of(hash),
        });
        model.learn({ parent: null, salted: false, blocks: [{ local: hash, child: hash }] });
      }
      for (const low64 of [cold + 1, 5_000]) {
        const key = `p@${low64.toString(16).padStart(64, '0')}`;
        const payload = encode([0, [{ event_type: 'stored', medium: 'cpu', object_key: key }]]);
        rival.applyBatch(payload);
        applyJudged(model, judgeBatch(payload, ['p']));
      }
      const { edges, digests } = model.fills();
      assert.equal(rival.counts(), { edges, digests, memberships: 1 });
      assert.is(edges, cold > 255 ? cold + 1 - 256 : 0);
    }
  });
}

test('NestedMapCore: the model’s answers on honest histories below the caps', () => {
  const random = new Random(SEED);
  const caps = { edges: 4_096, memberships: 100_000 };
  let hits = 0;
  for (let i = 0; i < 12; i++)
    hits += run(NestedMapCore, random, { wide: false, caps, operations: 1_000, honest: true }).hits;
  assert.ok(hits > 400, `${hits} hits`);
});

test.run();
