// The Mooncake master's HTTP, as far as a reconcile needs it: its counters and its key list (spec/mooncake-events.md 6). Never `/query_key` and
// never a probe of existence: those renew leases, and leased objects can't be evicted. Every answer is bounded in time and size.
import { MoonrouteError } from '../errors.js';
import type { Clock } from './clock.js';

/** Wire generations, as the status' last fields tell them apart (spec/mooncake-events.md 0). */
export type WireGeneration = 'A' | 'B' | 'C';

/** What a master says of itself. */
export type MasterStatus =
  | {
      readonly state: 'serving';
      /** The sequence of the last message that it sent or dropped: `published_batches + dropped_events`. */
      readonly sequence: bigint;
      readonly generation: WireGeneration;
    }
  | { readonly state: 'standby' }
  /** It runs, and publishes nothing: not built or not configured for events. */
  | { readonly state: 'events-off' };

/** Bounds of one exchange. */
export interface MasterHttpLimits {
  /** Milliseconds until the headers of an answer, and between two parts of its body. Default 5,000. */
  readonly silence: number;
  /** Milliseconds for a whole key list. Default 60,000. */
  readonly listTime: number;
  /** Bytes of a key list. Default 2 GiB: some 15 million keys. */
  readonly listBytes: number;
}

export const MASTER_HTTP_LIMITS: MasterHttpLimits = { silence: 5000, listTime: 60_000, listBytes: 2 ** 31 };

const STATUS = '/kv_events/status';
/** Most bytes of a status; the real one has some 150. */
const STATUS_BYTES = 65_536;
/** Most bytes of the metrics page; the real one has some tens of kilobytes. */
const METRICS_BYTES = 4 << 20;
/** Longest time spent on arrived parts of a body before everything else has a turn. */
const SLICE_MS = 2;
const STANDBY = 503;

/** An exchange that brought nothing that counts. `code` says why. */
export class MasterHttpError extends MoonrouteError {}

/** Asks one master. */
export class MasterHttp {
  readonly #base: string;
  readonly #clock: Clock;
  readonly #limits: MasterHttpLimits;

  /** `base`: `http://HOST:PORT` of its admin port. */
  constructor(base: string, clock: Clock, limits: MasterHttpLimits = MASTER_HTTP_LIMITS) {
    // Node loads its fetch at the first use, which takes some 30 ms: now, and not when decisions wait.
    new Headers();
    this.#base = base.replace(/\/+$/, '');
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * Its counters.
   * @throws MasterHttpError `http-unreachable`, `http-slow`, `http-truncated`, `http-too-large`, `http-status`, `http-body`
   */
  async status(signal: AbortSignal): Promise<MasterStatus> {
    const text = await this.statusText(signal);
    return text === null ? { state: 'standby' } : readStatus(text, `${this.#base}${STATUS}`);
  }

  /**
   * The same as it came; null from a standby.
   * @throws MasterHttpError likewise, but for `http-body`
   */
  async statusText(signal: AbortSignal): Promise<string | null> {
    return await this.#text(STATUS, STATUS_BYTES, signal);
  }

  /**
   * Its objects' number, other tenants' and models' among them; null where its metrics do not say.
   * @throws MasterHttpError likewise
   */
  async keyCount(signal: AbortSignal): Promise<number | null> {
    const text = await this.#text('/metrics', METRICS_BYTES, signal);
    const found = text === null ? null : /^master_key_count(?:\{[^}\n]*\})? +([0-9.eE+]+)\s*$/m.exec(text);
    const count = Number(found?.[1]);
    return found === null || !Number.isFinite(count) ? null : count;
  }

  /**
   * Its key list, handed over part by part as bytes. `onRested`: other things have had their turn.
   * @throws MasterHttpError likewise; `http-standby` where it does not serve
   */
  async keys(onPart: (part: Uint8Array) => void, signal: AbortSignal, onRested: () => void = () => {}): Promise<void> {
    const path = '/get_all_keys';
    await this.#exchange(path, signal, this.#limits.listTime, async (response, guard) => {
      if (response.status === STANDBY) throw new MasterHttpError('http-standby', `${this.#base}${path}: standby`);
      this.#refuseStatus(response, path);
      await this.#body(response, path, this.#limits.listBytes, guard, onPart, onRested);
    });
  }

  /** A short answer's text; null where it is a standby's. */
  async #text(path: string, most: number, signal: AbortSignal): Promise<string | null> {
    return this.#exchange(path, signal, this.#limits.silence, async (response, guard) => {
      if (response.status === STANDBY) return null;
      this.#refuseStatus(response, path);
      const decoder = new TextDecoder();
      let text = '';
      await this.#body(response, path, most, guard, (part) => {
        text += decoder.decode(part, { stream: true });
      });
      return text + decoder.decode();
    });
  }

  #refuseStatus(response: Response, path: string): void {
    if (response.ok) return;
    throw new MasterHttpError('http-status', `${this.#base}${path} answers with status ${response.status}`);
  }

  /** One request from its first byte to its last, within `time` milliseconds in all and `silence` between two signs of life. */
  async #exchange<Answer>(
    path: string,
    signal: AbortSignal,
    time: number,
    read: (response: Response, guard: Guard) => Promise<Answer>,
  ): Promise<Answer> {
    const guard = new Guard(this.#clock, this.#limits.silence, time);
    const forward = () => guard.abort('given up');
    if (signal.aborted) forward();
    signal.addEventListener('abort', forward);
    try {
      const response = await fetch(this.#base + path, { signal: guard.signal, redirect: 'error' });
      guard.alive();
      return await read(response, guard);
    } catch (error) {
      if (error instanceof MoonrouteError) throw error; // ours, or the receiver's
      const why = guard.aborted ?? causeOf(error);
      const code = guard.aborted !== null ? 'http-slow' : guard.heard ? 'http-truncated' : 'http-unreachable';
      throw new MasterHttpError(code, `${this.#base}${path}: ${why}`);
    } finally {
      // What is left of a body is not wanted, and without this its connection would stay open. Nothing, where all was read.
      guard.abort('over');
      guard.end();
      signal.removeEventListener('abort', forward);
    }
  }

  async #body(
    response: Response,
    path: string,
    most: number,
    guard: Guard,
    onPart: (part: Uint8Array) => void,
    onRested: () => void = () => {},
  ): Promise<void> {
    if (response.body === null) return;
    const reader = response.body.getReader();
    let bytes = 0;
    let sliceEnd = this.#clock.now() + SLICE_MS;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      guard.alive();
      bytes += value.length;
      if (bytes > most) {
        throw new MasterHttpError('http-too-large', `${this.#base}${path} is larger than ${most} bytes`);
      }
      onPart(value);
      if (this.#clock.now() < sliceEnd) continue;
      await this.#clock.breathe();
      onRested();
      sliceEnd = this.#clock.now() + SLICE_MS;
    }
    const said = Number(response.headers.get('content-length') ?? bytes);
    if (bytes === said || response.headers.has('content-encoding')) return;
    throw new MasterHttpError('http-truncated', `${this.#base}${path} ends after ${bytes} of ${said} bytes`);
  }
}

/** Ends an exchange that has gone silent or takes too long. */
class Guard {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #silence: number;
  readonly #endTime: () => void;
  #endSilence: () => void = () => {};
  /** Whether anything came at all. */
  heard = false;
  /** Why it was ended, null while it was not. */
  aborted: string | null = null;

  constructor(clock: Clock, silence: number, time: number) {
    this.#clock = clock;
    this.#silence = silence;
    this.#endTime = clock.after(time, () => this.abort(`not done after ${time} ms`));
    this.#watch();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  alive(): void {
    this.heard = true;
    this.#watch();
  }

  abort(why: string): void {
    this.aborted ??= why;
    this.#controller.abort();
  }

  end(): void {
    this.#endTime();
    this.#endSilence();
  }

  #watch(): void {
    this.#endSilence();
    this.#endSilence = this.#clock.after(this.#silence, () => this.abort(`silent for ${this.#silence} ms`));
  }
}

/**
 * Reads the body of `/kv_events/status`.
 * @throws MasterHttpError `http-body`
 */
export function readStatus(text: string, place: string): MasterStatus {
  let body: Record<string, unknown> | null = null;
  try {
    body = JSON.parse(text);
  } catch {
    // said below
  }
  const { enabled, published_batches: published, dropped_events: dropped } = body ?? {};
  if (enabled === false) return { state: 'events-off' };
  if (enabled !== true || !isCount(published) || !isCount(dropped)) {
    throw new MasterHttpError(
      'http-body',
      `${place} says '${text.slice(0, 120).replace(/\p{Cc}/gu, '?')}', expected enabled, published_batches and dropped_events`,
    );
  }
  const generation = 'skipped_keyless_events' in body! ? 'C' : 'invalid_event_hashes' in body! ? 'B' : 'A';
  return { state: 'serving', sequence: BigInt(published) + BigInt(dropped), generation };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function causeOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown; message?: unknown } }).cause;
  return String(cause?.code ?? cause?.message ?? (error as Error).message);
}
