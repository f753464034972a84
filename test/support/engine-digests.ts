// The hashes that engines themselves give their blocks, made with node:crypto. Simulated publishers and oracle data need
// them; moonroute only ever reads such hashes from the wire.
//
// vLLM (spec/vllm-store.md 7): SHA-256 over the bytes of Python's pickle.dumps(value, protocol=5). Only the few opcodes that
// such a value needs are written here.
// SGLang HiCache (spec/kv-events.md 8): SHA-256 over the previous raw digest and the page's tokens.

import { createHash } from 'node:crypto';

/** What vLLM mixes into its digests besides the tokens. Empty text counts as absent. */
export interface DigestOptions {
  /** Text of PYTHONHASHSEED, or what vLLM takes in its place. */
  seed?: string;
  /** In every block. */
  loraName?: string | null;
  /** In the first block only, from where it reaches the others through the chain. */
  cacheSalt?: string | null;
}

/** vLLM's digest of every whole span of `hashBlockSize` tokens, 32 bytes each; every one covers all tokens before it. */
export function vllmDigests(tokens: ArrayLike<number>, hashBlockSize: number, options: DigestOptions = {}): Buffer[] {
  const { seed = '0', loraName, cacheSalt } = options;
  const digests: Buffer[] = [];
  let parent = sha256(pickled(text(seed)));
  for (const start of starts(tokens.length, hashBlockSize)) {
    const span = Array.from({ length: hashBlockSize }, (_, i) => integer(tokens[start + i]!));
    const extras = [loraName, start === 0 ? cacheSalt : null].filter((extra) => extra != null && extra !== '');
    const extraKeys = extras.length === 0 ? NONE : tuple(extras.map((extra) => text(extra!)));
    parent = sha256(pickled(tuple([bytes(parent), tuple(span), extraKeys])));
    digests.push(parent);
  }
  return digests;
}

/** HiCache's hash of every whole page, as the lowercase hex that stands in its store keys. Eagle hashes pairs of neighbours. */
export function hicachePages(tokens: ArrayLike<number>, pageSize: number, isEagle = false): string[] {
  const units = isEagle ? tokens.length - 1 : tokens.length;
  const pages: string[] = [];
  let parent: Buffer = Buffer.alloc(0);
  for (const start of starts(units, pageSize)) {
    const ids: number[] = [];
    for (let at = start; at < start + pageSize; at++) {
      ids.push(tokens[at]!);
      if (isEagle) ids.push(tokens[at + 1]!);
    }
    parent = sha256(Buffer.concat([parent, ...ids.map(uint32)]));
    pages.push(parent.toString('hex'));
  }
  return pages;
}

/** Where the whole runs of `size` among `count` items begin; a size of 0 has none. */
function starts(count: number, size: number): number[] {
  const runs = size > 0 && count > 0 ? Math.floor(count / size) : 0;
  return Array.from({ length: runs }, (_, i) => i * size);
}

// ---- pickle, protocol 5 ----

const NONE = Buffer.from('N');
const MARK = Buffer.from('(');
const STOP = Buffer.from('.');
const MEMOIZE = Buffer.of(0x94);
/** Tuples of one to three elements need no mark. */
const SHORT_TUPLE = [0x85, 0x86, 0x87];
/** From this many bytes on, pickle would begin a second frame. */
const MAX_FRAME = 64 * 1024;

function pickled(payload: Buffer): Buffer {
  const frame = Buffer.concat([payload, STOP]);
  if (frame.length >= MAX_FRAME) throw new RangeError(`pickle of ${frame.length} bytes: only one frame can be written`);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(frame.length));
  return Buffer.concat([Buffer.of(0x80, 5, 0x95), length, frame]);
}

function tuple(elements: Buffer[]): Buffer {
  const short = SHORT_TUPLE[elements.length - 1];
  if (short !== undefined) return Buffer.concat([...elements, Buffer.of(short), MEMOIZE]);
  return Buffer.concat([MARK, ...elements, Buffer.from('t'), MEMOIZE]);
}

function integer(value: number): Buffer {
  if (value < 0x100) return Buffer.of(0x4b, value);
  if (value < 0x10000) return Buffer.of(0x4d, value & 0xff, value >> 8);
  if (value < 0x80000000) return Buffer.concat([Buffer.from('J'), uint32(value)]);
  return Buffer.concat([Buffer.of(0x8a, 5), uint32(value), Buffer.of(0)]); // too big for i32: LONG1 of five bytes
}

function bytes(value: Buffer): Buffer {
  return Buffer.concat([Buffer.of(0x43, value.length), value, MEMOIZE]);
}

function text(value: string): Buffer {
  const utf8 = Buffer.from(value);
  const head =
    utf8.length < 0x100 ? Buffer.of(0x8c, utf8.length) : Buffer.concat([Buffer.from('X'), uint32(utf8.length)]);
  return Buffer.concat([head, utf8, MEMOIZE]);
}

function uint32(value: number): Buffer {
  const out = Buffer.alloc(4);
  out.writeUInt32LE(value);
  return out;
}

function sha256(value: Buffer): Buffer {
  return createHash('sha256').update(value).digest();
}
