// One master as the doctor sees it: its event socket listened to, its counters before and after, and its key list, which is read twice where drift is
// to be judged. Lists count when the counters stood still around them.
import { MoonrouteError } from '../../errors.js';
import { MASTER_HTTP_LIMITS, MasterHttp, type MasterStatus } from '../../live/master-http.js';
import type { MasterEndpoint } from '../../live/masters.js';
import { DriftJudge, unjudged } from './drift-judge.js';
import { EventPort } from './event-port.js';
import type { DriftEvidence, KeyEvidence, MasterEvidence } from './evidence.js';
import { KeyReader } from './key-tally.js';
import { MasterReader } from './master-tally.js';
import type { CollectParts } from './parts.js';
import { pause } from './pause.js';
import type { RequiredPrefixes } from './required-prefixes.js';

/** Keys of the first list that are kept; with more, drift is not judged. */
const KEYS_KEPT = 200_000;
/** A list of some 2 million keys. */
const LIST_BYTES = 256 << 20;
const LIST_MS = 20_000;
/** Lists that are read until one stands still, and the pause between two. */
const TRIES = 3;
const BETWEEN_MS = 250;

interface Baseline {
  readonly keys: ReadonlySet<string>;
  readonly sequence: bigint;
}

/** What the last list came to. */
export interface Listed {
  readonly keys: KeyEvidence;
  readonly drift: DriftEvidence;
}

export class MasterWatch {
  readonly #endpoint: MasterEndpoint;
  readonly #parts: CollectParts;
  readonly #http: MasterHttp | null;
  readonly #port: EventPort;
  readonly #reader = new MasterReader();
  #status: MasterStatus | null = null;
  #httpFault: string | null = null;
  #sequenceBefore: bigint | null = null;
  #baseline: Baseline | null = null;
  #noBaseline = 'the first key list was not to be had';

  /** Opens its event socket. @throws ConfigError `endpoint`, `curve-keys` */
  constructor(endpoint: MasterEndpoint, parts: CollectParts) {
    this.#endpoint = endpoint;
    this.#parts = parts;
    const limits = { ...MASTER_HTTP_LIMITS, listBytes: LIST_BYTES, listTime: LIST_MS };
    this.#http = endpoint.http === null ? null : new MasterHttp(endpoint.http, parts.clock, limits);
    this.#port = new EventPort(endpoint.events, parts, (frames) => this.#reader.take(frames));
  }

  /** Whether its key list can be asked for. */
  get lists(): boolean {
    return this.#status !== null && this.#status.state !== 'standby';
  }

  /** Asks for its counters, and for a first list once its events are heard. */
  async begin(): Promise<void> {
    await this.#port.settled;
    const status = await this.#ask();
    if (status?.state !== 'serving') return;
    this.#sequenceBefore = status.sequence;
    this.#baseline = await this.#firstList(status.sequence);
  }

  /** The list at the end. @throws MoonrouteError of the master's HTTP */
  async list({ all, main, heads }: RequiredPrefixes, hashes: () => Iterable<bigint>): Promise<Listed> {
    for (let attempt = 1; ; attempt++) {
      const before = this.#sequenceOf(await this.#ask());
      const heardBefore = this.#heard;
      const why = this.#whyUnjudged();
      const judge = why === null ? new DriftJudge(this.#baseline!.keys, this.#reader.fates) : null;
      const keys = new KeyReader(all, main, hashes(), (key) => judge?.take(key), heads);
      await this.#http!.keys((part) => keys.add(part), this.#parts.signal);
      keys.end();
      const after = this.#sequenceOf(await this.#ask());
      // Nothing came meanwhile, and nothing is on its way.
      const still = before === after && heardBefore === this.#heard && this.#heard === after;
      if (still && judge !== null) return { keys: keys.result(), drift: judge.result() };
      if (judge === null || attempt === TRIES) {
        const words = why ?? 'the store changed while each list was read; the router’s own reconciles judge it';
        return { keys: keys.result(), drift: unjudged(words) };
      }
      await pause(this.#parts.clock, BETWEEN_MS, this.#parts.signal);
    }
  }

  async evidence(): Promise<MasterEvidence> {
    const status = await this.#ask();
    return {
      endpoint: this.#endpoint,
      status,
      httpFault: this.#httpFault,
      events: await this.#port.evidence(),
      heard: this.#reader.result(),
      sequenceBefore: this.#sequenceBefore,
      sequenceAfter: this.#sequenceOf(status),
    };
  }

  close(): void {
    this.#port.close();
  }

  async #ask(): Promise<MasterStatus | null> {
    if (this.#http === null) return null;
    try {
      this.#status = await this.#http.status(this.#parts.signal);
      this.#httpFault = null;
    } catch (error) {
      if (!(error instanceof MoonrouteError)) throw error;
      this.#status = null;
      this.#httpFault = error.message;
    }
    return this.#status;
  }

  #sequenceOf(status: MasterStatus | null): bigint | null {
    return status?.state === 'serving' ? status.sequence : null;
  }

  async #firstList(sequence: bigint): Promise<Baseline | null> {
    let before = sequence;
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const keys = new Set<string>();
      const reader = new KeyReader([], [], [], (key) => {
        if (keys.size <= KEYS_KEPT) keys.add(key);
      });
      try {
        await this.#http!.keys((part) => reader.add(part), this.#parts.signal);
      } catch (error) {
        if (!(error instanceof MoonrouteError)) throw error;
        this.#noBaseline = error.message;
        return null;
      }
      reader.end();
      if (keys.size > KEYS_KEPT) {
        this.#noBaseline = `the store has more than ${KEYS_KEPT.toLocaleString('en-GB')} keys; the router’s own reconciles judge it`;
        return null;
      }
      const after = this.#sequenceOf(await this.#ask());
      if (after === before) return { keys, sequence: after };
      if (after === null) return null;
      before = after;
    }
    this.#noBaseline = 'the store changed while each list was read; the router’s own reconciles judge it';
    return null;
  }

  /** Sequence of the last message that was heard, or of the first list while nothing was. */
  get #heard(): bigint | null {
    return this.#reader.lastSequence ?? this.#baseline?.sequence ?? null;
  }

  #whyUnjudged(): string | null {
    if (this.#baseline === null) return this.#noBaseline;
    const { missed } = this.#reader.result();
    const { firstSequence, fatesLost } = this.#reader;
    const late = firstSequence !== null && firstSequence > this.#baseline.sequence + 1n;
    if (missed > 0 || late) return 'messages were missed, so nothing follows from the others';
    if (fatesLost) return 'everything was cleared, the master began anew, or more keys changed than are followed';
    return null;
  }
}
