// The router's own exponential function: near the true value over its whole range, exact where a double can be, and fixed to the last bit.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { expOfNegative } from '../src/router/exp.js';

test('near Math.exp from 0 down to where doubles end', () => {
  for (let x = 0; x > -700; x -= 0.37) {
    const [ours, theirs] = [expOfNegative(x), Math.exp(x)];
    assert.ok(Math.abs(ours - theirs) <= 1e-13 * theirs, `e^${x} is ${ours}, not ${theirs}`);
  }
});

test('ends: 1 at 0, never above 1, never below 0, 0 far down', () => {
  assert.is(expOfNegative(0), 1);
  assert.is(expOfNegative(-0), 1);
  for (const x of [-1e-300, -1e-9, -0.5, -Math.LN2, -1, -10, -744]) {
    assert.ok(expOfNegative(x) <= 1 && expOfNegative(x) >= 0, `e^${x}`);
  }
  for (const x of [-746, -1e9, -Infinity, Number.NaN]) assert.is(expOfNegative(x), 0);
});

test('falls as x falls', () => {
  let before = 1;
  for (let x = -0.01; x > -40; x -= 0.01) {
    const value = expOfNegative(x);
    assert.ok(value < before, `at ${x}`);
    before = value;
  }
});

/** e^x at −ln 2 / 32, −0.1, −1, −7.25 and −100, as 64 bits. */
const BITS = ['3fef50765b6e4540', '3fecf46d99d52b3a', '3fd78b56362cef38', '3f47455fe323fafe', '36ea8c1f14e2af51'];

test('the same bits as ever', () => {
  const bits = (x: number) => new BigUint64Array(Float64Array.of(expOfNegative(x)).buffer)[0]!.toString(16);
  assert.equal([-Math.LN2 / 32, -0.1, -1, -7.25, -100].map(bits), BITS);
});

test.run();
