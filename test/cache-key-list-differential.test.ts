// A random key list from its bytes, cut at random, against the plain way with texts, Maps and Sets: the same counts, the same residency and the
// same hits; and what each build has room for when it is less than the list.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Contract } from '../src/contract/descriptor.js';
import { chunked, keyListFor } from './support/key-lists.js';
import { type ContractShape, CorePool, contractOf, Pool, type Prompt } from './support/messages.js';
import { Random } from './support/random.js';

const SEED = Number(process.env['MOONROUTE_SEED'] ?? 20_261_130);
console.log(`cache-key-list-differential: seed ${SEED}`);
const LISTS = 30;

/** What a list says, read the plain way: by digest, the prefixes it is there under. */
interface PlainList {
  readonly digests: Map<string, Set<string>>;
  foreign: number;
  malformed: number;
}

function readPlainly(text: string, prefixes: ReadonlySet<string>): PlainList {
  const list: PlainList = { digests: new Map(), foreign: 0, malformed: 0 };
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) {
    const key = line.endsWith('\r') ? line.slice(0, -1) : line;
    const at = key.lastIndexOf('@');
    const digest = key.slice(at + 1);
    if (at < 0 || !prefixes.has(key.slice(0, at))) list.foreign++;
    else if (!/^[0-9a-f]{64}$/.test(digest)) list.malformed++;
    else list.digests.set(digest, (list.digests.get(digest) ?? new Set()).add(key.slice(0, at)));
  }
  return list;
}

/** A list of the given keys among others, most of them spoilt ones, as text. */
function listText(keys: readonly string[], random: Random): string {
  const spoil = (key: string): string => {
    const at = random.int(key.length);
    switch (random.int(8)) {
      case 0:
        return key.slice(0, at);
      case 1:
        return key.slice(at);
      case 2:
        return `${key.slice(0, at)}${random.pick(['@', ' ', 'A', 'é', '\r', '模', '\t'])}${key.slice(at + 1)}`;
      case 3:
        return `${key}@${random.pick(['0', key, ''])}`;
      case 4:
        return key.toUpperCase();
      case 5:
        return random.hex(random.int(80));
      case 6:
        return `${random.pick(['other', 'a/b-c.d@tp_rank:0', 'x'.repeat(5000)])}@${key.slice(-64)}`;
      default:
        return '';
    }
  };
  const drawn = keys.filter(() => random.chance(0.9));
  const again = keys.filter(() => random.chance(0.2));
  const spoilt = keys.filter(() => random.chance(0.3)).map(spoil);
  const lines = random.shuffle([...drawn, ...again, ...spoilt]);
  const ended = lines.map((line) => line + random.pick(['\n', '\n', '\r\n'])).join('');
  return random.chance(0.5) ? ended : ended.slice(0, -1);
}

/** Blocks of the prompt of which every prefix of every group is there, up to the first that isn't. */
function plainHits(prompt: Prompt, { digests }: PlainList, prefixes: ReadonlySet<string>): number {
  let blocks = 0;
  while (blocks < prompt.blocks && digests.get(prompt.digest(blocks))?.size === prefixes.size) blocks++;
  return blocks;
}

function plainCensus({ groups }: Contract, { digests }: PlainList) {
  return groups.map(({ groupId, keyPrefixes }) => {
    const held = [...digests.values()].map((found) => keyPrefixes.filter((prefix) => found.has(prefix)).length);
    const objects = held.reduce((sum, count) => sum + count, 0);
    const complete = held.filter((count) => count === keyPrefixes.length).length;
    return { group: groupId, complete, objects, cpu: 0, disk: 0, unknown: objects };
  });
}

const shapes: Readonly<Record<string, ContractShape>> = {
  'one group, one rank': {},
  'one group, two ranks': { groups: [{ ranks: 2 }] },
  'two groups of 5 and 40 ranks': { groups: [{ ranks: 5 }, { ranks: 40 }] },
  'three groups of 70 ranks, in the wide build': { groups: [{ ranks: 70 }, { ranks: 70 }, { ranks: 70 }] },
};
for (const [what, shape] of Object.entries(shapes)) {
  test(`a random list's bytes: the counts, residency and hits of the plain reading: ${what}`, async () => {
    const random = new Random(SEED);
    const pool = await Pool.open(shape);
    const prefixes = new Set(pool.contract.groups.flatMap(({ keyPrefixes }) => keyPrefixes));
    const prompts = Array.from({ length: 12 }, (_, name) => pool.prompt(name, 1 + (name % 5)));
    for (const prompt of prompts.slice(2)) pool.teach(prompt);
    let hits = 0;
    for (let list = 0; list < LISTS / Math.ceil(prefixes.size / 45); list++) {
      const listedPrompts = prompts.filter(() => random.chance(0.7));
      // Some prompts are listed whole.
      const keys = listedPrompts.flatMap((prompt) => prompt.keys(pool.contract));
      const text = listText(keys, random) + (random.chance(0.7) ? `\n${keys.slice(keys.length / 2).join('\n')}` : '');
      const plain = readPlainly(text, prefixes);
      const keyList = pool.cache.beginKeyList();
      for (const chunk of chunked(new TextEncoder().encode(text), random, random.pick([3, 200, 5000])))
        keyList.add(chunk);
      keyList.end();
      if (random.chance(0.5)) while (!keyList.prepareSome(1 + random.int(50)));
      const result = pool.cache.reconcile(pool.cache.beginReconcile(), keyList, { s0: 0, firstSequence: null });
      const placed = [...plain.digests.values()].reduce((sum, found) => sum + found.size, 0);
      const { foreign, malformed } = plain;
      assert.equal(result, { accepted: true, placed, leftOut: 0, foreign, malformed }, `list ${list}`);
      assert.equal(pool.cache.census(), plainCensus(pool.contract, plain), `list ${list}`);
      for (const prompt of prompts.slice(2)) {
        assert.is(pool.hits(prompt), plainHits(prompt, plain, prefixes), `list ${list}`);
        hits += plainHits(prompt, plain, prefixes);
      }
      for (const prompt of prompts.slice(0, 2)) assert.is(pool.hits(prompt), 0); // nobody has announced them
    }
    assert.ok(hits > 20, `${hits} blocks hit`);
  });
}

for (const [build, shape, memberCap] of [
  ['tiny', { groups: [{ ranks: 3 }, { ranks: 2 }] }, Number.POSITIVE_INFINITY],
  ['tiny-wide', { groups: [{ ranks: 3 }, { ranks: 2 }] }, 256],
] as const) {
  test(`more than ${build} has room for: what is resident is whole, those with edges first, and no more fit`, async () => {
    const random = new Random(SEED + 1);
    const contract = contractOf(shape);
    const prefixes = contract.groups.flatMap(({ keyPrefixes }) => keyPrefixes);
    for (let list = 0; list < LISTS; list++) {
      const pool = await CorePool.load(build, shape);
      const prompts = Array.from({ length: 60 + random.int(80) }, (_, name) => pool.prompt(name));
      const taught = prompts.filter(() => random.chance(0.4)).slice(0, 64);
      for (const prompt of taught) pool.teach(prompt);
      const held = new Map(prompts.map((prompt) => [prompt, prefixes.filter(() => random.chance(0.8))]));
      const keys = [...held].flatMap(([prompt, some]) => some.map((prefix) => `${prefix}@${prompt.digest(0)}`));
      const keyList = keyListFor(pool);
      for (const key of random.shuffle(keys)) keyList.addKey(key);
      const listed = keyList.prepare();
      assert.is(listed.objects, keys.length);
      const placed = pool.core.replaceResidency(listed);
      const { digests, members, digestEvictions, refusedObjects } = pool.core.stats();
      assert.equal([members, digestEvictions, refusedObjects], [placed, 0, 0]);

      // Taught one by one, every digest that is there shows itself; what an edge pushes out keeps its digest.
      const resident = new Map<Prompt, number>();
      for (const prompt of [...taught, ...prompts]) {
        if (resident.has(prompt)) continue;
        pool.teach(prompt);
        const missing = pool.explain(prompt).blocked.reduce((sum, group) => sum + group.missing.length, 0);
        resident.set(prompt, prefixes.length - missing);
      }
      const wanted = [...held].filter(([, some]) => some.length > 0);
      for (const [prompt, some] of wanted) {
        const objects = resident.get(prompt)!;
        assert.ok(objects === 0 || objects === some.length, `${objects} of ${some.length} objects`);
      }
      assert.is(
        [...resident.values()].reduce((sum, objects) => sum + objects, 0),
        placed,
      );

      const leftOut = wanted.filter(([prompt]) => resident.get(prompt) === 0);
      const hasRoom = (objects: number, before: number) => before < 64 && objects <= memberCap - placed;
      for (const [prompt, some] of leftOut) {
        assert.not(hasRoom(some.length, digests), 'a digest that would fit was left out');
        if (!taught.includes(prompt)) continue;
        // One with an edge is left out only where those with an edge alone are too many.
        const others = wanted.filter(([other]) => taught.includes(other) && resident.get(other)! > 0);
        const taken = others.reduce((sum, [, objects]) => sum + objects.length, 0);
        assert.ok(
          others.length === 64 || some.length > memberCap - taken,
          'a digest without an edge came before one with',
        );
      }
    }
  });
}

test.run();
