// Reads the messages of one master and keeps what the checks ask for: counts, tenants, and for a bounded number of keys whether the stream left them
// in the store. No socket, no clock. The core reads these messages for the router; here a person's questions are answered, so they become values.
import { WireError } from '../../errors.js';
import { MAX_STORE_EVENTS, MAX_STORE_MESSAGE_BYTES, StoreFrameError, splitStoreFrames } from '../../wire/mooncake.js';
import { boundedDecoder } from '../../wire/msgpack.js';
import type { MasterTally } from './evidence.js';
import { Tallies } from './tallies.js';

/** Keys whose fate is followed. */
const KEYS_KEPT = 100_000;
const DEFAULT_TENANT = 'default';
/** Values of an event that cost memory of their own: its map, its texts and its lists. */
const OBJECTS_AN_EVENT = 64;

const decode = boundedDecoder(['event_type', 'type', 'tenant_id', 'object_key', 'dp_rank'], {
  bytes: MAX_STORE_MESSAGE_BYTES,
  depth: 8,
  objects: MAX_STORE_EVENTS * OBJECTS_AN_EVENT,
});

/** What the stream says of a key: there, gone, or gone from one medium of perhaps several. */
export type KeyFate = 'there' | 'gone' | 'unsure';

export class MasterReader {
  readonly #unreadable = new Tallies();
  readonly #tenants = new Tallies();
  /** Of default's keys, since the beginning. */
  readonly fates = new Map<string, KeyFate>();
  /** There were more keys than are followed, everything was cleared, or the master began anew. */
  fatesLost = false;
  #faultText: string | null = null;
  #messages = 0;
  #missed = 0;
  #stored = 0;
  #removed = 0;
  #cleared = 0;
  #keyless = 0;
  #lastSequence: bigint | null = null;
  #firstSequence: bigint | null = null;

  get firstSequence(): bigint | null {
    return this.#firstSequence;
  }
  get lastSequence(): bigint | null {
    return this.#lastSequence;
  }

  take(frames: readonly Uint8Array[]): void {
    this.#messages++;
    try {
      const { sequence, payload } = splitStoreFrames(frames);
      this.#heard(sequence);
      const batch = decode(payload);
      const events: unknown = Array.isArray(batch) ? batch[1] : null;
      if (!Array.isArray(events)) throw new WireError('batch-shape', 'the payload is no list with events in it');
      for (const event of events) this.#takeEvent(event);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      if (error instanceof StoreFrameError && error.sequence !== null) this.#heard(error.sequence);
      this.#unreadable.add(error.code);
      this.#faultText ??= error.message;
    }
  }

  result(): MasterTally {
    return {
      messages: this.#messages,
      unreadable: this.#unreadable.toJSON(),
      faultText: this.#faultText,
      missed: this.#missed,
      lastSequence: this.#lastSequence,
      stored: this.#stored,
      removed: this.#removed,
      cleared: this.#cleared,
      keyless: this.#keyless,
      tenants: this.#tenants.toJSON(),
    };
  }

  #heard(sequence: bigint): void {
    const last = this.#lastSequence;
    if (last !== null && sequence > last + 1n) this.#missed += Number(sequence - last - 1n);
    if (last !== null && sequence < last) this.fatesLost = true;
    this.#firstSequence ??= sequence;
    this.#lastSequence = sequence;
  }

  #takeEvent(event: unknown): void {
    const fields = (typeof event === 'object' && event !== null ? event : {}) as Readonly<Record<string, unknown>>;
    const kind = fields['event_type'];
    const tenant =
      typeof fields['tenant_id'] === 'string' && fields['tenant_id'] !== '' ? fields['tenant_id'] : DEFAULT_TENANT;
    this.#tenants.add(tenant);
    if (kind === 'cleared') {
      this.#cleared++;
      if (tenant === DEFAULT_TENANT) this.fatesLost = true;
      return;
    }
    if (kind === 'stored') this.#stored++;
    else if (kind === 'removed') this.#removed++;
    else return;
    const key = fields['object_key'];
    if (typeof key !== 'string') {
      this.#keyless++;
      return;
    }
    if (tenant !== DEFAULT_TENANT) return;
    // A generation whose events name no rank means the object when it says removed; later ones mean one medium of it.
    const gone = fields['dp_rank'] === null || fields['dp_rank'] === undefined ? 'gone' : 'unsure';
    this.#follow(key, kind === 'stored' ? 'there' : gone);
  }

  #follow(key: string, fate: KeyFate): void {
    if (this.fates.size >= KEYS_KEPT && !this.fates.has(key)) this.fatesLost = true;
    else this.fates.set(key, fate);
  }
}
