// What a chart says as a table, for whom a picture is no help. Pure.

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** More rows than this nobody listens to. */
export const MOST_ROWS = 50;

/** Items at equal distances, the first and the last among them. */
export function thinned<T>(items: readonly T[], most = MOST_ROWS): T[] {
  if (items.length <= most) return [...items];
  return Array.from({ length: most }, (_, i) => items[Math.round((i * (items.length - 1)) / (most - 1))]!);
}
