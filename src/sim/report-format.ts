// Numbers as people read them. Nothing here asks the platform for a locale, so that a report has the same text everywhere.

const BYTE_STEPS = [
  [1e15, 'PB'],
  [1e12, 'TB'],
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
] as const;

/** What stands where nothing was measured. */
export const NOTHING = '–';

/** At most three digits and no trailing zeros: 1.25, 12.5, 125. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return String(Number(value.toFixed(decimals)));
}

/** A whole number with its thousands apart. */
export const countText = (value: number): string =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');

/** 5,240,000 → 5.24 MB; decimal units. */
export function bytesText(bytes: number): string {
  for (const [size, unit] of BYTE_STEPS) {
    // What rounds to 1,000 of a unit is one of the next.
    if (bytes >= size * 0.9995) return `${shortNumber(bytes / size)} ${unit}`;
  }
  return `${Math.round(bytes)} B`;
}

export const rateText = (bytesPerSecond: number): string => `${bytesText(bytesPerSecond)}/s`;

/** Milliseconds as ms, s, min or h. */
export function timeText(ms: number): string {
  if (ms < 999.5) return `${shortNumber(ms)} ms`;
  if (ms < 119_950) return `${shortNumber(ms / 1000)} s`;
  if (ms < 7_197_000) return `${shortNumber(ms / 60_000)} min`;
  return `${shortNumber(ms / 3_600_000)} h`;
}

/** 0.25 → 25.00 %. */
export const shareText = (share: number): string => `${(share * 100).toFixed(2)} %`;
