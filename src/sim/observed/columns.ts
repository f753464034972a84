// Columns of numbers that grow: what a simulation of a hundred thousand requests leaves is kept in flat arrays.

type Column = Float64Array | Int32Array | Uint32Array | Int16Array | Uint8Array;

/** The column in one of `room` places; further ones hold `rest`. */
export function grown<Kind extends Column>(column: Kind, room: number, rest = 0): Kind {
  const larger = new (column.constructor as new (length: number) => Kind)(room);
  larger.set(column);
  if (rest !== 0) larger.fill(rest, column.length);
  return larger;
}
