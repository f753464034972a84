// What a decoded MessagePack value is, asked without guessing: integers come as numbers or bigints by their width on the
// wire, nil and missing mean the same, and binary is never text (spec/kv-events.md 1.8).
import { ExtData } from '@msgpack/msgpack';

const MAX_UINT32 = 0xffff_ffff;
const TEXT_SHOWN = 40;

/** Whether a field was not given. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** Whether the value was a map. */
export function isMap(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !(value instanceof Uint8Array) && !(value instanceof ExtData);
}

/** The value as an unsigned 32-bit integer, however wide it stood on the wire; null when it is none. */
function asUint32(value: unknown): number | null {
  const number = typeof value === 'bigint' && value <= MAX_UINT32 ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number)) return null;
  return number >= 0 && number <= MAX_UINT32 ? number : null;
}

/** Whether the value is an unsigned integer of at most 64 bits. */
export function isUnsigned64(value: unknown): value is number | bigint {
  return typeof value === 'bigint' ? value >= 0n : asUint32(value) !== null;
}

/** A few words that show a value to the reader of an error. Long texts are cut, lists and maps only counted. */
export function describe(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'nil';
  if (typeof value === 'string') {
    return `the text ${JSON.stringify(value.length > TEXT_SHOWN ? `${value.slice(0, TEXT_SHOWN)}…` : value)}`;
  }
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value instanceof Uint8Array) return `binary of ${value.length} bytes`;
  if (isMap(value)) return 'a map';
  return value instanceof ExtData ? 'an extension' : String(value);
}
