// Long dumps in pages. What a rank held at one moment is copied out of its index once, and all pages of that dump come from the copy, so they are
// consistent whatever happens to the rank meanwhile; events after that moment have ids above the dump's. A copy takes 16 bytes a block and tier. It is
// kept while pages are asked for, at most a few at once, and shared by all who ask before the next event.
import type { DumpedBlocks, IndexTier } from '../../../core/prefix-types.js';
import type { Tier } from '../../../events/tiers.js';
import type { RouterEvent } from '../../../wire/envelope/types.js';
import { bytesAtMost, contradiction, storedPiece } from './draft.js';

/** Bytes of one answer, by the upper bound of draft.ts: half of what NATS carries by default. */
export const ANSWER_BYTES = 512 * 1024;
/** Copies kept of one rank; the one not asked for longest goes. */
export const MOST_SNAPSHOTS = 4;
/** How long a copy waits for its next page, in milliseconds: a reader's longest attempt. */
export const SNAPSHOT_KEPT_MS = 30_000;
/** Events of a dump are at most this part of a page, by its upper bound of 64 bytes a block. */
const EVENTS_A_PAGE = 8;
const BLOCK_BYTES = 64;

const TIERS: Readonly<Record<IndexTier, Tier>> = { device: 'device', host: 'host_pinned', disk: 'disk' };

/** One page of a dump. */
export interface DumpPage {
  readonly events: readonly RouterEvent[];
  readonly lastEventId: bigint;
  readonly next: string | null;
}

/** Blocks that are held, or those that the worker has contradicted itself about. */
export type DumpedRun = DumpedBlocks | { readonly contradicts: true; readonly hashes: BigUint64Array };

interface Snapshot {
  readonly name: number;
  readonly lastEventId: bigint;
  readonly runs: readonly DumpedRun[];
  askedAt: number;
}

/** Where a page begins: the run, the block in it, and the id of its first event. */
const PAGE = /^(\d{1,15})\.(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/;

/** Dumps of one rank. */
export class DumpSnapshots {
  readonly #rank: { readonly workerId: bigint; readonly dpRank: number };
  readonly #pageBytes: () => number;
  #kept: Snapshot[] = [];
  #named = 0;

  constructor(
    rank: { readonly workerId: bigint; readonly dpRank: number },
    pageBytes: () => number = () => ANSWER_BYTES,
  ) {
    this.#rank = rank;
    this.#pageBytes = pageBytes;
  }

  /** Copies kept. */
  get size(): number {
    return this.#kept.length;
  }

  /** The first page of what the rank holds now; `dump` is asked unless it is known. */
  begin(lastEventId: bigint, now: number, dump: () => readonly DumpedRun[]): DumpPage {
    this.expire(now);
    const known = this.#kept.find((snapshot) => snapshot.lastEventId === lastEventId);
    const snapshot = known ?? { name: ++this.#named, lastEventId, runs: dump(), askedAt: now };
    const page = this.#page(snapshot, 0, 0, 0);
    if (page.next !== null || known !== undefined) this.#keep(snapshot, now);
    return page;
  }

  /** The page of that name; null when its dump is not kept any more, or never was. */
  page(name: string, now: number): DumpPage | null {
    this.expire(now);
    const [dump, run, block, id] = (PAGE.exec(name) ?? []).slice(1).map(Number);
    const snapshot = this.#kept.find((kept) => kept.name === dump);
    if (snapshot === undefined || !(block! < (snapshot.runs[run!]?.hashes.length ?? 0))) return null;
    this.#keep(snapshot, now);
    return this.#page(snapshot, run!, block!, id!);
  }

  /** Copies that nobody asked for any more go. */
  expire(now: number): void {
    this.#kept = this.#kept.filter(({ askedAt }) => now - askedAt < SNAPSHOT_KEPT_MS);
  }

  clear(): void {
    this.#kept = [];
  }

  #keep(snapshot: Snapshot, now: number): void {
    snapshot.askedAt = now;
    this.#kept = [...this.#kept.filter((kept) => kept !== snapshot), snapshot].slice(-MOST_SNAPSHOTS);
  }

  #page({ name, runs, lastEventId }: Snapshot, fromRun: number, fromBlock: number, firstId: number): DumpPage {
    const events: RouterEvent[] = [];
    const most = this.#pageBytes();
    const step = Math.max(1, Math.floor(most / EVENTS_A_PAGE / BLOCK_BYTES));
    let bytes = 0;
    for (let run = fromRun, block = fromBlock; run < runs.length; run++, block = 0) {
      for (; block < runs[run]!.hashes.length; block += step) {
        const id = firstId + events.length;
        const event = this.#event(runs[run]!, block, step, id);
        bytes += bytesAtMost(event);
        if (events.length > 0 && bytes > most) return { events, lastEventId, next: `${name}.${run}.${block}.${id}` };
        events.push(event);
      }
    }
    return { events, lastEventId, next: null };
  }

  #event(run: DumpedRun, from: number, count: number, id: number): RouterEvent {
    const end = Math.min(from + count, run.hashes.length);
    if ('contradicts' in run) {
      return { ...contradiction(this.#rank, run.hashes.subarray(from, end)), eventId: BigInt(id) };
    }
    const { tier, parent, hashes, locals, eligible } = run;
    const whole = { kind: 'stored', parent, startPosition: null, hashes, locals, mm: null } as const;
    return {
      ...this.#rank,
      tier: TIERS[tier],
      domain: null,
      eventId: BigInt(id),
      data: storedPiece(whole, from, end),
      eligible,
      contradicts: false,
      sessionId: null,
      stateSource: null,
    };
  }
}
