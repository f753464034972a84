// Shapes of stored events seen lately. A worker writes its events in one or a few shapes (which fields, which medium, which adapter), and
// one that was read field by field is recognised from then on by its bytes, many events in one call (assembly/shapes.ts). Their number is
// bounded; a stream whose events never look alike stops being remembered.
import { ROW, ROW_WORDS } from '../core/numbers.js';
import { type Cursor, OPAQUE } from './cursor.js';
import { type EventShape, StoredRecord, type WorkerEvent } from './worker-event.js';

/** Events in a row without a known shape after which only every so many-th is remembered. */
const MISSES = 64;

/** Recognises and remembers shapes. */
export class KnownShapes {
  #misses = 0;

  /** Reads the events at the cursor that have known shapes, at most `most`, to the end of `events`. False when there is none. */
  read(cursor: Cursor, most: number, events: WorkerEvent[]): boolean {
    const { numbers, row } = cursor;
    const read = numbers.readShaped(cursor.at, row, most);
    if (read === 0) return false;
    this.#misses = 0;
    const { rows, labels } = numbers;
    for (let i = row; i < row + read; i++) {
      const shape = labels[rows[i * ROW_WORDS + ROW.shape]!] as EventShape;
      events.push(new StoredRecord(numbers, i, shape));
    }
    cursor.row = row + read;
    cursor.at = numbers.position;
    return true;
  }

  /** Remembers the shape of the event that ends at the cursor, in place of the one not seen for longest. */
  keep(cursor: Cursor, start: number, shape: EventShape): void {
    this.#misses++;
    if (this.#misses > MISSES && this.#misses % MISSES !== 0) return;
    const { steps, numbers } = cursor;
    if (shape.repeats || isOpaque(shape)) return;
    numbers.keepShape(start, cursor.at, steps, shape.blockSize, shape);
  }
}

/** Whether something in it was too complex to be looked at, which may be for what else stood in the message. */
function isOpaque({ loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos }: EventShape): boolean {
  return [loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos].includes(OPAQUE);
}
