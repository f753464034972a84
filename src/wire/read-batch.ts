// Reads the payload of a worker's message: an array [timestamp, events, rank?], or a map of the same. One bad event loses itself only; a
// payload that can't be read is an error and has no effect. Rules: spec/kv-events.md 1.1, 1.4, 1.8.
import { Numbers } from '../core/numbers.js';
import { WireError } from '../errors.js';
import { Cursor } from './cursor.js';
import { Fault } from './event-fields.js';
import { FIELD, FieldNames, UNKNOWN_FIELD } from './field-names.js';
import { KnownShapes } from './known-shapes.js';
import { readEvent } from './read-event.js';
import { describe } from './values.js';
import type { UnreadEvent, WorkerEvent } from './worker-event.js';

const FLOAT_32 = 0xca;
const FLOAT_64 = 0xcb;

/** Most events in a batch. */
export const MAX_BATCH_EVENTS = 65_536;

/** A bad event of a batch: its place among all events of the batch, and why. */
export interface RejectedEvent extends UnreadEvent {
  readonly index: number;
}

/** What one payload holds. */
export interface WorkerBatch {
  /** Seconds since 1970 by the worker's clock; null when the wire gave no number. */
  readonly timestamp: number | null;
  /** Data-parallel rank of all its events. */
  readonly dpRank: number;
  /** The good events, in order. */
  readonly events: readonly WorkerEvent[];
  /** The bad ones, in order. */
  readonly rejected: readonly RejectedEvent[];
}

/** Reads payloads one after the other; the events of one are good until the next is read. */
export class BatchReader {
  readonly #cursor: Cursor;
  readonly #names = new FieldNames();
  readonly #shapes = new KnownShapes();

  constructor(numbers: Numbers = new Numbers()) {
    this.#cursor = new Cursor(numbers);
  }

  /**
   * Reads a payload, which may be reused afterwards.
   * @throws {WireError} `payload-too-large` (over 16 MiB), `payload-malformed` (not exactly one value), `batch-shape` (no array of 2 or 3
   * and no map with a list of events in it), `batch-rank` (no 32-bit integer), `too-many-events` (over 65,536).
   */
  read(payload: Uint8Array): WorkerBatch {
    const { numbers } = this.#cursor;
    if (payload.length > numbers.payloadBytes) {
      throw new WireError(
        'payload-too-large',
        `the payload has ${payload.length} bytes, at most ${numbers.payloadBytes} are read`,
      );
    }
    this.#cursor.open(payload);
    const batch = this.#readBatch();
    if (!this.#cursor.atEnd) throw this.#cursor.truncated();
    return batch;
  }

  #readBatch(): WorkerBatch {
    const cursor = this.#cursor;
    const items = cursor.array();
    if (items === 2 || items === 3) {
      const timestamp = readTime(cursor);
      const list = this.#readEvents();
      return { timestamp, dpRank: items === 3 ? readRank(cursor) : 0, ...list };
    }
    const pairs = items < 0 ? cursor.map() : -1;
    return pairs < 0 ? this.#noBatch() : this.#readMap(pairs);
  }

  #readMap(pairs: number): WorkerBatch {
    const cursor = this.#cursor;
    let list: Pick<WorkerBatch, 'events' | 'rejected'> | null = null;
    let timestamp: number | null = null;
    let dpRank: number | null = null;
    let field: number = UNKNOWN_FIELD;
    for (let pair = 0; pair < pairs; pair++) {
      field = this.#names.read(cursor, field);
      if (field === FIELD.ts) timestamp = readTime(cursor);
      else if (field === FIELD.dataParallelRank && dpRank === null) dpRank = readRank(cursor);
      else if (field === FIELD.events && list === null) list = this.#readEvents();
      else if (field === FIELD.events || field === FIELD.dataParallelRank)
        return this.#noBatch(); // said twice
      else cursor.skip();
    }
    return list === null ? this.#noBatch() : { timestamp, dpRank: dpRank ?? 0, ...list };
  }

  #readEvents(): Pick<WorkerBatch, 'events' | 'rejected'> {
    const cursor = this.#cursor;
    const count = cursor.array();
    if (count < 0) return this.#noBatch();
    if (count > MAX_BATCH_EVENTS) {
      throw new WireError('too-many-events', `the batch has ${count} events, at most ${MAX_BATCH_EVENTS} are read`);
    }
    const events: WorkerEvent[] = [];
    const rejected: RejectedEvent[] = [];
    while (events.length + rejected.length < count) {
      const index = events.length + rejected.length;
      if (this.#shapes.read(cursor, count - index, events)) continue;
      const event = this.#readEvent();
      if ('type' in event) events.push(event);
      else rejected.push({ index, ...event });
      cursor.row++;
    }
    return { events, rejected };
  }

  /** Reads an event field by field; the next one of its shape is recognised. */
  #readEvent(): WorkerEvent | UnreadEvent {
    const cursor = this.#cursor;
    const start = cursor.at;
    cursor.numbers.mark();
    try {
      const event = readEvent(cursor, this.#names);
      if (event.type === 'stored') this.#shapes.keep(cursor, start, event.shape);
      return event;
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      const { tag } = cursor;
      cursor.numbers.release();
      cursor.at = start;
      cursor.skip();
      const lostRemoval =
        tag === null || tag === 'BlockRemoved' || tag === 'AllBlocksCleared' || fault.code === 'tag-conflict';
      return { code: fault.code, text: fault.text, lostRemoval };
    }
  }

  /** No batch, if it is a value at all. */
  #noBatch(): never {
    this.#cursor.at = 0;
    this.#cursor.skip();
    if (!this.#cursor.atEnd) throw this.#cursor.truncated();
    throw new WireError(
      'batch-shape',
      'a worker batch is an array [timestamp, list of events, rank?] or a map {ts, events, data_parallel_rank}; this payload is not',
    );
  }
}

function readTime(cursor: Cursor): number | null {
  const value = cursor.value();
  const time = typeof value === 'bigint' ? Number(value) : value;
  return typeof time === 'number' && Number.isFinite(time) ? time : null;
}

/** Nil and missing are rank 0; a negative 32-bit integer is reinterpreted as unsigned. A guess would blame another rank. */
function readRank(cursor: Cursor): number {
  const isFloat = cursor.head === FLOAT_32 || cursor.head === FLOAT_64;
  const value = cursor.value();
  if (value === undefined) return 0;
  const rank = typeof value === 'bigint' ? Number(value) : value;
  if (isFloat || typeof rank !== 'number' || !Number.isInteger(rank) || rank < -0x8000_0000 || rank > 0xffff_ffff) {
    throw new WireError(
      'batch-rank',
      `the batch's data-parallel rank is ${isFloat ? 'the float ' : ''}${describe(value)}, expected a 32-bit integer or nil`,
    );
  }
  return rank >>> 0;
}
