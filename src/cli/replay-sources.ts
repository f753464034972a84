// The sources of what is replayed: each takes what was seen of one publisher, feeds the cache with it as a live router would, and counts.
import { sequenceStep } from '../cache/sequence.js';
import type { SharedCache } from '../cache/shared-cache.js';
import { WireError } from '../errors.js';
import { type Source, WorkerEvents } from '../events/worker-events.js';
import { MONITOR } from '../live/recording.js';
import type { ReplayEntry } from './replay-read.js';
import { RecordedReconciles } from './replay-reconcile.js';
import type { Report, StoreReport, WorkerReport } from './replay-report.js';

/** Notable messages that a report keeps of a source. */
const NOTABLE_KEPT = 10_000;

export interface ReplaySource {
  take(entry: ReplayEntry): void;
  report(): Report;
}

/** What is notable, up to a bound. */
class Notable<Detail> {
  readonly kept: (Detail & { readonly file: string; readonly line: number })[] = [];
  more = 0;

  add({ file, line }: ReplayEntry, detail: Detail): void {
    if (this.kept.length < NOTABLE_KEPT) this.kept.push({ file: file.path, line, ...detail });
    else this.more++;
  }
}

/** A store's master. */
export class StoreSource implements ReplaySource {
  readonly #cache: SharedCache;
  readonly #name: string;
  readonly #file: string;
  readonly #reconciles: RecordedReconciles;
  readonly #fates: Record<string, number> = {};
  readonly #notable = new Notable<{ readonly result: ReturnType<SharedCache['applyStoreMessage']> }>();
  #messages = 0;
  #objects = 0;
  #foreignKeys = 0;
  #foreignTenants = 0;
  #losses = 0;
  /** Whether messages came since the stream broke last; and key lists that had counted then. */
  #heard = false;
  #listsBefore = 0;

  constructor(cache: SharedCache, name: string, file: string) {
    this.#cache = cache;
    this.#name = name;
    this.#file = file;
    this.#reconciles = new RecordedReconciles(cache);
  }

  take(entry: ReplayEntry): void {
    const { recorded } = entry;
    switch (recorded.type) {
      case 'message':
        this.#apply(entry, recorded.frames);
        return;
      case 'status':
        this.#reconciles.status(recorded.body);
        return;
      case 'keys':
        this.#reconciles.keys(recorded);
        return;
      case 'monitor':
      case 'note':
        if (recorded.event === MONITOR.poll) this.#reconciles.poll();
        if (recorded.breaks) this.#lost(recorded.event);
    }
  }

  #apply(entry: ReplayEntry, frames: readonly Uint8Array[]): void {
    const result = this.#cache.applyStoreMessage(frames);
    this.#heard = true;
    this.#messages++;
    this.#fates[result.fate] = (this.#fates[result.fate] ?? 0) + 1;
    if (result.fate !== 'applied' && result.fate !== 'no-contract') this.#notable.add(entry, { result });
    this.#objects += result.objects;
    this.#foreignKeys += result.skipped.foreignKey;
    this.#foreignTenants += result.skipped.foreignTenant;
    this.#reconciles.received();
  }

  /** Where nothing is known since the last break, there is nothing to lose. */
  #lost(cause: string): void {
    const { open, counts } = this.#reconciles;
    if (this.#heard) this.#losses++;
    if (this.#heard || open || counts.accepted > this.#listsBefore) this.#cache.streamLost(cause);
    this.#heard = false;
    this.#listsBefore = counts.accepted;
  }

  report(): StoreReport {
    return {
      publisher: 'store',
      file: this.#file,
      source: this.#name,
      messages: this.#messages,
      fates: this.#fates,
      notable: this.#notable.kept,
      notableMore: this.#notable.more,
      objects: this.#objects,
      foreignKeys: this.#foreignKeys,
      foreignTenants: this.#foreignTenants,
      losses: this.#losses,
      reconciles: this.#reconciles.counts,
    };
  }
}

/** A worker, all its ranks. */
export class WorkerSource implements ReplaySource {
  readonly #cache: SharedCache;
  readonly #name: string;
  readonly #file: string;
  readonly #admit: (source: Source) => void;
  readonly #events = new WorkerEvents();
  readonly #notable = new Notable<{ readonly text: string }>();
  readonly #ranks = new Set<number>();
  readonly #refusals: Record<string, number> = {};
  #blocks = 0;
  #gaps = 0;
  #losses = 0;
  #lostRemovals = 0;
  #last: bigint | null = null;

  /** @param admit lets a rank teach the cache */
  constructor(cache: SharedCache, name: string, file: string, admit: (source: Source) => void) {
    this.#cache = cache;
    this.#name = name;
    this.#file = file;
    this.#admit = admit;
  }

  take(entry: ReplayEntry): void {
    const { recorded } = entry;
    if (recorded.type === 'message') this.#read(entry, recorded.frames);
    else if ((recorded.type === 'monitor' || recorded.type === 'note') && recorded.breaks) this.#lost();
  }

  #read(entry: ReplayEntry, frames: readonly Uint8Array[]): void {
    try {
      const message = this.#events.read(this.#name, frames);
      if (sequenceStep(this.#last, message.sequence) === 'gap') this.#gaps++;
      this.#last = message.sequence;
      if (message.lostRemoval) this.#lostRemovals++;
      for (const { index, code, text } of message.rejected)
        this.#notable.add(entry, { text: `event ${index}: ${code}: ${text}` });
      if (!this.#ranks.has(message.source.dpRank)) {
        this.#ranks.add(message.source.dpRank);
        this.#admit(message.source);
      }
      if (this.#cache.contract === null) return;
      const before = this.#cache.stats().refusals;
      this.#blocks += this.#cache.observeMessage(message);
      this.#countRefusals(before);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#notable.add(entry, { text: `unreadable: ${error.code}: ${error.message}` });
    }
  }

  /** Other workers teach in between, so each message's are counted. */
  #countRefusals(before: Readonly<Record<string, number>>): void {
    for (const [reason, count] of Object.entries(this.#cache.stats().refusals)) {
      const more = count - (before[reason] ?? 0);
      if (more > 0) this.#refusals[reason] = (this.#refusals[reason] ?? 0) + more;
    }
  }

  /** What follows may be another life: nothing of before is known of it. */
  #lost(): void {
    if (this.#last === null) return;
    this.#losses++;
    this.#last = null;
    this.#events.forget(this.#name);
  }

  report(): WorkerReport {
    return {
      publisher: 'worker',
      file: this.#file,
      worker: this.#name,
      messages: this.#events.stats().messages,
      ranks: [...this.#ranks].sort((a, b) => a - b),
      gaps: this.#gaps,
      losses: this.#losses,
      lostRemovals: this.#lostRemovals,
      counts: this.#events.stats(),
      learned:
        this.#cache.contract === null || this.#cache.hashing === 'derived'
          ? null
          : { blocks: this.#blocks, refusals: this.#refusals },
      notable: this.#notable.kept,
      notableMore: this.#notable.more,
    };
  }
}
