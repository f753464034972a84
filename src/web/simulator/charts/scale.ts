// Where a value lies between the ends of an axis, and which value lies somewhere: straight or logarithmic. Pure.

export interface Scale {
  /** 0 at the axis's first end, 1 at its other. */
  readonly part: (value: number) => number;
  readonly value: (part: number) => number;
}

/** The ends of a logarithmic scale are above 0; what is not lies at its first end. */
export function scaleOf([from, to]: readonly [number, number], log = false): Scale {
  if (!(to > from)) return { part: () => 0, value: () => from };
  if (!log) return { part: (value) => (value - from) / (to - from), value: (part) => from + part * (to - from) };
  const span = Math.log(to / from);
  return {
    part: (value) => (value > 0 ? Math.log(value / from) / span : 0),
    value: (part) => from * Math.exp(part * span),
  };
}
