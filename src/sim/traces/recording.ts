// A recording as a trace: its workers' messages are read as a router reads them, and what entered their GPU caches is put together to
// requests (recording-chains.ts). Times are the recorder's, so that all workers go by one clock.
import { sequenceStep } from '../../cache/sequence.js';
import { MoonrouteError, WireError } from '../../errors.js';
import type { DropReason, NormalisedEvent, NormalisedStored } from '../../events/normaliser.js';
import { publisherKey, type Source, WorkerEvents } from '../../events/worker-events.js';
import type { Recorded, RecordedMessage } from '../../live/recording.js';
import { RecordingClock } from '../../live/recording-clock.js';
import { publisherOf } from '../../live/recording-publisher.js';
import { readRecordedLine } from '../../live/recording-read.js';
import type { TraceIds } from './ids.js';
import { RecordingChains } from './recording-chains.js';
import type { Row, RowRebuilder } from './row.js';
import { UNKNOWN_OUTPUT_TOKENS } from './row.js';
import type { TraceTally } from './tally.js';
import type { RecordingOddity } from './types.js';

/** Sources whose last sequence is remembered; beyond, the one heard of first is forgotten. */
const MAX_SOURCES = 4096;
const NAMELESS = '';
const OTHER_GROUP: ReadonlySet<DropReason> = new Set([
  'non_main_attention_kind',
  'non_main_attention_group',
  'unlearned_group_idx',
  'unknown_kind',
]);

export class RecordingRequests implements RowRebuilder {
  readonly #tally: TraceTally;
  readonly #ids: TraceIds;
  readonly #chains: RecordingChains;
  readonly #workers = new WorkerEvents();
  readonly #clock = new RecordingClock();
  /** Sequence of each worker's last message since its stream broke. */
  readonly #last = new Map<string, bigint>();
  #blockSize: number | null;
  #ofStore = 0;
  #ofWorkers = 0;
  #firstOfStore = 0;

  /** @param blockSize of the events that count; by default that of the first one */
  constructor(ids: TraceIds, tally: TraceTally, blockSize?: number) {
    this.#ids = ids;
    this.#tally = tally;
    this.#chains = new RecordingChains(ids);
    this.#blockSize = blockSize ?? null;
  }

  get idTokens(): number {
    return this.#blockSize ?? 1; // no request comes before an event has told
  }

  add(text: string, line: number): void {
    let read: Recorded | null;
    try {
      read = readRecordedLine(text, `line ${line}`);
    } catch (error) {
      if (!(error instanceof MoonrouteError) || error.code === 'recording-version') throw error;
      this.#tally.rows++;
      this.#tally.skip('malformed-row', line, text);
      return;
    }
    if (read === null) return;
    if (read.type === 'header') this.#clock.header(read.started);
    else if (read.type === 'message') this.#message(read, line);
    else if ((read.type === 'monitor' || read.type === 'note') && read.breaks) this.#lost(read.from ?? NAMELESS, line);
  }

  end(): void {
    this.#chains.end();
    if (this.#ofWorkers === 0) this.#tally.note('recording-no-worker', this.#firstOfStore, this.#ofStore);
  }

  take(): Row | null {
    const request = this.#chains.take();
    if (request === null) return null;
    const { at, line, prompt, rootUnknown, oneBlock, outputBlocks, cutShort } = request;
    const tally = this.#tally;
    tally.note('recording-estimate', line);
    if (rootUnknown) tally.note('recording-unknown-root', line);
    if (oneBlock) tally.note('recording-one-block', line);
    if (outputBlocks === 0) tally.note('recording-no-output', line);
    if (cutShort) tally.note('recording-cut-short', line);
    return {
      line,
      at,
      inputTokens: prompt.length * this.idTokens,
      outputTokens: outputBlocks === 0 ? UNKNOWN_OUTPUT_TOKENS : outputBlocks * this.idTokens,
      ids: prompt,
      sessionId: null,
      delay: null,
    };
  }

  #message({ t, from, kind, frames }: RecordedMessage, line: number): void {
    if ((kind ?? publisherOf(frames)) !== 'worker') {
      if (this.#ofStore++ === 0) this.#firstOfStore = line;
      return;
    }
    this.#ofWorkers++;
    const at = this.#clock.at(t ?? 0);
    this.#chains.advance(at);
    const worker = from ?? NAMELESS;
    try {
      const { sequence, source, events, rejected } = this.#workers.read(worker, frames);
      const step = sequenceStep(this.#last.get(worker) ?? null, sequence);
      if (step === 'duplicate') return;
      if (step === 'gap') this.#lost(worker, line);
      this.#remember(worker, sequence);
      for (const event of events) this.#event(event, source, worker, at, line);
      this.#tally.note('recording-bad-event', line, rejected.length);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#tally.note('recording-unreadable', line);
    }
  }

  #remember(worker: string, sequence: bigint): void {
    this.#last.set(worker, sequence);
    if (this.#last.size <= MAX_SOURCES) return;
    for (const first of this.#last.keys()) {
      this.#last.delete(first);
      return;
    }
  }

  /** Nothing is missing of a worker that has said nothing since its stream broke last. */
  #lost(worker: string, line: number): void {
    if (!this.#last.delete(worker)) return;
    this.#tally.note('recording-loss', line);
    this.#chains.lost(worker);
  }

  #event(normalised: NormalisedEvent, source: Source, worker: string, at: number, line: number): void {
    const tally = this.#tally;
    const publisher = publisherKey(source.workerId, source.dpRank);
    if (normalised.kind === 'dropped') {
      tally.note(OTHER_GROUP.has(normalised.reason) ? 'recording-other-group' : 'recording-dropped-event', line);
    } else if (normalised.kind === 'cleared') {
      this.#chains.lost(worker, publisher);
    } else if (normalised.kind === 'stored') {
      const { event } = normalised;
      const oddity = this.#whyNoPrompt(normalised);
      if (oddity !== null) tally.note(oddity, line);
      if (oddity !== null || event.blockCount === 0) return;
      const parentHash = event.parentBlockHash;
      const parent = parentHash === null ? null : this.#ids.numberOf(parentHash.low64);
      const blocks = Array.from(event.blockHashes.low64, (hash) => this.#ids.numberOf(hash));
      this.#chains.stored({ publisher, worker, at, line, parent, blocks });
    }
  }

  /** The first event's blocks are the trace's. */
  #whyNoPrompt({ tier, event }: NormalisedStored): RecordingOddity | null {
    if (tier !== 'device') return 'recording-other-tier';
    if (event.blockCount > 0) this.#blockSize ??= event.blockSize;
    return event.blockCount > 0 && event.blockSize !== this.#blockSize ? 'recording-other-block-size' : null;
  }
}
