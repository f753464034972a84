// The exponential function for what decays, the same to the last bit in every JavaScript engine: `Math.exp` and powers may differ in it,
// sums and products may not. A simulation must give the same bytes wherever it runs.

const LN2 = Math.LN2;
const LOG2E = 1 / LN2;
/** Below it e^x is 0 in a double. */
const LEAST = -745.2;
/** Terms of the series: enough for |x| ≤ ln 2. */
const TERMS = 20;

/** e^x, for x ≤ 0, within 1e-13 of it. */
export function expOfNegative(x: number): number {
  if (!(x > LEAST)) return 0;
  const halvings = Math.floor(-x * LOG2E);
  const rest = x + halvings * LN2; // in (−ln 2, 0]
  let sum = 1;
  for (let term = TERMS; term >= 1; term--) sum = 1 + (rest / term) * sum;
  return sum * powerOfHalf(halvings);
}

/** 0.5^n, exactly, for a whole n ≥ 0. */
function powerOfHalf(n: number): number {
  let power = 1;
  for (let square = 0.5, left = n; left > 0; left = Math.floor(left / 2), square *= square) {
    if (left % 2 === 1) power *= square;
  }
  return power;
}
