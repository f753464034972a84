// Numbers and times as people read them. Pure.

const NARROW = '\u202f';

export function count(value: number): string {
  return Math.round(value).toLocaleString('en-GB').replaceAll(',', NARROW);
}

/** A part of a whole; a dash where there is no whole. */
export function share(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(part === whole || part === 0 ? 0 : 1)}${NARROW}%` : '–';
}

/** A number that others are added to: two digits behind the point, so that sums come out. */
export function amount(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return count(value);
  return String(Number(value.toFixed(2)));
}

export function milliseconds(value: number): string {
  if (value < 1) return `${Math.round(value * 1000)}${NARROW}µs`;
  if (value < 1000) return `${Number(value.toPrecision(3))}${NARROW}ms`;
  return duration(value);
}

export function duration(value: number): string {
  const seconds = value / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)}${NARROW}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 10 && minutes < 60) return `${minutes}${NARROW}min`;
  if (minutes < 10) return `${minutes}${NARROW}min ${Math.floor(seconds % 60)}${NARROW}s`;
  return `${Math.floor(minutes / 60)}${NARROW}h ${minutes % 60}${NARROW}min`;
}

export function clockTime(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** The value below which `part` of the values lie; null without any. */
export function quantile(values: readonly number[], part: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null;
}
