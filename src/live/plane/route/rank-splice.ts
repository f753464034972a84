// One worker rank's events of a plane, kept whole: what is missed is asked for at the worker's local indexer, and spliced in front of what came live
// meanwhile, by id (spec/kv-events.md 4.3). A pure state machine; the shell carries events and answers to it and does what it asks.
//
// Ids rise by one. So:
// - next one: applied. Higher: a gap, live events wait in a bounded buffer, and the missing range is asked for, in parts. Lower: a duplicate, or what
//   a recovery has brought already; but where neither explains it, the publisher began anew unseen, and all of the rank is asked for.
// - id 1 after higher ones: the publisher began anew; the rank starts from empty with it.
// - Every range is asked from the last applied event on, that one included: a publisher of the same life sends it again as it was. One that began
//   anew has another event of that id, or none yet: so a restart is seen even where its ids look as if they followed.
// - What a range can't give, a dump does: the rank's whole contents, in pages, for all events up to an id.
//
// When the rank is emptied: not at a gap. After one, blocks may be believed that are gone; but GPU overlap is a score, which one missed removal makes a
// little wrong, while an empty rank makes it wholly wrong, and edges and provenance are facts that no removal undoes. So the rank is emptied when
// a dump's first page has arrived, to be filled with it; and when a recovery has lasted for so long that a direct stream would be given up as well.
import type { RecoveryAnswer, RouterEvent } from '../../../wire/envelope/types.js';
import { Backoff } from '../../backoff.js';
import { eventPrint } from './event-print.js';
import { LiveBuffer } from './live-buffer.js';

import {
  APPEND_BUDGET,
  BUFFER_BLOCKS,
  BUFFER_EVENTS,
  COLD_RETRY,
  DOUBT_EVERY,
  DUMP_EVERY,
  FIRST_BACKOFF,
  LOG_GRACE,
  MOST_BACKOFF,
  MOST_MISSING,
  MOST_PAGES,
  OVERLAP_GRACE,
  PRUNE_MARGIN,
  RECENT,
  REORDERED,
  RETRIES,
  type RecoveryCause,
  type RecoveryOutcome,
  type ResetCause,
  type SpliceActions,
  type SpliceCounts,
  STALE_AFTER,
} from './splice-terms.js';

/** A dump of what is no worker's: none that was asked for. */
const OWNER_SCOPE = 'domain:cache_owner';

interface Recovery {
  readonly cause: RecoveryCause;
  readonly since: number;
  /** Everything is asked for, since what is known can't be gone on from. */
  whole: boolean;
  /** The live events that waited when all was asked for. */
  stamp: number;
  /** Page to be asked for next; null before the first. */
  page: string | null;
  pages: number;
  /** What the dump's first page said that it stands for. */
  dumpId: bigint | null;
  /** Id and look of the event that the running question begins with. */
  start: bigint | null;
  end: bigint | null;
  print: number;
}

interface Work {
  readonly events: readonly RouterEvent[];
  at: number;
  /** What follows once all are applied. */
  readonly then: (now: number) => void;
  /** Events of a dump have ids of their own. */
  readonly isDump: boolean;
}

/** Keeps one rank whole. */
export class RankSplice {
  readonly #actions: SpliceActions;
  readonly #backoff: Backoff;
  readonly #buffer = new LiveBuffer(BUFFER_EVENTS, BUFFER_BLOCKS, PRUNE_MARGIN);
  readonly #outcomes = new Map<RecoveryOutcome, number>();
  readonly #causes = new Map<RecoveryCause, number>();
  readonly #resets = new Map<ResetCause, number>();
  readonly #prints = new Map<bigint, number>();
  readonly counts: SpliceCounts = {
    applied: 0,
    recovered: 0,
    duplicates: 0,
    overlapped: 0,
    gaps: 0,
    doubts: 0,
    lives: 0,
    dropped: 0,
  };
  /** The rank's contents are those of the publisher after event `last`. */
  #warm = false;
  #everWarm = false;
  /** Last event applied, or stood for by a dump. Null where nothing is known. */
  #last: bigint | null = null;
  /** Look of that event; null where a dump stands for it. */
  #lastPrint: number | null = null;
  /** Newest id that came live in this life. */
  #seen = 0n;
  #recovery: Recovery | null = null;
  #work: Work | null = null;
  #doubtedAt = Number.NEGATIVE_INFINITY;
  /** There was another doubt soon after. */
  #doubtful = false;
  /** When the last answer was taken whole: for a while it explains old ids. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** When the last dump was. */
  #dumpedAt = Number.NEGATIVE_INFINITY;
  #coldSince = 0;
  /** Something may have been missed behind what the running recovery asks for. */
  #checkDue = false;

  constructor(actions: SpliceActions, random: () => number = Math.random) {
    this.#actions = actions;
    this.#backoff = new Backoff(FIRST_BACKOFF, MOST_BACKOFF, random);
  }

  /** Whether the rank's contents are known whole. */
  get warm(): boolean {
    return this.#warm;
  }
  /** Whether they have ever been. */
  get everWarm(): boolean {
    return this.#everWarm;
  }
  get recovering(): boolean {
    return this.#recovery !== null;
  }
  get lastId(): bigint | null {
    return this.#last;
  }
  /** Live events that wait. */
  get buffered(): number {
    return this.#buffer.size;
  }
  /** Events by which the rank lags behind the newest that it has heard of. */
  get lag(): number {
    if (this.#last === null) return this.#buffer.size;
    return this.#seen > this.#last ? Number(this.#seen - this.#last) : 0;
  }
  get outcomes(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#outcomes);
  }
  get causes(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#causes);
  }
  get resets(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#resets);
  }

  /** The rank is to be known from now on, without waiting for its first event. */
  begin(now: number): void {
    if (!this.#warm && this.#recovery === null && this.#last === null) this.#recover('start', now);
  }

  /** Events may have been missed, so that no later one would show it. */
  check(now: number): void {
    this.#checkDue = this.#recovery !== null;
    if (!this.#checkDue) this.#recover(this.#last === null ? 'start' : 'check', now);
  }

  /** The transport stands again: a recovery that waits to try once more need not. */
  connected(now: number): void {
    this.#backoff.succeeded();
    if (this.#recovery === null) this.check(now);
    else if (this.#work === null) this.#ask(0);
  }

  /** To be called now and then, at least every few seconds. */
  tick(now: number): void {
    if (this.#recovery !== null) {
      if (this.#dropStale(this.#recovery, now)) this.#ask(0);
    } else if (this.#checkDue) this.check(now);
    else if (this.#doubtful && now - this.#doubtedAt >= DOUBT_EVERY) this.#doubt(now);
    else if (!this.#warm && this.#last !== null && now - this.#coldSince >= COLD_RETRY) this.#recover('cold', now);
  }

  /**
   * Takes a live event. Only while there is no `work`: what an answer brought goes first. `isLogged`: of a transport that sends everything again from
   * its log, in order.
   */
  event(event: RouterEvent, now: number, isLogged = false): void {
    const { eventId: id } = event;
    const last = this.#last;
    if (id === 1n && !(last === 0n && this.#warm)) {
      if (last === 1n && this.#isRepeated(event)) this.counts.duplicates++;
      else this.#newLife(event, last !== null, now);
      return;
    }
    const isNewest = id > this.#seen;
    if (last !== null && id <= last) {
      if (isNewest) this.#seen = id;
      if (isNewest && now - this.#answeredAt < (isLogged ? LOG_GRACE : OVERLAP_GRACE)) this.counts.overlapped++;
      else this.#old(event, now);
      return;
    }
    if (isNewest) this.#seen = id;
    const whole = this.#recovery?.whole ?? false;
    if (last !== null && id === last + 1n && !whole) {
      this.#follow(event);
      this.#drain(now);
      return;
    }
    this.counts.dropped += this.#buffer.add(event);
    if (this.#recovery !== null) return;
    if (last !== null) this.counts.gaps++;
    this.#recover(last === null ? 'start' : 'gap', now);
  }

  /** Whether an answer has brought what `step` has not applied yet. */
  get working(): boolean {
    return this.#work !== null;
  }

  /** Applies one event of an answer; false when there is none. */
  step(now: number): boolean {
    const work = this.#work;
    if (work === null) return false;
    const event = work.events[work.at++];
    if (event === undefined) {
      this.#work = null;
      work.then(now);
    } else if (work.isDump) {
      this.#actions.apply(event);
      this.counts.applied++;
      this.counts.recovered++;
    } else if (this.#last === null || event.eventId > this.#last) {
      this.counts.recovered++;
      this.#follow(event);
    }
    return true;
  }

  /** Takes the answer to the running question. */
  answered(answer: RecoveryAnswer, now: number): void {
    const recovery = this.#recovery;
    if (recovery === null || this.#work !== null) return;
    const { kind } = answer;
    if (kind === 'events') this.#range(recovery, answer, now);
    else if (kind === 'tree-dump') this.#dumpPage(recovery, answer, now);
    else if (kind === 'too-new') this.#tooNew(recovery, answer.newestAvailable, now);
    else {
      if (kind === 'invalid-range') recovery.whole = true;
      recovery.page = null; // a page that is not kept any more is of a dump that can't be ended
      this.#fail(kind === 'tree-dump-failed' ? 'dump-failed' : kind, now);
    }
  }

  /** The running question has no answer, or none that can be read. */
  failed(outcome: 'unanswered' | 'malformed', now: number): void {
    if (this.#recovery !== null && this.#work === null) this.#fail(outcome, now);
  }

  // ---- live ----

  /** The event behind the last one. */
  #follow(event: RouterEvent): void {
    this.#actions.apply(event);
    this.counts.applied++;
    this.#last = event.eventId;
    this.#lastPrint = eventPrint(event);
    this.#prints.set(event.eventId, this.#lastPrint);
    if (this.#prints.size > RECENT) this.#prints.delete(this.#prints.keys().next().value!);
  }

  /** An id that was had before, and that no recovery explains. */
  #old(event: RouterEvent, now: number): void {
    if (this.#isRepeated(event)) {
      this.counts.duplicates++;
      return;
    }
    this.counts.doubts++;
    if (this.#recovery?.whole) {
      this.counts.dropped += this.#buffer.add(event); // it may be of the life that answers
      return;
    }
    if (now - this.#doubtedAt < DOUBT_EVERY) {
      this.#doubtful = true;
      return;
    }
    this.#doubt(now);
    this.#buffer.add(event);
  }

  #doubt(now: number): void {
    this.#doubtful = false;
    this.#doubtedAt = now;
    if (this.#recovery !== null) this.#actions.cancel();
    this.#recovery = null;
    this.#buffer.clear();
    this.#recover('doubt', now);
  }

  #isRepeated(event: RouterEvent): boolean {
    return this.#prints.get(event.eventId) === eventPrint(event);
  }

  #newLife(first: RouterEvent, known: boolean, now: number): void {
    if (known) this.counts.lives++;
    if (this.#recovery !== null) this.#actions.cancel();
    this.#recovery = null;
    this.#work = null;
    this.#backoff.succeeded();
    if (this.counts.applied > 0) this.#reset('new-life');
    this.#forget();
    // What waits is of the life before, but for those of a first acquaintance that overtook their first one.
    const waiting = this.#buffer.takeAll().filter(({ eventId }) => !known && eventId <= REORDERED);
    this.#seen = 1n;
    this.#setWarm();
    this.#follow(first);
    for (const event of waiting) this.event(event, now);
  }

  /** Applies what waits and follows; a hole in it begins the next recovery. */
  #drain(now: number): void {
    if (this.#recovery?.whole) return;
    for (;;) {
      this.#buffer.dropUpTo(this.#last!);
      const next = this.#buffer.first;
      if (next === null || next.eventId !== this.#last! + 1n) break;
      this.#buffer.shift();
      this.#follow(next);
    }
    const recovery = this.#recovery;
    if (recovery === null) {
      if (this.#buffer.size > 0) this.#recover('gap', now);
    } else if (this.#buffer.size === 0 && recovery.cause === 'gap') {
      // The missing ones came by themselves.
      this.#actions.cancel();
      this.#end();
    }
  }

  // ---- recovery ----

  #recover(cause: RecoveryCause, now: number): void {
    this.#causes.set(cause, (this.#causes.get(cause) ?? 0) + 1);
    const whole =
      this.#last === null || this.#lastPrint === null || cause === 'doubt' || cause === 'new-life' || !this.#warm;
    this.#recovery = {
      ...{ cause, since: now, whole, stamp: 0, page: null, pages: 0, dumpId: null, start: null, end: null, print: 0 },
    };
    this.#ask(cause === 'gap' && whole ? Math.max(0, this.#dumpedAt + DUMP_EVERY - now) : 0);
  }

  #ask(delay: number): void {
    const recovery = this.#recovery!;
    const last = this.#last;
    if (recovery.whole || last === null || this.#lastPrint === null || this.#missing(last) > MOST_MISSING) {
      recovery.whole = true;
      recovery.start = null;
      if (recovery.page === null) recovery.stamp = this.#buffer.stamp;
      this.#actions.ask({ startEventId: null, endEventId: null, page: recovery.page }, delay);
      return;
    }
    const first = this.#buffer.first?.eventId ?? null;
    const most = last + BigInt(APPEND_BUDGET);
    const end = first !== null && first - 1n < most ? first - 1n : most;
    recovery.start = last;
    recovery.end = end > last ? end : last;
    recovery.print = this.#lastPrint;
    this.#actions.ask({ startEventId: last, endEventId: recovery.end, page: null }, delay);
  }

  #missing(last: bigint): number {
    const first = this.#buffer.first;
    return first === null ? 0 : Number(first.eventId - last - 1n);
  }

  #range(recovery: Recovery, { events, lastEventId }: Extract<RecoveryAnswer, { kind: 'events' }>, now: number): void {
    const { start } = recovery;
    const first = events[0]?.eventId ?? null;
    // Everything must begin with the first event of the publisher's life, or there is none yet.
    const fits = start === null ? first === null || first === 1n : first === start;
    if (!fits || !follow(events)) this.#fail('malformed', now);
    else if (start === null) this.#wholeRange(events, lastEventId);
    else if (eventPrint(events[0]!) !== recovery.print) this.#otherLife(now);
    else {
      const newest = events.at(-1)!.eventId;
      // Answers may be cut to what a message carries: only one that brings nothing new says that there is no more.
      const hasMore = newest > start || lastEventId > newest;
      this.#apply(events, false, (then) => {
        this.#count('range');
        this.#backoff.succeeded();
        this.#answeredAt = then;
        this.#spliced(hasMore, then);
      });
    }
  }

  #wholeRange(events: readonly RouterEvent[], newest: bigint): void {
    this.#reset('dump');
    this.#forget();
    this.#apply(events, false, (now) => {
      const lastId = events.at(-1)?.eventId ?? 0n;
      this.#wholeTaken('range', lastId, now);
      if (newest > lastId) this.check(now);
    });
  }

  /** A part of what is missed has been applied: what waits follows, or the next part is asked for. */
  #spliced(hasMore: boolean, now: number): void {
    const recovery = this.#recovery!;
    this.#recovery = null;
    this.#buffer.dropUpTo(this.#last!);
    const next = this.#buffer.first;
    if (next === null ? !hasMore : next.eventId === this.#last! + 1n) {
      this.#end();
      if (next !== null) this.#drain(now);
      return;
    }
    // Without a part that it brought, an answer can't be gone on from.
    const progressed = this.#last! > recovery.start!;
    this.#recovery = { ...recovery, since: now, whole: recovery.whole || !progressed };
    this.#ask(0);
  }

  #dumpPage(recovery: Recovery, answer: Extract<RecoveryAnswer, { kind: 'tree-dump' }>, now: number): void {
    const { events, lastEventId, next, resetScope } = answer;
    const isFirst = recovery.page === null;
    const pages = isFirst ? 1 : recovery.pages + 1;
    const isOther = resetScope === OWNER_SCOPE || (!isFirst && lastEventId !== recovery.dumpId);
    recovery.whole = true;
    if (isOther || (next !== null && (pages >= MOST_PAGES || next === recovery.page))) {
      recovery.page = null; // the first page again
      this.#fail('malformed', now);
      return;
    }
    if (isFirst) {
      this.#reset('dump');
      this.#forget();
      recovery.dumpId = lastEventId;
    }
    recovery.pages = pages;
    this.#apply(events, true, (then) => {
      this.#backoff.succeeded();
      recovery.page = next;
      if (next === null) this.#wholeTaken('dump', lastEventId, then);
      else this.#ask(0);
    });
  }

  /** All that the rank holds after event `lastId` has been applied. */
  #wholeTaken(outcome: 'range' | 'dump', lastId: bigint, now: number): void {
    this.#count(outcome);
    if (this.#last === null || this.#last !== lastId) {
      // Nothing but ids that go on from it will be believed of this life.
      this.#last = lastId;
      this.#lastPrint = null;
    }
    this.#answeredAt = now;
    this.#dumpedAt = now;
    this.#setWarm();
    // Whoever answers has what went out before. What waited then and is newer than the answer, and does not follow, is of another life.
    const { stamp } = this.#recovery!;
    this.#end();
    this.#buffer.dropUpTo(lastId);
    const next = this.#buffer.first;
    if (next !== null && next.eventId > lastId + 1n) this.counts.dropped += this.#buffer.dropOlder(stamp);
    this.#drain(now);
  }

  /** The publisher has no event of the one that is known: it has begun anew. One that has it can't say so. */
  #tooNew({ start }: Recovery, newest: bigint, now: number): void {
    if (start === null || newest >= start) {
      this.#fail('malformed', now);
      return;
    }
    this.#count('too-new');
    this.#otherLife(now);
  }

  /** Who answers has begun anew since what is known of the rank. */
  #otherLife(now: number): void {
    this.counts.lives++;
    this.#reset('new-life');
    this.#forget();
    this.#seen = 0n;
    this.#recover('new-life', now);
  }

  #fail(outcome: RecoveryOutcome, now: number): void {
    const recovery = this.#recovery!;
    this.#count(outcome);
    if (outcome === 'malformed') recovery.whole = true; // what a range can't give, a dump does
    this.#dropStale(recovery, now);
    const delay = this.#backoff.next();
    if (this.#backoff.failures <= RETRIES) {
      this.#ask(delay);
      return;
    }
    this.#count('given-up');
    this.#checkDue = false;
    this.#reset('unanswered');
    this.#forget();
    this.#coldSince = now;
    this.#end();
    // What waits is gone on with; the index refuses what hangs on blocks that it does not know.
    const first = this.#buffer.shift();
    if (first === null) {
      this.#last = this.#seen;
      return;
    }
    this.#follow(first);
    for (let next = this.#buffer.shift(); next !== null; next = this.#buffer.shift()) this.#follow(next);
  }

  /** What is known has waited for too long for what it misses. Whether so. */
  #dropStale(recovery: Recovery, now: number): boolean {
    if (!this.#warm || now - recovery.since < STALE_AFTER) return false;
    this.#reset('stale');
    this.#forget();
    recovery.whole = true;
    recovery.page = null;
    this.#work = null; // a range goes on from what is gone
    return true;
  }

  #apply(events: readonly RouterEvent[], isDump: boolean, then: (now: number) => void): void {
    this.#work = { events, at: 0, isDump, then };
  }

  #end(): void {
    this.#recovery = null;
    this.#backoff.succeeded();
  }

  #setWarm(): void {
    this.#warm = true;
    this.#everWarm = true;
  }

  #forget(): void {
    this.#warm = false;
    this.#last = null;
    this.#lastPrint = null;
    this.#prints.clear();
  }

  #reset(cause: ResetCause): void {
    this.#resets.set(cause, (this.#resets.get(cause) ?? 0) + 1);
    this.#actions.reset(cause);
  }

  #count(outcome: RecoveryOutcome): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
  }
}

/** Whether their ids rise by one. */
function follow(events: readonly RouterEvent[]): boolean {
  return events.every(({ eventId }, i) => i === 0 || eventId === events[i - 1]!.eventId + 1n);
}
