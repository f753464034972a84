// SHA-256 (FIPS 180-4). Its rounds are serial, its message schedule is not: schedules are made in SIMD lanes, of four chunks at once where
// four are known, and kept with the round constants added, so that the rounds have one load and no schedule left.
import { HASH_PADDING, HASH_SCHEDULE, HASH_SCHEDULES, HASH_STATE, HASH_WORDS } from './layout';

/** Bytes of a chunk of the message, and of a digest. */
export const CHUNK: usize = 64;
export const DIGEST: usize = 32;
/** From one word of a schedule to the next: those of four chunks stand side by side. */
export const WORD: usize = 16;
/** Words of a schedule. */
const WORDS: usize = 64;
/** Where the last chunk's length field begins. */
const LENGTH_AT: usize = 56;

const CONSTANTS = memory.data<u32>([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
], 16);

@inline function sum0(a: u32): u32 { return rotr<u32>(a, 2) ^ rotr<u32>(a, 13) ^ rotr<u32>(a, 22); }
@inline function sum1(e: u32): u32 { return rotr<u32>(e, 6) ^ rotr<u32>(e, 11) ^ rotr<u32>(e, 25); }
@inline function choice(e: u32, f: u32, g: u32): u32 { return ((f ^ g) & e) ^ g; }

/** The state before the first chunk. */
export function begin(): void {
  v128.store(HASH_STATE, i32x4(0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a));
  v128.store(HASH_STATE, i32x4(0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19), 16);
}

// The words' own sums, in four lanes
@inline function sigma0(w: v128): v128 {
  const near = v128.xor(i32x4.shr_u(w, 7), i32x4.shl(w, 25)), far = v128.xor(i32x4.shr_u(w, 18), i32x4.shl(w, 14));
  return v128.xor(v128.xor(near, far), i32x4.shr_u(w, 3));
}
@inline function sigma1(w: v128): v128 {
  const near = v128.xor(i32x4.shr_u(w, 17), i32x4.shl(w, 15)), far = v128.xor(i32x4.shr_u(w, 19), i32x4.shl(w, 13));
  return v128.xor(v128.xor(near, far), i32x4.shr_u(w, 10));
}
/** Four words of a message, or of a digest: big endian. */
@inline export function swapped(words: v128): v128 {
  return v128.shuffle<u8>(words, words, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}
@inline function next(a: v128, b: v128): v128 { return v128.shuffle<u32>(a, b, 1, 2, 3, 4); }

/** Puts four words into the schedule at HASH_SCHEDULE, their constants added. */
@inline function spread(to: usize, words: v128): void {
  words = i32x4.add(words, v128.load((to - HASH_SCHEDULE >> 2) + CONSTANTS));
  v128.store_lane<u32>(to, words, 0);
  v128.store_lane<u32>(to, words, 1, WORD);
  v128.store_lane<u32>(to, words, 2, WORD * 2);
  v128.store_lane<u32>(to, words, 3, WORD * 3);
}

/** The next four words from the sixteen before them. */
@inline function four(a: v128, b: v128, c: v128, d: v128): v128 {
  const none = i32x4.splat(0);
  let w = i32x4.add(i32x4.add(a, sigma0(next(a, b))), next(c, d));
  w = i32x4.add(w, sigma1(v128.shuffle<u32>(d, none, 2, 3, 4, 4))); // the first two …
  return i32x4.add(w, sigma1(v128.shuffle<u32>(none, w, 0, 0, 4, 5))); // … on which the others depend
}

/**
 * The 64 rounds of one chunk over its schedule. With `makes` that is HASH_SCHEDULE, and is made here from the words at HASH_WORDS: four words at a time,
 * while the rounds before them run, since the processor has units to spare.
 * Variables take turns instead of moving: eight rounds bring each back to its own. The sums are in the order in which their parts are ready, and a
 * majority reuses the difference of the round before it (measured: an eighth less time).
 */
function rounds(schedule: usize, makes: bool): void {
  let a = load<u32>(HASH_STATE), b = load<u32>(HASH_STATE, 4), c = load<u32>(HASH_STATE, 8), d = load<u32>(HASH_STATE, 12);
  let e = load<u32>(HASH_STATE, 16), f = load<u32>(HASH_STATE, 20), g = load<u32>(HASH_STATE, 24), h = load<u32>(HASH_STATE, 28);
  let w0 = v128.load(HASH_WORDS), w1 = v128.load(HASH_WORDS, 16), w2 = v128.load(HASH_WORDS, 32), w3 = v128.load(HASH_WORDS, 48);
  let x: u32 = b ^ c, y: u32;
  const end = schedule + WORD * WORDS;
  let made = end;
  if (makes) for (made = HASH_SCHEDULE; made < HASH_SCHEDULE + WORD * 16; made += WORD * 4) spread(made, v128.load(HASH_WORDS + (made - HASH_SCHEDULE >> 2)));
  do {
    if (made < end) do {
      const next = four(w0, w1, w2, w3);
      spread(made, next);
      made += WORD * 4;
      w0 = w1; w1 = w2; w2 = w3; w3 = next;
    } while (made & WORD * 4);
    h = load<u32>(schedule) + h + choice(e, f, g) + sum1(e); d = d + h; y = a ^ b; h = h + ((x & y) ^ b) + sum0(a);
    g = load<u32>(schedule, 16) + g + choice(d, e, f) + sum1(d); c = c + g; x = h ^ a; g = g + ((x & y) ^ a) + sum0(h);
    f = load<u32>(schedule, 32) + f + choice(c, d, e) + sum1(c); b = b + f; y = g ^ h; f = f + ((x & y) ^ h) + sum0(g);
    e = load<u32>(schedule, 48) + e + choice(b, c, d) + sum1(b); a = a + e; x = f ^ g; e = e + ((x & y) ^ g) + sum0(f);
    d = load<u32>(schedule, 64) + d + choice(a, b, c) + sum1(a); h = h + d; y = e ^ f; d = d + ((x & y) ^ f) + sum0(e);
    c = load<u32>(schedule, 80) + c + choice(h, a, b) + sum1(h); g = g + c; x = d ^ e; c = c + ((x & y) ^ e) + sum0(d);
    b = load<u32>(schedule, 96) + b + choice(g, h, a) + sum1(g); f = f + b; y = c ^ d; b = b + ((x & y) ^ d) + sum0(c);
    a = load<u32>(schedule, 112) + a + choice(f, g, h) + sum1(f); e = e + a; x = b ^ c; a = a + ((x & y) ^ c) + sum0(b);
    schedule += WORD * 8;
  } while (schedule < end);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE) + a);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE, 4) + b, 4);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE, 8) + c, 8);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE, 12) + d, 12);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE, 16) + e, 16);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE, 20) + f, 20);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE, 24) + g, 24);
  store<u32>(HASH_STATE, load<u32>(HASH_STATE, 28) + h, 28);
}

/** Takes in the chunk whose words stand at HASH_WORDS. */
export function compress(): void { rounds(HASH_SCHEDULE, true); }
/** Takes in a chunk whose schedule is ready. */
export function compressScheduled(schedule: usize): void { rounds(schedule, false); }
/** Four words of the state. Loaded one by one, since they have been stored so just before: a wide load would wait for that. */
@inline export function state(at: usize): v128 {
  let words = v128.load32_zero(HASH_STATE + at);
  words = v128.load_lane<u32>(HASH_STATE + at, words, 1, 4);
  words = v128.load_lane<u32>(HASH_STATE + at, words, 2, 8);
  return v128.load_lane<u32>(HASH_STATE + at, words, 3, 12);
}

/** Schedules of four chunks, side by side, to HASH_SCHEDULES. */
export function scheduleFour(one: usize, two: usize, three: usize, four: usize): void {
  let words: usize = HASH_SCHEDULES;
  for (let at: usize = 0; at < CHUNK; at += 16, words += WORD * 4) {
    const a = swapped(v128.load(one + at)), b = swapped(v128.load(two + at));
    const c = swapped(v128.load(three + at)), d = swapped(v128.load(four + at));
    const ab = v128.shuffle<u32>(a, b, 0, 4, 1, 5), cd = v128.shuffle<u32>(c, d, 0, 4, 1, 5);
    const AB = v128.shuffle<u32>(a, b, 2, 6, 3, 7), CD = v128.shuffle<u32>(c, d, 2, 6, 3, 7);
    v128.store(words, v128.shuffle<u64>(ab, cd, 0, 2));
    v128.store(words, v128.shuffle<u64>(ab, cd, 1, 3), WORD);
    v128.store(words, v128.shuffle<u64>(AB, CD, 0, 2), WORD * 2);
    v128.store(words, v128.shuffle<u64>(AB, CD, 1, 3), WORD * 3);
  }
  words = HASH_SCHEDULES;
  let y = v128.load(words, WORD * 14), z = v128.load(words, WORD * 15), key = CONSTANTS;
  for (; key < CONSTANTS + 48 * 4; key += 16, words += WORD * 4) {
    const a = v128.load(words), b = v128.load(words, WORD), c = v128.load(words, WORD * 2), d = v128.load(words, WORD * 3);
    const p = i32x4.add(i32x4.add(a, sigma0(b)), i32x4.add(v128.load(words, WORD * 9), sigma1(y)));
    const q = i32x4.add(i32x4.add(b, sigma0(c)), i32x4.add(v128.load(words, WORD * 10), sigma1(z)));
    y = i32x4.add(i32x4.add(c, sigma0(d)), i32x4.add(v128.load(words, WORD * 11), sigma1(p)));
    z = i32x4.add(i32x4.add(d, sigma0(v128.load(words, WORD * 4))), i32x4.add(v128.load(words, WORD * 12), sigma1(q)));
    v128.store(words, p, WORD * 16); v128.store(words, q, WORD * 17); v128.store(words, y, WORD * 18); v128.store(words, z, WORD * 19);
    // These four are needed no more.
    v128.store(words, i32x4.add(a, v128.load32_splat(key)));
    v128.store(words, i32x4.add(b, v128.load32_splat(key, 4)), WORD);
    v128.store(words, i32x4.add(c, v128.load32_splat(key, 8)), WORD * 2);
    v128.store(words, i32x4.add(d, v128.load32_splat(key, 12)), WORD * 3);
  }
  for (; key < CONSTANTS + WORDS * 4; key += 4, words += WORD) v128.store(words, i32x4.add(v128.load(words), v128.load32_splat(key)));
}

function compressAt(chunk: usize): void {
  for (let at: usize = 0; at < CHUNK; at += 16) v128.store(HASH_WORDS + at, swapped(v128.load(chunk + at)));
  compress();
}

/** The digest of a message of any length, 32 bytes at `out`. */
export function sha256(message: usize, length: u32, out: usize): void {
  begin();
  const whole = message + (length & ~63);
  for (; message < whole; message += CHUNK) compressAt(message);
  const rest: usize = length & 63;
  memory.fill(HASH_PADDING, 0, CHUNK * 2);
  memory.copy(HASH_PADDING, message, rest);
  store<u8>(HASH_PADDING + rest, 0x80);
  const last = rest < LENGTH_AT ? HASH_PADDING : HASH_PADDING + CHUNK;
  store<u64>(last, bswap<u64>(<u64>length << 3), LENGTH_AT);
  for (let chunk: usize = HASH_PADDING; chunk <= last; chunk += CHUNK) compressAt(chunk);
  v128.store(out, swapped(state(0)));
  v128.store(out, swapped(state(16)), 16);
}
