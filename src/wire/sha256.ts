// SHA-256 (FIPS 180-4) that answers at once and runs in any JavaScript engine: WebCrypto answers later, and node:crypto is Node's alone.
// For the engines' block digests of simulations.

const BLOCK_BYTES = 64;
/** Where the last block's length field begins. */
const LENGTH_AT = 56;
export const DIGEST_BYTES = 32;

// biome-ignore format: eight constants a line
const ROUND_CONSTANTS = Int32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
);
// biome-ignore format: eight constants a line
const FIRST_STATE = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

const state = new Int32Array(FIRST_STATE.length);
const schedule = new Int32Array(ROUND_CONSTANTS.length);
const tail = new Uint8Array(BLOCK_BYTES * 2);
const tailView = new DataView(tail.buffer);

/** Writes the digest of a message, less than 512 MiB long, to `to` from byte `at` on; `to` may be the message. */
export function writeSha256(message: Uint8Array, to: Uint8Array, at = 0): void {
  const { length } = message;
  const view = new DataView(message.buffer, message.byteOffset, length);
  const rest = length % BLOCK_BYTES;
  state.set(FIRST_STATE);
  for (let block = 0; block < length - rest; block += BLOCK_BYTES) compress(view, block);
  const end = rest < LENGTH_AT ? BLOCK_BYTES : BLOCK_BYTES * 2;
  tail.fill(0);
  tail.set(message.subarray(length - rest));
  tail[rest] = 0x80;
  tailView.setUint32(end - 4, length * 8);
  for (let block = 0; block < end; block += BLOCK_BYTES) compress(tailView, block);
  for (let byte = 0; byte < DIGEST_BYTES; byte++) to[at + byte] = state[byte >> 2]! >>> (24 - (byte & 3) * 8);
}

function compress(view: DataView, at: number): void {
  for (let i = 0; i < 16; i++) schedule[i] = view.getInt32(at + i * 4);
  for (let i = 16; i < schedule.length; i++) {
    const early = schedule[i - 15]!;
    const late = schedule[i - 2]!;
    const sigma0 = rotated(early, 7) ^ rotated(early, 18) ^ (early >>> 3);
    const sigma1 = rotated(late, 17) ^ rotated(late, 19) ^ (late >>> 10);
    schedule[i] = schedule[i - 16]! + sigma0 + schedule[i - 7]! + sigma1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < schedule.length; i++) {
    const sum1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const added = (h + sum1 + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[i]! + schedule[i]!) | 0;
    const sum0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + added) | 0;
    d = c;
    c = b;
    b = a;
    a = (added + sum0 + majority) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

const rotated = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));
