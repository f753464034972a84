// XXH3-64 the slow and plain way, after the description in Yann Collet's xxHash (BSD-2-Clause): a second opinion on
// assembly/xxh3.ts that shares none of its tricks. Words are BigInts, products are whole 128-bit numbers.

const MASK64 = (1n << 64n) - 1n;
const PRIME32 = [0x9e3779b1n, 0x85ebca77n, 0xc2b2ae3dn] as const;
const PRIME64 = [
  0x9e3779b185ebca87n,
  0xc2b2ae3d27d4eb4fn,
  0x165667b19e3779f9n,
  0x85ebca77c2b2ae63n,
  0x27d4eb2f165667c5n,
] as const;

/** The default secret, 192 bytes. */
const SECRET = Uint8Array.from(
  (
    'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221' +
    'b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8' +
    'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb' +
    '170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e'
  )
    .match(/../g)!
    .map((byte) => Number.parseInt(byte, 16)),
);

/** XXH3-64 of `bytes` with a 64-bit `seed`. */
export function xxh3BigInt(bytes: Uint8Array, seed: bigint): bigint {
  if (bytes.length <= 16) return upTo16(bytes, seed);
  if (bytes.length <= 128) return upTo128(bytes, seed);
  if (bytes.length <= 240) return upTo240(bytes, seed);
  return longer(bytes, seed);
}

function upTo16(bytes: Uint8Array, seed: bigint): bigint {
  const n = bytes.length;
  const length = BigInt(n);
  if (n === 0) return finishXxh64(seed ^ word(SECRET, 56) ^ word(SECRET, 64));
  if (n <= 3) {
    const combined =
      (BigInt(bytes[0]!) << 16n) | (BigInt(bytes[n >> 1]!) << 24n) | BigInt(bytes[n - 1]!) | (length << 8n);
    return finishXxh64(combined ^ wrap((half(SECRET, 0) ^ half(SECRET, 4)) + seed));
  }
  if (n <= 8) {
    const mixedSeed = seed ^ (swapBytes(seed & 0xffffffffn, 4) << 32n);
    const key = wrap((word(SECRET, 8) ^ word(SECRET, 16)) - mixedSeed);
    let hash = (half(bytes, n - 4) + (half(bytes, 0) << 32n)) ^ key;
    hash ^= rotate(hash, 49n) ^ rotate(hash, 24n);
    hash = wrap(hash * 0x9fb21c651e98df25n);
    hash ^= wrap((hash >> 35n) + length);
    hash = wrap(hash * 0x9fb21c651e98df25n);
    return hash ^ (hash >> 28n);
  }
  const low = word(bytes, 0) ^ wrap((word(SECRET, 24) ^ word(SECRET, 32)) + seed);
  const high = word(bytes, n - 8) ^ wrap((word(SECRET, 40) ^ word(SECRET, 48)) - seed);
  return finish(length + swapBytes(low, 8) + high + fold(low, high));
}

function upTo128(bytes: Uint8Array, seed: bigint): bigint {
  let sum = BigInt(bytes.length) * PRIME64[0];
  for (let i = Math.ceil(bytes.length / 32) - 1; i >= 0; i--) {
    sum += mixChunk(bytes, 16 * i, 32 * i, seed);
    sum += mixChunk(bytes, bytes.length - 16 * (i + 1), 32 * i + 16, seed);
  }
  return finish(sum);
}

function upTo240(bytes: Uint8Array, seed: bigint): bigint {
  let sum = BigInt(bytes.length) * PRIME64[0];
  for (let i = 0; i < 8; i++) sum += mixChunk(bytes, 16 * i, 16 * i, seed);
  sum = finish(sum);
  for (let i = 8; i < Math.floor(bytes.length / 16); i++) sum += mixChunk(bytes, 16 * i, 16 * (i - 8) + 3, seed);
  return finish(sum + mixChunk(bytes, bytes.length - 16, 136 - 17, seed));
}

function longer(bytes: Uint8Array, seed: bigint): bigint {
  const secret = new Uint8Array(192);
  const view = new DataView(secret.buffer);
  for (let at = 0; at < 192; at += 16) {
    view.setBigUint64(at, wrap(word(SECRET, at) + seed), true);
    view.setBigUint64(at + 8, wrap(word(SECRET, at + 8) - seed), true);
  }
  let lanes: bigint[] = [
    PRIME32[2],
    PRIME64[0],
    PRIME64[1],
    PRIME64[2],
    PRIME64[3],
    PRIME32[1],
    PRIME64[4],
    PRIME32[0],
  ];
  const accumulate = (at: number, secretAt: number) => {
    for (let i = 0; i < 8; i++) {
      const data = word(bytes, at + 8 * i);
      const keyed = data ^ word(secret, secretAt + 8 * i);
      lanes[i ^ 1] = wrap(lanes[i ^ 1]! + data);
      lanes[i] = wrap(lanes[i]! + (keyed & 0xffffffffn) * (keyed >> 32n));
    }
  };
  const blocks = Math.floor((bytes.length - 1) / 1024);
  for (let block = 0; block < blocks; block++) {
    for (let stripe = 0; stripe < 16; stripe++) accumulate(1024 * block + 64 * stripe, 8 * stripe);
    lanes = lanes.map((lane, i) => wrap((lane ^ (lane >> 47n) ^ word(secret, 128 + 8 * i)) * PRIME32[0]));
  }
  const rest = Math.floor((bytes.length - 1 - 1024 * blocks) / 64);
  for (let stripe = 0; stripe < rest; stripe++) accumulate(1024 * blocks + 64 * stripe, 8 * stripe);
  accumulate(bytes.length - 64, 192 - 64 - 7);

  let sum = BigInt(bytes.length) * PRIME64[0];
  for (let i = 0; i < 4; i++) {
    sum += fold(lanes[2 * i]! ^ word(secret, 11 + 16 * i), lanes[2 * i + 1]! ^ word(secret, 19 + 16 * i));
  }
  return finish(sum);
}

function mixChunk(bytes: Uint8Array, at: number, secretAt: number, seed: bigint): bigint {
  const low = word(bytes, at) ^ wrap(word(SECRET, secretAt) + seed);
  const high = word(bytes, at + 8) ^ wrap(word(SECRET, secretAt + 8) - seed);
  return fold(low, high);
}

function fold(a: bigint, b: bigint): bigint {
  return wrap(a * b) ^ ((a * b) >> 64n);
}

function finish(sum: bigint): bigint {
  let hash = wrap(sum);
  hash = wrap((hash ^ (hash >> 37n)) * 0x165667919e3779f9n);
  return hash ^ (hash >> 32n);
}

function finishXxh64(sum: bigint): bigint {
  let hash = wrap((sum ^ (sum >> 33n)) * PRIME64[1]);
  hash = wrap((hash ^ (hash >> 29n)) * PRIME64[2]);
  return hash ^ (hash >> 32n);
}

function wrap(value: bigint): bigint {
  return value & MASK64;
}

function rotate(value: bigint, bits: bigint): bigint {
  return wrap(value << bits) | (value >> (64n - bits));
}

function swapBytes(value: bigint, bytes: number): bigint {
  let swapped = 0n;
  for (let i = 0; i < bytes; i++) swapped = (swapped << 8n) | ((value >> BigInt(8 * i)) & 0xffn);
  return swapped;
}

function word(bytes: Uint8Array, at: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(at, true);
}

function half(bytes: Uint8Array, at: number): bigint {
  return BigInt(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at, true));
}
