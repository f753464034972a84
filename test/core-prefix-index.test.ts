// The GPU prefix index, rule by rule, in the core and in the brute force that it is held against. What only a bounded index has, caps,
// heat and refused settings, follows behind.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PrefixIndex } from '../src/core/prefix-index.js';
import {
  type IndexTier,
  indexedBlocks,
  type PrefixIndexLike,
  type PrefixIndexOptions,
} from '../src/core/prefix-types.js';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import { differentDepths, dumpedSet, loadDumps } from './support/prefix-dumps.js';
import { Random } from './support/random.js';
import { ReferencePrefixIndex } from './support/reference-prefix-index.js';

const MIB = 1 << 20;
const SMALL = { bytes: 2 * MIB, tableSeed: 7n } as const;

const BACK_ENDS: readonly [name: string, create: (options?: PrefixIndexOptions) => Promise<PrefixIndexLike>][] = [
  ['core', (options) => PrefixIndex.create({ ...SMALL, ...options })],
  ['brute force', async (options) => new ReferencePrefixIndex(options)],
];

/** Hashes of a word: one block a letter. */
const hashes = (word: string) => BigUint64Array.from(word, (letter) => BigInt(letter.charCodeAt(0)) << 33n);

/** External hashes that differ by rank and by all that stands before; `family` 0 is a rank's own. */
function names(rank: number, word: string, family = 0): BigUint64Array {
  let name = BigInt(rank * 1_000 + family);
  return BigUint64Array.from(word, (letter) => {
    name = (name * 0x1_0000_01b3n + BigInt(letter.charCodeAt(0)) + 1n) & 0xffff_ffff_ffff_ffffn;
    return name;
  });
}

/** A chain of its own: `count` blocks whose local and external hashes start from `number`. */
function chainOf(number: number, count: number): BigUint64Array {
  return BigUint64Array.from({ length: count }, (_, i) => (BigInt(number) << 32n) | BigInt(i + 1));
}

/** An index whose prompts are words: `abc` is three blocks. */
class Words {
  constructor(readonly index: PrefixIndexLike) {}

  /** Stores the blocks of `word` from block `from` on, under the rank's own names. */
  store(rank: number, tier: IndexTier, word: string, from = 0, eligible = true) {
    return this.#store(rank, tier, word, names(rank, word), from, eligible);
  }

  /** The same under other names. */
  storeAs(rank: number, tier: IndexTier, word: string, named: BigUint64Array, from = 0) {
    return this.#store(rank, tier, word, named, from, true);
  }

  /** Removes blocks of `word`, all or those at `places`. */
  remove(rank: number, tier: IndexTier, word: string, places = [...Array(word.length).keys()]) {
    const named = names(rank, word);
    return this.removeNamed(rank, tier, ...places.map((place) => named[place]!));
  }

  removeNamed(rank: number, tier: IndexTier, ...named: bigint[]) {
    return this.index.removed(rank, tier, new Uint32Array(BigUint64Array.from(named).buffer), 0, named.length);
  }

  /** How far the rank holds the word with its device, with its host memory, with its disk. */
  depths(rank: number, word: string) {
    const { device, host, disk } = this.index.peek(hashes(word));
    return [device[rank], host[rank], disk[rank]];
  }

  #store(rank: number, tier: IndexTier, word: string, named: BigUint64Array, from: number, eligible: boolean) {
    const parent = from === 0 ? null : named[from - 1]!;
    return this.index.stored(rank, tier, indexedBlocks(parent, named.slice(from), hashes(word).slice(from), eligible));
  }
}

type Rule = (words: Words, create: (options?: PrefixIndexOptions) => Promise<PrefixIndexLike>) => void | Promise<void>;

function rule(name: string, check: Rule, options: PrefixIndexOptions = {}): void {
  for (const [backEnd, create] of BACK_ENDS)
    test(`${backEnd}: ${name}`, async () => check(new Words(await create(options)), create));
}

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    assert.instance(error, MoonrouteError);
    return (error as MoonrouteError).code;
  }
  return 'none';
}

// ---- storing ----

rule('a fresh index holds nothing of any prompt', ({ index }) => {
  for (const prompt of ['', 'abc']) {
    const { device, host, disk, deepest } = index.lookup(hashes(prompt));
    assert.is(deepest, 0);
    for (const depths of [device, host, disk]) {
      assert.is(depths.length, index.ranks);
      assert.ok(depths.every((depth) => depth === 0));
    }
  }
});

rule('a stored chain is found as far as the prompt has it', (words) => {
  assert.is(words.store(2, 'device', 'abcd'), 'stored');
  assert.equal(words.depths(2, 'abcd'), [4, 4, 4]);
  assert.equal(words.depths(2, 'abcdef'), [4, 4, 4]);
  assert.equal(words.depths(2, 'abx'), [2, 2, 2]);
  assert.equal(words.depths(2, 'xbcd'), [0, 0, 0]);
  assert.equal(words.depths(1, 'abcd'), [0, 0, 0]);
});

rule('the same local hash elsewhere in a chain is another block', (words) => {
  words.store(0, 'device', 'aab');
  assert.equal(words.depths(0, 'ab'), [1, 1, 1]);
  assert.equal(words.depths(0, 'aaab'), [2, 2, 2]);
  assert.equal(words.depths(0, 'ba'), [0, 0, 0]);
});

rule('an event goes on behind a parent that the rank holds, in whatever tier', (words) => {
  words.store(0, 'host', 'ab');
  assert.is(words.store(0, 'device', 'abcd', 2), 'stored');
  assert.is(words.store(0, 'disk', 'abcde', 4), 'stored');
  words.store(0, 'device', 'ab');
  assert.equal(words.depths(0, 'abcde'), [4, 4, 5]);
});

rule('a parent that the rank does not hold: nothing is stored, and it is counted', (words) => {
  words.store(0, 'device', 'ab');
  assert.is(words.storeAs(1, 'device', 'abc', names(0, 'abc'), 2), 'unknown-parent', 'another rank holds it');
  assert.is(words.store(0, 'device', 'axc', 2), 'unknown-parent', 'nobody holds it');
  words.remove(0, 'device', 'ab', [1]);
  assert.is(words.store(0, 'device', 'abc', 2), 'unknown-parent', 'no longer held');
  const { unknownParents, entries } = words.index.stats();
  assert.equal({ unknownParents, entries }, { unknownParents: 3, entries: 1 });
});

rule('a parent is meant as the rank itself names it', (words) => {
  words.store(0, 'device', 'ab');
  words.store(1, 'device', 'ab');
  assert.is(words.storeAs(1, 'device', 'abc', names(0, 'abc'), 2), 'unknown-parent');
  assert.is(words.store(1, 'device', 'abc', 2), 'stored');
});

rule('ranks that name blocks differently meet in the same entries', (words) => {
  for (const rank of [0, 1, 63]) words.store(rank, 'device', 'abc');
  assert.is(words.index.stats().entries, 3);
  for (const rank of [0, 1, 63]) assert.equal(words.depths(rank, 'abcd'), [3, 3, 3]);
});

rule('ranks that share names need no record of their own for them', (words) => {
  for (const rank of [0, 1, 63]) words.storeAs(rank, 'device', 'abc', names(0, 'abc'));
  assert.is(words.index.stats().aliases, 0);
  words.store(5, 'device', 'abc');
  assert.is(words.index.stats().aliases, 3);
});

rule('one name may stand for different blocks at different ranks', (words) => {
  words.storeAs(0, 'device', 'a', BigUint64Array.of(9n));
  words.storeAs(1, 'device', 'b', BigUint64Array.of(9n));
  assert.is(words.removeNamed(1, 'device', 9n), 1);
  assert.equal([words.depths(0, 'a'), words.depths(1, 'b')].flat(), [1, 1, 1, 0, 0, 0]);
  assert.is(words.removeNamed(0, 'device', 9n), 1);
  assert.is(words.index.stats().entries, 0);
});

rule('a name given to another block: the first block loses the rank in all tiers', (words) => {
  words.storeAs(0, 'device', 'a', BigUint64Array.of(9n));
  words.storeAs(0, 'host', 'a', BigUint64Array.of(9n));
  words.storeAs(1, 'host', 'a', BigUint64Array.of(9n));
  words.storeAs(0, 'device', 'b', BigUint64Array.of(9n));
  assert.equal(words.depths(0, 'a'), [0, 0, 0]);
  assert.equal(words.depths(1, 'a'), [0, 1, 1], 'other ranks keep it');
  assert.equal(words.depths(0, 'b'), [1, 1, 1]);
  assert.is(words.index.stats().renamed, 1);
});

rule('a renamed block that had a second name is not found under it either', (words) => {
  words.storeAs(0, 'device', 'a', BigUint64Array.of(9n));
  words.storeAs(0, 'device', 'a', BigUint64Array.of(8n));
  words.storeAs(0, 'device', 'b', BigUint64Array.of(9n));
  assert.is(words.removeNamed(0, 'device', 8n), 0);
  assert.equal(words.depths(0, 'b'), [1, 1, 1]);
});

rule('a name used twice within an event stands for the last of its blocks', (words) => {
  words.storeAs(0, 'device', 'abc', BigUint64Array.of(9n, 9n, 7n));
  assert.equal(words.depths(0, 'abc'), [0, 0, 0], 'the first block is not held any more');
  assert.is(words.storeAs(0, 'device', 'a', BigUint64Array.of(5n)), 'stored');
  assert.equal(words.depths(0, 'abc'), [3, 3, 3]);
});

rule('of two names that a rank gives to a block the first stands, until it no longer holds the block', (words) => {
  words.store(0, 'device', 'ab');
  words.storeAs(0, 'host', 'ab', names(0, 'ab', 1));
  assert.is(words.index.stats().renamed, 0);
  assert.equal(words.depths(0, 'ab'), [2, 2, 2]);
  assert.is(words.store(0, 'device', 'abc', 2), 'stored');
  assert.is(words.storeAs(0, 'device', 'abd', names(0, 'abd', 1), 2), 'unknown-parent');
  assert.is(words.removeNamed(0, 'device', names(0, 'ab', 1)[1]!), 0);
  assert.is(words.remove(0, 'device', 'ab', [1]), 1);
  assert.is(words.remove(0, 'host', 'ab', [1]), 1);
  assert.is(words.storeAs(0, 'device', 'ab', names(0, 'ab', 1), 1), 'unknown-parent', 'a is held under its first name');
  words.storeAs(0, 'device', 'ab', BigUint64Array.of(names(0, 'a')[0]!, names(0, 'ab', 1)[1]!));
  assert.is(words.removeNamed(0, 'device', names(0, 'ab', 1)[1]!), 1);
});

rule('what is offloaded under another content is the block of its name', (words) => {
  words.store(0, 'device', 'abc');
  for (const tier of ['host', 'disk'] as const) {
    assert.is(words.storeAs(0, tier, 'xyz', names(0, 'abc')), 'stored');
    assert.equal(words.depths(0, 'xyz'), [0, 0, 0]);
  }
  words.remove(0, 'device', 'abc', [1, 2]);
  assert.equal(words.depths(0, 'abc'), [1, 3, 3]);
  assert.is(words.index.stats().renamed, 0);
  assert.is(words.storeAs(0, 'device', 'xyz', names(0, 'abc')), 'stored');
  assert.is(words.index.stats().renamed, 3, 'on the device the name is given to another block');
});

rule('hashes that look like marks are hashes like any other', (words) => {
  const odd = BigUint64Array.of(0n, 0xffff_ffff_ffff_ffffn, 1n << 63n, 0xffff_ffffn, 1n << 32n, 1n);
  const locals = odd.slice().reverse();
  assert.is(words.index.stored(0, 'device', indexedBlocks(null, odd, locals)), 'stored');
  assert.is(words.index.peek(locals).device[0], 6);
  assert.is(words.index.stored(0, 'host', indexedBlocks(0n, odd.slice(1), locals.slice(1))), 'stored');
  assert.is(words.removeNamed(0, 'device', ...odd), 6);
  assert.is(words.removeNamed(0, 'host', ...odd), 5);
  assert.is(words.index.stats().entries, 0);
});

rule('an event may stand anywhere within longer arrays', ({ index }) => {
  const named = names(0, 'xxabcxx');
  const whole = indexedBlocks(null, named, hashes('xxabcxx'));
  assert.is(index.stored(0, 'device', { ...whole, at: 2, count: 3 }), 'stored');
  assert.equal([...index.peek(hashes('abcxx')).device.subarray(0, 2)], [3, 0]);
  assert.is(index.removed(0, 'device', whole.lows, 3, 1), 1);
  assert.is(index.peek(hashes('abcxx')).device[0], 1);
});

// ---- tiers ----

const TIER_CASES: readonly [device: string, host: string, disk: string, depths: readonly number[]][] = [
  // which of the blocks abcdef each tier holds, and the three depths
  ['abcdef', '', '', [6, 6, 6]],
  ['', 'abc', '', [0, 3, 3]],
  ['', '', 'ab', [0, 0, 2]],
  ['ab', 'cd', 'ef', [2, 4, 6]],
  ['ab', 'abcd', 'abcdef', [2, 4, 6]],
  ['ab', 'ef', 'cd', [2, 2, 4]], // behind the disk's blocks the host counts no more
  ['abef', 'cd', '', [2, 4, 4]], // nor does the device behind the host's
  ['ab', 'ce', 'df', [2, 3, 4]], // behind the host's first hole only the disk counts
  ['ab', 'd', 'cef', [2, 2, 3]],
  ['bc', 'a', '', [0, 1, 1]],
  ['', 'b', 'a', [0, 0, 1]],
];

for (const [device, host, disk, expected] of TIER_CASES) {
  const shown = `device ${device || '–'}, host ${host || '–'}, disk ${disk || '–'}: ${expected.join(' ')}`;
  rule(`tiers follow one another: ${shown}`, (words) => {
    const word = 'abcdef';
    const held = { device, host, disk };
    for (const tier of ['device', 'host', 'disk'] as const) {
      words.store(3, tier, word);
      words.store(4, 'device', word); // a rank that has all of it
    }
    for (const tier of ['device', 'host', 'disk'] as const)
      words.remove(
        3,
        tier,
        word,
        [...word].flatMap((letter, i) => (held[tier].includes(letter) ? [] : [i])),
      );
    assert.equal(words.depths(3, word), expected);
    assert.equal(words.depths(4, word), [6, 6, 6]);
    assert.is(words.index.peek(hashes(word)).deepest, 6);
    words.index.clear(4);
    assert.is(words.index.peek(hashes(word)).deepest, expected[2]);
  });
}

// ---- removing ----

rule('removal takes the rank out of one tier', (words) => {
  for (const tier of ['device', 'host'] as const) words.store(0, tier, 'abc');
  assert.is(words.remove(0, 'device', 'abc'), 3);
  assert.equal(words.depths(0, 'abc'), [0, 3, 3]);
  assert.is(words.remove(0, 'host', 'abc', [2]), 1);
  assert.equal(words.depths(0, 'abc'), [0, 2, 2]);
});

rule('removals of what the rank is not known to hold are counted and do nothing', (words) => {
  words.store(0, 'device', 'abc');
  words.store(1, 'device', 'abc');
  assert.is(words.remove(0, 'host', 'abc'), 0, 'another tier');
  assert.is(words.remove(2, 'device', 'abc'), 0, 'a rank that holds nothing');
  assert.is(words.removeNamed(0, 'device', ...names(1, 'abc')), 0, 'another rank’s names');
  assert.is(words.remove(0, 'device', 'abc', [2, 2]), 1, 'a hash said twice');
  assert.is(words.index.stats().unknownRemovals, 10);
  assert.equal(words.depths(0, 'abc'), [2, 2, 2]);
  assert.equal(words.depths(1, 'abc'), [3, 3, 3]);
});

rule('what is behind a removed block is out of reach, and back when the block is', (words) => {
  words.store(0, 'device', 'abcdef');
  assert.is(words.remove(0, 'device', 'abcdef', [2]), 1);
  assert.equal(words.depths(0, 'abcdef'), [2, 2, 2]);
  assert.is(words.store(0, 'device', 'abc', 2), 'stored');
  assert.equal(words.depths(0, 'abcdef'), [6, 6, 6]);
});

rule('what is behind a removed block is still known by its name', (words) => {
  words.store(0, 'device', 'abcd');
  words.remove(0, 'device', 'abcd', [1]);
  assert.is(words.store(0, 'device', 'abcde', 4), 'stored');
  words.store(0, 'device', 'ab', 1);
  assert.equal(words.depths(0, 'abcde'), [5, 5, 5]);
  words.remove(0, 'device', 'abcd', [1]);
  assert.is(words.remove(0, 'device', 'abcd', [3]), 1);
});

rule('a block that nobody holds is kept while blocks behind it are known, and no longer', (words) => {
  words.store(0, 'device', 'abcd');
  words.remove(0, 'device', 'abcd', [0, 1]);
  assert.is(words.index.stats().entries, 4);
  words.remove(0, 'device', 'abcd', [3]);
  assert.is(words.index.stats().entries, 3);
  words.remove(0, 'device', 'abcd', [2]);
  assert.is(words.index.stats().entries, 0);
});

rule('a block held again may have another name than before', (words) => {
  words.store(0, 'device', 'ab');
  words.remove(0, 'device', 'ab', [0]);
  words.storeAs(0, 'device', 'a', BigUint64Array.of(9n));
  assert.is(words.remove(0, 'device', 'ab', [0]), 0);
  assert.is(words.removeNamed(0, 'device', 9n), 1);
});

rule('a clear leaves nothing of the rank, and all of the others', (words) => {
  for (const rank of [0, 1]) for (const tier of ['device', 'host', 'disk'] as const) words.store(rank, tier, 'abc');
  words.store(0, 'device', 'axy');
  words.index.clear(0);
  assert.equal(words.depths(0, 'abc'), [0, 0, 0]);
  assert.equal(words.depths(1, 'abc'), [3, 3, 3]);
  assert.equal(words.index.dump(0), []);
  words.index.tidy();
  assert.is(words.index.stats().entries, 3);
  assert.is(words.store(0, 'device', 'abcd', 3), 'unknown-parent');
  assert.is(words.remove(0, 'device', 'abc'), 0);
  assert.is(words.store(0, 'host', 'ab'), 'stored');
  assert.equal(words.depths(0, 'abc'), [0, 2, 2]);
  words.index.clear(2);
  words.index.clear(0);
  words.index.clear(1);
  words.index.tidy();
  const { entries, aliases, sets } = words.index.stats();
  assert.equal({ entries, aliases, sets }, { entries: 0, aliases: 0, sets: 0 });
});

rule('lookups are counted, peeks are not', (words) => {
  words.index.lookup(hashes('abc'));
  words.index.lookup(hashes(''));
  words.index.peek(hashes('abc'));
  assert.is(words.index.stats().lookups, 2);
});

rule('lookup and peek answer alike', (words) => {
  words.store(0, 'device', 'abcdef');
  words.store(1, 'host', 'abc');
  const peeked = words.index.peek(hashes('abcx'));
  const copy = { ...peeked, device: peeked.device.slice(), host: peeked.host.slice(), disk: peeked.disk.slice() };
  assert.is(differentDepths(words.index.lookup(hashes('abcx')), copy), null);
});

// ---- dumps ----

/** Runs as text: tier, parent as the word before it, the run's letters. */
function shown(rank: number, words: Words, spelt: readonly string[]) {
  const wordOf = new Map(
    spelt.flatMap((word) => [...names(rank, word)].map((name, i) => [name, word.slice(0, i + 1)])),
  );
  return words.index.dump(rank).map(({ tier, parent, hashes: named, locals, eligible }) => {
    assert.is(named.length, locals.length);
    const before = parent === null ? '' : wordOf.get(parent)!;
    const last = wordOf.get(named.at(-1)!)!;
    assert.equal([...locals], [...hashes(last.slice(before.length))]);
    return `${tier} ${before}>${last.slice(before.length)}${eligible ? '' : ' not eligible'}`;
  });
}
const PROVENANCE = { provenance: true };

rule(
  'a chain is dumped as one run',
  (words) => {
    words.store(0, 'device', 'ab');
    words.store(0, 'device', 'abcdef', 2);
    assert.equal(shown(0, words, ['abcdef']), ['device >abcdef']);
    assert.equal(words.index.dump(1), []);
  },
  PROVENANCE,
);

rule(
  'a run ends where eligibility changes',
  (words) => {
    words.store(0, 'device', 'ab');
    words.store(0, 'device', 'abcd', 2, false);
    words.store(0, 'device', 'abcde', 4);
    assert.equal(shown(0, words, ['abcde']), ['device >ab', 'device ab>cd not eligible', 'device abcd>e']);
  },
  PROVENANCE,
);

rule('without provenance nothing is dumped as eligible', (words) => {
  words.store(0, 'device', 'ab');
  words.store(0, 'device', 'abc', 2, false);
  assert.equal(shown(0, words, ['abc']), ['device >abc not eligible']);
});

rule(
  'an ineligible store by anyone counts until nobody holds the block',
  (words) => {
    words.store(0, 'device', 'ab');
    words.store(1, 'host', 'a', 0, false);
    assert.equal(shown(0, words, ['ab']), ['device >a not eligible', 'device a>b']);
    words.store(1, 'host', 'a');
    words.index.clear(1);
    assert.equal(shown(0, words, ['ab']), ['device >a not eligible', 'device a>b'], 'rank 0 held it all along');
    words.remove(0, 'device', 'ab', [0]);
    words.store(0, 'device', 'a');
    assert.equal(shown(0, words, ['ab']), ['device >ab']);
  },
  PROVENANCE,
);

rule(
  'a run a tier, each with its parent’s name',
  (words) => {
    words.store(0, 'device', 'ab');
    words.store(0, 'disk', 'abcd', 2);
    words.store(0, 'host', 'abx', 1);
    assert.equal(shown(0, words, ['abcd', 'abx']).sort(), ['device >ab', 'disk ab>cd', 'host a>bx']);
  },
  PROVENANCE,
);

rule(
  'whatever is hotter or colder, each chain is a run',
  (words) => {
    words.store(0, 'disk', 'pqr');
    words.store(0, 'host', 'xyz');
    words.store(0, 'device', 'ab');
    assert.equal(shown(0, words, ['ab', 'xyz', 'pqr']).sort(), ['device >ab', 'disk >pqr', 'host >xyz']);
    words.store(1, 'device', 'cd');
    words.store(1, 'host', 'stu');
    words.store(1, 'disk', 'efg');
    assert.equal(shown(1, words, ['cd', 'stu', 'efg']).sort(), ['device >cd', 'disk >efg', 'host >stu']);
  },
  PROVENANCE,
);

rule(
  'a block whose parent is in a later tier only is dumped behind it all the same',
  (words) => {
    words.store(0, 'host', 'a');
    words.store(0, 'device', 'ab', 1);
    words.store(0, 'disk', 'xy');
    words.store(0, 'host', 'xyz', 2);
    assert.equal(shown(0, words, ['ab', 'xyz']).sort(), ['device a>b', 'disk >xy', 'host >a', 'host xy>z']);
    dumpedSet(words.index.dump(0));
  },
  PROVENANCE,
);

rule(
  'a run of a dump fits an event',
  ({ index }) => {
    const chain = chainOf(1, 70_000);
    for (const [from, to] of [
      [0, 65_536],
      [65_536, 70_000],
    ] as const) {
      const parent = from === 0 ? null : chain[from - 1]!;
      index.stored(0, 'device', indexedBlocks(parent, chain.slice(from, to), chain.slice(from, to)));
    }
    assert.is(index.peek(chain).device[0], 70_000);
    const runs = index.dump(0);
    assert.equal(
      runs.map(({ hashes: named }) => named.length),
      [65_536, 4_464],
    );
    assert.is(runs[1]!.parent, chain[65_535]);
  },
  { bytes: 16 * MIB },
);

rule(
  'a fork is dumped as a run for each branch',
  (words) => {
    words.store(0, 'device', 'abcd');
    words.store(0, 'device', 'abxy', 2);
    const runs = shown(0, words, ['abcd', 'abxy']);
    assert.is(runs.length, 2);
    const [first, second] =
      runs[0] === 'device >abcd' ? ['device >abcd', 'device ab>xy'] : ['device >abxy', 'device ab>cd'];
    assert.equal(runs, [first, second]);
  },
  PROVENANCE,
);

rule(
  'blocks behind a hole are not dumped, and are again when the hole is filled',
  (words) => {
    words.store(0, 'device', 'abcd');
    words.remove(0, 'device', 'abcd', [1]);
    assert.equal(shown(0, words, ['abcd']), ['device >a']);
    words.store(0, 'device', 'ab', 1);
    assert.equal(shown(0, words, ['abcd']), ['device >abcd']);
  },
  PROVENANCE,
);

rule(
  'another rank’s blocks don’t help a rank’s dump over a hole',
  (words) => {
    for (const rank of [0, 1]) words.storeAs(rank, 'device', 'abcd', names(0, 'abcd'));
    words.removeNamed(0, 'device', names(0, 'abcd')[2]!);
    assert.equal(shown(0, words, ['abcd']), ['device >ab']);
  },
  PROVENANCE,
);

rule(
  'a fresh index loaded with all dumps answers alike',
  async (words, create) => {
    for (const rank of [0, 1, 2]) words.store(rank, 'device', 'abcdef'.slice(0, 3 + rank));
    words.store(0, 'host', 'abcxyz');
    words.store(1, 'disk', 'abcxy', 3);
    words.remove(1, 'device', 'abc', [1]);
    words.storeAs(2, 'device', 'ab', names(2, 'ab', 1));
    const loaded = new Words(await create(PROVENANCE));
    loadDumps(words.index, loaded.index, Array(words.index.ranks).keys());
    for (const prompt of ['abcdef', 'abcxyz', 'abcxq', 'abq', 'q'])
      assert.is(differentDepths(loaded.index.peek(hashes(prompt)), words.index.peek(hashes(prompt))), null, prompt);
    for (const rank of [0, 1, 2]) {
      const keys = (index: PrefixIndexLike) => [...dumpedSet(index.dump(rank)).keys()].sort();
      assert.equal(keys(loaded.index), keys(words.index));
    }
  },
  PROVENANCE,
);

rule('a removal of nothing changes nothing', ({ index }) => {
  assert.equal(index.dump(0), []);
  assert.is(index.removed(0, 'device', new Uint32Array(0), 0, 0), 0);
  assert.is(index.stats().entries, 0);
});

// ---- ranks ----

rule('a rank beyond the last one is an error that says so', ({ index }) => {
  for (const rank of [64, -1, 1.5, Number.NaN, 2 ** 32]) {
    const blocks = indexedBlocks(null, names(0, 'a'), hashes('a'));
    assert.is(
      codeOf(() => index.stored(rank, 'device', blocks)),
      'index-rank',
      `stored ${rank}`,
    );
    assert.is(
      codeOf(() => index.removed(rank, 'device', blocks.lows, 0, 1)),
      'index-rank',
      `removed ${rank}`,
    );
    assert.is(
      codeOf(() => index.clear(rank)),
      'index-rank',
      `clear ${rank}`,
    );
    assert.is(
      codeOf(() => index.dump(rank)),
      'index-rank',
      `dump ${rank}`,
    );
  }
  assert.is(index.stats().entries, 0);
});

for (const [wanted, ranks] of [
  [1, 64],
  [64, 64],
  [65, 128],
  [1_000, 1_024],
  [1_024, 1_024],
] as const) {
  rule(
    `${wanted} ranks are rounded up to ${ranks}`,
    (words) => {
      assert.is(words.index.ranks, ranks);
      assert.is(words.index.stats().ranks, ranks);
      const last = ranks - 1;
      words.store(last, 'device', 'ab');
      words.store(0, 'host', 'abc');
      assert.equal(words.depths(last, 'abc'), [2, 2, 2]);
      assert.equal(words.depths(0, 'abc'), [0, 3, 3]);
      assert.is(words.index.peek(hashes('abc')).device.length, ranks);
    },
    { ranks: wanted, bytes: 8 * MIB },
  );
}

rule(
  'all of 1,024 ranks at different depths',
  (words) => {
    const word = 'abcdefghijklmnopqrstuvwxyzABCDEF';
    for (let rank = 0; rank < 1_024; rank++)
      words.storeAs(rank, 'device', word.slice(0, 1 + (rank % 32)), names(0, word.slice(0, 1 + (rank % 32))));
    const { device, deepest } = words.index.lookup(hashes(word));
    assert.is(deepest, 32);
    assert.ok(device.every((depth, rank) => depth === 1 + (rank % 32)));
    assert.is(words.index.stats().sets, 32);
  },
  { ranks: 1_024, bytes: 8 * MIB },
);

// ---- the bounded index ----

async function refused(options: PrefixIndexOptions): Promise<string> {
  try {
    await PrefixIndex.create(options);
  } catch (error) {
    assert.instance(error, ConfigError);
    return (error as ConfigError).code;
  }
  return 'none';
}

for (const bytes of [0, MIB - 1, 1024 * MIB + 1, Number.NaN, 1.5 * MIB + 0.5, -1, Number.POSITIVE_INFINITY])
  test(`core: ${bytes} bytes are refused`, async () => assert.is(await refused({ bytes }), 'index-bytes'));
for (const ranks of [0, -1, 1_025, 1.5, Number.NaN])
  test(`core: ${ranks} ranks are refused`, async () => assert.is(await refused({ bytes: MIB, ranks }), 'index-ranks'));

test('core: the smallest index that is allowed works, with the fewest and the most ranks', async () => {
  for (const ranks of [1, 1_024]) {
    const words = new Words(await PrefixIndex.create({ bytes: MIB, ranks, tableSeed: 7n }));
    assert.is(words.store(0, 'device', 'abc'), 'stored');
    assert.equal(words.depths(0, 'abc'), [3, 3, 3]);
  }
});

test('core: memory is what was asked for, from the start, and stays', async () => {
  for (const bytes of [MIB, 5 * MIB + 12_345, 64 * MIB]) {
    const index = await PrefixIndex.create({ bytes });
    const { memoryBytes } = index.stats();
    assert.ok(memoryBytes <= bytes && memoryBytes > bytes * 0.9, `${memoryBytes} of ${bytes}`);
    const long = BigUint64Array.from({ length: 60_000 }, (_, i) => BigInt(i + 1));
    index.stored(0, 'device', indexedBlocks(null, long, long));
    index.lookup(long);
    assert.is(index.stats().memoryBytes, memoryBytes);
  }
});

test('core: 64 MiB are the default, and 64 ranks', async () => {
  const index = await PrefixIndex.create();
  const { memoryBytes, ranks } = index.stats();
  assert.ok(memoryBytes <= 64 * MIB && memoryBytes > 60 * MIB);
  assert.is(ranks, 64);
});

const CHAIN = 100;

test('core: events, removals and prompts longer than one part of the core’s input', async () => {
  const index = await PrefixIndex.create({ bytes: 32 * MIB, tableSeed: 7n });
  const chain = chainOf(1, 262_144);
  const whole = indexedBlocks(null, chain, chain);
  for (let at = 0; at < chain.length; at += 65_536) {
    const parent = at === 0 ? 0n : chain[at - 1]!;
    const words = { parentLow: Number(parent & 0xffff_ffffn), parentHigh: Number(parent >> 32n) };
    const part = { ...whole, ...words, at, count: 65_536, hasParent: at > 0 };
    assert.is(index.stored(0, 'device', part), 'stored');
    assert.is(index.stored(1, 'host', { ...part, count: 10_000 }), at === 0 ? 'stored' : 'unknown-parent');
  }
  const { device, host, deepest } = index.lookup(chain);
  assert.equal([device[0], device[1], host[1], deepest], [262_144, 0, 10_000, 262_144]);
  for (const length of [4_095, 4_096, 4_097, 8_192, 10_001])
    assert.equal([...index.peek(chain.subarray(0, length)).host.subarray(0, 2)], [length, Math.min(length, 10_000)]);
  assert.is(index.removed(0, 'device', whole.lows, 100_000, 50_000), 50_000);
  assert.is(index.peek(chain).device[0], 100_000);
});

test('core: more blocks than a call may have are an error that says so', async () => {
  const index = await PrefixIndex.create({ bytes: MIB, tableSeed: 7n });
  const chain = chainOf(1, 262_145);
  const blocks = indexedBlocks(null, chain, chain);
  const event = { ...blocks, count: 65_537 };
  assert.is(
    codeOf(() => index.lookup(chain)),
    'index-blocks',
  );
  assert.is(
    codeOf(() => index.peek(chain)),
    'index-blocks',
  );
  assert.is(
    codeOf(() => index.stored(0, 'device', event)),
    'index-blocks',
  );
  assert.is(index.removed(0, 'device', blocks.lows, 0, 262_145), 0, 'a removal may have any number');
  assert.is(index.stats().entries, 0);
});

/** An index at its cap of blocks, filled with chains 0 … n − 1 of 100 blocks, the last one the hottest. */
async function atCap(ranks = 64) {
  const index = await PrefixIndex.create({ bytes: MIB, ranks, tableSeed: 7n });
  const store = (number: number, rank = 0, count = CHAIN) => {
    const chain = chainOf(number, count);
    return index.stored(rank, 'device', indexedBlocks(null, chain, chain));
  };
  const depth = (number: number, rank = 0) => index.peek(chainOf(number, CHAIN)).device[rank]!;
  let chains = 0;
  while (index.stats().evicted === 0) assert.is(store(chains++), 'stored');
  return { index, store, depth, chains };
}

test('core: at the cap the longest unused go first, from their ends', async () => {
  const { index, store, depth, chains } = await atCap();
  assert.ok(index.stats().entries <= index.stats().entryCap);
  const fresh = chains >> 2;
  for (let i = 0; i < fresh; i++) assert.is(store(chains + i), 'stored');
  assert.is(depth(0), 0, 'the first is gone');
  for (let i = 0; i < fresh; i++) assert.is(depth(chains + i), CHAIN, 'the new ones are whole');
  for (let i = chains >> 1; i < chains; i++) assert.is(depth(i), CHAIN, 'so is the later half of the old ones');
  const { evicted, entries } = index.stats();
  assert.is(evicted + entries, (chains + fresh) * CHAIN);
});

test('core: a lookup keeps a chain, a peek and a removal don’t', async () => {
  const { index, store, depth, chains } = await atCap();
  const [looked, peeked, removed] = [2, 3, 4];
  for (let i = 0; i < chains; i++) {
    store(chains + i);
    index.lookup(chainOf(looked, CHAIN));
    index.peek(chainOf(peeked, CHAIN));
    index.removed(0, 'device', new Uint32Array(chainOf(removed, CHAIN).buffer), CHAIN - 1 - i, i < CHAIN ? 1 : 0);
  }
  assert.is(depth(looked), CHAIN);
  assert.is(depth(peeked), 0);
  assert.is(depth(removed), 0);
});

test('core: a prompt’s beginning outlives its end, also where only the beginning was looked up', async () => {
  const { index, store, depth, chains } = await atCap();
  for (let i = 0; i < chains; i++) {
    store(chains + i);
    index.lookup(chainOf(2, CHAIN >> 1));
  }
  assert.is(depth(2), CHAIN >> 1);
});

test('core: a stored event keeps the chain that it goes on behind', async () => {
  const { index, store, chains } = await atCap();
  const grown = chainOf(2, 4 * CHAIN);
  let length = CHAIN;
  for (let i = 0; i < chains; i++) {
    store(chains + i);
    if (i % 2 === 1 || length === grown.length) continue;
    const next = grown.slice(length, length + 4);
    assert.is(index.stored(0, 'device', indexedBlocks(grown[length - 1]!, next, next)), 'stored');
    length += 4;
    assert.is(index.peek(grown).device[0], length);
  }
});

test('core: what is evicted leaves all ranks and their names', async () => {
  const { index, store, depth, chains } = await atCap();
  for (const rank of [1, 2]) store(chains - 1, rank);
  for (let i = 0; i < 2 * chains; i++) store(chains + i);
  for (const rank of [0, 1, 2]) {
    assert.is(depth(chains - 1, rank), 0);
    const lows = new Uint32Array(chainOf(chains - 1, CHAIN).buffer);
    assert.is(index.removed(rank, 'device', lows, 0, CHAIN), 0);
  }
});

test('core: an event longer than the cap stores its beginning', async () => {
  const index = await PrefixIndex.create({ bytes: MIB, tableSeed: 7n });
  const { entryCap } = index.stats();
  const chain = chainOf(1, Math.min(65_536, 2 * entryCap));
  assert.is(index.stored(0, 'device', indexedBlocks(null, chain, chain)), 'no-room');
  const depth = index.peek(chain).device[0]!;
  assert.ok(depth > 0 && depth <= entryCap && depth === index.stats().entries, `${depth} of ${entryCap}`);
});

test('core: at the cap of sets blocks are evicted or refused, never said to be where they were not, and it recovers', async () => {
  const index = await PrefixIndex.create({ bytes: MIB, ranks: 1_024, tableSeed: 7n });
  const { setCap } = index.stats();
  const prompts = 2 * setCap;
  const first = (number: number) => chainOf(number, 1);
  const store = (number: number, rank: number) =>
    index.stored(rank, 'device', indexedBlocks(null, first(number), first(number)));
  // Prompt i is held by the ranks whose bits i has: every prompt by other ones.
  const bits = Array.from({ length: 16 }, (_, bit) => bit).filter((bit) => 1 << bit <= prompts);
  for (let i = 1; i <= prompts; i++) for (const bit of bits) if ((i >> bit) & 1) store(i, 64 * bit);
  const { sets, refusedBySets, evicted } = index.stats();
  assert.ok(sets <= setCap && sets > 0.9 * setCap, `${sets} sets of ${setCap}`);
  assert.ok(refusedBySets + evicted > 0);
  let found = 0;
  for (let i = 1; i <= prompts; i++) {
    const { device } = index.peek(first(i));
    for (const [rank, depth] of device.entries()) {
      if (depth > 0) assert.is((i >> (rank / 64)) & 1, 1, `rank ${rank} never had prompt ${i}`);
      found += depth;
    }
  }
  assert.ok(found > setCap, `${found} found`);
  for (const bit of bits) index.clear(64 * bit);
  index.tidy();
  assert.equal([index.stats().sets, index.stats().entries], [0, 0]);
  for (let i = 1; i <= 100; i++) assert.is(store(i, 5), 'stored');
});

test('core: the cap of aliases keeps a rank’s newest names, and never says more than was stored', async () => {
  const index = await PrefixIndex.create({ bytes: MIB, tableSeed: 7n });
  const { aliasCap } = index.stats();
  const chains = Math.ceil((1.5 * aliasCap) / CHAIN);
  const named = (number: number) => chainOf(number + 1_000_000, CHAIN);
  for (let i = 0; i < chains; i++) {
    index.stored(0, 'device', indexedBlocks(null, chainOf(i, CHAIN), chainOf(i, CHAIN)));
    index.stored(1, 'device', indexedBlocks(null, named(i), chainOf(i, CHAIN)));
    assert.ok(index.stats().aliases <= aliasCap);
  }
  assert.ok(index.stats().aliases > 0.9 * aliasCap, JSON.stringify(index.stats()));
  for (let i = 0; i < chains; i++) {
    const before = index.peek(chainOf(i, CHAIN)).device[1]!;
    const held = index.removed(1, 'device', new Uint32Array(named(i).buffer), 0, CHAIN);
    assert.ok(held >= before, `${held} names for ${before} blocks of chain ${i}`);
    assert.is(index.peek(chainOf(i, CHAIN)).device[1], 0);
  }
  assert.is(index.stats().aliases, 0);
});

test('core: with twice the names that it has room for, chains go whole and from their ends, and half of all stay reachable', async () => {
  const index = await PrefixIndex.create({ bytes: MIB, tableSeed: 7n });
  const RANKS = 16;
  const chains = Math.floor((2 * index.stats().aliasCap) / (RANKS - 1) / CHAIN);
  const everyone = [...Array(RANKS).keys()];
  for (let i = 0; i < chains; i++)
    for (const rank of everyone)
      index.stored(rank, 'device', indexedBlocks(null, chainOf(1_000 + i * RANKS + rank, CHAIN), chainOf(i, CHAIN)));
  let reachable = 0;
  for (let i = 0; i < chains; i++) {
    const { device } = index.peek(chainOf(i, CHAIN));
    for (const rank of everyone) reachable += device[rank]!;
  }
  const part = reachable / (chains * RANKS * CHAIN);
  assert.ok(part > 0.45, `${part.toFixed(2)} of what ranks hold is reachable`);
  assert.ok(index.stats().evictedByAliases > 0);
});

test('core: where sets are full, a block that finds none costs at most one other its place', async () => {
  const index = await PrefixIndex.create({ bytes: 8 * MIB, ranks: 1_024, tableSeed: 7n });
  const { setCap } = index.stats();
  // Every set has several blocks, so that no set goes with one of them.
  const holders = (number: number) => [number % 1_024, (number * 7 + 1) % 1_024, ((number >> 10) * 31 + 5) % 1_024];
  for (let i = 0; i < setCap; i++)
    for (const copy of [0, 1])
      for (const rank of holders(i)) {
        const chain = chainOf(2 * i + copy + 1, 1);
        index.stored(rank, 'device', indexedBlocks(null, chain, chain));
      }
  const { entries, sets } = index.stats();
  assert.ok(sets > 0.9 * setCap, `${sets} of ${setCap} sets`);
  for (let i = 0; i < 1_000; i++) {
    const chain = chainOf(10_000_000 + i, 1);
    for (const rank of [3, 500, 900, 77]) index.stored(rank + (i % 50), 'device', indexedBlocks(null, chain, chain));
  }
  assert.ok(index.stats().entries > entries - 4_000, `${index.stats().entries} blocks left of ${entries}`);
});

test('core: where sets are full, a rank can still take back under its own name what it has just stored', async () => {
  const random = new Random(7);
  const index = await PrefixIndex.create({ bytes: MIB, ranks: 1_024, tableSeed: 1n });
  const locals = Array.from({ length: 3_000 }, () => BigUint64Array.of(random.bigint64()));
  for (let i = 0; i < 200_000; i++) {
    const block = random.int(locals.length);
    const rank = random.int(1_024);
    const name = BigUint64Array.of(BigInt(rank + 1) * 1_000_003n + BigInt(block));
    if (index.stored(rank, 'device', indexedBlocks(null, name, locals[block]!)) !== 'stored') continue;
    if (index.peek(locals[block]!).device[rank] !== 1 || random.chance(0.5)) continue;
    const removed = index.removed(rank, 'device', new Uint32Array(name.buffer), 0, 1);
    assert.is(removed, 1, `operation ${i}: rank ${rank} has a block whose name leads nowhere`);
  }
});

test('core: a rank that stores and is cleared again and again leaves the others what they hold', async () => {
  const random = new Random(8);
  const index = await PrefixIndex.create({ bytes: 2 * MIB, tableSeed: 1n });
  const chain = () => BigUint64Array.from({ length: 100 }, () => random.bigint64());
  const { entryCap } = index.stats();
  const kept = Array.from({ length: Math.floor(entryCap / 200) }, chain);
  for (const locals of kept) index.stored(0, 'device', indexedBlocks(null, locals, locals));
  for (let i = 0; i < 2_000; i++) {
    const locals = chain();
    index.stored(1, 'device', indexedBlocks(null, locals, locals));
    index.clear(1);
  }
  assert.ok(index.stats().sets < 100, `${index.stats().sets} sets of which one is held`);
  for (const locals of kept) assert.is(index.peek(locals).device[0], 100);
});

test('core: a rank that leaves sets of every kind leaves the others’ blocks, and sets that became equal become one', async () => {
  const index = await PrefixIndex.create({ bytes: 4 * MIB, tableSeed: 1n });
  for (let i = 1; i < 1 << 10; i++) {
    const chain = chainOf(i, 1);
    for (let rank = 0; rank < 10; rank++)
      if ((i >> rank) & 1) index.stored(rank, 'device', indexedBlocks(null, chain, chain));
  }
  assert.is(index.stats().sets, 1_023);
  for (let rank = 0; rank < 7; rank++) index.clear(rank);
  index.tidy();
  assert.equal([index.stats().sets, index.stats().entries], [7, 1_023 - 127]);
  for (let i = 1; i < 1 << 10; i++)
    for (let rank = 0; rank < 10; rank++)
      assert.is(index.peek(chainOf(i, 1)).device[rank], rank >= 7 ? (i >> rank) & 1 : 0);
});

test.run();
