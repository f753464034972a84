// The bytes of the Mooncake master's messages, as `[topic, sequence, payload]`, of its newest wire generation, in which an event says which
// medium it is about (spec/mooncake-events.md 3). An object's event is 400 bytes, of which its number, its time and its digest alone
// change: so they are written over a copy of an event that was encoded once.
import { Encoder } from '@msgpack/msgpack';
import { writeSequence } from '../wire/frames.js';

/** Most events in a batch of the master. */
export const STORE_BATCH_EVENTS = 64;

/** The master's clock when it begins, in milliseconds. */
const EPOCH_MS = 1_796_015_123_383n;
const DP_RANK = 0;
const BACKEND = 'moonroute-sim';
const NO_TOPIC = new Uint8Array(0);

// What stands for the three in an encoded event, as they are found again.
const ID = 0xfedc_ba98;
const TIME = 0xfedc_ba98_7654_3210n;
const MARK = '\u00fe\u00dc\u00ba\u0098';
const HEX_DIGITS = 64;
const HEX = '~'.repeat(HEX_DIGITS);

/** An array of three: time as u64, an array of up to 65,535 events, rank. */
const HEAD_BYTES = 13;

/** What may happen to an object of one prefix. */
export type ObjectChange = 'stored-cpu' | 'stored-disk' | 'removed-cpu' | 'removed-disk';
const CHANGES: readonly ObjectChange[] = ['stored-cpu', 'stored-disk', 'removed-cpu', 'removed-disk'];

/** An encoded event, and where its parts stand. */
interface Template {
  readonly bytes: Uint8Array;
  readonly idAt: number;
  readonly timeAt: number;
  readonly hexAt: number;
}

/** Templates of a key prefix. */
export type ObjectTemplates = Readonly<Record<ObjectChange, Template>>;

export function objectTemplates(prefix: string): ObjectTemplates {
  return Object.fromEntries(
    CHANGES.map((change) => [change, templateOf(prefix, change)]),
  ) as unknown as ObjectTemplates;
}

/** The one message being written. */
export class StoreBatch {
  #bytes = new Uint8Array(HEAD_BYTES + 1);
  #view = new DataView(this.#bytes.buffer);
  #end = HEAD_BYTES;
  #sequence = 0;
  events = 0;

  /** Where the event added last wants its digest, in hexadecimal digits. */
  hexAt = 0;

  /** Its bytes so far; good until the next event is added. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  begin(sequence: number): void {
    this.#sequence = sequence;
    this.#end = HEAD_BYTES;
    this.events = 0;
  }

  /** Adds an event, but for its digest. */
  add({ bytes, idAt, timeAt, hexAt }: Template, id: number): void {
    const at = this.#end;
    if (at + bytes.length + 1 > this.#bytes.length) this.#grow(at + bytes.length + 1);
    this.#bytes.set(bytes, at);
    this.#view.setUint32(at + idAt, id);
    this.#view.setBigUint64(at + timeAt, this.#time);
    this.hexAt = at + hexAt;
    this.#end = at + bytes.length;
    this.events++;
  }

  /** The whole message, good until the next one is begun. */
  frames(): Uint8Array[] {
    const view = this.#view;
    view.setUint8(0, 0x93);
    view.setUint8(1, 0xcf);
    view.setBigUint64(2, this.#time);
    view.setUint8(10, 0xdc);
    view.setUint16(11, this.events);
    view.setUint8(this.#end, DP_RANK);
    return [NO_TOPIC, writeSequence(BigInt(this.#sequence)), this.#bytes.subarray(0, this.#end + 1)];
  }

  get #time(): bigint {
    return EPOCH_MS + BigInt(this.#sequence);
  }

  #grow(least: number): void {
    const bytes = new Uint8Array(Math.max(least, this.#bytes.length * 2));
    bytes.set(this.#bytes);
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

function templateOf(prefix: string, change: ObjectChange): Template {
  const [kind, medium] = change.split('-') as ['stored' | 'removed', 'cpu' | 'disk'];
  const bytes = new Encoder({ useBigInt64: true }).encode({
    event_id: ID,
    timestamp: TIME,
    event_type: kind,
    type: kind === 'stored' ? 'BlockStored' : 'BlockRemoved',
    model_name: null,
    block_size: null,
    additional_salt: null,
    lora_name: null,
    tenant_id: 'default',
    backend_id: BACKEND,
    medium,
    dp_rank: DP_RANK,
    group_id: null,
    object_key: `${prefix}@${HEX}`,
    seq_hashes: [],
    block_hashes: [],
    base_block_idx: null,
    ...(kind === 'stored' ? { parent_hash: null, token_ids: null, parent_block_hash: null } : {}),
  });
  // The number comes before the time, and both have bytes that no text has.
  const text = String.fromCharCode(...bytes);
  const idAt = text.indexOf(MARK);
  const timeAt = text.indexOf(MARK, idAt + MARK.length);
  return { bytes, idAt, timeAt, hexAt: text.indexOf(HEX) };
}
