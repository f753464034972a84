// The reader's hashes, for tests, straight from the compiled module. Run from the package's root; MOONROUTE_TEST_WASM
// names another module with the same exports.

import { readFileSync } from 'node:fs';
import { instantiateSync } from '@assemblyscript/loader';

/** XXH3-64 of bytes, of blocks of tokens, and of chains of block hashes. */
export interface Hasher {
  /** XXH3-64 of `bytes`. */
  hash(bytes: Uint8Array, seed: bigint): bigint;
  /** XXH3-64 of every whole run of `runBytes` bytes, in place: unless that is a multiple of 8, most lie unaligned. */
  hashRuns(bytes: Uint8Array, runBytes: number, seed: bigint): BigUint64Array;
  /** Local hashes of every whole block of `blockSize` tokens. */
  hashBlocks(tokens: Uint32Array, blockSize: number, seed: bigint): BigUint64Array;
  /** Sequence hashes of these local hashes. */
  chain(locals: BigUint64Array): BigUint64Array;
}

interface Exports extends Record<string, unknown> {
  memory: WebAssembly.Memory;
  SEEN: WebAssembly.Global;
  TOKENS: WebAssembly.Global;
  LOCALS: WebAssembly.Global;
  RESULT: WebAssembly.Global;
  hashBytes(length: number, seedLow: number, seedHigh: number): void;
  hashBlocks(first: number, blocks: number, blockBytes: number, seedLow: number, seedHigh: number, to: number): void;
  chainHashes(count: number): void;
}

/** Stands behind the last hash to show that nothing is written there. */
const UNTOUCHED = 0x0123_4567_89ab_cdefn;

/** A hasher on a fresh instance. */
export function hasher(): Hasher {
  const module = readFileSync(process.env['MOONROUTE_TEST_WASM'] ?? 'build/wasm/wire.wasm');
  const core = instantiateSync<Exports>(module).exports;
  const memory = core.memory.buffer;
  const input: number = core.SEEN.value;
  const tokensAt: number = core.TOKENS.value;
  const localsAt: number = core.LOCALS.value;
  const result: number = core.RESULT.value;

  const write = (bytes: Uint8Array, at: number) => new Uint8Array(memory, at, bytes.length).set(bytes);
  const halves = (seed: bigint): [low: number, high: number] => [Number(seed & 0xffffffffn), Number(seed >> 32n)];

  function hashRuns(bytes: Uint8Array, runBytes: number, seed: bigint): BigUint64Array {
    const runs = Math.floor(bytes.length / runBytes);
    const hashes = new BigUint64Array(memory, localsAt, runs + 1);
    hashes[runs] = UNTOUCHED;
    write(bytes, tokensAt);
    core.hashBlocks(0, runs, runBytes, ...halves(seed), 0);
    if (hashes[runs] !== UNTOUCHED) throw new Error(`${runs} runs of ${runBytes} bytes: a hash too many was written`);
    return hashes.slice(0, runs);
  }

  return {
    hash(bytes, seed) {
      write(bytes, input);
      core.hashBytes(bytes.length, ...halves(seed));
      return new BigUint64Array(memory, result, 1)[0]!;
    },
    hashRuns,
    hashBlocks(tokens, blockSize, seed) {
      return hashRuns(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength), 4 * blockSize, seed);
    },
    chain(locals) {
      new BigUint64Array(memory, localsAt, locals.length).set(locals);
      core.chainHashes(locals.length);
      return new BigUint64Array(memory, localsAt, locals.length).slice();
    },
  };
}
