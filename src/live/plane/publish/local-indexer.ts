// What a worker's publisher knows of one rank, for routers that missed something: the index of what the rank holds, with provenance, and the last events
// that went out. It sees every numbered event before the transport does, so that what the transport loses can be had here (spec/kv-events.md 4.3, 4.4).
//
// A question is answered with events where all that it asks for are still kept, else with a dump. Both are cut to what one message carries: of a long
// range the first events come, and the asker goes on behind the last of them; a dump comes in pages (dump-snapshots.ts). What the worker has contradicted
// itself about is in both: a dump begins with it, and says eligible of none of it, for the asker may have learned it before.
import type { DumpedBlocks, PrefixIndexLike } from '../../../core/prefix-types.js';
import { indexedBlocks } from '../../../core/prefix-types.js';
import { TIERS } from '../../../router/gpu-events.js';
import type { RecoveryAnswer, RecoveryQuestion, RouterEvent } from '../../../wire/envelope/types.js';
import { Contradicted } from './contradicted.js';
import { ANSWER_BYTES, type DumpedRun, type DumpPage, DumpSnapshots } from './dump-snapshots.js';
import { EventRing, RING_LIMITS, type RingLimits } from './event-ring.js';

/** The index is the rank's own. */
const RANK = 0;

export interface LocalIndexerOptions {
  readonly workerId: bigint;
  readonly dpRank: number;
  /** Made with `provenance: true`, for this rank alone. */
  readonly index: PrefixIndexLike;
  readonly ring?: RingLimits;
  /** Bytes of an answer, by an upper bound; asked each time. Default 512 KiB. */
  readonly answerBytes?: () => number;
  /** What the worker has contradicted itself about; events of this rank that say so add to it. */
  readonly contradicted?: Contradicted;
}

/** What it holds, and what has happened. */
export interface LocalIndexerStats {
  readonly lastEventId: bigint;
  /** Blocks known; right after a `tidy` only such as the rank holds. */
  readonly entries: number;
  /** Blocks that went since the index was full. */
  readonly evicted: number;
  readonly buffered: number;
  readonly bufferedBytes: number;
  readonly snapshots: number;
  /** Stored events that the index did not take whole, by cause. */
  readonly notIndexed: Readonly<Record<string, number>>;
  /** Events of owners that are no worker: passed on, never indexed. */
  readonly otherDomain: number;
  /** Answers by kind. */
  readonly answers: Readonly<Record<string, number>>;
}

/** Keeps one rank and answers for it. */
export class LocalIndexer {
  readonly #workerId: bigint;
  readonly #dpRank: number;
  readonly #index: PrefixIndexLike;
  readonly #ring: EventRing;
  readonly #dumps: DumpSnapshots;
  readonly #contradicted: Contradicted;
  readonly #answerBytes: () => number;
  readonly #notIndexed = new Map<string, number>();
  readonly #answers = new Map<string, number>();
  #otherDomain = 0;
  #lastEventId = 0n;

  constructor(options: LocalIndexerOptions) {
    const { workerId, dpRank, index, ring = RING_LIMITS, answerBytes = () => ANSWER_BYTES } = options;
    this.#workerId = workerId;
    this.#dpRank = dpRank;
    this.#index = index;
    this.#ring = new EventRing(ring);
    this.#contradicted = options.contradicted ?? new Contradicted();
    this.#dumps = new DumpSnapshots({ workerId, dpRank }, answerBytes);
    this.#answerBytes = answerBytes;
  }

  /** The newest event, 0 before the first. */
  get lastEventId(): bigint {
    return this.#lastEventId;
  }

  /** Takes the rank's next event in. */
  apply(event: RouterEvent): void {
    this.#lastEventId = event.eventId;
    this.#ring.push(event);
    const { data, tier, domain, eligible, contradicts } = event;
    if (contradicts && data.kind !== 'cleared') this.#contradicted.add(data.hashes);
    if (domain === 'cache_owner') {
      this.#otherDomain++;
    } else if (data.kind === 'cleared') {
      this.#index.clear(RANK);
    } else if (data.kind === 'removed') {
      const { lows, count } = indexedBlocks(null, data.hashes, data.hashes);
      this.#index.removed(RANK, TIERS[tier], lows, 0, count);
    } else {
      const blocks = indexedBlocks(data.parent, data.hashes, data.locals, eligible);
      const outcome = this.#index.stored(RANK, TIERS[tier], blocks);
      if (outcome !== 'stored') tally(this.#notIndexed, outcome);
    }
  }

  /** Answers a question; `now` in milliseconds of one clock. */
  answer(question: RecoveryQuestion, now: number): RecoveryAnswer {
    const answer = this.#answer(question, now);
    tally(this.#answers, answer.kind);
    return answer;
  }

  /** For an idle moment: gives back what nobody needs any more. */
  tidy(now: number): void {
    this.#index.tidy();
    this.#dumps.expire(now);
  }

  stats(): LocalIndexerStats {
    const { entries, evicted } = this.#index.stats();
    return {
      lastEventId: this.#lastEventId,
      entries,
      evicted,
      buffered: this.#ring.size,
      bufferedBytes: this.#ring.bytes,
      snapshots: this.#dumps.size,
      notIndexed: Object.fromEntries(this.#notIndexed),
      otherDomain: this.#otherDomain,
      answers: Object.fromEntries(this.#answers),
    };
  }

  #answer(question: RecoveryQuestion, now: number): RecoveryAnswer {
    const { workerId, dpRank, startEventId: start, endEventId: end, page } = question;
    if (workerId !== this.#workerId || dpRank !== this.#dpRank) {
      const detail = `this is worker ${this.#workerId} rank ${this.#dpRank}, asked for worker ${workerId} rank ${dpRank}`;
      return { kind: 'error', detail };
    }
    if (page !== null) {
      const found = this.#dumps.page(page, now);
      return found === null ? failed(question, `page ${page} is not kept any more; ask anew`) : dumpAnswer(found);
    }
    if (start !== null && end !== null && end < start) return { kind: 'invalid-range', startId: start, endId: end };
    const newest = this.#lastEventId;
    if (start !== null && start > newest) {
      return { kind: 'too-new', requestedStart: start, requestedEnd: end, newestAvailable: newest };
    }
    const first = this.#ring.firstId;
    if (start === null || first === null || start < first) return this.#dump(question, now);
    const events = this.#ring.range(start, end === null || end > newest ? newest : end, this.#answerBytes());
    return { kind: 'events', events, lastEventId: events.at(-1)!.eventId };
  }

  #runs(): readonly DumpedRun[] {
    const runs = this.#index.dump(RANK);
    const contradicted = this.#contradicted;
    if (contradicted.size === 0) return runs;
    return [{ contradicts: true, hashes: contradicted.all() }, ...runs.map((run) => withoutCredit(run, contradicted))];
  }

  #dump(question: RecoveryQuestion, now: number): RecoveryAnswer {
    try {
      const dump = (): readonly DumpedRun[] => this.#runs();
      return dumpAnswer(this.#dumps.begin(this.#lastEventId, now, dump));
    } catch (error) {
      return failed(question, `the index was not read: ${(error as Error).message}`);
    }
  }
}

function withoutCredit(run: DumpedBlocks, contradicted: Contradicted): DumpedBlocks {
  return run.eligible && contradicted.hasAny(run.hashes) ? { ...run, eligible: false } : run;
}

function dumpAnswer({ events, lastEventId, next }: DumpPage): RecoveryAnswer {
  return { kind: 'tree-dump', events, lastEventId, resetScope: null, next };
}

/** In words that the asker knows. */
function failed({ supportsTreeDumpFailed }: RecoveryQuestion, detail: string): RecoveryAnswer {
  return { kind: supportsTreeDumpFailed ? 'tree-dump-failed' : 'error', detail };
}

function tally(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
