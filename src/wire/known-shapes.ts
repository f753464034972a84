// Shapes of stored events seen lately. A worker writes its events in one or a few shapes (which fields, which medium, which adapter), and
// one that was read field by field is recognised from then on by its bytes, in one call (assembly/shapes.ts). Their number is bounded; a
// stream whose events never look alike stops being remembered.
import { STEP } from '../core/numbers.js';
import type { Cursor } from './cursor.js';
import { checkNumbers } from './read-event.js';
import { type EventShape, StoredRecord } from './worker-event.js';

/** Shapes tried for one event, the latest first. */
const TRIED = 4;
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
  #spare = new StoredRecord();
  #misses = 0;

  constructor(cap: number) {
    this.#cap = cap;
  }

  /** Reads the event at the cursor if its shape is known; null, and nothing is passed, when it is not. */
  read(cursor: Cursor): StoredRecord | null {
    const { at, head, numbers } = cursor;
    const event = this.#spare;
    for (let i = 0; i < this.#kept.length && i < TRIED; i++) {
      const kept = this.#kept[i]!;
      if (kept.head !== head) continue;
      const end = numbers.readShaped(at, kept.place, event);
      if (end === 0) continue;
      if (i > 0) this.#moveToFront(i);
      this.#spare = new StoredRecord();
      this.#misses = 0;
      cursor.tag = 'BlockStored';
      event.shape = kept.shape;
      event.numbers = numbers;
      event.epoch = numbers.epoch;
      if (kept.shape.nilKeys) event.nilKeyCount = numbers.count;
      checkNumbers(event);
      cursor.at = end;
      return event;
    }
    return null;
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
    if (saysTwice(steps)) return;
    const place = this.#kept.length < this.#cap ? this.#kept.length : this.#kept.at(-1)!.place;
    if (!numbers.keepShape(place, start, cursor.at, steps)) return;
    if (this.#kept.length === this.#cap) this.#kept.pop();
    this.#kept.unshift({ place, head: cursor.byteAt(start), shape });
  }
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
