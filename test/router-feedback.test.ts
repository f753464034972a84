// Feedback (design.md 6: "where an engine repeatedly reports fewer cached tokens than were credited, that prefix is not credited for a
// while, counted"): where marks stand and what they see, strikes, withholding, probation, clearing, bounds, and a long random run held
// against a plain model that knows whole prefixes.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { shown } from '../src/contract/descriptor.js';
import { ConfigError } from '../src/errors.js';
import { Feedback, type FeedbackOptions, type PrefixMarks } from '../src/router/feedback.js';
import { fingerprint, hashWords, markCount, markPosition } from '../src/router/prefix-marks.js';
import { Random } from './support/random.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const BLOCK = 16;

/** Random local hashes; the same seed gives the same ones. */
function prompt(blocks: number, seed = 1): BigUint64Array {
  const random = new Random(seed);
  return BigUint64Array.from({ length: blocks }, () => random.bigint64());
}

/** The first `shared` blocks of `base`, then others. */
function branch(base: BigUint64Array, shared: number, blocks: number, seed: number): BigUint64Array {
  const hashes = prompt(blocks, seed);
  hashes.set(base.subarray(0, shared));
  return hashes;
}

const positionsOf = (blocks: number) => Array.from({ length: markCount(blocks) }, (_, i) => markPosition(i, blocks));

/** Feedback that is told of blocks; the time stands until it is moved. */
class Told {
  readonly feedback: Feedback;
  now = 0;

  constructor(options?: FeedbackOptions) {
    this.feedback = new Feedback(options);
  }

  /** A prompt credited to its end, of which `cached` blocks were cached. */
  report(hashes: BigUint64Array, cached: number): void {
    const { feedback } = this;
    const marks = feedback.marksOf(hashes, hashes.length);
    feedback.report(marks, hashes.length * BLOCK, cached * BLOCK, BLOCK, this.now);
  }

  short(hashes: BigUint64Array, cached: number, times = 3): void {
    for (let i = 0; i < times; i++) this.report(hashes, cached);
  }

  limit(hashes: BigUint64Array, blocks = hashes.length): number {
    return this.feedback.limitFor(hashes, blocks, this.now);
  }

  get stats() {
    return this.feedback.stats(this.now);
  }
}

const P = prompt(100);

// Marks

const from = (step: number, last: number) => Array.from({ length: last / step }, (_, i) => (i + 1) * step);
const places: readonly { blocks: number; positions: readonly number[] }[] = [
  { blocks: 0, positions: [] },
  { blocks: 1, positions: [1] },
  { blocks: 2, positions: [1, 2] },
  { blocks: 16, positions: from(1, 16) },
  { blocks: 17, positions: [...from(2, 16), 17] },
  { blocks: 32, positions: from(2, 32) },
  { blocks: 33, positions: [...from(4, 32), 33] },
  { blocks: 100, positions: [...from(8, 96), 100] },
  { blocks: 1000, positions: [...from(64, 960), 1000] },
  { blocks: 262_144, positions: from(16_384, 262_144) },
  { blocks: 262_145, positions: [...from(32_768, 262_144), 262_145] },
];
for (const { blocks, positions } of places) {
  test(`a prefix of ${blocks} blocks has its marks at ${positions.join(', ') || 'none'}`, () => {
    assert.equal(positionsOf(blocks), positions);
  });
}

test('marks are at most 16: the end, and the multiples below it of the least power of two that has at most 15 there', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 }), (blocks) => {
      const positions = positionsOf(blocks);
      const stride = positions[0]!;
      assert.ok(positions.length <= 16);
      assert.is(positions.at(-1), blocks);
      positions.slice(0, -1).forEach((position, i) => {
        assert.is(position, (i + 1) * stride);
        assert.ok(position < blocks);
      });
      if (positions.length === 1) return;
      assert.is(Math.log2(stride) % 1, 0);
      assert.ok(stride === 1 || Math.ceil(blocks / (stride / 2)) - 1 > 15, 'a lesser power would do');
    }),
  );
});

test('a fingerprint reads a sample: twice a hash for each doubling of the position, wherever it stands', () => {
  for (const position of [1, 2, 3, 100, 4096, 262_144]) {
    const read = new Set<number>();
    const words = new Proxy(hashWords(prompt(position)), {
      get(target, key) {
        read.add(Number(key) >> 1);
        return target[Number(key)];
      },
    });
    fingerprint(words, position);
    const sample = new Set([position - 1]);
    for (let block = position >> 1; block > 0; block >>= 1) sample.add(block);
    assert.equal(read, sample.add(0));
  }
});

test('a fingerprint is a whole number that depends on each hash of its sample, both words, their order and the position', () => {
  const hashes = prompt(64);
  const words = hashWords(hashes);
  const own = fingerprint(words, 40);
  assert.ok(Number.isSafeInteger(own) && own >= 0);
  const seen = new Set([own, fingerprint(words, 41), fingerprint(words, 20)]);
  const blocks = [39, 20, 10, 5, 2, 1, 0];
  for (const block of blocks) {
    for (const flip of [1n, 1n << 31n, 1n << 32n, 1n << 63n]) {
      const other = hashes.slice();
      other[block]! ^= flip;
      seen.add(fingerprint(hashWords(other), 40));
    }
  }
  for (const block of blocks.slice(1)) {
    const other = hashes.slice();
    [other[39], other[block]] = [other[block]!, other[39]!];
    seen.add(fingerprint(hashWords(other), 40));
  }
  assert.is(seen.size, 3 + 4 * blocks.length + blocks.length - 1);
});

test('100,000 prefixes have 100,000 fingerprints, of small hashes too', () => {
  const seen = new Set<number>();
  for (let i = 0; i < 100_000; i++) {
    const hashes = BigUint64Array.of(BigInt(i % 50), BigInt(Math.floor(i / 50) % 50), 7n, BigInt(Math.floor(i / 2500)));
    seen.add(fingerprint(hashWords(hashes), 4));
  }
  assert.is(seen.size, 100_000);
});

test('prompts that share a prefix share the marks in it, whatever follows and wherever they end', () => {
  const feedback = new Feedback();
  const long = branch(P, 64, 1000, 2);
  const ours = feedback.marksOf(P, 100);
  const theirs = feedback.marksOf(long, 1000);
  const at = (marks: PrefixMarks, position: number) => marks.fingerprints[positionsOf(marks.blocks).indexOf(position)];
  assert.is(at(ours, 64), at(theirs, 64));
  assert.is.not(at(ours, 100), undefined);
  assert.equal(feedback.marksOf(P, 32).fingerprints, feedback.marksOf(branch(P, 32, 500, 3), 32).fingerprints);
});

test('marks are those of the hashes when they were made, wherever the hashes stand in their buffer', () => {
  const feedback = new Feedback();
  const before = feedback.marksOf(P, 100);
  const moved = new BigUint64Array(103);
  moved.set(P, 3);
  assert.equal(feedback.marksOf(moved.subarray(3), 100), before);
  const view = moved.subarray(3);
  const marks = feedback.marksOf(view, 100);
  view.fill(0n);
  assert.equal(marks, before);
});

// Strikes and withholding

test('nothing is limited at first', () => {
  const told = new Told();
  assert.is(told.limit(P), 100);
  assert.equal(told.stats, { marks: 0, withheld: 0, strikes: 0, withholdings: 0, limited: 0, ignored: 0 });
});

test('the third short report in a row withholds, to what was cached', () => {
  const told = new Told();
  told.report(P, 50);
  assert.is(told.limit(P), 100);
  told.report(P, 50);
  assert.is(told.limit(P), 100);
  told.report(P, 50);
  assert.is(told.limit(P), 50);
  assert.equal(told.stats, { marks: 1, withheld: 1, strikes: 3, withholdings: 1, limited: 1, ignored: 0 });
});

for (const strikes of [1, 2, 5]) {
  test(`with \`strikes: ${strikes}\` it takes ${strikes}`, () => {
    const told = new Told({ strikes });
    told.short(P, 50, strikes - 1);
    assert.is(told.limit(P), 100);
    told.report(P, 50);
    assert.is(told.limit(P), 50);
  });
}

const reports: readonly { name: string; credited: number; cached: number; limit: number }[] = [
  { name: 'nothing cached', credited: 1600, cached: 0, limit: 0 },
  { name: 'less than a block', credited: 1600, cached: 15, limit: 0 },
  { name: 'a part of a block more', credited: 1600, cached: 50 * 16 + 15, limit: 50 },
  { name: 'up to a mark exactly', credited: 1600, cached: 56 * 16, limit: 56 },
  { name: 'past the last mark but the end', credited: 1600, cached: 98 * 16, limit: 98 },
  { name: 'a whole block short', credited: 1600, cached: 1584, limit: 99 },
  { name: 'a token less than a block short', credited: 1600, cached: 1585, limit: 100 },
  { name: 'all of it', credited: 1600, cached: 1600, limit: 100 },
  { name: 'more than was credited', credited: 1600, cached: 3200, limit: 100 },
  { name: 'short of a credit that ends within the last block', credited: 1590, cached: 1574, limit: 98 },
];
for (const { name, credited, cached, limit } of reports) {
  test(`reported three times: ${name} (${cached} of ${credited} tokens) limits 100 blocks to ${limit}`, () => {
    const told = new Told();
    const marks = told.feedback.marksOf(P, 100);
    for (let i = 0; i < 3; i++) told.feedback.report(marks, credited, cached, BLOCK, 0);
    assert.is(told.limit(P), limit);
    assert.is(told.stats.strikes, limit < 100 ? 3 : 0);
  });
}

test('the limit is the shortest that was seen', () => {
  const told = new Told();
  for (const cached of [53, 49, 55]) told.report(P, cached);
  assert.is(told.limit(P), 49);
});

test('a strike stands at the first mark past what was cached, so strikes apart do not add up', () => {
  const told = new Told();
  for (const cached of [70, 60, 50]) told.report(P, cached);
  assert.is(told.limit(P), 100);
  assert.equal([told.stats.marks, told.stats.strikes], [3, 3]);
});

test('of several withheld marks the first one counts', () => {
  const told = new Told();
  told.short(P, 90);
  told.short(P, 20);
  assert.is(told.limit(P), 20);
  told.now = MINUTE;
  told.short(P, 90, 1); // clears that at 24, and strikes that at 96
  assert.is(told.limit(P), 90);
});

test('what holds for a prefix holds for every prompt that begins with it, and for no other', () => {
  const told = new Told();
  told.short(P, 50); // at 56
  assert.is(told.limit(branch(P, 56, 1000, 2)), 50, 'longer');
  assert.is(told.limit(P.subarray(0, 56)), 50, 'it alone');
  assert.is(told.limit(P.subarray(0, 55)), 55, 'ends before the mark');
  assert.is(told.limit(P, 55), 55, 'credited to before the mark');
  assert.is(told.limit(branch(P, 55, 100, 3)), 100, 'differs before the mark');
  assert.is(told.limit(prompt(100, 4)), 100, 'another prompt');
});

test('prompts that share a prefix add to its strikes, though their ends differ', () => {
  const told = new Told();
  told.report(P, 62); // marks every 8 blocks
  told.report(branch(P, 80, 1000, 2), 60); // every 64
  told.report(branch(P, 64, 300, 3), 62); // every 32
  assert.is(told.limit(branch(P, 70, 500, 4)), 60);
});

test('a limit is no less limited', () => {
  const told = new Told();
  told.short(P, 90);
  told.short(P, 50);
  const limit = told.limit(P);
  assert.is(told.limit(P, limit), limit);
  assert.is(told.limit(P.subarray(0, limit)), limit);
});

test('a full report takes back one strike', () => {
  const told = new Told();
  told.short(P, 50, 2);
  told.report(P, 100);
  told.report(P, 52);
  assert.is(told.limit(P), 100);
  told.report(P, 52);
  assert.is(told.limit(P), 50);
});

test('with every strike taken back, what was seen at them counts no more', () => {
  const told = new Told();
  told.short(P, 50, 2);
  for (let i = 0; i < 2; i++) told.report(P, 100);
  assert.is(told.stats.marks, 0);
  told.short(P, 52, 2);
  assert.is(told.limit(P), 100);
  told.report(P, 52);
  assert.is(told.limit(P), 52);
});

test('a full report takes back a strike that still counts, and no older one', () => {
  const told = new Told();
  told.report(P, 50);
  told.now = HOUR + 1;
  told.short(P, 50, 2);
  told.report(P, 100);
  told.report(P, 50);
  assert.is(told.limit(P), 100);
});

// One rank that restores nothing serves the same prefix as others that restore all of it.
const mixes: readonly { name: string; full: readonly boolean[]; withheldAt: number | null }[] = [
  { name: 'two of three short', full: [false, false, true], withheldAt: 5 },
  { name: 'two of three short, the full one first', full: [true, false, false], withheldAt: 6 },
  { name: 'three of five short, in turn', full: [false, true, false, true, false], withheldAt: 11 },
  { name: 'every second short', full: [false, true], withheldAt: null },
  { name: 'one of eight short', full: [false, true, true, true, true, true, true, true], withheldAt: null },
];
for (const { name, full, withheldAt } of mixes) {
  test(`${name}: ${withheldAt === null ? 'not withheld' : `withheld at report ${withheldAt}`}`, () => {
    const told = new Told();
    for (let report = 1; report <= 100; report++) {
      told.now = report * SECOND;
      told.report(P, full[(report - 1) % full.length] ? 100 : 50);
      const withheld = told.limit(P) < 100;
      assert.is(withheld, withheldAt === report, `report ${report}`);
      if (withheld) return;
    }
    assert.is(withheldAt, null);
  });
}

test('a short report clears the marks that it reaches', () => {
  const told = new Told();
  told.short(P, 50, 2);
  told.report(P, 56);
  told.report(P, 50);
  assert.is(told.limit(P), 100);
  told.short(P, 55, 2);
  assert.is(told.limit(P), 50);
});

test('strikes count together within an hour', () => {
  const told = new Told();
  for (const now of [0, HOUR / 2, HOUR]) {
    told.now = now;
    told.report(P, 50);
  }
  assert.is(told.limit(P), 50);
});

test('a strike that is over an hour old counts no more, whichever others do', () => {
  const told = new Told();
  for (const now of [0, HOUR - 1, HOUR + 1]) {
    told.now = now;
    told.report(P, 50);
  }
  assert.is(told.limit(P), 100);
  told.now = HOUR + 2;
  told.report(P, 50);
  assert.is(told.limit(P), 50);
});

test('with the strikes before it, the shortest of them is forgotten after an hour', () => {
  const told = new Told();
  told.report(P, 48);
  told.now = HOUR + 1;
  told.short(P, 52);
  assert.is(told.limit(P), 52);
});

test('it is withheld for a minute, and then on probation: one strike withholds again, for twice as long', () => {
  const told = new Told();
  told.short(P, 50);
  let start = 0;
  for (const minutes of [1, 2, 4, 8, 10, 10]) {
    told.now = start + minutes * MINUTE - 1;
    assert.is(told.limit(P), 50, `up to ${minutes} minutes`);
    told.now = start + minutes * MINUTE;
    assert.is(told.limit(P), 100, `after ${minutes} minutes`);
    assert.is(told.stats.withheld, 0);
    start = told.now + SECOND;
    told.now = start;
    told.report(P, 50);
  }
  assert.is(told.stats.withholdings, 7);
});

test('the lengths are those of the options', () => {
  const told = new Told({ withholdFor: 10, withholdAtMost: 25 });
  told.short(P, 50);
  let start = 0;
  for (const length of [10, 20, 25, 25]) {
    told.now = start + length - 1;
    assert.is(told.limit(P), 50);
    start += length;
    told.now = start;
    assert.is(told.limit(P), 100);
    told.report(P, 50);
  }
});

test('an hour after it ended, a withholding lengthens the next no more', () => {
  const told = new Told();
  told.short(P, 50);
  told.now = MINUTE + HOUR + 1;
  told.report(P, 50);
  assert.is(told.limit(P), 50, 'still on probation');
  told.now += MINUTE;
  assert.is(told.limit(P), 100);
});

test('a full report ends the probation, but the next withholding is longer if it is soon', () => {
  const told = new Told();
  told.short(P, 50);
  told.now = 2 * MINUTE;
  told.report(P, 100);
  told.short(P, 51, 2);
  assert.is(told.limit(P), 100);
  told.report(P, 51);
  assert.is(told.limit(P), 51);
  told.now += 2 * MINUTE - 1;
  assert.is(told.limit(P), 51);
  told.now += 1;
  assert.is(told.limit(P), 100);
});

test('while it is withheld, reports on what was credited before make it neither longer nor shorter', () => {
  const told = new Told();
  told.short(P, 50);
  told.now = 30 * SECOND;
  told.short(P, 50, 10);
  told.report(P, 100);
  told.report(P, 49);
  assert.is(told.limit(P), 49, 'but they say how short it is');
  assert.is(told.stats.withholdings, 1);
  told.now = MINUTE;
  assert.is(told.limit(P), 100);
  told.short(P, 50, 2);
  assert.is(told.limit(P), 100, 'the full report ended the probation');
});

test('credit up to the limit that is kept leaves the mark alone, and less is struck below it', () => {
  const told = new Told();
  told.short(P, 50);
  for (let i = 0; i < 3; i++) told.report(P.subarray(0, 50), 50);
  assert.is(told.limit(P), 50);
  told.short(P.subarray(0, 50), 30);
  assert.is(told.limit(P), 30);
});

test('limited lookups are counted, and only those', () => {
  const told = new Told();
  told.short(P, 50);
  told.limit(P);
  told.limit(P, 50);
  told.limit(prompt(100, 9));
  told.limit(P);
  assert.is(told.stats.limited, 2);
});

test('while nothing is withheld, a lookup does not look at the prompt', () => {
  const told = new Told();
  const untouched = new Proxy(P, {
    get: () => {
      throw new Error('read');
    },
  });
  told.short(P, 50, 2);
  assert.is(told.limit(untouched, 100), 100);
  told.report(P, 50);
  assert.throws(() => told.limit(untouched, 100), 'read');
  told.now = MINUTE;
  told.limit(P);
  assert.is(told.limit(untouched, 100), 100, 'nor after it has ended');
});

// Time and malformed reports

test('where the clock jumps back it stays withheld for no longer than it was to be', () => {
  const told = new Told();
  told.now = 10 * HOUR;
  told.short(P, 50);
  told.now -= MINUTE - 1;
  assert.is(told.limit(P), 50);
  told.now -= 1;
  assert.is(told.limit(P), 100);
  assert.is(told.stats.withheld, 0);
  told.report(P, 50);
  assert.is(told.limit(P), 50, 'on probation by any clock');
  told.now += 2 * MINUTE;
  assert.is(told.limit(P), 100);
});

test('one lookup at a wild time ends no withholding for those that follow', () => {
  for (const wild of [1e300, -1e300, Number.POSITIVE_INFINITY, Number.NaN]) {
    const told = new Told();
    told.short(P, 50);
    assert.is(told.feedback.limitFor(P, 100, wild), 100);
    assert.is(told.limit(P), 50, `after ${wild}`);
  }
});

test('one report at a wild time ends no withholding of another prefix', () => {
  const told = new Told();
  told.short(P, 50);
  told.now = 1e300;
  told.short(prompt(100, 2), 50);
  told.now = SECOND;
  assert.is(told.limit(P), 50);
});

test('a time that is no number limits nothing', () => {
  const told = new Told();
  told.short(P, 50);
  for (const now of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    assert.is(told.feedback.limitFor(P, 100, now), 100);
  }
});

for (const [name, cachedTokens, now] of [
  ['a time that is no number', 0, Number.NaN],
  ['an endless time', 0, Number.POSITIVE_INFINITY],
  ['cached tokens that are no number', Number.NaN, 0],
  ['cached tokens below none', -1, 0],
] as const) {
  test(`a report with ${name} is ignored and counted`, () => {
    const told = new Told({ strikes: 1 });
    told.feedback.report(told.feedback.marksOf(P, 100), 1600, cachedTokens, BLOCK, now);
    assert.equal(told.stats, { marks: 0, withheld: 0, strikes: 0, withholdings: 0, limited: 0, ignored: 1 });
  });
}

test('a report on no credited blocks changes nothing', () => {
  const told = new Told({ strikes: 1 });
  told.feedback.report(told.feedback.marksOf(P, 0), 0, 0, BLOCK, 0);
  told.feedback.report(told.feedback.marksOf(P, 0), 64, 0, BLOCK, 0);
  assert.is(told.stats.marks, 0);
});

test('forget drops all, and late reports of before mean nothing', () => {
  const told = new Told();
  told.short(P, 50);
  const late = told.feedback.marksOf(P, 100);
  told.feedback.forget();
  assert.is(told.limit(P), 100);
  for (let i = 0; i < 3; i++) told.feedback.report(late, 1600, 800, BLOCK, 0);
  assert.is(told.limit(P), 100);
  assert.equal(told.stats, { marks: 0, withheld: 0, strikes: 3, withholdings: 1, limited: 0, ignored: 3 });
  told.short(P, 50);
  assert.is(told.limit(P), 50);
});

// Bounds

test('at its bound, the mark that was least recently reported goes', () => {
  const told = new Told({ maxMarks: 3 });
  const prompts = [1, 2, 3, 4].map((seed) => prompt(8, seed));
  for (const hashes of prompts.slice(0, 3)) told.short(hashes, 4, 2);
  told.report(prompts[0]!, 4); // the third strike, and reported again
  told.report(prompts[3]!, 4); // in place of prompts[1]
  assert.is(told.stats.marks, 3);
  assert.is(told.limit(prompts[0]!), 4);
  told.report(prompts[2]!, 4);
  assert.is(told.limit(prompts[2]!), 4);
  told.report(prompts[1]!, 4);
  assert.is(told.limit(prompts[1]!), 8, 'its strikes went');
});

test('a withheld mark that goes limits nothing any more, and one that stays at its position does', () => {
  const told = new Told({ maxMarks: 2 });
  const [first, second, third] = [1, 2, 3].map((seed) => prompt(8, seed)) as [BigUint64Array, ...BigUint64Array[]];
  told.short(first, 4);
  told.short(second!, 4);
  told.report(third!, 4);
  assert.equal(
    [first, second!, third!].map((hashes) => told.limit(hashes)),
    [8, 4, 8],
  );
  assert.equal([told.stats.marks, told.stats.withheld], [2, 1]);
});

test('a full report keeps what is remembered of a withholding from going', () => {
  const told = new Told({ maxMarks: 2 });
  told.short(P, 50);
  told.report(prompt(8, 2), 4);
  told.now = 2 * MINUTE;
  told.report(P, 100);
  told.report(prompt(8, 3), 4);
  told.short(P, 50);
  told.now += MINUTE;
  assert.is(told.limit(P), 50, 'withheld for longer');
});

test('marks never exceed their bound, through 20,000 strikes', () => {
  const told = new Told({ strikes: 1 });
  for (let seed = 0; seed < 20_000; seed++) told.report(prompt(2, seed), 0);
  assert.equal([told.stats.marks, told.stats.withheld, told.stats.withholdings], [4096, 4096, 20_000]);
  assert.is(told.limit(prompt(2, 0)), 2);
  assert.is(told.limit(prompt(2, 19_999)), 0);
});

test('of 65 withheld positions the one that was least recently withheld is let go, on probation', () => {
  const told = new Told({ strikes: 2, withholdFor: HOUR });
  const ends = Array.from({ length: 65 }, (_, i) => prompt(200 + i, i));
  const others = [prompt(200, 500), prompt(201, 501)] as const;
  for (const hashes of ends.slice(0, 64)) told.short(hashes, hashes.length - 1, 2);
  told.short(others[0], 199, 2); // the first position again: the second is now the oldest
  assert.is(told.stats.withheld, 65);
  told.short(ends[64]!, 263, 2);
  assert.is(told.stats.withheld, 65);
  assert.is(told.limit(ends[1]!), 201, 'let go');
  for (const hashes of [ends[0]!, ends[2]!, ends[64]!, others[0]]) assert.is(told.limit(hashes), hashes.length - 1);
  told.report(ends[1]!, 200);
  assert.is(told.limit(ends[1]!), 200);
});

test('positions whose withholdings have ended make room first', () => {
  const told = new Told({ strikes: 1 });
  const ends = Array.from({ length: 65 }, (_, i) => prompt(200 + i, i));
  for (const hashes of ends.slice(0, 40)) told.report(hashes, hashes.length - 1);
  told.now = MINUTE;
  for (const hashes of ends.slice(40)) told.report(hashes, hashes.length - 1);
  for (const hashes of ends.slice(40)) assert.is(told.limit(hashes), hashes.length - 1);
  assert.is(told.stats.withheld, 25);
});

test('what is withheld stands at the last 64 positions, through 500 withholdings at 100 of them', () => {
  const told = new Told({ strikes: 1 });
  const prompts = Array.from({ length: 500 }, (_, i) => prompt(200 + (i % 100), i));
  for (const hashes of prompts) told.report(hashes, hashes.length - 1);
  assert.is(told.stats.withheld, 64 * 5);
  for (const hashes of prompts) {
    assert.is(told.limit(hashes), hashes.length < 236 ? hashes.length : hashes.length - 1);
  }
});

// Options

const wrongOptions: readonly { options: FeedbackOptions; code: string }[] = [
  ...[0, -1, 1.5, Number.NaN, 101, '3' as unknown as number].map((strikes) => ({
    options: { strikes },
    code: 'feedback-strikes',
  })),
  ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY].map((withholdFor) => ({
    options: { withholdFor },
    code: 'feedback-withhold-for',
  })),
  ...[0, 59_999, Number.NaN, Number.POSITIVE_INFINITY].map((withholdAtMost) => ({
    options: { withholdAtMost },
    code: 'feedback-withhold-at-most',
  })),
  ...[0, 0.5, Number.NaN, 65_537].map((maxMarks) => ({ options: { maxMarks }, code: 'feedback-max-marks' })),
];
for (const { options, code } of wrongOptions) {
  const [[name, value]] = Object.entries(options) as [[string, unknown]];
  test(`${name} ${JSON.stringify(value)} (${value}) is refused by name`, () => {
    assert.throws(
      () => new Feedback(options),
      (error: unknown) =>
        error instanceof ConfigError && error.code === code && error.message.includes(`${name} is ${shown(value)}`),
    );
  });
}

test('the longest time follows a first time that is longer than its default', () => {
  const told = new Told({ withholdFor: HOUR });
  told.short(P, 50);
  told.now = HOUR - 1;
  assert.is(told.limit(P), 50);
  assert.not.throws(() => new Feedback({ withholdFor: 5, withholdAtMost: 5 }));
});

// Against a model

/** What was reported of a mark: so many blocks were cached, or all that it stands for. */
type Said = { readonly now: number; readonly cached: number | 'full' };

/** Prefixes as text, from one block to all. */
const prefixesOf = (hashes: BigUint64Array) => Array.from(hashes, (_, i) => hashes.subarray(0, i + 1).join());

/** Keeps everything that was ever reported, and replays it for each question. Prompts are lists of their prefixes. */
class Model {
  readonly #said = new Map<string, Said[]>();

  report(prefixes: readonly string[], cached: number, now: number): void {
    const blocks = prefixes.length;
    for (const position of positionsOf(blocks)) {
      const isReached = position <= cached || cached === blocks;
      const key = prefixes[position - 1]!;
      if (!this.#said.has(key)) this.#said.set(key, []);
      this.#said.get(key)!.push({ now, cached: isReached ? 'full' : cached });
      if (!isReached) return;
    }
  }

  limit(prefixes: readonly string[], now: number): number {
    for (const prefix of prefixes) {
      const limit = this.#limitAt(this.#said.get(prefix) ?? [], now);
      if (limit !== null) return limit;
    }
    return prefixes.length;
  }

  #limitAt(said: readonly Said[], now: number): number | null {
    let strikes: number[] = [];
    let seen: number[] = [];
    let probation = false;
    let start = Number.NEGATIVE_INFINITY;
    let length = 0;
    for (const report of said) {
      if (report.cached === 'full') {
        strikes = strikes.filter((at) => report.now - at <= HOUR).slice(1);
        probation = false;
        continue;
      }
      if (report.now < start + length) {
        seen.push(report.cached);
        continue;
      }
      strikes = strikes.filter((at) => report.now - at <= HOUR);
      seen = strikes.length > 0 || probation ? [...seen, report.cached] : [report.cached];
      strikes.push(report.now);
      if (!probation && strikes.length < 3) continue;
      length = report.now - (start + length) <= HOUR ? Math.min(2 * length, 10 * MINUTE) : MINUTE;
      start = report.now;
      strikes = [];
      probation = true;
    }
    return now < start + length ? Math.min(...seen) : null;
  }
}

for (const seed of [1, 2, 3]) {
  test(`limits are those of a model that knows whole prefixes, through 3,000 random reports (seed ${seed})`, () => {
    const random = new Random(seed);
    const told = new Told();
    const model = new Model();
    const base = prompt(48, seed);
    const prompts = Array.from({ length: 8 }, (_, i) => {
      const blocks = random.between(1, 48);
      const hashes = i % 2 === 0 ? base.slice(0, blocks) : branch(base, random.int(blocks + 1), blocks, 100 * seed + i);
      return { hashes, prefixes: prefixesOf(hashes) };
    });
    let limited = 0;
    let sound = 0; // blocks that engines find, mostly, in this phase
    for (let step = 0; step < 3000; step++) {
      if (step % 100 === 0) sound = random.chance(0.3) ? 48 : random.int(48);
      told.now += random.chance(0.01) ? random.int(2 * HOUR) : random.int(10 * SECOND);
      const { hashes, prefixes } = random.pick(prompts);
      const cached = Math.min(hashes.length, Math.max(0, random.chance(0.1) ? 48 : sound - random.int(3)));
      told.report(hashes, cached);
      model.report(prefixes, cached, told.now);
      const asked = random.pick(prompts);
      const expected = model.limit(asked.prefixes, told.now);
      assert.is(told.limit(asked.hashes), expected, `step ${step}`);
      if (expected < asked.hashes.length) limited++;
    }
    assert.ok(limited > 300, `only ${limited} limits were seen`);
    assert.is(told.stats.limited, limited);
  });
}

test.run();
