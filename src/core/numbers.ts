// Flat memory for the numbers of worker events: token ids and engine hashes go there straight from a payload's bytes, and are hashed
// there, without a JavaScript value for each. One instance of the reader's module (assembly/wire.ts), whose addresses are known in this
// folder only; what callers see are positions in the payload and indices of numbers.
import { type ASUtil, instantiateSync } from '@assemblyscript/loader';
import { decodeModule, globalOf } from './builds.js';
import { wasmBase64 } from './wasm/wire.js';

/** A 64-bit seed in two halves, so that it never is a BigInt on a hot path. */
export interface HashSeed {
  readonly low: number;
  readonly high: number;
}

interface Exports extends Record<string, unknown> {
  readonly memory: WebAssembly.Memory;
  begin(length: number): void;
  skip(at: number): number;
  readTokens(at: number, first: number): number;
  readHashes(at: number, first: number): number;
  readParent(at: number): number;
  readShaped(at: number, shape: number, firstHash: number, firstToken: number): number;
  hashBytes(length: number, seedLow: number, seedHigh: number): void;
  hashBlocks(first: number, blocks: number, blockBytes: number, low: number, high: number, to: number): void;
  hashWindows(first: number, blocks: number, blockBytes: number, low: number, high: number, to: number): void;
  chainHashes(count: number): void;
  repeated(first: number, blocks: number, hasParent: number, parentLow: number, parentHigh: number): number;
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

/** Where an event's numbers stand, and how many there are. */
export interface EventNumbers {
  hashesAt: number;
  blockCount: number;
  hashForm: HashForm;
  /** Whether there is a block before the first one; its hash's low 64 bits in two halves, and the digest where the wire carries it. */
  hasParent: boolean;
  parentLow: number;
  parentHigh: number;
  parentDigest: Uint8Array | null;
  tokensAt: number;
  tokenCount: number;
  tokenPairs: boolean;
}

/** A step of a shape: what stands between two literals (assembly/shapes.ts). */
export const STEP = { hashes: 1, parent: 2, tokens: 3, nils: 4, any: 5 } as const;
const MAX_STEPS = 15;
const LITERALS_AT = 64;
/** Readable bytes behind a shape's literals. */
const SHAPE_GUARD = 16;

let compiled: WebAssembly.Module | undefined;

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
  /** Counts payloads: what was read before belongs to an earlier one. */
  epoch = 0;

  // What the last successful call read: `count` numbers at index `first`.
  first = 0;
  count = 0;
  /** Token ids came as pairs. */
  paired = false;
  form: HashForm = 'none';
  readonly #exports: Exports;
  readonly #result: Uint32Array;
  readonly #resultLongs: BigUint64Array;
  readonly #lowLongs: BigUint64Array;
  readonly #localLongs: BigUint64Array;
  readonly #payloadAt: number;
  readonly #shapes: Uint8Array;
  readonly #shapeBytes: number;
  #tokensUsed = 0;
  #hashesUsed = 0;

  constructor() {
    compiled ??= new WebAssembly.Module(decodeModule(wasmBase64));
    const exports = instantiateSync<Exports & ASUtil>(compiled, {}).exports;
    this.#exports = exports;
    const at = (name: string) => globalOf(exports, name);
    const { buffer } = exports.memory;
    this.payloadBytes = at('PAYLOAD_BYTES');
    this.tokenCap = at('TOKEN_CAP');
    this.hashCap = at('HASH_CAP');
    this.#payloadAt = at('PAYLOAD');
    this.bytes = new Uint8Array(buffer, this.#payloadAt, this.payloadBytes + at('GUARD'));
    this.tokens = new Uint32Array(buffer, at('TOKENS'), this.tokenCap);
    this.shapeCap = at('SHAPE_CAP');
    this.#shapeBytes = at('SHAPE_BYTES');
    this.#shapes = new Uint8Array(buffer, at('SHAPES'), this.shapeCap * this.#shapeBytes);
    this.lows = new Uint32Array(buffer, at('LOWS'), this.hashCap * 2 + 2);
    this.#lowLongs = new BigUint64Array(buffer, at('LOWS'), this.hashCap);
    this.digests = new Uint8Array(buffer, at('DIGESTS'), (this.hashCap + 1) * DIGEST_BYTES);
    this.locals = new Uint32Array(buffer, at('LOCALS'), this.hashCap * 2);
    this.#localLongs = new BigUint64Array(buffer, at('LOCALS'), this.hashCap);
    this.#result = new Uint32Array(buffer, at('RESULT'), 16);
    this.#resultLongs = new BigUint64Array(buffer, at('RESULT'), 1);
  }

  /** Takes a payload of at most `payloadBytes` bytes; everything read before is gone. */
  open(payload: Uint8Array): void {
    this.#start();
    this.bytes.set(payload);
    this.#exports.begin(payload.length);
  }

  /** Takes the numbers of one event from arrays, at index 0. False when there is no room for so many. */
  load(tokenIds: Uint32Array, low64: BigUint64Array, digests: Uint8Array | null): boolean {
    this.#start();
    if (tokenIds.length > this.tokenCap || low64.length > this.hashCap) return false;
    this.tokens.set(tokenIds);
    this.#lowLongs.set(low64);
    if (digests !== null) this.digests.set(digests);
    return true;
  }

  #start(): void {
    this.epoch++;
    this.#tokensUsed = 0;
    this.#hashesUsed = 0;
  }

  /** The position behind the value at `at`, 0 when it is no whole MessagePack value. */
  skip(at: number): number {
    return this.#exports.skip(at);
  }

  /** Reads a list of token ids: the position behind it, 0 when it was not read (`fault` says why). */
  readTokens(at: number): number {
    const end = this.#exports.readTokens(at, this.#tokensUsed);
    if (end === 0) return 0;
    this.first = this.#tokensUsed;
    this.count = this.#result[0]!;
    this.paired = this.#result[1] === 1;
    this.#tokensUsed += this.count;
    return end;
  }

  /** Reads a list of engine hashes, likewise. */
  readHashes(at: number): number {
    const end = this.#exports.readHashes(at, this.#hashesUsed);
    return end === 0 ? 0 : this.#tookHashes(end, this.#result[0]!);
  }

  #tookHashes(end: number, count: number): number {
    this.first = this.#hashesUsed;
    this.count = count;
    this.form = FORMS[this.#result[1]!]!;
    this.#hashesUsed += count;
    return end;
  }

  /** Reads a parent's hash or nil into `event`, likewise. */
  readParent(at: number, event: EventNumbers): number {
    const end = this.#exports.readParent(at);
    if (end !== 0) this.#takeParent(event);
    return end;
  }

  #takeParent(event: EventNumbers): void {
    const form = this.#result[7]!;
    event.hasParent = form !== 0;
    if (form === 0) return;
    event.parentLow = this.lows[this.hashCap * 2]!;
    event.parentHigh = this.lows[this.hashCap * 2 + 1]!;
    if (FORMS[form] === 'digests') event.parentDigest = this.copyDigests(this.hashCap, 1);
  }

  /**
   * Keeps a shape at place `shape` (below `shapeCap`): the event from `start` to `end` in the payload, in which `steps` says what varies, as
   * [step, from, to] one after the other, in order. False when it is too long to be kept.
   */
  keepShape(shape: number, start: number, end: number, steps: readonly number[]): boolean {
    let varying = 0;
    for (let i = 0; i < steps.length; i += 3) varying += steps[i + 2]! - steps[i + 1]!;
    const said = [(2 * steps.length) / 3 + 1]; // a literal stands before, between and behind the steps
    if (said[0]! > MAX_STEPS || LITERALS_AT + end - start - varying + SHAPE_GUARD > this.#shapeBytes) return false;
    const base = shape * this.#shapeBytes;
    let literal = base + LITERALS_AT;
    let from = start;
    for (let i = 0; i <= steps.length; i += 3) {
      const to = steps[i + 1] ?? end;
      this.#shapes.set(this.bytes.subarray(from, to), literal);
      literal += to - from;
      said.push((to - from) << 8);
      if (i < steps.length) said.push(steps[i]!);
      from = steps[i + 2] ?? end;
    }
    new Uint32Array(this.#shapes.buffer, this.#shapes.byteOffset + base, said.length).set(said);
    return true;
  }

  /** Reads the event at `at` into `event` if it has the shape kept at that place: the position behind it, 0 when it has another. */
  readShaped(at: number, shape: number, event: EventNumbers): number {
    const end = this.#exports.readShaped(at, shape, this.#hashesUsed, this.#tokensUsed);
    if (end === 0) return 0;
    const result = this.#result;
    event.hashesAt = this.#hashesUsed;
    event.blockCount = result[5]!;
    event.hashForm = FORMS[result[6]!]!;
    event.tokensAt = this.#tokensUsed;
    event.tokenCount = result[8]!;
    event.tokenPairs = result[9] === 1;
    this.count = result[10]!;
    this.#hashesUsed += event.blockCount;
    this.#tokensUsed += event.tokenCount;
    if (result[7] !== 0) this.#takeParent(event);
    return end;
  }

  /** Why the last call failed. */
  get fault(): NumberFault {
    const [, , why, address, index] = this.#result;
    return { why: FAULTS[why!] as NumberFault['why'], at: address! - this.#payloadAt, index: index! };
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

  /** XXH3-64 of at most `payloadBytes` bytes. The payload's place is used for it: read the payload's structure first. */
  hash(bytes: Uint8Array, { low, high }: HashSeed): bigint {
    this.bytes.set(bytes);
    this.#exports.hashBytes(bytes.length, low, high);
    return this.#resultLongs[0]!;
  }
}

let shared: Numbers | undefined;

/** The process's own: for events that hold their numbers themselves, and for hashes asked for by themselves. */
export function sharedNumbers(): Numbers {
  shared ??= new Numbers();
  return shared;
}
