// The bounded memory of cache namespaces (spec/kv-events.md 1.11): its rules one by one, its bounds, and random operations against
// two models made of plain Maps: one ages like the table and must always agree, one forgets nothing and bounds what may be
// answered. MOONROUTE_SEED=n repeats a run.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { AMBIGUOUS, type Life, type NamespaceLimits, NamespaceTable } from '../src/events/namespace-table.js';
import { Random } from './support/random.js';

type Known = string | null | typeof AMBIGUOUS;

const MAX_U64 = 2n ** 64n - 1n;

/** Hashes as the table takes them. */
function wordsOf(...hashes: (number | bigint)[]): Uint32Array {
  return new Uint32Array(BigUint64Array.from(hashes, BigInt).buffer);
}

/** A table whose calls take hashes as they are. */
function table(limits: Partial<NamespaceLimits> = {}, seed?: number) {
  const inner = new NamespaceTable(limits, seed);
  return {
    inner,
    newLife: () => inner.newLife(),
    find: (life: Life, hash: number | bigint) => inner.find(life, ...(wordsOf(hash) as unknown as [number, number])),
    tag: (life: Life, hashes: (number | bigint)[], namespace: string | null) =>
      inner.tag(life, wordsOf(...hashes), 0, hashes.length, namespace),
    remove: (life: Life, hashes: (number | bigint)[]) => inner.remove(life, wordsOf(...hashes), 0, hashes.length),
  };
}

const rules = suite('rules of namespaces');

rules('a tagged hash has its namespace, others have none', () => {
  const { newLife, tag, find } = table();
  const life = newLife();
  assert.is(tag(life, [1, 2], 'tenant-a'), false);
  assert.is(tag(life, [3], 'tenant-b'), false);
  assert.equal(
    [1, 2, 3, 4].map((hash) => find(life, hash)),
    ['tenant-a', 'tenant-a', 'tenant-b', null],
  );
});

rules('the same again changes nothing', () => {
  const { inner, newLife, tag, find } = table();
  const life = newLife();
  for (let i = 0; i < 3; i++) assert.is(tag(life, [1, 1], 'tenant-a'), false);
  assert.is(find(life, 1), 'tenant-a');
  assert.is(inner.stats().hashes, 1);
});

rules('another namespace makes a hash ambiguous, for good', () => {
  const { inner, newLife, tag, find, remove } = table();
  const life = newLife();
  tag(life, [1, 2], 'tenant-a');
  assert.is(tag(life, [2, 3], 'tenant-b'), true);
  assert.equal(
    [1, 2, 3].map((hash) => find(life, hash)),
    ['tenant-a', AMBIGUOUS, 'tenant-b'],
  );
  remove(life, [1, 2, 3]);
  assert.equal(
    [1, 2, 3].map((hash) => find(life, hash)),
    [null, AMBIGUOUS, null],
  );
  for (const namespace of ['tenant-a', 'tenant-b', null]) assert.is(tag(life, [2], namespace), true, `${namespace}`);
  assert.equal(inner.stats(), { hashes: 0, namespaces: 2, ambiguous: 1, aged: 0 });
});

rules('an unsalted store makes a tagged hash ambiguous and leaves others alone', () => {
  const { inner, newLife, tag, find } = table();
  const life = newLife();
  assert.is(tag(life, [1], null), false);
  assert.is(tag(life, [1], 'tenant-a'), false, 'unsalted hashes are not remembered');
  assert.is(tag(life, [1, 2], ''), true, 'the empty text is no namespace');
  assert.equal(
    [1, 2].map((hash) => find(life, hash)),
    [AMBIGUOUS, null],
  );
  assert.is(inner.stats().hashes, 0);
});

rules('a removed hash is forgotten', () => {
  const { newLife, tag, find, remove } = table();
  const life = newLife();
  remove(life, [1]);
  tag(life, [1, 2], 'tenant-a');
  remove(life, [1, 7]);
  assert.equal(
    [1, 2].map((hash) => find(life, hash)),
    [null, 'tenant-a'],
  );
  assert.is(tag(life, [1], 'tenant-b'), false, 'and may come back with another namespace');
});

rules('lives know nothing of each other', () => {
  const { newLife, tag, find, remove } = table();
  const lives = Array.from({ length: 200 }, newLife);
  for (const life of lives) tag(life, [1, 2], `tenant-${life.id}`);
  tag(lives[0]!, [2], 'other');
  remove(lives[1]!, [1]);
  assert.is(new Set(lives.map(({ id }) => id)).size, 200);
  for (const life of lives.slice(2)) {
    assert.equal([find(life, 1), find(life, 2)], [`tenant-${life.id}`, `tenant-${life.id}`]);
  }
  assert.equal([find(newLife(), 1), find(newLife(), 2)], [null, null], 'a new life starts with nothing');
});

rules('only the given part of the list is read', () => {
  const { inner, newLife, find } = table();
  const life = newLife();
  const words = wordsOf(1, 2, 3, 4);
  inner.tag(life, words, 2, 2, 'tenant-a');
  inner.remove(life, words, 4, 1);
  assert.equal(
    [1, 2, 3, 4].map((hash) => find(life, hash)),
    [null, 'tenant-a', null, null],
  );
  assert.is(inner.tag(life, words, 2, 0, 'tenant-b'), false);
});

rules('every 64-bit hash is a hash', () => {
  const { newLife, tag, find, remove } = table();
  const life = newLife();
  const hashes = [0n, 1n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, MAX_U64];
  hashes.forEach((hash, i) => void tag(life, [hash], `tenant-${i}`));
  assert.equal(
    hashes.map((hash) => find(life, hash)),
    hashes.map((_, i) => `tenant-${i}`),
  );
  tag(life, [0n, MAX_U64], null);
  remove(life, hashes);
  assert.equal(
    hashes.map((hash) => find(life, hash)),
    [AMBIGUOUS, null, null, null, null, AMBIGUOUS],
  );
});

rules('a namespace beyond 4,096 UTF-16 units is not kept: its hashes become ambiguous', () => {
  const { inner, newLife, tag, find } = table();
  const life = newLife();
  assert.is(tag(life, [1], 'é'.repeat(4096)), false);
  assert.is(tag(life, [1, 2], 'é'.repeat(4097)), true);
  assert.equal(
    [1, 2].map((hash) => find(life, hash)),
    [AMBIGUOUS, AMBIGUOUS],
  );
  assert.equal(inner.stats(), { hashes: 0, namespaces: 1, ambiguous: 2, aged: 0 });
});

rules('empty says that nothing can be found', () => {
  const { inner, newLife, tag, remove } = table();
  const life = newLife();
  tag(life, [1, 2], null);
  assert.ok(inner.empty, 'after an unsalted store');
  tag(life, [1], 'tenant-a');
  assert.not(inner.empty);
  remove(life, [1]);
  assert.ok(inner.empty, 'after the last removal');
  tag(life, [1], 'x'.repeat(4097));
  assert.not(inner.empty, 'an ambiguous hash is an answer');
});

rules.run();

const bounds = suite('bounds of the namespace table');

bounds('a full half ages; what was asked for stays', () => {
  const { inner, newLife, tag, find } = table({ hashes: 4 });
  const life = newLife();
  tag(life, [1, 2, 3, 4], 'tenant-a');
  tag(life, [5, 6], 'tenant-b');
  assert.is(inner.stats().aged, 0);
  assert.is(find(life, 2), 'tenant-a');
  tag(life, [7, 8], 'tenant-b');
  assert.equal(inner.stats(), { hashes: 5, namespaces: 2, ambiguous: 0, aged: 3 });
  const found = [1, 2, 3, 4, 5, 6, 7, 8].map((hash) => find(life, hash));
  assert.equal(found, [null, 'tenant-a', null, null, 'tenant-b', 'tenant-b', 'tenant-b', 'tenant-b']);
});

bounds('a hash asked for in the last moment outlives the half in which it was', () => {
  const { newLife, tag, find } = table({ hashes: 2 });
  const life = newLife();
  tag(life, [1, 2, 3, 4], 'tenant-a');
  assert.is(find(life, 1), 'tenant-a', 'moves to the full current half, which ages');
  assert.equal(
    [1, 2, 3, 4].map((hash) => find(life, hash)),
    ['tenant-a', null, 'tenant-a', 'tenant-a'],
  );
});

bounds('a half ages at its limit of namespaces, and keeps none that has gone', () => {
  const { inner, newLife, tag, find } = table({ namespaces: 2 });
  const life = newLife();
  for (let i = 0; i < 5; i++) tag(life, [i], `tenant-${i}`);
  assert.equal(inner.stats(), { hashes: 3, namespaces: 3, ambiguous: 0, aged: 2 });
  assert.equal(
    [0, 1, 2, 3, 4].map((hash) => find(life, hash)),
    [null, null, 'tenant-2', 'tenant-3', 'tenant-4'],
  );
});

bounds('a half ages at the length of its namespaces', () => {
  const { inner, newLife, tag, find } = table({ units: 10 });
  const life = newLife();
  tag(life, [1], '12345');
  tag(life, [2], '67890');
  assert.is(inner.stats().aged, 0);
  tag(life, [3], '+');
  tag(life, [4], '0123456789');
  assert.is(inner.stats().aged, 2);
  assert.is(tag(life, [5], '0123456789+'), true, 'what no half has room for is ambiguous');
  assert.equal(
    [1, 2, 3, 4].map((hash) => find(life, hash)),
    [null, null, '+', '0123456789'],
  );
});

bounds('ambiguous hashes do not age', () => {
  const { newLife, tag, find } = table({ hashes: 2 });
  const life = newLife();
  tag(life, [1], 'tenant-a');
  tag(life, [1], 'tenant-b');
  for (let i = 10; i < 100; i++) tag(life, [i], 'tenant-a');
  assert.equal(
    [1, 10].map((hash) => find(life, hash)),
    [AMBIGUOUS, null],
  );
});

bounds('a life with more ambiguous hashes than are remembered of one is ambiguous as a whole', () => {
  const { inner, newLife, tag, find, remove } = table({ ambiguous: 1024 });
  const [life, other] = [newLife(), newLife()];
  for (const each of [life, other]) tag(each, [5000], 'tenant-a');
  const hashes = Array.from({ length: 1024 }, (_, i) => (BigInt(i) << 32n) | BigInt(i & 7)); // low words repeat
  tag(life, hashes, 'tenant-a');
  tag(life, hashes, 'tenant-b');
  assert.equal(
    [find(life, hashes[0]!), find(life, hashes[1023]!), find(life, 5000)],
    [AMBIGUOUS, AMBIGUOUS, 'tenant-a'],
  );
  assert.is(find(life, 6000), null);
  assert.is(inner.stats().ambiguous, 1024);
  tag(life, [5000], 'tenant-b');
  remove(life, [5000]);
  assert.equal([find(life, hashes[0]!), find(life, 5000), find(life, 6000)], [AMBIGUOUS, AMBIGUOUS, AMBIGUOUS]);
  assert.is(tag(life, [6000], null), true);
  assert.equal([find(other, 5000), find(newLife(), 5000)], ['tenant-a', null], 'other lives are not');
});

bounds('lives beyond the last id are ambiguous as a whole', () => {
  const { inner, newLife, tag, find } = table({ lives: 2 });
  const [first, second] = [newLife(), newLife()];
  assert.ok(inner.empty);
  const late = newLife();
  assert.not(inner.empty);
  for (const life of [first, second]) assert.is(tag(life, [1], `tenant-${life.id}`), false);
  assert.is(tag(late, [1], 'tenant-3'), true);
  assert.equal(
    [first, second, late].map((life) => find(life, 1)),
    ['tenant-1', 'tenant-2', AMBIGUOUS],
  );
});

bounds('only a namespace costs memory', () => {
  const used = () => process.memoryUsage().arrayBuffers;
  const before = used();
  const { newLife, tag, find, remove } = table();
  const life = newLife();
  tag(life, [1, 2], null);
  find(life, 1);
  remove(life, [1]);
  assert.ok(used() - before < 2 ** 20);
  tag(life, [1], 'tenant-a');
  assert.ok(used() - before >= 4 * 2 ** 20);
});

bounds.run();

/** What the table should know, with the same bounds, in Maps. Keys are `life:hash`. */
class AgeingModel {
  current = { names: new Set<string>(), entries: new Map<string, string>() };
  previous = { names: new Set<string>(), entries: new Map<string, string>() };
  readonly ambiguous = new Map<number, Set<bigint>>();
  readonly lost = new Set<number>();
  aged = 0;
  readonly #limits: NamespaceLimits;

  constructor(limits: NamespaceLimits) {
    this.#limits = limits;
  }

  find(life: number, hash: bigint): Known {
    if (this.lost.has(life) || this.ambiguous.get(life)?.has(hash)) return AMBIGUOUS;
    const key = `${life}:${hash}`;
    const before = this.previous.entries.get(key);
    if (before !== undefined) {
      this.previous.entries.delete(key);
      this.#add(key, before);
    }
    return this.current.entries.get(key) ?? null;
  }

  tag(life: number, hash: bigint, namespace: string | null): boolean {
    const known = this.find(life, hash);
    if (known === AMBIGUOUS) return true;
    if (known === namespace) return false;
    if (known === null && namespace !== null && namespace.length <= this.#limits.units) {
      this.#add(`${life}:${hash}`, namespace);
      return false;
    }
    this.remove(life, hash);
    const hashes = this.ambiguous.get(life) ?? new Set();
    this.ambiguous.set(life, hashes.add(hash));
    if (hashes.size > this.#limits.ambiguous) this.lost.add(life);
    return true;
  }

  remove(life: number, hash: bigint): void {
    this.current.entries.delete(`${life}:${hash}`);
    this.previous.entries.delete(`${life}:${hash}`);
  }

  get stats() {
    let ambiguous = 0;
    for (const hashes of this.ambiguous.values()) ambiguous += hashes.size;
    const namespaces = new Set([...this.current.names, ...this.previous.names]).size;
    return { hashes: this.current.entries.size + this.previous.entries.size, namespaces, ambiguous, aged: this.aged };
  }

  #add(key: string, namespace: string): void {
    const { names, entries } = this.current;
    const withIt = new Set([...names, namespace]);
    const units = [...withIt].reduce((sum, name) => sum + name.length, 0);
    if (entries.size === this.#limits.hashes || withIt.size > this.#limits.namespaces || units > this.#limits.units) {
      this.aged += this.previous.entries.size;
      this.previous = this.current;
      this.current = { names: new Set(), entries: new Map() };
    }
    this.current.names.add(namespace);
    this.current.entries.set(key, namespace);
  }
}

/** All that was ever told: the rules of 1.11 without a bound. */
class FullModel {
  readonly known = new Map<string, Known>();
  /** Last namespace told of a hash since it was removed. */
  readonly last = new Map<string, string>();

  tag(key: string, namespace: string | null, longest: number): void {
    const known = this.known.get(key) ?? null;
    if (namespace !== null) this.last.set(key, namespace);
    if (known !== namespace) {
      const first = known === null && namespace !== null && namespace.length <= longest;
      this.known.set(key, first ? namespace : AMBIGUOUS);
    }
  }

  remove(key: string): void {
    if (this.known.get(key) !== AMBIGUOUS) this.known.delete(key);
    this.last.delete(key);
  }
}

const random = suite('random operations on the namespace table');
const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const OPERATIONS = 12_000;
const PUBLISHERS = 4;
const WORDS = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
const HASHES = WORDS.flatMap((high) => WORDS.map((low) => (BigInt(high) << 32n) | BigInt(low)));
const NAMESPACES = ['a', 'b', 'tenant-a', 'tenant-b', 'é'.repeat(20), 'l'.repeat(40)];

const LOOSE: NamespaceLimits = { hashes: 65_536, namespaces: 9, units: 4096, ambiguous: 64, lives: 2 ** 31 - 1 };
const LIMITS: [name: string, limits: NamespaceLimits][] = [
  ['that never bind', LOOSE],
  ['of one hash', { ...LOOSE, hashes: 1 }],
  ['of 4 hashes and 2 ambiguous ones', { ...LOOSE, hashes: 4, ambiguous: 2 }],
  ['of 32 hashes and 8 ambiguous ones', { ...LOOSE, hashes: 32, ambiguous: 8 }],
  ['of 61 hashes and 2 namespaces', { ...LOOSE, hashes: 61, namespaces: 2 }],
  ['of 64 hashes and 30 units', { ...LOOSE, hashes: 64, units: 30 }],
];

for (const [name, limits] of LIMITS) {
  random(`with limits ${name} (MOONROUTE_SEED=${seed})`, () => {
    const dice = new Random(seed);
    const { inner, newLife, tag, find, remove } = table(limits, dice.uint32());
    const ageing = new AgeingModel(limits);
    const full = new FullModel();
    const lives = Array.from({ length: PUBLISHERS }, newLife);
    for (let operation = 0; operation < OPERATIONS; operation++) {
      const publisher = dice.int(PUBLISHERS);
      const life = lives[publisher]!;
      const hashes = Array.from({ length: dice.between(0, 6) }, () => dice.pick(HASHES));
      const what = dice.int(1000);
      const at = `operation ${operation}`;
      if (what < 400) {
        // Mostly each hash has one namespace.
        const own = NAMESPACES[Number(hashes[0] ?? 0n) % NAMESPACES.length]!;
        const namespace = dice.chance(0.97) ? own : dice.pick([...NAMESPACES, null]);
        const batch = dice.chance(0.97)
          ? hashes.filter((hash) => NAMESPACES[Number(hash) % NAMESPACES.length] === own)
          : hashes;
        const ambiguous = batch.map((hash) => ageing.tag(life.id, hash, namespace)).includes(true);
        for (const hash of batch) full.tag(`${life.id}:${hash}`, namespace, limits.units);
        assert.is(tag(life, batch, namespace), ambiguous, at);
      } else if (what < 600) {
        for (const hash of hashes) {
          ageing.remove(life.id, hash);
          full.remove(`${life.id}:${hash}`);
        }
        remove(life, hashes);
      } else if (what < 605) {
        lives[publisher] = newLife();
      } else {
        for (const hash of hashes) {
          const found = find(life, hash);
          assert.is(found, ageing.find(life.id, hash), at);
          const key = `${life.id}:${hash}`;
          const told = full.known.get(key) ?? null;
          if (typeof found === 'string') assert.is(found, full.last.get(key), `${at}: never told`);
          else if (found === AMBIGUOUS) assert.ok(told === AMBIGUOUS || life.allAmbiguous, `${at}: not ambiguous`);
          if (inner.stats().aged === 0 && !life.allAmbiguous) assert.is(found, told, `${at}: forgotten`);
        }
      }
    }
    assert.equal(inner.stats(), ageing.stats);
    assert.is(inner.stats().aged > 0, limits !== LOOSE);
  });
}

random.run();
