// Flat memory for the numbers of worker events: token ids and engine hashes go there straight from a payload's bytes, and are hashed
// there, without a JavaScript value for each. One instance of the reader's module (assembly/wire.ts), whose addresses are known in this
// folder only; what callers see are positions in the payload and indices of numbers.
import type { HashRule } from '../contract/descriptor.js';
import { globalOf } from './builds.js';
import { ALGORITHMS, RULE, type Tails } from './engine-hash.js';
import { compiledModule, instantiate } from './modules.js';

/** A 64-bit seed in two halves, so that it never is a BigInt on a hot path. */
export interface HashSeed {
  readonly low: number;
  readonly high: number;
}

interface Exports extends Record<string, unknown> {
  readonly memory: WebAssembly.Memory;
  begin(length: number): void;
  skip(at: number): number;
  readTokens(at: number, row: number): number;
  readHashes(at: number, row: number): number;
  readParent(at: number, row: number): number;
  readShaped(at: number, row: number, most: number): number;
  usedTokens(): number;
  usedHashes(): number;
  release(tokens: number, hashes: number): void;
  shapePlace(): number;
  addShape(): void;
  hashBytes(length: number, seedLow: number, seedHigh: number): void;
  hashBlocks(first: number, blocks: number, blockBytes: number, low: number, high: number, to: number): void;
  hashWindows(first: number, blocks: number, blockBytes: number, low: number, high: number, to: number): void;
  chainHashes(count: number): void;
  repeated(first: number, blocks: number, hasParent: number, parentLow: number, parentHigh: number): number;
  sha256(length: number): void;
  digestBlocks(blocks: number, first: number): void;
}

const FAULTS = ['', 'no-list', 'type', 'too-many', 'width', 'mixed', 'no-pair'] as const;

/** Why a list of numbers was not read. */
export interface NumberFault {
  readonly why: Exclude<(typeof FAULTS)[number], ''>;
  /** Where the faulty element starts in the payload. */
  readonly at: number;
  /** Its index in the list; for `too-many` how many there were. */
  readonly index: number;
}

/** Bytes of a digest. */
const DIGEST_BYTES = 32;

/** What the hashes of one list are. */
export type HashForm = 'none' | 'integers' | 'digests';
const FORMS: readonly HashForm[] = ['none', 'integers', 'digests'];
/** The form of 32-byte digests, as it stands in a row. */
export const DIGEST_FORM = 2;

/** Words of a row (assembly/rows.ts). */
export const ROW_WORDS = 16;
/** Places of a row's words. */
export const ROW = {
  hashesAt: 0,
  blockCount: 1,
  hashForm: 2,
  tokensAt: 3,
  tokenCount: 4,
  pairs: 5,
  parentForm: 6,
  parentLow: 7,
  parentHigh: 8,
  parentAt: 9,
  nilKeys: 10,
  laid: 11,
  shape: 12,
} as const;
// How an event's numbers are laid out, bits of `laid`:
/** Single tokens, exactly those of its blocks. */
export const DENSE = 1;
/** So is the event before it, which has the same shape and form of hashes and ends where this one begins. */
export const BEHIND = 2;
/** Of extra keys that are all nil: there is one for each block. */
export const KEYED = 4;
/** Its local hashes have been made … */
export const HASHED = 8;
/** … together with those of the event before it. */
export const FOLLOWS = 16;

/** The name of a form as it stands in a row. */
export function hashForm(code: number): HashForm {
  return FORMS[code]!;
}

/** A step of a shape: what stands between two literals (assembly/shapes.ts). */
export const STEP = { hashes: 1, parent: 2, tokens: 3, nils: 4, any: 5 } as const;
const MAX_STEPS = 15;
const BLOCK_SIZE_AT = 64;
const LITERALS_AT = 68;
/** Readable bytes behind a shape's literals. */
const SHAPE_GUARD = 16;

/** One message's numbers at a time. Not safe to share between threads. */
export class Numbers {
  /** The payload, with bytes behind it that are no MessagePack. */
  readonly bytes: Uint8Array;
  /** Most bytes of a payload. */
  readonly payloadBytes: number;
  /** Most tokens, and most hashes, of a message. */
  readonly tokenCap: number;
  readonly hashCap: number;
  /** Places for shapes. */
  readonly shapeCap: number;
  /** Token ids of all events, back to back. */
  readonly tokens: Uint32Array;
  /** Low 64 bits of all engine hashes as pairs of words, the low one first. */
  readonly lows: Uint32Array;
  /** Whole digests, 32 bytes each, at the same indices. */
  readonly digests: Uint8Array;
  /** Local hashes, as pairs of words; a block's stands at the index of its engine hash. */
  readonly locals: Uint32Array;
  /** Where each event's numbers stand: a row of words each. */
  readonly rows: Uint32Array;
  /** What the callers of `keepShape` said about the shape at each place. */
  readonly labels: unknown[] = [];
  /** Counts payloads: what was read before belongs to an earlier one. */
  epoch = 0;

  readonly #exports: Exports;
  readonly #result: Uint32Array;
  readonly #resultLongs: BigUint64Array;
  readonly #lowLongs: BigUint64Array;
  readonly #localLongs: BigUint64Array;
  readonly #hashInput: Uint8Array;
  /** Bytes or tokens to be hashed, and where engine digests are told what they need (assembly/engine-hash.ts). */
  readonly #hashTokens: Uint32Array;
  readonly #rule: Uint32Array;
  readonly #tails: Tails;
  readonly #parentDigest: Uint8Array;
  readonly #digestsOut: Uint8Array;
  #markedTokens = 0;
  #markedHashes = 0;
  readonly #shapes: Uint8Array;
  readonly #shapeBytes: number;

  constructor() {
    const exports = instantiate<Exports>(compiledModule('wire'));
    this.#exports = exports;
    const at = (name: string) => globalOf(exports, name);
    const { buffer } = exports.memory;
    if (buffer.byteLength < at('MEMORY_END')) {
      throw new RangeError(`the reader needs ${at('MEMORY_END')} bytes, asconfig.json reserves ${buffer.byteLength}`);
    }
    this.payloadBytes = at('PAYLOAD_BYTES');
    this.tokenCap = at('TOKEN_CAP');
    this.hashCap = at('HASH_CAP');
    this.bytes = new Uint8Array(buffer, at('PAYLOAD'), this.payloadBytes + at('GUARD'));
    this.rows = new Uint32Array(buffer, at('ROWS'), at('EVENT_CAP') * ROW_WORDS);
    this.tokens = new Uint32Array(buffer, at('TOKENS'), this.tokenCap);
    this.shapeCap = at('SHAPE_CAP');
    this.#shapeBytes = at('SHAPE_BYTES');
    this.#shapes = new Uint8Array(buffer, at('SHAPES'), this.shapeCap * this.#shapeBytes);
    this.lows = new Uint32Array(buffer, at('LOWS'), this.hashCap * 2);
    this.#lowLongs = new BigUint64Array(buffer, at('LOWS'), this.hashCap);
    this.digests = new Uint8Array(buffer, at('DIGESTS'), this.hashCap * DIGEST_BYTES);
    this.locals = new Uint32Array(buffer, at('LOCALS'), this.hashCap * 2);
    this.#localLongs = new BigUint64Array(buffer, at('LOCALS'), this.hashCap);
    this.#hashInput = new Uint8Array(buffer, at('SEEN'), this.payloadBytes);
    this.#hashTokens = new Uint32Array(buffer, at('SEEN'), this.payloadBytes / 4);
    this.#rule = new Uint32Array(buffer, at('HASH_RULE'), RULE.root + DIGEST_BYTES / 4);
    this.#tails = {
      first: new Uint8Array(buffer, at('TAIL_FIRST'), at('TAIL_BYTES')),
      rest: new Uint8Array(buffer, at('TAIL_REST'), at('TAIL_BYTES')),
    };
    this.#parentDigest = new Uint8Array(buffer, at('PARENT_DIGEST'), DIGEST_BYTES);
    this.#digestsOut = new Uint8Array(buffer, at('DIGESTS_OUT'), at('DIGESTS_OUT_BLOCKS') * DIGEST_BYTES);
    this.#result = new Uint32Array(buffer, at('RESULT'), 16);
    this.#resultLongs = new BigUint64Array(buffer, at('RESULT'), 1);
  }

  /** Takes a payload of at most `payloadBytes` bytes; everything read before is gone. */
  open(payload: Uint8Array): void {
    this.epoch++;
    this.bytes.set(payload);
    this.#exports.begin(payload.length);
  }

  /** Takes the numbers of one event from arrays, to index 0; everything read before is gone. */
  load(tokenIds: Uint32Array, low64: BigUint64Array, digests: Uint8Array | null): void {
    this.epoch++;
    this.tokens.set(tokenIds);
    this.#lowLongs.set(low64);
    if (digests !== null) this.digests.set(digests);
  }

  /** The position behind the value at `at`, 0 when it is no whole MessagePack value. */
  skip(at: number): number {
    return this.#exports.skip(at);
  }

  /** Reads a list of token ids into a row: the position behind it, 0 when it was not read (`fault` says why). */
  readTokens(at: number, row: number): number {
    return this.#exports.readTokens(at, row);
  }

  /** Reads a list of engine hashes, likewise. */
  readHashes(at: number, row: number): number {
    return this.#exports.readHashes(at, row);
  }

  /** Reads a parent's hash or nil, likewise. */
  readParent(at: number, row: number): number {
    return this.#exports.readParent(at, row);
  }

  /**
   * Keeps a shape: the event from `start` to `end` in the payload, in which `steps` says what varies, as [step, from, to] one after the other,
   * in order; its blocks have `blockSize` tokens. It is found again under `label`. The one not seen for longest makes room. False when it is too
   * long to be kept.
   */
  keepShape(start: number, end: number, steps: readonly number[], blockSize: number, label: unknown): boolean {
    let varying = 0;
    for (let i = 0; i < steps.length; i += 3) varying += steps[i + 2]! - steps[i + 1]!;
    if (LITERALS_AT + end - start - varying + SHAPE_GUARD > this.#shapeBytes) return false;
    const said: number[] = [];
    for (let i = 0, from = start; i <= steps.length; i += 3) {
      const to = steps[i + 1] ?? end;
      if (to > from) said.push((to - from) << 8);
      if (i < steps.length) said.push(steps[i]!);
      from = steps[i + 2] ?? end;
    }
    if (said.length > MAX_STEPS) return false;
    const place = this.#exports.shapePlace();
    const base = place * this.#shapeBytes;
    const words = new Uint32Array(this.#shapes.buffer, this.#shapes.byteOffset + base, LITERALS_AT / 4);
    words.set([said.length, ...said]);
    words[BLOCK_SIZE_AT / 4] = blockSize;
    let literal = base + LITERALS_AT;
    for (let i = 0, from = start; i <= steps.length; i += 3) {
      const to = steps[i + 1] ?? end;
      this.#shapes.set(this.bytes.subarray(from, to), literal);
      literal += to - from;
      from = steps[i + 2] ?? end;
    }
    this.#exports.addShape();
    this.labels[place] = label;
    return true;
  }

  /** Reads events of kept shapes, at most `most`, into rows from `row` on. Returns how many; `position` is behind them. */
  readShaped(at: number, row: number, most: number): number {
    return this.#exports.readShaped(at, row, most);
  }

  /** Notes how much room is used; `release` gives back what has been read since. One note at a time. */
  mark(): void {
    this.#markedTokens = this.#exports.usedTokens();
    this.#markedHashes = this.#exports.usedHashes();
  }

  /** Gives back the room of what was read since `mark`. */
  release(): void {
    this.#exports.release(this.#markedTokens, this.#markedHashes);
  }

  /** The position behind what `readShaped` read last. */
  get position(): number {
    return this.#result[0]!;
  }

  /** Why the last list was not read. */
  get fault(): NumberFault {
    const [why, at, index] = this.#result;
    return { why: FAULTS[why!] as NumberFault['why'], at: at!, index: index! };
  }

  /** A copy of the low 64 bits of `count` engine hashes. */
  copyLows(first: number, count: number): BigUint64Array {
    return this.#lowLongs.slice(first, first + count);
  }

  /** A copy of their digests. */
  copyDigests(first: number, count: number): Uint8Array {
    return this.digests.slice(first * DIGEST_BYTES, (first + count) * DIGEST_BYTES);
  }

  /** Hashes `blocks` blocks of `blockSize` tokens from token `first` on, into `locals` from index `to` on. */
  hashBlocks(first: number, blocks: number, blockSize: number, { low, high }: HashSeed, to: number): void {
    this.#exports.hashBlocks(first, blocks, blockSize * 4, low, high, to);
  }

  /** The same where each block's window reaches one token into the next (Eagle). */
  hashWindows(first: number, blocks: number, blockSize: number, { low, high }: HashSeed, to: number): void {
    this.#exports.hashWindows(first, blocks, blockSize * 4, low, high, to);
  }

  /** Whether a list of hashes holds one twice, or the parent's. */
  repeats(first: number, count: number, hasParent: boolean, parentLow: number, parentHigh: number): boolean {
    return this.#exports.repeated(first, count, hasParent ? 1 : 0, parentLow, parentHigh) !== 0;
  }

  /** Sequence hashes of `locals`, which are taken over. */
  chainLocals(locals: BigUint64Array): BigUint64Array {
    this.#localLongs.set(locals);
    this.#exports.chainHashes(locals.length);
    return this.copyLocals(0, locals.length);
  }

  /** A copy of `count` local hashes. */
  copyLocals(first: number, count: number): BigUint64Array {
    return this.#localLongs.slice(first, first + count);
  }

  /** Sets one local hash. */
  setLocal(index: number, hash: bigint): void {
    this.#localLongs[index] = hash;
  }

  /** XXH3-64 of at most `payloadBytes` bytes. */
  hash(bytes: Uint8Array, { low, high }: HashSeed): bigint {
    this.#hashInput.set(bytes);
    this.#exports.hashBytes(bytes.length, low, high);
    return this.#resultLongs[0]!;
  }

  /** SHA-256 of at most `payloadBytes` bytes. */
  sha256(bytes: Uint8Array): Uint8Array {
    this.#hashInput.set(bytes);
    this.#exports.sha256(bytes.length);
    const { buffer, byteOffset } = this.#result;
    return new Uint8Array(buffer, byteOffset, DIGEST_BYTES).slice();
  }

  /** Says how engine digests are made from now on: by which rule, of how many tokens a block, and from which root. */
  setHashRule(algorithm: HashRule['algorithm'], blockSize: number, root: Uint8Array): void {
    this.#rule[RULE.algorithm] = ALGORITHMS[algorithm];
    this.#rule[RULE.blockTokens] = blockSize;
    new Uint8Array(this.#rule.buffer, this.#rule.byteOffset + RULE.root * 4, DIGEST_BYTES).set(root);
  }

  /** Says what follows the tokens of the first block of a call that starts a chain, and of all others. */
  setTails({ first, rest }: Tails): void {
    this.#tails.first.set(first);
    this.#tails.rest.set(rest);
    this.#rule[RULE.firstTailBytes] = first.length;
    this.#rule[RULE.restTailBytes] = rest.length;
  }

  /** Blocks of so many tokens that one call of `engineDigests` takes. */
  digestsAtOnce(blockSize: number): number {
    return Math.min(this.#digestsOut.length / DIGEST_BYTES, Math.floor(this.#hashTokens.length / blockSize));
  }

  /**
   * Engine digests of `blocks` blocks of tokens, behind a digest or at a chain's start (null). They are good until the next call.
   * @param tokens token ids from index `first` on, `blocks` times as many as a block has
   */
  engineDigests(
    parent: Uint8Array | null,
    tokens: ArrayLike<number>,
    first: number,
    blocks: number,
    blockSize: number,
  ): Uint8Array {
    const count = blocks * blockSize;
    if (tokens instanceof Uint32Array) this.#hashTokens.set(tokens.subarray(first, first + count));
    else for (let i = 0; i < count; i++) this.#hashTokens[i] = tokens[first + i]!;
    if (parent !== null) this.#parentDigest.set(parent);
    this.#exports.digestBlocks(blocks, parent === null ? 1 : 0);
    return this.#digestsOut.subarray(0, blocks * DIGEST_BYTES);
  }
}

let shared: Numbers | undefined;

/** The process's own: for events that hold their numbers themselves, and for hashes asked for by themselves. */
export function sharedNumbers(): Numbers {
  shared ??= new Numbers();
  return shared;
}
