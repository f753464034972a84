// Time, as the live streams see it: handed to everything that waits, so that tests can hold it still.
import { setImmediate } from 'node:timers';

/** A monotonic clock with timers. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number;
  /** Runs something after `ms` milliseconds, unless what it returns is called before. */
  after(ms: number, run: () => void): () => void;
  /** Resolves after sockets, timers and requests that are due have had their turn. */
  breathe(): Promise<void>;
}

/** The machine's own. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  breathe: () => new Promise((resolve) => setImmediate(resolve)),
};
