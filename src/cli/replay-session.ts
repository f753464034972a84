// One run of `moonroute replay`: everything that was seen goes to one cache, each publisher's part by a source of its own.
import { SharedCache } from '../cache/shared-cache.js';
import type { Contract, Hashing } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import type { Source } from '../events/worker-events.js';
import type { SourceKind } from '../live/recording.js';
import { publisherOf } from '../live/recording-publisher.js';
import type { Pace } from './replay-pace.js';
import { type ReplayEntry, type ReplayFile, timeline } from './replay-read.js';
import type { CutShort, Report } from './replay-report.js';
import { type ReplaySource, StoreSource, WorkerSource } from './replay-sources.js';

/** Entries of a source that are held back until one tells who published them. */
const HELD_ENTRIES = 1000;

/** A source by its name, or what is held of it while its kind is not known. */
type Known = ReplaySource | ReplayEntry[];

export class ReplaySession {
  readonly #sources: Source[] = [];
  readonly #as: SourceKind | undefined;
  #masterSeen = false;
  readonly reports: Report[] = [];
  readonly cut: CutShort[] = [];

  private constructor(
    readonly cache: SharedCache,
    readonly contract: Contract | null,
    as: SourceKind | undefined,
  ) {
    this.#as = as;
  }

  /**
   * @param contract validated for this way of hashing
   * @param as who published what does not say it
   */
  static async open(
    contract: Contract | null,
    as: SourceKind | undefined,
    hashing: Hashing = 'learned',
  ): Promise<ReplaySession> {
    // Nothing is served by what a replay credits, so a contract that was derived may be tried.
    const cache = await SharedCache.create({ hashing, allowUnverifiedContract: true });
    cache.updateContract(contract, []);
    return new ReplaySession(cache, contract, as);
  }

  /** Files that are read together: recordings, or one capture. @throws ConfigError `contract-missing`, `capture-publisher` */
  async replay(files: readonly ReplayFile[], pace: Pace): Promise<void> {
    const sources = new Map<string, Known>();
    for await (const entry of timeline(files)) {
      const wait = pace.until(entry.at);
      if (wait !== null) await wait;
      this.#take(sources, entry);
    }
    for (const source of sources.values()) {
      if (!Array.isArray(source)) this.reports.push(source.report());
      else if (source.some(({ recorded }) => recorded.type === 'message')) throw untold(source[0]!.file.path);
    }
    for (const { path, cutShort } of files) if (cutShort !== null) this.cut.push({ file: path, why: cutShort });
  }

  #take(sources: Map<string, Known>, entry: ReplayEntry): void {
    const { recorded, file } = entry;
    // What the recorder says of itself belongs to no source.
    if (recorded.type === 'note' && recorded.from === null) return;
    const name = recorded.from ?? file.name;
    let source = sources.get(name);
    if (source === undefined || Array.isArray(source)) {
      const held: ReplayEntry[] = source ?? [];
      held.push(entry);
      const kind = this.#kindOf(entry);
      if (kind === null) {
        if (held.length > HELD_ENTRIES) throw untold(file.path);
        sources.set(name, held);
        return;
      }
      source = this.#source(kind, name, held[0]!.file);
      sources.set(name, source);
      for (const before of held) source.take(before);
    } else source.take(entry);
  }

  #kindOf({ recorded, file }: ReplayEntry): SourceKind | null {
    if (recorded.type === 'status' || recorded.type === 'keys') return 'store';
    if (recorded.type !== 'message') {
      const declared = file.header?.sources.find(({ name }) => name === recorded.from);
      return declared?.kind ?? null;
    }
    return recorded.kind ?? this.#as ?? publisherOf(recorded.frames);
  }

  #source(kind: SourceKind, name: string, file: ReplayFile): ReplaySource {
    if (kind === 'worker') return new WorkerSource(this.cache, name, file.path, (source) => this.#admit(source));
    // A recording has workers too, for which it is of use without.
    if (this.contract === null && !file.timed)
      throw new ConfigError(
        'contract-missing',
        `${file.path} is a master's capture: say --contract FILE, which names the objects that count.`,
      );
    if (this.#masterSeen) this.cache.streamLost('reconnect');
    this.#masterSeen = true;
    return new StoreSource(this.cache, name, file.path);
  }

  #admit(source: Source): void {
    this.#sources.push(source);
    this.cache.updateContract(this.contract, this.#sources);
  }
}

const untold = (file: string): ConfigError =>
  new ConfigError(
    'capture-publisher',
    `${file}: no event can be read, so it can't be told who published it; say --as store or --as worker.`,
  );
