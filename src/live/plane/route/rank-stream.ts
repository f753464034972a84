// One worker rank's events of a plane, from the transport's bytes into the router: a thin shell around the splice, which carries batches to it event by
// event, asks what it wants asked, and does what it wants done.

import { WireError } from '../../../errors.js';
import type { Router } from '../../../router/router.js';
import type { WorkerId } from '../../../router/worker-info.js';
import {
  decodeRecoveryAnswer,
  EventBatchReader,
  encodeRecoveryQuestion,
  type RecoveryAnswer,
  type RecoveryQuestion,
  type RouterEvent,
} from '../../../wire/envelope/index.js';
import type { Clock } from '../../clock.js';
import type { Drain, Drained } from '../../drain.js';
import type { LimitedLog } from '../../limited-log.js';
import type { PlaneRank, PlaneSubscriber } from '../transport.js';
import type { AskSlots } from './ask-slots.js';
import { RankSplice } from './rank-splice.js';
import { ATTEMPT_PATIENCE, type ResetCause, type SpliceCounts } from './splice-terms.js';

/** Bytes of batches that wait of one rank before its transport has to: a second of the fastest stream. */
export const WAITING_BYTES = 16 << 20;

/** What the ranks of a plane share. */
export interface RankStreamParts {
  readonly router: Router;
  readonly subscriber: Pick<PlaneSubscriber, 'ask' | 'publishLoad'>;
  readonly slots: AskSlots;
  readonly clock: Clock;
  readonly drain: Drain;
  readonly log: LimitedLog;
  readonly random: () => number;
}

/** How a rank of a plane stands. */
export interface PlaneRankStatus {
  readonly id: WorkerId;
  readonly planeId: string;
  readonly dpRank: number;
  /** Its contents are known whole; `everWarm`: they have been. */
  readonly warm: boolean;
  readonly everWarm: boolean;
  readonly recovering: boolean;
  /** Null where nothing is known. */
  readonly lastEventId: bigint | null;
  /** Events that it has heard of and not applied. */
  readonly lag: number;
  /** Live events that wait for a recovery. */
  readonly buffered: number;
  /** Batches that wait to be looked at. */
  readonly queued: number;
  readonly counts: Readonly<SpliceCounts>;
  /** Recoveries begun, by cause. */
  readonly recoveries: Readonly<Record<string, number>>;
  /** What attempts came to. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Times that the rank's index part was emptied, by cause. */
  readonly rebuilds: Readonly<Record<string, number>>;
  /** Batches and events that could not be read, by code; events of another rank under `other-rank`. */
  readonly unreadable: Readonly<Record<string, number>>;
}

interface Batch {
  readonly payload: Uint8Array;
  readonly isLogged: boolean;
}

const reader = new EventBatchReader();

/** One rank. */
export class RankStream implements Drained {
  readonly #id: WorkerId;
  readonly #rank: PlaneRank;
  readonly #parts: RankStreamParts;
  readonly #name: string;
  readonly #splice: RankSplice;
  readonly #unreadable = new Map<string, number>();
  #batches: Batch[] = [];
  #bytes = 0;
  /** Events of the batch that is being looked at. */
  #events: readonly RouterEvent[] = [];
  #at = 0;
  #isLogged = false;
  /** Waits for room. */
  #release: (() => void)[] = [];
  /** Ends the question that is under way, or its wait. */
  #cancelQuestion: () => void = () => {};
  #closed = false;

  constructor(id: WorkerId, rank: PlaneRank, parts: RankStreamParts) {
    this.#id = id;
    this.#rank = rank;
    this.#parts = parts;
    this.#name = `worker ${id} rank ${rank.dpRank}`;
    this.#splice = new RankSplice(
      {
        apply: (event) => this.#apply(event),
        reset: (cause) => this.#reset(cause),
        ask: (question, delay) => this.#ask(question, delay),
        cancel: () => this.#cancelQuestion(),
      },
      parts.random,
    );
  }

  open(): void {
    this.#parts.drain.add(this);
    this.#splice.begin(this.#now);
  }

  close(): void {
    this.#closed = true;
    this.#parts.drain.remove(this);
    this.#cancelQuestion();
    this.#batches = [];
    this.#events = [];
    this.#bytes = 0;
    this.#letIn();
  }

  /** Takes a batch; what is returned resolves once there is room for the next. */
  take(payload: Uint8Array, isLogged: boolean): void | Promise<void> {
    if (this.#closed) return;
    this.#batches.push({ payload, isLogged });
    this.#bytes += payload.length;
    this.#parts.drain.wake();
    if (this.#bytes > WAITING_BYTES) return new Promise((resolve) => this.#release.push(resolve));
  }

  /** The transport may have missed something. */
  check(): void {
    this.#splice.check(this.#now);
  }
  connected(): void {
    this.#splice.connected(this.#now);
  }
  tick(): void {
    this.#splice.tick(this.#now);
  }

  step(): boolean {
    if (this.#splice.step(this.#now)) return true;
    const event = this.#events[this.#at];
    if (event !== undefined) {
      this.#at++;
      if (this.#isOurs(event)) this.#splice.event(event, this.#now, this.#isLogged);
      return true;
    }
    const batch = this.#batches.shift();
    if (batch === undefined) return false;
    this.#bytes -= batch.payload.length;
    this.#read(batch);
    if (this.#bytes <= WAITING_BYTES / 2) this.#letIn();
    return true;
  }

  status(): PlaneRankStatus {
    const splice = this.#splice;
    return {
      id: this.#id,
      planeId: String(this.#rank.workerId),
      dpRank: this.#rank.dpRank,
      warm: splice.warm,
      everWarm: splice.everWarm,
      recovering: splice.recovering,
      lastEventId: splice.lastId,
      lag: splice.lag,
      buffered: splice.buffered,
      queued: this.#batches.length,
      counts: { ...splice.counts },
      recoveries: splice.causes,
      outcomes: splice.outcomes,
      rebuilds: splice.resets,
      unreadable: Object.fromEntries(this.#unreadable),
    };
  }

  get #now(): number {
    return this.#parts.clock.now();
  }

  #letIn(): void {
    const waiting = this.#release;
    this.#release = [];
    for (const resolve of waiting) resolve();
  }

  // ---- what comes ----

  #read({ payload, isLogged }: Batch): void {
    this.#events = [];
    this.#at = 0;
    this.#isLogged = isLogged;
    try {
      const { events, rejected } = reader.read(payload);
      this.#events = events;
      for (const { code, detail } of rejected) this.#note(code, `an event can't be read: ${detail}`);
      // Ids show what is missing as soon as a later one comes; if none does, it is asked for.
      if (rejected.length > 0) this.#splice.check(this.#now);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#note(error.code, `a batch can't be read: ${error.message}`);
      this.#splice.check(this.#now);
    }
  }

  #isOurs({ workerId, dpRank }: RouterEvent): boolean {
    if (workerId === this.#rank.workerId && dpRank === this.#rank.dpRank) return true;
    this.#note('other-rank', `an event of worker ${workerId} rank ${dpRank} came as this one's`);
    return false;
  }

  #note(code: string, text: string): void {
    this.#unreadable.set(code, (this.#unreadable.get(code) ?? 0) + 1);
    this.#parts.log.say(`plane ${this.#name} ${code}`, 'warn', `plane, ${this.#name}: ${text}`);
  }

  // ---- what the splice asks ----

  #apply(event: RouterEvent): void {
    if (this.#isOurs(event)) this.#parts.router.takeEvent(event);
  }

  #reset(cause: ResetCause): void {
    const { router, log } = this.#parts;
    const { dpRank } = this.#rank;
    if (cause !== 'dump') {
      log.say(
        `plane ${this.#name} ${cause}`,
        'warn',
        `plane, ${this.#name}: its index part starts from empty (${cause})`,
      );
    }
    if (cause === 'new-life') router.workerStreamLost(this.#id, dpRank);
    else router.rebuildWorker(this.#id, dpRank);
  }

  #ask(question: Pick<RecoveryQuestion, 'startEventId' | 'endEventId' | 'page'>, delay: number): void {
    this.#cancelQuestion();
    let given = true;
    let leave = (): void => {};
    const wait = delay > 0 ? this.#parts.clock.after(delay, () => enter()) : () => {};
    const enter = (): void => {
      leave = this.#parts.slots.run(async () => {
        if (given) await this.#put(question, () => given);
      }, !this.#splice.everWarm);
    };
    this.#cancelQuestion = () => {
      given = false;
      wait();
      leave();
    };
    if (delay <= 0) enter();
  }

  async #put(
    question: Pick<RecoveryQuestion, 'startEventId' | 'endEventId' | 'page'>,
    isWanted: () => boolean,
  ): Promise<void> {
    const { subscriber, drain } = this.#parts;
    const whole: RecoveryQuestion = { ...this.#rank, ...question, supportsTreeDumpFailed: true };
    let answer: RecoveryAnswer | null = null;
    let outcome: 'unanswered' | 'malformed' = 'unanswered';
    try {
      const bytes = await subscriber.ask(this.#rank, encodeRecoveryQuestion(whole), ATTEMPT_PATIENCE);
      outcome = 'malformed';
      const read = decodeRecoveryAnswer(bytes);
      for (const { code } of read.rejected) this.#note(code, "an event of an answer can't be read");
      answer = usable(read.answer, read.rejected.length);
    } catch (error) {
      if (isWanted()) this.#sayUnanswered(error as Error);
    }
    if (!isWanted()) return;
    if (answer === null) this.#splice.failed(outcome, this.#now);
    else this.#splice.answered(answer, this.#now);
    drain.wake();
  }

  #sayUnanswered({ message }: Error): void {
    this.#parts.log.say(`plane ${this.#name} recovery`, 'warn', `plane, ${this.#name}: recovery: ${message}`);
  }
}

/** A range with a hole is none; a dump without some of its blocks is a dump of fewer blocks, which is only less. */
function usable(answer: RecoveryAnswer, rejected: number): RecoveryAnswer | null {
  return rejected > 0 && answer.kind === 'events' ? null : answer;
}
