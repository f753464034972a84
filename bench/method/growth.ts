// How a cost grows with its size: the slope of the least-squares line through (log size, log cost). 1 is linear, 0 no growth.

export interface Point {
  readonly size: number;
  readonly cost: number;
}

export interface Growth {
  readonly exponent: number;
  /** How much of the spread the line explains, 0 … 1. */
  readonly fit: number;
}

/** Null for fewer than two sizes, or where a cost is not above 0. */
export function growthOf(points: readonly Point[]): Growth | null {
  if (points.some(({ size, cost }) => !(size > 0) || !(cost > 0))) return null;
  const xs = points.map(({ size }) => Math.log(size));
  const ys = points.map(({ cost }) => Math.log(cost));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(xs), mean(ys)];
  let xx = 0;
  let xy = 0;
  let yy = 0;
  xs.forEach((x, i) => {
    xx += (x - meanX) ** 2;
    xy += (x - meanX) * (ys[i]! - meanY);
    yy += (ys[i]! - meanY) ** 2;
  });
  if (xx === 0) return null;
  return { exponent: xy / xx, fit: yy === 0 ? 1 : (xy * xy) / (xx * yy) };
}
