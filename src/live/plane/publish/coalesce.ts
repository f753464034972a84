// Coalescing (spec/kv-events.md 4.2): an engine announces a prompt in steps of few blocks; neighbours that say the same of blocks that follow one another
// go out as one event. What differs in eligibility is never merged, so an eligible prefix keeps its provenance beside an ineligible end;
// nor is what contradicts with what does not, so that credit ends for no other blocks.
// A pure state machine of one rank: events and times go in, events come out in their order.
import { ConfigError } from '../../../errors.js';
import type { RouterEvent, StoredData } from '../../../wire/envelope/types.js';
import { blocksOf, type Draft } from './draft.js';

/** A pending event of so many blocks goes out; looked at after a whole event has been added, so it may be more. */
export const FLUSH_BLOCKS = 128;
/** The longest that an event may wait for its neighbours, in milliseconds. */
export const MOST_BATCHING_MS = 15_000;

/** @throws ConfigError `batching-timeout` */
export function checkedBatchingTimeout(ms: number): number {
  if (Number.isFinite(ms) && ms >= 0 && ms <= MOST_BATCHING_MS) return ms;
  throw new ConfigError(
    'batching-timeout',
    `the batching timeout is ${ms} ms; give 0 (events go out at the end of each of the worker's messages) to ${MOST_BATCHING_MS}.`,
  );
}

/** Why two neighbours are not merged; null when they are. */
export type ApartReason = 'placement' | 'session' | 'eligibility' | 'contradiction' | 'kind' | 'chain' | 'position';

type Placed = Pick<RouterEvent, 'workerId' | 'dpRank' | 'tier' | 'domain'>;

/** Whether `next` may be added to `pending`, of which it is the direct follower. */
export function whyApart(pending: Draft, next: Draft): ApartReason | null {
  if (!samePlacement(pending, next) || pending.stateSource !== next.stateSource) return 'placement';
  if (pending.sessionId !== next.sessionId) return 'session';
  if (pending.eligible !== next.eligible) return 'eligibility';
  if (pending.contradicts !== next.contradicts) return 'contradiction';
  const before = pending.data;
  const behind = next.data;
  if (before.kind !== behind.kind || before.kind === 'cleared') return 'kind';
  if (before.kind === 'removed' || behind.kind !== 'stored') return null;
  if (behind.parent === null || behind.parent !== before.hashes[before.hashes.length - 1]) return 'chain';
  const known = before.startPosition !== null && behind.startPosition !== null;
  return known && before.startPosition! + before.hashes.length !== behind.startPosition ? 'position' : null;
}

function samePlacement(a: Placed, b: Placed): boolean {
  if (a.workerId !== b.workerId || a.dpRank !== b.dpRank || a.tier !== b.tier) return false;
  // What does not name its domain is a worker's own.
  return a.domain === b.domain || (a.domain ?? 'worker') === (b.domain ?? 'worker');
}

/** Merges neighbours of one rank. */
export class Coalescer {
  readonly #timeout: number;
  /** Events to be made into one; all but the first were found to follow. */
  #parts: Draft[] = [];
  #blocks = 0;
  #since = 0;
  #merged = 0;

  /** `batchingTimeout`: milliseconds that an event may wait; 0 until the end of its native batch. @throws ConfigError `batching-timeout` */
  constructor(batchingTimeout = 0) {
    this.#timeout = checkedBatchingTimeout(batchingTimeout);
  }

  /** Events that went into the one before them. */
  get merged(): number {
    return this.#merged;
  }

  /** When the pending event has to go out; null when there is none, or it goes with its native batch. */
  get dueAt(): number | null {
    return this.#timeout === 0 || this.#parts.length === 0 ? null : this.#since + this.#timeout;
  }

  /** Takes the next event in; those that are done go to `out`. */
  add(draft: Draft, now: number, out: Draft[]): void {
    if (draft.data.kind === 'cleared') {
      this.flush(out);
      out.push(draft);
      return;
    }
    const last = this.#parts.at(-1);
    if (last !== undefined && whyApart(last, draft) === null) {
      this.#merged++;
      this.#parts.push(placedBehind(last, draft));
    } else {
      this.flush(out);
      this.#since = now;
      this.#parts.push(draft);
    }
    this.#blocks += blocksOf(draft.data);
    if (this.#blocks >= FLUSH_BLOCKS) this.flush(out);
  }

  /** A native batch has ended. */
  endOfBatch(out: Draft[]): void {
    if (this.#timeout === 0) this.flush(out);
  }

  /** Whether the pending event's time has come; it goes to `out` then. */
  tick(now: number, out: Draft[]): void {
    const due = this.dueAt;
    if (due !== null && now >= due) this.flush(out);
  }

  /** What is pending goes out. */
  flush(out: Draft[]): void {
    if (this.#parts.length > 0) out.push(joined(this.#parts, this.#blocks));
    this.#parts = [];
    this.#blocks = 0;
  }
}

/** A follower of blocks whose place is known has its own from them, so that the next one is held against it. */
function placedBehind({ data: before }: Draft, draft: Draft): Draft {
  const { data } = draft;
  if (data.kind !== 'stored' || data.startPosition !== null) return draft;
  if (before.kind !== 'stored' || before.startPosition === null) return draft;
  return { ...draft, data: { ...data, startPosition: before.startPosition + before.hashes.length } };
}

function joined(parts: readonly Draft[], blocks: number): Draft {
  const [first] = parts;
  if (parts.length === 1) return first!;
  const datas = parts.map(({ data }) => data);
  if (first!.data.kind !== 'stored') {
    return {
      ...first!,
      data: {
        kind: 'removed',
        hashes: concat(
          datas.map((data) => hashesOf(data)),
          blocks,
        ),
      },
    };
  }
  const stores = datas as readonly StoredData[];
  return {
    ...first!,
    data: {
      kind: 'stored',
      parent: first!.data.parent,
      startPosition: startOf(stores),
      hashes: concat(
        stores.map(({ hashes }) => hashes),
        blocks,
      ),
      locals: concat(
        stores.map(({ locals }) => locals),
        blocks,
      ),
      mm: stores.some(({ mm }) => mm !== null)
        ? stores.flatMap(({ mm, hashes }) => mm ?? Array.from(hashes, () => null))
        : null,
    },
  };
}

function hashesOf(data: Draft['data']): BigUint64Array {
  return data.kind === 'cleared' ? new BigUint64Array(0) : data.hashes;
}

/** Where the first block stands, if any of the parts knows its own place. */
function startOf(stores: readonly StoredData[]): number | null {
  let before = 0;
  for (const { startPosition, hashes } of stores) {
    if (startPosition !== null) return startPosition >= before ? startPosition - before : null;
    before += hashes.length;
  }
  return null;
}

function concat(parts: readonly BigUint64Array[], length: number): BigUint64Array {
  const whole = new BigUint64Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
