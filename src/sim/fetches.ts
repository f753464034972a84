// Restores from the store while they run. A fetch waits for the latency, then moves its part from memory, then its part from SSD. Bandwidth
// is shared max-min fairly: every worker's link, all together, and SSD reads among themselves are limits; the tightest one is divided
// evenly among the fetches that cross it, and what these leave elsewhere goes to the others. Shares hold until a fetch begins, changes to
// its SSD part or ends.
import type { SimObserver } from './observed/observer.js';
import type { StoreModel } from './types.js';

/** What is restored. `owner` comes back when it has arrived. */
export interface Fetch<Owner> {
  readonly owner: Owner;
  readonly worker: number;
  readonly dramBytes: number;
  readonly ssdBytes: number;
}

interface Running<Owner> {
  readonly fetch: Fetch<Owner>;
  onSsd: boolean;
  /** Bytes of the part that it is at. */
  left: number;
  /** Bytes a millisecond. */
  rate: number;
  /** When the part ends. */
  ends: number;
}

/** One bandwidth that several fetches share. */
interface Limit {
  left: number;
  users: number;
}

const SECOND = 1000;

export class Fetches<Owner> {
  readonly #link: number;
  readonly #total: number;
  readonly #ssd: number;
  readonly #links: Limit[];
  #running: Running<Owner>[] = [];
  #latest = 0;
  /** Whole second of the clock that bytes are counted for, and those of it. */
  #second = 0;
  #secondBytes = 0;
  #peak = 0;
  fetchedBytes = 0;
  /** When the next part ends; Infinity while nothing runs. */
  next = Number.POSITIVE_INFINITY;
  /** Changes with `next`: an event that was made for an earlier one is out of date. */
  epoch = 0;

  readonly #observer: Pick<SimObserver, 'moved'> | undefined;

  /** @param observer told what moved, and when */
  constructor(
    { linkBytesPerSecond, totalBytesPerSecond, ssdBytesPerSecond }: StoreModel,
    workers: number,
    observer?: Pick<SimObserver, 'moved'>,
  ) {
    this.#observer = observer;
    this.#link = linkBytesPerSecond / SECOND;
    this.#total = totalBytesPerSecond / SECOND;
    this.#ssd = ssdBytesPerSecond / SECOND;
    this.#links = Array.from({ length: workers }, () => ({ left: 0, users: 0 }));
  }

  /** Most bytes that arrived within one whole second of the clock. */
  get peakBytes(): number {
    return Math.max(this.#peak, this.#secondBytes);
  }

  /** A fetch whose latency is over begins to move bytes. */
  begin(fetch: Fetch<Owner>, now: number): void {
    this.#advance(now);
    const onSsd = fetch.dramBytes === 0;
    this.#running.push({ fetch, onSsd, left: onSsd ? fetch.ssdBytes : fetch.dramBytes, rate: 0, ends: 0 });
    this.#share(now);
  }

  /** At `next`: the fetches that have arrived. */
  arrived(now: number): Fetch<Owner>[] {
    this.#advance(now);
    const arrived: Fetch<Owner>[] = [];
    this.#running = this.#running.filter((running) => {
      if (running.ends > now) return true;
      const { dramBytes, ssdBytes } = running.fetch;
      if (!running.onSsd && ssdBytes > 0) {
        running.onSsd = true;
        running.left = ssdBytes;
        return true;
      }
      arrived.push(running.fetch);
      this.fetchedBytes += dramBytes + ssdBytes;
      return false;
    });
    this.#share(now);
    return arrived;
  }

  /** A worker is gone, and what it was fetching. */
  drop(worker: number, now: number): void {
    this.#advance(now);
    this.#running = this.#running.filter(({ fetch }) => fetch.worker !== worker);
    this.#share(now);
  }

  #advance(now: number): void {
    const begin = this.#latest;
    this.#latest = now;
    let rate = 0;
    for (const running of this.#running) {
      rate += running.rate;
      running.left = running.ends <= now ? 0 : Math.max(0, running.left - running.rate * (now - begin));
    }
    if (!(rate > 0 && now > begin)) return;
    this.#countBytes(begin, now, rate);
    this.#observer?.moved(begin, now, rate);
  }

  #countBytes(begin: number, end: number, rate: number): void {
    const first = Math.floor(begin / SECOND);
    const last = Math.floor(end / SECOND);
    this.#turnTo(first);
    if (last === first) {
      this.#secondBytes += rate * (end - begin);
      return;
    }
    this.#secondBytes += rate * ((first + 1) * SECOND - begin);
    if (last > first + 1) {
      this.#turnTo(first + 1);
      this.#secondBytes += rate * SECOND;
    }
    this.#turnTo(last);
    this.#secondBytes += rate * (end - last * SECOND);
  }

  #turnTo(second: number): void {
    if (second === this.#second) return;
    this.#peak = Math.max(this.#peak, this.#secondBytes);
    this.#second = second;
    this.#secondBytes = 0;
  }

  /** Divides the bandwidths anew. */
  #share(now: number): void {
    const total: Limit = { left: this.#total, users: this.#running.length };
    const ssd: Limit = { left: this.#ssd, users: 0 };
    for (const link of this.#links) {
      link.left = this.#link;
      link.users = 0;
    }
    for (const { fetch, onSsd } of this.#running) {
      this.#links[fetch.worker]!.users++;
      if (onSsd) ssd.users++;
    }
    let open = this.#running;
    while (open.length > 0) {
      let tightest = total;
      for (const limit of [ssd, ...this.#links]) {
        if (limit.users > 0 && limit.left / limit.users < tightest.left / tightest.users) tightest = limit;
      }
      const rate = Math.max(0, tightest.left) / tightest.users;
      const still: Running<Owner>[] = [];
      for (const running of open) {
        const link = this.#links[running.fetch.worker]!;
        const crosses = tightest === total || tightest === link || (tightest === ssd && running.onSsd);
        if (!crosses) {
          still.push(running);
          continue;
        }
        running.rate = rate;
        for (const limit of running.onSsd ? [total, ssd, link] : [total, link]) {
          limit.left -= rate;
          limit.users--;
        }
      }
      open = still;
    }
    this.next = Number.POSITIVE_INFINITY;
    for (const running of this.#running) {
      running.ends = now + running.left / running.rate;
      this.next = Math.min(this.next, running.ends);
    }
    this.epoch++;
  }
}
