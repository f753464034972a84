// Seeds of hash tables out of the one seed that a caller gives. Where tables are full, what goes depends on where entries lie, and so on
// their seed: with seeds of its own each run of a simulation would differ in the end. Without a given seed tables take random ones, for a
// client who knew them could choose prompts that crowd one place.

const MASK = (1n << 64n) - 1n;

/** Tables that have seeds of their own. */
const LANES = { index: 1n, cache: 2n } as const;

/** The seed of a table: the finaliser of splitmix64 over the seed and the table's number. */
export function tableSeedOf(seed: number, table: keyof typeof LANES): bigint {
  let mixed = (LANES[table] << 32n) | BigInt(seed);
  mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return mixed ^ (mixed >> 31n);
}
