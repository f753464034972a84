// A JSON line as an object, with its hash_ids exact: JSON.parse rounds integers past 2⁵³, and two 64-bit hashes that round to one number
// would look like a shared prefix. So where a number is not safe, the ids are read from the text again.
import type { TraceId } from './ids.js';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The object in a line, or null. */
export function objectIn(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}

/** A list of integers and texts as ids; null when it is none, or its exact integers can't be told. */
export function idsOf(value: unknown, text: string): readonly TraceId[] | null {
  if (!Array.isArray(value)) return null;
  let exact = true;
  for (const id of value) {
    if (typeof id === 'string') continue;
    if (typeof id !== 'number' || !Number.isInteger(id)) return null;
    exact &&= Number.isSafeInteger(id);
  }
  return exact ? (value as TraceId[]) : exactIds(value as TraceId[], text);
}

/** The ids with integers past 2⁵³ as the text has them; null when the text does not hold the same list plainly. */
function exactIds(rounded: readonly TraceId[], text: string): readonly TraceId[] | null {
  const list = /"hash_ids"\s*:\s*\[([^\]]*)\]/.exec(text)?.[1];
  const tokens = list?.match(/"(?:[^"\\]|\\.)*"|[^\s,"]+/g) ?? [];
  if (tokens.length !== rounded.length) return null;
  const ids: TraceId[] = [];
  for (const [i, token] of tokens.entries()) {
    const id = rounded[i]!;
    if (typeof id === 'string') ids.push(id);
    else if (Number(token) !== id) return null;
    else if (Number.isSafeInteger(id)) ids.push(id);
    else if (!/^-?\d{1,20}$/.test(token))
      return null; // 1e20 has no digits to tell it by
    else {
      const exact = BigInt(token);
      if (BigInt.asUintN(64, exact) !== exact && BigInt.asIntN(64, exact) !== exact) return null;
      ids.push(exact);
    }
  }
  return ids;
}

/** The first of several names for a field that is there and not null. */
export function fieldOf(row: JsonObject, ...names: readonly string[]): unknown {
  for (const name of names) if (row[name] !== undefined && row[name] !== null) return row[name];
  return undefined;
}
