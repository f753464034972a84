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
  readHash(at: number, index: number): number;
  readChain(at: number, firstHash: number, firstToken: number): number;
  hashBytes(length: number, seedLow: number, seedHigh: number): void;
  hashBlocks(first: number, blocks: number, blockBytes: number, seedLow: number, seedHigh: number): void;
  hashWindows(first: number, blocks: number, blockBytes: number, seedLow: number, seedHigh: number): void;
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

/** The numbers of a stored event in array form, which stand side by side. */
export interface Chain {
  hashesAt: number;
  blockCount: number;
  hashForm: HashForm;
  hasParent: boolean;
  parentLow: number;
  parentHigh: number;
  parentDigest: Uint8Array | null;
  tokensAt: number;
  tokenCount: number;
  tokenPairs: boolean;
  blockSize: number;
}

let compiled: WebAssembly.Module | undefined;

/** One message's numbers at a time. Not safe to share between threads. */
export class Numbers {
  /** The payload, with bytes behind it that are no MessagePack. */
  readonly bytes: Uint8Array;
  /** Most bytes of a payload. */
  readonly payloadBytes: number;
  /** Most tokens, most hashes of a message; most blocks whose local hashes are held. */
  readonly tokenCap: number;
  readonly hashCap: number;
  readonly localCap: number;
  /** Token ids of all events, back to back. */
  readonly tokens: Uint32Array;
  /** Low 64 bits of all engine hashes as pairs of words, the low one first. */
  readonly lows: Uint32Array;
  /** Whole digests, 32 bytes each, at the same indices. */
  readonly digests: Uint8Array;
  /** Local hashes of the blocks hashed last, as pairs of words. */
  readonly locals: Uint32Array;
  /** Counts payloads: what was read before belongs to an earlier one. */
  epoch = 0;

  // What the last successful call read: `count` numbers at index `first`.
  first = 0;
  count = 0;
  /** Token ids came as pairs. */
  paired = false;
  form: HashForm = 'none';
  /** What `readChain` read last. */
  readonly chain: Readonly<Chain>;

  readonly #chain: Chain = {
    hashesAt: 0,
    blockCount: 0,
    hashForm: 'none',
    hasParent: false,
    parentLow: 0,
    parentHigh: 0,
    parentDigest: null,
    tokensAt: 0,
    tokenCount: 0,
    tokenPairs: false,
    blockSize: 0,
  };
  readonly #exports: Exports;
  readonly #result: Uint32Array;
  readonly #resultLongs: BigUint64Array;
  readonly #lowLongs: BigUint64Array;
  readonly #localLongs: BigUint64Array;
  readonly #payloadAt: number;
  #tokensUsed = 0;
  #hashesUsed = 0;

  constructor() {
    compiled ??= new WebAssembly.Module(decodeModule(wasmBase64));
    const exports = instantiateSync<Exports & ASUtil>(compiled, {}).exports;
    this.#exports = exports;
    this.chain = this.#chain;
    const at = (name: string) => globalOf(exports, name);
    const { buffer } = exports.memory;
    this.payloadBytes = at('PAYLOAD_BYTES');
    this.tokenCap = at('TOKEN_CAP');
    this.hashCap = at('HASH_CAP');
    this.localCap = at('LOCAL_CAP');
    this.#payloadAt = at('PAYLOAD');
    this.bytes = new Uint8Array(buffer, this.#payloadAt, this.payloadBytes + at('GUARD'));
    this.tokens = new Uint32Array(buffer, at('TOKENS'), this.tokenCap);
    this.lows = new Uint32Array(buffer, at('LOWS'), this.hashCap * 2);
    this.#lowLongs = new BigUint64Array(buffer, at('LOWS'), this.hashCap);
    this.digests = new Uint8Array(buffer, at('DIGESTS'), this.hashCap * DIGEST_BYTES);
    this.locals = new Uint32Array(buffer, at('LOCALS'), this.localCap * 2);
    this.#localLongs = new BigUint64Array(buffer, at('LOCALS'), this.localCap);
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

  /** Reads one engine hash, likewise. */
  readHash(at: number): number {
    const end = this.#exports.readHash(at, this.#hashesUsed);
    return end === 0 ? 0 : this.#tookHashes(end, 1);
  }

  #tookHashes(end: number, count: number): number {
    this.first = this.#hashesUsed;
    this.count = count;
    this.form = FORMS[this.#result[1]!]!;
    this.#hashesUsed += count;
    return end;
  }

  /** Reads hashes, parent or nil, token ids and block size, one after the other, into `chain`: the position behind them, 0 when something is amiss. */
  readChain(at: number): number {
    const end = this.#exports.readChain(at, this.#hashesUsed, this.#tokensUsed);
    if (end === 0) return 0;
    const result = this.#result;
    const chain = this.#chain;
    const blocks = result[5]!;
    const parent = result[7]!;
    chain.hashesAt = this.#hashesUsed;
    chain.blockCount = blocks;
    chain.hashForm = FORMS[result[6]!]!;
    chain.hasParent = parent !== 0;
    chain.parentLow = result[8]!;
    chain.parentHigh = result[9]!;
    this.#hashesUsed += blocks;
    chain.parentDigest = parent === 2 ? this.copyDigests(this.#hashesUsed, 1) : null;
    chain.tokensAt = this.#tokensUsed;
    chain.tokenCount = result[0]!;
    chain.tokenPairs = result[1] === 1;
    chain.blockSize = result[10]!;
    this.#tokensUsed += chain.tokenCount;
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

  /** Hashes the first `blocks` blocks of `blockSize` tokens from token `first` on, into `locals`. */
  hashBlocks(first: number, blocks: number, blockSize: number, { low, high }: HashSeed): void {
    this.#exports.hashBlocks(first, blocks, blockSize * 4, low, high);
  }

  /** The same where each block's window reaches one token into the next (Eagle). */
  hashWindows(first: number, blocks: number, blockSize: number, { low, high }: HashSeed): void {
    this.#exports.hashWindows(first, blocks, blockSize * 4, low, high);
  }

  /** Whether a list of hashes holds one twice, or the parent's. */
  repeats(first: number, count: number, hasParent: boolean, parentLow: number, parentHigh: number): boolean {
    return this.#exports.repeated(first, count, hasParent ? 1 : 0, parentLow, parentHigh) !== 0;
  }

  /** Sequence hashes of `locals`, which are taken over. */
  chainLocals(locals: BigUint64Array): BigUint64Array {
    this.#localLongs.set(locals);
    this.#exports.chainHashes(locals.length);
    return this.copyLocals(locals.length);
  }

  /** A copy of the first `count` local hashes. */
  copyLocals(count: number): BigUint64Array {
    return this.#localLongs.slice(0, count);
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
