// A Mooncake batch, from its MessagePack payload to residency, in one pass over the bytes. Every event is judged and staged first and
// applied only when the whole payload proved readable; the rules are README.md's "Store messages".
// Staged, 40 bytes: high (24), low64 (8), prefix u16, what u8, media u8, 0 u32.
import { INPUT, INPUT_GUARD, MESSAGE_BYTES, MESSAGE_EVENTS, RESULT, STAGE } from './layout';
import { cell, LONGEST_PREFIX, setCell, WALKED } from './cells';
import { configured, findPrefix } from './contract';
import { array, atEnd, good, integer, lastLength, lastText, limit, map, nil, open, position, seek, skip, text } from './msgpack';
import { ALL_MEDIA, clearResidency, CPU, DISK, removeObject, storeObject, UNKNOWN } from './residency';

// Outcome, RESULT[0]
export const APPLIED: u32 = 0;
export const MALFORMED: u32 = 1;
export const UNREADABLE: u32 = 2;
// Why an event is malformed, RESULT[2]
const NOT_A_MAP: u32 = 1;
const BAD_TENANT: u32 = 2;
const NO_KEY: u32 = 3;
const BARE_PREFIX: u32 = 4;
const BAD_DIGEST: u32 = 5;
const BAD_MEDIUM: u32 = 6;
const BAD_TYPE: u32 = 7;

const STORED: u32 = 1;
const REMOVED: u32 = 2;
const CLEARED: u32 = 3;
const UNSAID: u32 = 4;
const STAGED_BYTES: usize = 40;
const DIGEST_DIGITS: u32 = 64;

// Eight bytes of a name as a little-endian word
const EVENT_TY: u64 = 0x79745f746e657665;
const OBJECT_K: u64 = 0x6b5f7463656a626f;
const TENANT_I: u64 = 0x695f746e616e6574;
const BLOCKSTO: u64 = 0x6f74536b636f6c42;
const BLOCKREM: u64 = 0x6d65526b636f6c42;
const ALLBLOCK: u64 = 0x6b636f6c426c6c41;

/** The low `bytes` bytes (1–7) of the word at `from`. */
@inline function word(from: usize, bytes: u32): u64 { return load<u64>(from) & (((<u64>1) << (bytes << 3)) - 1); }
/** What an event type's text says; 0 = unknown. */
function kindOf(from: usize, length: u32): u32 {
  switch (length) {
    case 6: return word(from, 6) == 0x6465726f7473 ? STORED : 0; // stored
    case 7: {
      const said = word(from, 7);
      return said == 0x6465766f6d6572 ? REMOVED : said == 0x64657261656c63 ? CLEARED : 0; // removed, cleared
    }
    case 11: return load<u64>(from) == BLOCKSTO && word(from + 8, 3) == 0x646572 ? STORED : 0; // BlockSto|red
    case 12: return load<u64>(from) == BLOCKREM && word(from + 8, 4) == 0x6465766f ? REMOVED : 0; // BlockRem|oved
    case 16: return load<u64>(from) == ALLBLOCK && load<u64>(from, 8) == 0x64657261656c4373 ? CLEARED : 0; // AllBlock|sCleared
    default: return 0;
  }
}
/** Reads a type's value: UNSAID for nil, 0 for what is no known text. */
@inline function readKind(): u32 {
  if (nil()) return UNSAID;
  if (!text()) {
    skip();
    return 0;
  }
  return good() ? kindOf(lastText(), lastLength()) : 0;
}
@inline function isDefault(from: usize, length: u32): bool { return length == 0 || (length == 7 && word(from, 7) == 0x746c7561666564); }

/** 64 lowercase hex digits at `from` → 32 bytes at `to`; false when any is something else. */
function unhex(from: usize, to: usize): bool {
  let wrong = i8x16.splat(0);
  for (let half: usize = 0; half < 2; half++) {
    const a = v128.load(from + (half << 5));
    const b = v128.load(from + (half << 5), 16);
    const low = nibbles(a);
    const high = nibbles(b);
    wrong = v128.or(wrong, v128.or(i8x16.gt_u(low, i8x16.splat(15)), i8x16.gt_u(high, i8x16.splat(15))));
    v128.store(to + (half << 4), i8x16.narrow_i16x8_u(pairs(low), pairs(high)));
  }
  return !v128.any_true(wrong);
}
/** Values of 16 digits; above 15 where a byte is no lowercase hex digit. */
@inline function nibbles(digits: v128): v128 {
  const number = i8x16.sub(digits, i8x16.splat(48));
  const letter = i8x16.sub(digits, i8x16.splat(97));
  const isLetter = i8x16.lt_u(letter, i8x16.splat(6));
  const isNumber = i8x16.lt_u(number, i8x16.splat(10));
  const value = v128.bitselect(i8x16.add(letter, i8x16.splat(10)), i8x16.splat(-1), isLetter);
  return v128.bitselect(number, value, isNumber);
}
@inline function pairs(values: v128): v128 {
  return v128.and(v128.or(i16x8.shl(values, 4), i16x8.shr_u(values, 8)), i16x8.splat(0xff));
}

let staged: usize = 0;
let problem: u32 = 0; // why the event being judged is malformed
let foreignTenants: u32 = 0;
let foreignKeys: u32 = 0;
let saidStored: u32 = 0; // events of everyone's objects
let saidRemoved: u32 = 0;

@inline function stage(prefix: u32, what: u32, media: u32): void {
  store<u64>(staged, bswap<u64>(load<u64>(staged, 24)), 24);
  store<u32>(staged, prefix | (what << 16) | (media << 24), 32);
  staged += STAGED_BYTES;
}

/** Reads one event and stages what it asks for; sets `problem` when it is malformed. */
function judge(): void {
  const pairsLeft = map();
  if (pairsLeft < 0) {
    skip();
    problem = NOT_A_MAP;
    return;
  }
  let eventKind = UNSAID;
  let typeKind = UNSAID;
  let keyAt: usize = 0; // 0 = nil, missing or not text
  let keyLength: u32 = 0;
  let medium: u32 = 0;
  let ours = true;
  let badTenant = false;
  let ranked = false; // an integer dp_rank: wire generation B or C
  // Most names and values are short texts, small integers and nil: those are passed over right here, the cursor in a local. Reading
  // ahead of the check is safe: a pair is begun inside the input only, and the guard behind it is longer than any read below.
  // Each name's branch hands the cursor over and ends the turn by itself: one shared ending costs 1.6 times as much per event.
  const stop = limit();
  let at = position();
  for (let pair: i64 = 0; pair < pairsLeft; pair++) {
    if (at >= stop) {
      seek(stop + 1);
      return;
    }
    const tag = <u32>load<u8>(at);
    let name: usize;
    let length: u32;
    if ((tag & 0xe0) == 0xa0) {
      name = at + 1;
      length = tag & 31;
      at = name + length;
    } else {
      seek(at);
      if (!text()) {
        skip();
        skip();
        if (!good()) return;
        at = position();
        continue;
      }
      if (!good()) return;
      name = lastText();
      length = lastLength();
      at = position();
    }
    if (at >= stop) {
      seek(stop + 1);
      return;
    }
    if (length == 10) {
      const start = load<u64>(name);
      if (start == EVENT_TY && word(name + 8, 2) == 0x6570) { // pe
        seek(at);
        eventKind = readKind();
        if (!good()) return;
        at = position();
        continue;
      }
      if (start == OBJECT_K && word(name + 8, 2) == 0x7965) { // ey
        seek(at);
        keyAt = 0;
        if (text()) {
          keyAt = lastText();
          keyLength = lastLength();
        } else skip();
        if (!good()) return;
        at = position();
        continue;
      }
    } else if (length == 9) {
      if (load<u64>(name) == TENANT_I && load<u8>(name, 8) == 0x64) { // d
        seek(at);
        ours = true;
        badTenant = false;
        if (!nil()) {
          if (text()) ours = good() && isDefault(lastText(), lastLength());
          else {
            badTenant = true;
            skip();
          }
        }
        if (!good()) return;
        at = position();
        continue;
      }
    } else if (length == 6) {
      if (word(name, 6) == 0x6d756964656d) { // medium
        seek(at);
        medium = 0;
        if (!text()) skip();
        else if (good()) {
          if (lastLength() == 3 && word(lastText(), 3) == 0x757063) medium = CPU;
          else if (lastLength() == 4 && word(lastText(), 4) == 0x6b736964) medium = DISK;
        }
        if (!good()) return;
        at = position();
        continue;
      }
    } else if (length == 7) {
      if (word(name, 7) == 0x6b6e61725f7064) { // dp_rank
        seek(at);
        ranked = integer();
        skip();
        if (!good()) return;
        at = position();
        continue;
      }
    } else if (length == 4) {
      if (word(name, 4) == 0x65707974) { // type
        seek(at);
        typeKind = readKind();
        if (!good()) return;
        at = position();
        continue;
      }
    }
    const value = <u32>load<u8>(at);
    if (value == 0xc0 || value < 0x80 || value == 0x90) at++;
    else if (value == 0xcf) at += 9;
    else if ((value & 0xe0) == 0xa0) at += 1 + (value & 31);
    else if (value == 0xd9) at += 2 + <usize>load<u8>(at, 1);
    else {
      seek(at);
      skip();
      if (!good()) return;
      at = position();
    }
  }
  seek(at);
  if (!good()) return;
  const kind = eventKind == UNSAID ? typeKind : typeKind == UNSAID || typeKind == eventKind ? eventKind : 0;
  if (kind == STORED) saidStored++;
  else if (kind == REMOVED) saidRemoved++;
  if (badTenant) {
    problem = BAD_TENANT;
    return;
  }
  if (!ours) {
    foreignTenants++;
    return;
  }
  if (kind == CLEARED) {
    stage(0, CLEARED, 0);
    return;
  }
  if (eventKind == CLEARED || typeKind == CLEARED) {
    problem = BAD_TYPE;
    return;
  }
  if (!keyAt) {
    problem = NO_KEY;
    return;
  }
  if (keyLength <= cell(LONGEST_PREFIX) && findPrefix(keyAt, keyLength) >= 0) {
    problem = BARE_PREFIX;
    return;
  }
  let before = keyLength; // what stands before the last '@'; where a digest is well-formed that '@' is 65 from the end
  if (keyLength > DIGEST_DIGITS && load<u8>(keyAt + keyLength - DIGEST_DIGITS - 1) == 0x40 && unhex(keyAt + keyLength - DIGEST_DIGITS, staged)) {
    before = keyLength - DIGEST_DIGITS - 1;
    const prefix = findPrefix(keyAt, before);
    if (prefix < 0) {
      foreignKeys++;
      return;
    }
    if (!medium) problem = BAD_MEDIUM;
    else if (kind == STORED) stage(<u32>prefix, STORED, medium);
    else if (kind == REMOVED) stage(<u32>prefix, REMOVED, ranked ? medium | UNKNOWN : ALL_MEDIA);
    else problem = BAD_TYPE;
    return;
  }
  while (before && load<u8>(keyAt + before - 1) != 0x40) before--;
  if (!before || findPrefix(keyAt, before - 1) < 0) foreignKeys++;
  else problem = BAD_DIGEST;
}

/** Applies what was staged, in order; returns how many events cleared everything. */
function applyStaged(): u32 {
  let clears: u32 = 0;
  for (let from = STAGE; from < staged; from += STAGED_BYTES) {
    const what = load<u32>(from, 32);
    const kind = (what >> 16) & 0xff;
    if (kind == STORED) storeObject(from, load<u64>(from, 24), what & 0xffff, what >> 24);
    else if (kind == REMOVED) removeObject(from, load<u64>(from, 24), what & 0xffff, what >> 24);
    else {
      clearResidency();
      clears++;
    }
  }
  return clears;
}

/** Applies `events` staged events at STAGE again: those of a payload that was applied before, put back there. */
export function applyAgain(events: u32): void {
  setCell(WALKED, 0);
  staged = STAGE + <usize>events * STAGED_BYTES;
  applyStaged();
}

/**
 * Applies the batch of `length` payload bytes at INPUT. RESULT, u32 each: outcome (APPLIED, MALFORMED, UNREADABLE), index of the malformed
 * event, why, events in the batch, staged and applied, skipped for a foreign tenant, skipped for a foreign key, clears among the applied, and
 * stored and removed events, foreign ones among them.
 */
export function applyBatch(length: u32): u32 {
  setCell(WALKED, 0);
  memory.fill(RESULT, 0, 40);
  staged = STAGE;
  foreignTenants = 0;
  foreignKeys = 0;
  saidStored = 0;
  saidRemoved = 0;
  let malformedAt: i32 = -1;
  let why: u32 = 0;
  let events: i64 = -1;
  let readable = length <= MESSAGE_BYTES;
  if (readable) {
    memory.fill(INPUT + length, 0xc1, INPUT_GUARD);
    open(INPUT, length);
    const elements = array();
    readable = elements >= 2 && good();
    if (readable) {
      skip(); // timestamp
      events = good() ? array() : -1;
      readable = events >= 0 && events <= <i64>MESSAGE_EVENTS && good();
    }
    if (readable) {
      for (let index: i32 = 0; index < <i32>events && good(); index++) {
        if (why) {
          skip(); // the rest of the batch is dropped, but must be readable all the same
          continue;
        }
        problem = 0;
        judge();
        if (problem) {
          why = problem;
          malformedAt = index;
        }
      }
      for (let element: i64 = 2; element < elements && good(); element++) skip();
      readable = good() && atEnd();
    }
  }
  if (!readable) {
    clearResidency();
    store<u32>(RESULT, UNREADABLE);
    return UNREADABLE;
  }
  const clears = configured() ? applyStaged() : 0;
  if (why) clearResidency();
  store<u32>(RESULT, why ? MALFORMED : APPLIED);
  store<u32>(RESULT, malformedAt < 0 ? 0 : <u32>malformedAt, 4);
  store<u32>(RESULT, why, 8);
  store<u32>(RESULT, <u32>events, 12);
  store<u32>(RESULT, <u32>((staged - STAGE) / STAGED_BYTES), 16);
  store<u32>(RESULT, foreignTenants, 20);
  store<u32>(RESULT, foreignKeys, 24);
  store<u32>(RESULT, clears, 28);
  store<u32>(RESULT, saidStored, 32);
  store<u32>(RESULT, saidRemoved, 36);
  return why ? MALFORMED : APPLIED;
}
