// One reconcile: counters, key list, counters again where nothing was received, and then the cache's judgement (design.md 6). The list is read and
// made ready in slices; only the last step, which must see one moment, is done at once.
import type { ReconcileResult } from '../cache/types.js';
import { MoonrouteError } from '../errors.js';
import type { Router } from '../router/router.js';
import type { Clock } from './clock.js';
import type { MasterHttp, MasterStatus } from './master-http.js';

/** Longest stretch of preparing before everything else has a turn. */
const SLICE_MS = 2;
/** Silence of the master beyond which nobody is at work. */
const STALL_MS = 100;

/** What a reconcile needs of the stream that it goes with. */
export interface ReconcileContext {
  readonly router: Router;
  readonly http: MasterHttp;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Resolves when all messages that have come by now are applied. */
  readonly caughtUp: () => Promise<void>;
}

/** How it ended: accepted with what was found, or why it did not count. */
export type ReconcileOutcome =
  | {
      readonly accepted: true;
      readonly result: Extract<ReconcileResult, { accepted: true }>;
      readonly status: Extract<MasterStatus, { state: 'serving' }>;
      /** Whether messages came meanwhile. */
      readonly received: boolean;
      /** Milliseconds of the final step, during which nothing else was done. */
      readonly stepTime: number;
    }
  | { readonly accepted: false; readonly reason: string; readonly detail: string | null };

/** Runs one reconcile; never throws for what a master does. `spent`: milliseconds in which somebody was at work, here or at the master. */
export async function runReconcile(context: ReconcileContext): Promise<{ outcome: ReconcileOutcome; spent: number }> {
  const work = new WorkTime(context.clock);
  try {
    return { outcome: await attempt(context, work), spent: work.spent() };
  } catch (error) {
    if (error instanceof MoonrouteError) return { outcome: refused(error.code, error.message), spent: work.spent() };
    throw error;
  }
}

/** Time since it was made, but for stretches in which the master was silent, or other things had their turn. */
class WorkTime {
  readonly #clock: Clock;
  #last: number;
  #spent = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#last = clock.now();
  }

  sign(): void {
    const now = this.#clock.now();
    this.#spent += Math.min(now - this.#last, STALL_MS);
    this.#last = now;
  }

  /** What went by since the last sign was spent on other things. */
  rested(): void {
    this.#last = this.#clock.now();
  }

  spent(): number {
    this.sign();
    return this.#spent;
  }
}

async function attempt(
  { router, http, clock, signal, caughtUp }: ReconcileContext,
  work: WorkTime,
): Promise<ReconcileOutcome> {
  const token = router.beginReconcile();
  const list = router.beginKeyList();
  if (token.voided !== null) return refused(token.voided);
  const before = await http.status(signal);
  if (before.state !== 'serving') return refused(before.state);
  await http.keys(
    (part) => {
      work.sign();
      // What breaks the stream voids the list as well; nothing more of it is wanted.
      const reason = token.voided ?? list.voided;
      if (reason !== null) throw new MoonrouteError(reason, 'the stream broke while the key list was read');
      list.add(part);
    },
    signal,
    () => work.rested(),
  );
  list.end();
  for (let end = clock.now() + SLICE_MS; !list.prepareSome(); ) {
    if (clock.now() < end) continue;
    work.sign();
    await clock.breathe();
    work.rested();
    end = clock.now() + SLICE_MS;
  }
  await caughtUp();
  if (token.voided === null && token.firstSequence === null) {
    const after = await http.status(signal);
    if (after.state !== 'serving') return refused(after.state);
    await caughtUp();
    // Where a message has come after all, it tells by itself whether one is missing between it and the list.
    if (token.firstSequence === null && after.sequence !== before.sequence) {
      return refused(
        'unseen-messages',
        `the master went from ${before.sequence} to ${after.sequence}, and nothing came`,
      );
    }
  }
  const begun = clock.now();
  const result = router.reconcile(token, list, { s0: before.sequence, firstSequence: token.firstSequence });
  if (!result.accepted) return refused(result.reason);
  return {
    accepted: true,
    result,
    status: before,
    received: token.firstSequence !== null,
    stepTime: clock.now() - begun,
  };
}

function refused(reason: string, detail: string | null = null): ReconcileOutcome {
  return { accepted: false, reason, detail };
}
