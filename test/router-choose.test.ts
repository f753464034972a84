// Choices: least cost and its ties, chances by counting, ineligible candidates, runner-up, and the generator against a second
// implementation of splitmix32.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Chooser } from '../src/router/choose.js';

const INELIGIBLE = Number.POSITIVE_INFINITY;
const noRequests = (costs: readonly number[]): number[] => costs.map(() => 0);

/** How often each candidate is chosen in so many draws. */
function counts(costs: readonly number[], temperature: number, draws: number, seed = 7): number[] {
  const chooser = new Chooser(seed);
  const seen = noRequests(costs);
  for (let i = 0; i < draws; i++) seen[chooser.choose(costs, noRequests(costs), temperature)!.index]!++;
  return seen;
}

/** Asserts that counts lie within five standard deviations of what the chances say. */
function assertChances(seen: readonly number[], chances: readonly number[], draws: number): void {
  for (const [i, chance] of chances.entries()) {
    const deviation = Math.sqrt(draws * chance * (1 - chance));
    const off = Math.abs(seen[i]! - draws * chance);
    assert.ok(off <= 5 * deviation, `candidate ${i}: ${seen[i]} of ${draws}, expected ${draws * chance}`);
  }
}

test('temperature 0 takes the least cost, and names the next as runner-up', () => {
  const chooser = new Chooser(1);
  assert.equal(chooser.choose([5, 3, 9, 4], [0, 9, 0, 0], 0), { index: 1, runnerUp: 3, runnerUpCost: 4 });
  assert.equal(chooser.choose([-5, -3], [0, 0], 0), { index: 0, runnerUp: 1, runnerUpCost: -3 });
  assert.equal(chooser.choose(Float64Array.of(2, 1), Uint32Array.of(0, 0), 0), {
    index: 1,
    runnerUp: 0,
    runnerUpCost: 2,
  });
});

test('ties go to the fewest active requests', () => {
  for (let seed = 0; seed < 20; seed++) {
    const choice = new Chooser(seed).choose([4, 4, 4, 9], [3, 1, 2, 0], 0);
    assert.equal(choice, { index: 1, runnerUp: 2, runnerUpCost: 4 });
  }
});

test('ties in both are drawn, each as likely, and the lowest of the rest is runner-up', () => {
  const costs = [9, 4, 4, 4, 4];
  const active = [0, 2, 1, 1, 1];
  const chooser = new Chooser(3);
  const seen = [0, 0, 0, 0, 0];
  const draws = 9000;
  for (let i = 0; i < draws; i++) {
    const choice = chooser.choose(costs, active, 0)!;
    seen[choice.index]!++;
    assert.is(choice.runnerUp, choice.index === 2 ? 3 : 2);
    assert.is(choice.runnerUpCost, 4);
  }
  assert.equal(seen.slice(0, 2), [0, 0]);
  assertChances(seen, [0, 0, 1 / 3, 1 / 3, 1 / 3], draws);
});

test('the softmax chances come out by counting, with a fixed seed', () => {
  const draws = 20_000;
  const costs = [3, 1, 2, INELIGIBLE, 6];
  for (const temperature of [0.5, 1, 4]) {
    const weights = costs.map((cost) => Math.exp(-cost / temperature));
    const sum = weights.reduce((a, b) => a + b);
    assertChances(
      counts(costs, temperature, draws),
      weights.map((w) => w / sum),
      draws,
    );
  }
});

test('chances depend on differences of cost alone, however large the costs', () => {
  const draws = 5000;
  const low = counts([0, 1, 2], 1, draws);
  assert.equal(counts([1_000_000, 1_000_001, 1_000_002], 1, draws), low);
  assert.equal(counts([-1_000_000, -999_999, -999_998], 1, draws), low);
});

test('a tiny temperature takes the least cost, a huge one takes any', () => {
  assert.equal(counts([2, 1, 3], Number.MIN_VALUE, 200), [0, 200, 0]);
  assert.equal(counts([1e308, -1e308], 1, 200), [0, 200]);
  assertChances(counts([2, 1, 3], Number.MAX_VALUE, 3000), [1 / 3, 1 / 3, 1 / 3], 3000);
  assertChances(counts([5, 5], Number.MIN_VALUE, 2000), [1 / 2, 1 / 2], 2000);
});

test('above temperature 0 the runner-up is the least cost of the others', () => {
  const chooser = new Chooser(5);
  const seen = new Set<number>();
  for (let i = 0; i < 200; i++) {
    const { index, runnerUp, runnerUpCost } = chooser.choose([1, 2, 3], [0, 0, 0], 2)!;
    seen.add(index);
    assert.is(runnerUp, index === 0 ? 1 : 0);
    assert.is(runnerUpCost, index === 0 ? 2 : 1);
  }
  assert.is(seen.size, 3);
});

test('a single candidate has no runner-up; without an eligible one there is no choice', () => {
  for (const temperature of [0, 1]) {
    const chooser = new Chooser(1);
    const alone = { runnerUp: null, runnerUpCost: null };
    assert.equal(chooser.choose([7], [0], temperature), { index: 0, ...alone });
    assert.equal(chooser.choose([INELIGIBLE, 7, Number.NaN], [0, 0, 0], temperature), { index: 1, ...alone });
    assert.is(chooser.choose([], [], temperature), null);
    assert.is(chooser.choose([INELIGIBLE, -INELIGIBLE, Number.NaN], [0, 0, 0], temperature), null);
  }
});

/** splitmix32 over big integers: the n-th number of a seed, counting from 1. */
function splitmix32(seed: number, n: number): number {
  const word = (value: bigint): bigint => BigInt.asUintN(32, value);
  let mixed = word(BigInt(seed) + BigInt(n) * 0x9e3779b9n);
  mixed = word((mixed ^ (mixed >> 16n)) * 0x85ebca6bn);
  mixed = word((mixed ^ (mixed >> 13n)) * 0xc2b2ae35n);
  return Number(mixed ^ (mixed >> 16n));
}

test('draws are those of splitmix32, one a choice', () => {
  for (const seed of [0, 1, 2, 0x7fff_ffff, 0xffff_ffff]) {
    const ties = new Chooser(seed);
    const softmax = new Chooser(seed);
    const tied = new Array(10).fill(4);
    for (let n = 1; n <= 100; n++) {
      const expected = Math.floor((splitmix32(seed, n) / 2 ** 32) * 10);
      assert.is(ties.choose(tied, tied, 0)!.index, expected);
      assert.is(softmax.choose(tied, tied, 1)!.index, expected);
    }
  }
});

test('a draw of exactly 0 does not reach an ineligible candidate', () => {
  const seed = 0x61c8_8647;
  assert.is(splitmix32(seed, 1), 0);
  assert.is(new Chooser(seed).choose([INELIGIBLE, 5, 4], [0, 0, 0], 1)!.index, 1);
});

test('a choice without ties draws nothing, and the same seed repeats the same choices', () => {
  const tied = [1, 1, 1, 1, 1, 1, 1, 1];
  const a = new Chooser(9);
  const b = new Chooser(9);
  const other = new Chooser(10);
  const choices = (chooser: Chooser) => Array.from({ length: 50 }, () => chooser.choose(tied, tied, 0)!.index);
  a.choose([1, 2], [0, 0], 0);
  a.choose([1, 1], [0, 1], 0);
  const first = choices(a);
  assert.equal(choices(b), first);
  assert.not.equal(choices(other), first);
});

test('any costs give an eligible choice and a runner-up that no other candidate undercuts', () => {
  const cost = fc.oneof(fc.double(), fc.integer({ min: 0, max: 3 }), fc.constant(INELIGIBLE));
  const candidate = fc.tuple(cost, fc.nat(2));
  const temperature = fc.oneof(fc.constant(0), fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }));
  const property = fc.property(fc.array(candidate), temperature, fc.integer(), (candidates, t, seed) => {
    const costs = candidates.map(([c]) => c);
    const active = candidates.map(([, requests]) => requests);
    const eligible = costs.filter(Number.isFinite);
    const choice = new Chooser(seed).choose(costs, active, t);
    if (choice === null) return assert.is(eligible.length, 0);
    assert.ok(Number.isFinite(costs[choice.index]));
    if (t === 0) assert.is(costs[choice.index], Math.min(...eligible));
    const rest = costs.filter((c, i) => i !== choice.index && Number.isFinite(c));
    if (rest.length === 0) return assert.is(choice.runnerUp, null);
    assert.is.not(choice.runnerUp, choice.index);
    assert.is(choice.runnerUpCost, costs[choice.runnerUp!]);
    assert.ok(rest.every((c) => choice.runnerUpCost! <= c));
  });
  fc.assert(property, { numRuns: 1000 });
});

test.run();
