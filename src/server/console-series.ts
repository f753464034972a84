// Requests by the second in which they ended, over the last ten minutes: what the console draws hit rates from. A ring of sums, filled as requests
// end; seconds in which nothing ended are zeros. Pure: times are handed in.

/** What is summed. Blocks are those of requests that were routed. */
export const COLUMNS = [
  'requests',
  'failed',
  'blocks',
  'device',
  'host',
  'disk',
  'shared',
  'achieved',
  'reachable',
  'predicted',
  'reported',
] as const;
export type Column = (typeof COLUMNS)[number];

/** The sums of consecutive seconds, the last of them still under way. */
export type SecondsView = { readonly from: number } & Readonly<Record<Column, readonly number[]>>;

/** Ten minutes. */
export const SECONDS_KEPT = 600;
const SECOND = 1000;

export class SecondSeries {
  readonly #sums: Readonly<Record<Column, Float64Array>>;
  /** The latest second that the ring holds, counted from 1970. */
  #latest = -1;

  constructor() {
    const ring = () => new Float64Array(SECONDS_KEPT);
    this.#sums = Object.fromEntries(COLUMNS.map((column) => [column, ring()])) as Record<Column, Float64Array>;
  }

  /** Adds to the second of `at`; what is older than the ring is left out, and what is in the future moves it on. */
  add(at: number, values: Readonly<Partial<Record<Column, number>>>): void {
    const second = Math.floor(at / SECOND);
    this.#advance(second);
    if (second <= this.#latest - SECONDS_KEPT) return;
    for (const column of COLUMNS) this.#sums[column][second % SECONDS_KEPT]! += values[column] ?? 0;
  }

  /** The last ten minutes up to `now`, the oldest second first. */
  view(now: number): SecondsView {
    const last = Math.floor(now / SECOND);
    this.#advance(last);
    // A clock that was set back shows what it showed then.
    const from = this.#latest - SECONDS_KEPT + 1;
    const ordered = (ring: Float64Array) => Array.from(ring, (_, i) => ring[(from + i) % SECONDS_KEPT]!);
    const columns = Object.fromEntries(COLUMNS.map((column) => [column, ordered(this.#sums[column])]));
    return { from, ...(columns as Record<Column, number[]>) };
  }

  /** Sums of the last ten minutes. */
  totals(now: number): Readonly<Record<Column, number>> {
    this.#advance(Math.floor(now / SECOND));
    const sum = (ring: Float64Array) => ring.reduce((all, one) => all + one, 0);
    return Object.fromEntries(COLUMNS.map((column) => [column, sum(this.#sums[column])])) as Record<Column, number>;
  }

  #advance(second: number): void {
    if (second <= this.#latest) return;
    const first = Math.max(this.#latest + 1, second - SECONDS_KEPT + 1);
    for (let at = first; at <= second; at++) {
      for (const column of COLUMNS) this.#sums[column][at % SECONDS_KEPT] = 0;
    }
    this.#latest = second;
  }
}
