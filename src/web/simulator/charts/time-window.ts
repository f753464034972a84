// The span of time that all charts over time show: all of it, or what was marked in one of them.

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Milliseconds below which nothing would be seen. */
const LEAST_SPAN = 1;

export class TimeWindow {
  #zoom: Span | null = null;
  readonly #listeners = new Set<() => void>();
  readonly #followers = new Set<(time: number | null, from: unknown) => void>();

  get zoom(): Span | null {
    return this.#zoom;
  }

  set(zoom: Span | null): void {
    if (zoom !== null && !(zoom.to - zoom.from >= LEAST_SPAN)) return;
    if (zoom?.from === this.#zoom?.from && zoom?.to === this.#zoom?.to) return;
    this.#zoom = zoom;
    for (const listener of this.#listeners) listener();
  }

  /** Returns how to stop it. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Says where somebody's cursor is; null: nowhere. */
  point(time: number | null, from: unknown): void {
    for (const follower of this.#followers) follower(time, from);
  }

  /** Hears of every cursor, its own included. Returns how to stop it. */
  follow(follower: (time: number | null, from: unknown) => void): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  /** What of a simulation that has reached `end` is shown: all where the zoom lies beyond it. */
  shown(end: number): Span {
    const zoom = this.#zoom;
    const whole = { from: 0, to: Math.max(end, LEAST_SPAN) };
    return zoom === null || zoom.from >= end
      ? whole
      : { from: Math.max(0, zoom.from), to: Math.min(zoom.to, whole.to) };
  }
}

/** The page's. */
export const timeWindow = new TimeWindow();
