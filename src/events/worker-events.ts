// Workers' messages, from frames to normalised events: reader, gates and counters together, one instance for all workers of a router.
// It keeps no sequence: whether a message was missed is for whoever holds the stream to see.
import { WireError } from '../errors.js';
import { BatchReader } from '../wire/read-batch.js';
import { type RejectedEvent, splitWorkerFrames, type WorkerEvent } from '../wire/vllm.js';
import { hashMessage } from './local-hashes.js';
import { checkedLimit, type NamespaceLimits } from './namespace-table.js';
import { EventNormaliser, type NormalisedEvent, type PublisherState } from './normaliser.js';

/** A worker's rank, as the publisher of events. */
export interface Source {
  readonly workerId: string | number | bigint;
  readonly dpRank: number;
}

/** What a message holds. Its events are good until the next message is read. */
export interface WorkerMessage {
  readonly sequence: bigint;
  readonly source: Source;
  /** Seconds since 1970 by the worker's clock; null when the wire gave no number. */
  readonly timestamp: number | null;
  /** Its good events in order, the dropped ones among them. */
  readonly events: readonly NormalisedEvent[];
  readonly rejected: readonly RejectedEvent[];
  /** A removal or a clear was not read: whoever mirrors this worker must have it replayed, or start its part from empty. */
  readonly lostRemoval: boolean;
}

/** Bounds of what is remembered of workers. */
export interface WorkerLimits extends NamespaceLimits {
  /** Worker ranks; beyond, the one not heard of for longest is forgotten. Default 4,096, of one worker at most 256. */
  readonly publishers: number;
}

/** Counts since the instance was made, each reason by its code. */
export interface WorkerStats {
  readonly messages: number;
  /** Messages that could not be read. */
  readonly unreadable: Readonly<Record<string, number>>;
  readonly stored: number;
  readonly removed: number;
  readonly cleared: number;
  /** Events that could not be read. */
  readonly rejected: Readonly<Record<string, number>>;
  /** Events that mean nothing to a router. */
  readonly dropped: Readonly<Record<string, number>>;
  /** Stored events that may not teach the shared cache. */
  readonly ineligible: Readonly<Record<string, number>>;
  readonly publishers: number;
  /** Publishers forgotten because there were too many. */
  readonly publishersForgotten: number;
  readonly namespaces: EventNormaliser['namespaces'];
}

const DEFAULT_PUBLISHERS = 4096;
const MOST_PUBLISHERS = 65_536;
/** Ranks of one worker; beyond, its own rank not heard of for longest is forgotten, so that no worker can push others out. */
const RANKS_KEPT = 256;

interface Publisher extends PublisherState {
  readonly source: Source;
}

/** Reads the messages of all workers. */
export class WorkerEvents {
  readonly #reader = new BatchReader();
  readonly #normaliser: EventNormaliser;
  readonly #publishers = new Map<string, Publisher>();
  /** How many publishers each worker has. */
  readonly #ranks = new Map<string, number>();
  readonly #publisherCap: number;
  readonly #unreadable = new Map<string, number>();
  readonly #rejected = new Map<string, number>();
  readonly #dropped = new Map<string, number>();
  readonly #ineligible = new Map<string, number>();
  #last: Publisher | null = null;
  #messages = 0;
  #stored = 0;
  #removed = 0;
  #cleared = 0;
  #forgotten = 0;

  /** @throws ConfigError `limits-…` for a limit that is no whole number in its range. */
  constructor(limits: Partial<WorkerLimits> = {}) {
    this.#publisherCap = checkedLimit('publishers', limits.publishers ?? DEFAULT_PUBLISHERS, MOST_PUBLISHERS);
    this.#normaliser = new EventNormaliser(limits);
  }

  /**
   * Reads one message of a worker, as its three frames, which may be reused afterwards.
   * @throws {WireError} when the message can't be read at all; nothing of it has had any effect then (wire/vllm.ts lists the codes).
   */
  read(workerId: Source['workerId'], frames: readonly Uint8Array[]): WorkerMessage {
    this.#messages++;
    try {
      return this.#read(workerId, frames);
    } catch (error) {
      if (error instanceof WireError) tally(this.#unreadable, error.code);
      throw error;
    }
  }

  #read(workerId: Source['workerId'], frames: readonly Uint8Array[]): WorkerMessage {
    const { sequence, payload } = splitWorkerFrames(frames);
    const batch = this.#reader.read(payload);
    const publisher = this.#publisher(workerId, batch.dpRank);
    const events = this.#normaliseAll(publisher, batch.events);
    hashMessage(events);
    let lostRemoval = false;
    for (const rejected of batch.rejected) {
      tally(this.#rejected, rejected.code);
      lostRemoval ||= rejected.lostRemoval;
    }
    const { timestamp, rejected } = batch;
    return { sequence, source: publisher.source, timestamp, events, rejected, lostRemoval };
  }

  /** The publisher, which becomes the one heard of last. */
  #publisher(workerId: Source['workerId'], dpRank: number): Publisher {
    const last = this.#last;
    if (last !== null && last.source.workerId === workerId && last.source.dpRank === dpRank) return last;
    const key = publisherKey(workerId, dpRank);
    let publisher = this.#publishers.get(key);
    if (publisher === undefined) {
      publisher = { ...this.#normaliser.publisher(), source: { workerId, dpRank } };
      this.#makeRoom(workerId);
    } else {
      this.#publishers.delete(key);
    }
    this.#publishers.set(key, publisher);
    this.#last = publisher;
    return publisher;
  }

  /** Makes room for another rank of that worker. */
  #makeRoom(workerId: Source['workerId']): void {
    const worker = publisherKey(workerId, 0);
    const ranks = this.#ranks.get(worker) ?? 0;
    if (ranks >= RANKS_KEPT) this.#forgetOldest((source) => publisherKey(source.workerId, 0) === worker);
    else if (this.#publishers.size >= this.#publisherCap) this.#forgetOldest(() => true);
    this.#ranks.set(worker, (this.#ranks.get(worker) ?? 0) + 1);
  }

  /** Forgets the publisher not heard of for longest among those asked for. */
  #forgetOldest(among: (source: Source) => boolean): void {
    for (const [key, { source }] of this.#publishers) {
      if (!among(source)) continue;
      this.#drop(key, source);
      this.#forgotten++;
      return;
    }
  }

  #drop(key: string, source: Source): void {
    this.#publishers.delete(key);
    const worker = publisherKey(source.workerId, 0);
    const ranks = this.#ranks.get(worker)! - 1;
    if (ranks === 0) this.#ranks.delete(worker);
    else this.#ranks.set(worker, ranks);
  }

  #normaliseAll(publisher: Publisher, read: readonly WorkerEvent[]): NormalisedEvent[] {
    const normaliser = this.#normaliser;
    const events = new Array<NormalisedEvent>(read.length);
    let stored = 0;
    for (let i = 0; i < events.length; i++) {
      const event = normaliser.normalise(publisher, read[i]!);
      events[i] = event;
      if (event.kind !== 'stored') this.#countOther(event);
      else {
        stored++;
        if (event.ineligible !== null) tally(this.#ineligible, event.ineligible);
      }
    }
    this.#stored += stored;
    return events;
  }

  #countOther(event: Exclude<NormalisedEvent, { kind: 'stored' }>): void {
    if (event.kind === 'removed') this.#removed++;
    else if (event.kind === 'cleared') this.#cleared++;
    else tally(this.#dropped, event.reason);
  }

  /** Forgets groups and namespaces of a worker's ranks, or of one: it restarted, or is gone. */
  forget(workerId: Source['workerId'], dpRank?: number): void {
    this.#last = null;
    for (const [key, { source }] of this.#publishers) {
      if (dpRank !== undefined && source.dpRank !== dpRank) continue;
      if (publisherKey(workerId, source.dpRank) === key) this.#drop(key, source);
    }
  }

  stats(): WorkerStats {
    return {
      messages: this.#messages,
      unreadable: Object.fromEntries(this.#unreadable),
      stored: this.#stored,
      removed: this.#removed,
      cleared: this.#cleared,
      rejected: Object.fromEntries(this.#rejected),
      dropped: Object.fromEntries(this.#dropped),
      ineligible: Object.fromEntries(this.#ineligible),
      publishers: this.#publishers.size,
      publishersForgotten: this.#forgotten,
      namespaces: this.#normaliser.namespaces,
    };
  }
}

/** A publisher's name in tables; numbers and texts that read alike stay apart. */
export function publisherKey(workerId: Source['workerId'], dpRank: number): string {
  return `${typeof workerId === 'string' ? 's' : 'n'}${workerId}/${dpRank}`;
}

function tally(counts: Map<string, number>, code: string): void {
  counts.set(code, (counts.get(code) ?? 0) + 1);
}
