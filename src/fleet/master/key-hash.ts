// The number that an object's key is taken for, if it is one (spec/mooncake-events.md 3). Generation A reads it with C++'s `std::stoull`, which takes
// a sign and leading blanks: `-1` is 2^64 - 1 and `+7` is 7. Generation B reads plain digits only. Both take `0x` for hexadecimal.

const LIMIT = 1n << 64n;
const SIGNED_DECIMAL = /^\s*([+-]?)(\d+)$/;
const DECIMAL = /^\d+$/;
const HEXADECIMAL = /^0[xX][0-9a-fA-F]+$/;

/** As generation A reads it; null when the whole key is no number of 64 bits. */
export function looseKeyHash(key: string): bigint | null {
  if (HEXADECIMAL.test(key)) return within(BigInt(key));
  const match = SIGNED_DECIMAL.exec(key);
  if (match === null) return null;
  const value = within(BigInt(match[2]!));
  return value === null || match[1] !== '-' ? value : BigInt.asUintN(64, -value);
}

/** As generation B reads it. */
export function strictKeyHash(key: string): bigint | null {
  return HEXADECIMAL.test(key) || DECIMAL.test(key) ? within(BigInt(key)) : null;
}

function within(value: bigint): bigint | null {
  return value < LIMIT ? value : null;
}
