// Shapes of stored events seen lately. A worker writes its events in one or a few shapes (which fields, which medium, which adapter), and
// one that was read field by field is recognised from then on by its bytes, many events in one call (assembly/shapes.ts). Their number is
// bounded; a stream whose events never look alike stops being remembered.
import { STEP } from '../core/numbers.js';
import { type Cursor, OPAQUE } from './cursor.js';
import { type EventShape, StoredRecord, type WorkerEvent } from './worker-event.js';

/** Events in a row without a known shape after which only every so many-th is remembered. */
const MISSES = 64;

interface Kept {
  readonly place: number;
  /** First byte of the event: says how many fields it has. */
  readonly head: number;
  readonly shape: EventShape;
}

/** Recognises and remembers shapes. */
export class KnownShapes {
  /** The latest first. */
  readonly #kept: Kept[] = [];
  readonly #cap: number;
  #misses = 0;

  constructor(cap: number) {
    this.#cap = cap;
  }

  /** Reads the events at the cursor that share a known shape, at most `most`, to the end of `events`. False when there is none. */
  read(cursor: Cursor, most: number, events: WorkerEvent[]): boolean {
    const { at, head, numbers, row } = cursor;
    for (let i = 0; i < this.#kept.length; i++) {
      const { place, head: first, shape } = this.#kept[i]!;
      if (first !== head) continue;
      const read = numbers.readShaped(at, place, row, most);
      if (read === 0) continue;
      if (i > 0) this.#moveToFront(i);
      this.#misses = 0;
      for (let event = 0; event < read; event++) events.push(new StoredRecord(numbers, row + event, shape));
      cursor.row = row + read;
      cursor.at = numbers.position;
      return true;
    }
    return false;
  }

  #moveToFront(index: number): void {
    const [kept] = this.#kept.splice(index, 1);
    this.#kept.unshift(kept!);
  }

  /** Remembers the shape of the event that ends at the cursor, in place of the one not seen for longest. */
  keep(cursor: Cursor, start: number, shape: EventShape): void {
    this.#misses++;
    if (this.#misses > MISSES && this.#misses % MISSES !== 0) return;
    const { steps, numbers } = cursor;
    if (saysTwice(steps) || isOpaque(shape)) return;
    const place = this.#kept.length < this.#cap ? this.#kept.length : this.#kept.at(-1)!.place;
    if (!numbers.keepShape(place, start, cursor.at, steps, shape.blockSize)) return;
    if (this.#kept.length === this.#cap) this.#kept.pop();
    this.#kept.unshift({ place, head: cursor.byteAt(start), shape });
  }
}

/** Whether something in it was too complex to be looked at, which may be for what else stood in the message. */
function isOpaque({ loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos }: EventShape): boolean {
  return [loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos].includes(OPAQUE);
}

/** Whether an event gave one of its lists twice: then the last one counts, which is left to the field-by-field reader. */
function saysTwice(steps: readonly number[]): boolean {
  let seen = 0;
  for (let i = 0; i < steps.length; i += 3) {
    const bit = 1 << steps[i]!;
    if (steps[i] !== STEP.any && (seen & bit) !== 0) return true;
    seen |= bit;
  }
  return false;
}
