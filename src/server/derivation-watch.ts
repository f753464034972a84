// Says in the log when derived hashes become trusted, and when an event of a worker has refuted them. The router has no clock and tells nobody, so it is
// looked at once in a while: which also bounds how much a pool that goes to and fro can write.
import { type Clock, systemClock } from '../live/clock.js';
import type { Router } from '../router/router.js';
import { type DerivationState, derivationOf, type HashingConfig } from './derivation.js';
import type { ServerLog } from './types.js';

export interface DerivationWatchOptions {
  readonly router: Pick<Router, 'stats' | 'contract'>;
  readonly sharedCache: HashingConfig;
  readonly log: Pick<ServerLog, 'info' | 'warn'>;
  readonly clock?: Clock;
}

/** Milliseconds from one look to the next, and so between two lines at least. */
export const LOOK_EVERY = 1000;

/** States that are said when they are reached, and how loud. What lies between is told by /status. */
const SAID: Partial<Record<DerivationState, 'info' | 'warn'>> = { proven: 'info', trusted: 'info', refuted: 'warn' };

/** Watches until what it returns is called. Where hashes are learned there is nothing to watch. */
export function watchDerivation({ router, sharedCache, log, clock = systemClock }: DerivationWatchOptions): () => void {
  if (sharedCache.hashing === 'learned') return () => undefined;
  let last: string | null = null;
  let cancel = clock.after(LOOK_EVERY, look);
  function look(): void {
    cancel = clock.after(LOOK_EVERY, look);
    const { contract } = router;
    const { state, text, unprovable } = derivationOf(router.stats(), contract, sharedCache);
    const now = `${state} ${unprovable} ${contract?.fingerprint}`;
    if (now === last) return;
    last = now;
    const level = unprovable ? 'warn' : SAID[state];
    if (level !== undefined) log[level]({ derivation: state }, `derived hashes: ${text}`);
  }
  return () => cancel();
}
