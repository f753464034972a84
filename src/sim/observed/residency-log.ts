// What entered and left each place, and when: one record for blocks of one family that do the same at one time. It is bounded, and says up to when it
// reaches.
import { grown } from './columns.js';

/** 2²¹ records are 40 MB: some 100,000 requests of the built-in workload. */
export const MAX_RECORDS = 0x20_0000;
const FIRST_ROOM = 4096;
const BYTES_PER_RECORD = 8 + 4 + 4 + 2 + 1;

/** Place of the store; workers are their numbers. */
export const STORE = -1;
/** Computed by a worker, or put into the store. */
export const CAME = 0;
/** Restored from the store, to a worker. */
export const RESTORED = 1;
/** Left for want of room. */
export const EVICTED = 2;
/** The place started anew, empty. */
export const CLEARED = 3;
/** Read from the store, where it stays. */
export const READ = 4;

export class ResidencyLog {
  count = 0;
  time = new Float64Array(FIRST_ROOM);
  family = new Int32Array(FIRST_ROOM);
  blocks = new Int32Array(FIRST_ROOM);
  place = new Int16Array(FIRST_ROOM);
  kind = new Uint8Array(FIRST_ROOM);
  /** Milliseconds up to which all is recorded; Infinity while there is room. */
  recordedTo = Number.POSITIVE_INFINITY;

  get bytes(): number {
    return this.time.length * BYTES_PER_RECORD;
  }

  add(time: number, place: number, kind: number, family: number, blocks: number): void {
    if (this.recordedTo !== Number.POSITIVE_INFINITY) return;
    const last = this.count - 1;
    if (
      last >= 0 &&
      this.family[last] === family &&
      this.kind[last] === kind &&
      this.place[last] === place &&
      this.time[last] === time
    ) {
      this.blocks[last]! += blocks;
      return;
    }
    if (this.count === MAX_RECORDS) {
      this.end(time);
      return;
    }
    if (this.count === this.time.length) this.#grow();
    const at = this.count++;
    this.time[at] = time;
    this.family[at] = family;
    this.blocks[at] = blocks;
    this.place[at] = place;
    this.kind[at] = kind;
  }

  /** Nothing from `time` on is recorded. */
  end(time: number): void {
    this.recordedTo = Math.min(this.recordedTo, time);
  }

  #grow(): void {
    const room = this.time.length * 2;
    this.time = grown(this.time, room);
    this.family = grown(this.family, room);
    this.blocks = grown(this.blocks, room);
    this.place = grown(this.place, room);
    this.kind = grown(this.kind, room);
  }
}
