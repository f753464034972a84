// The tail of an event in array form: what stands behind the slots that every release has. Releases added fields in different orders, so a
// tail is read by position when it is long enough and every type fits, and by type otherwise (spec/kv-events.md 1.7).
import type { Cursor } from './cursor.js';
import { skipAll } from './event-fields.js';
import { EventShape, type RemovedRecord } from './worker-event.js';

const NIL_KIND = 0;
const UINT_KIND = 1;
const TEXT_KIND = 2;
const LIST_KIND = 3;
const OTHER_KIND = 4;
/** Kinds of the fixed tail's slots: group, kind, window, locality, ownership. */
const TAIL_KINDS = [UINT_KIND, TEXT_KIND, UINT_KIND, TEXT_KIND, TEXT_KIND];
const MIN_FIXED_TAIL = 4;
const kinds = new Uint8Array(TAIL_KINDS.length);
const values: (string | number | null)[] = TAIL_KINDS.map(() => null);

/** Reads a tail: by position when it is long enough and every type fits, by type otherwise (older producers). */
export function readTail(cursor: Cursor, items: number, event: EventShape | RemovedRecord): void {
  const seen = Math.min(items, TAIL_KINDS.length);
  let fixed = seen >= MIN_FIXED_TAIL;
  for (let slot = 0; slot < seen; slot++) {
    readTailSlot(cursor, slot);
    if (kinds[slot] !== NIL_KIND && kinds[slot] !== TAIL_KINDS[slot]) fixed = false;
  }
  if (fixed) {
    event.groupIdx = values[0] as number | null;
    event.specKind = values[1] as string | null;
    event.slidingWindow = values[2] as number | null;
    event.locality = values[3] as string | null;
    event.ownership = seen > 4 ? (values[4] as string | null) : null;
  } else {
    for (let slot = 0; slot < seen; slot++) takeByKind(cursor, slot, event);
  }
  skipAll(cursor, items - seen);
}

/** Notes kind and value of a tail's slot; of a list, where it stands. */
function readTailSlot(cursor: Cursor, slot: number): void {
  values[slot] = null;
  if (cursor.nil()) {
    kinds[slot] = NIL_KIND;
    return;
  }
  const number = cursor.uint32();
  const value = number >= 0 ? number : cursor.text();
  if (value !== null) {
    kinds[slot] = number >= 0 ? UINT_KIND : TEXT_KIND;
    values[slot] = value;
    return;
  }
  const head = cursor.head;
  const isList = (head & 0xf0) === 0x90 || head === 0xdc || head === 0xdd;
  kinds[slot] = isList ? LIST_KIND : OTHER_KIND;
  if (isList) values[slot] = cursor.at;
  cursor.skip();
}

function takeByKind(cursor: Cursor, slot: number, event: EventShape | RemovedRecord): void {
  const value = values[slot]!;
  if (kinds[slot] === TEXT_KIND) event.specKind ??= value as string;
  else if (kinds[slot] === UINT_KIND && event.groupIdx === null) event.groupIdx = value as number;
  else if (kinds[slot] === UINT_KIND) event.slidingWindow ??= value as number;
  else if (kinds[slot] === LIST_KIND && event instanceof EventShape) {
    const end = cursor.at;
    cursor.at = value as number;
    event.blockMmInfos = cursor.value();
    cursor.at = end;
  }
}
