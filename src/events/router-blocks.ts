// From a stored event to the blocks that a GPU index takes: the external and the local hash of each, in the index's block size. An
// engine may announce more than can be indexed (partial blocks, another block size), and what comes behind the first such block is left
// out, since a chain with a hole is none. Rules: spec/kv-events.md 1.13, hashes 2.1 and 2.3.
import { seedOf } from '../core/local-hash.js';
import { type HashSeed, type Numbers, sharedNumbers } from '../core/numbers.js';
import { ConfigError } from '../errors.js';
import { staleEvent } from '../wire/worker-event.js';
import { blockMmHashes, mmBlockBytes, padImages } from './multimodal.js';
import type { NormalisedStored } from './normaliser.js';

/** How an index sees blocks. */
export interface RouterBlockOptions {
  /** Tokens a block, 1 or more. */
  readonly blockSize: number;
  /** The model's image token, whose runs are replaced by pad values where the event says which images they are; null if unknown. */
  readonly imageTokenId?: number | null;
}

/** Why not all blocks of an event were taken. */
export type BlocksStopped =
  | 'self-reference' //     a hash stands twice in the event, or is its own parent: none was taken
  | 'foreign-block-size' // the event's blocks have another size
  | 'tokens-missing'; //    there are hashes without tokens

const NO_SEED: HashSeed = { low: 0, high: 0 };

/**
 * The blocks taken: the first `count` of the event. Their local hashes stand in `numbers.locals`, at the indices of the engine hashes, until the
 * event's numbers make way for others (`stale-event` then).
 */
export class RouterBlocks {
  readonly #epoch: number;

  constructor(
    readonly numbers: Numbers,
    readonly hashesAt: number,
    readonly count: number,
    readonly stopped: BlocksStopped | null,
  ) {
    this.#epoch = numbers.epoch;
  }

  /** A copy of the external hashes. */
  get hashes(): BigUint64Array {
    return this.#live().copyLows(this.hashesAt, this.count);
  }

  /** A copy of the local hashes. */
  get locals(): BigUint64Array {
    return this.#live().copyLocals(this.hashesAt, this.count);
  }

  #live(): Numbers {
    if (this.numbers.epoch !== this.#epoch) throw staleEvent();
    return this.numbers;
  }
}

/**
 * Converts a stored event.
 * @throws ConfigError `block-size` for what is no whole number from 1 on; MoonrouteError `stale-event`.
 */
export function routerBlocks(stored: NormalisedStored, options: RouterBlockOptions): RouterBlocks {
  if (!Number.isInteger(options.blockSize) || options.blockSize < 1) {
    throw new ConfigError(
      'block-size',
      `routerBlocks: blockSize is ${options.blockSize}; give a whole number of tokens.`,
    );
  }
  const { event } = stored;
  const numbers = event.place(sharedNumbers());
  const taken = (count: number, stopped: BlocksStopped | null) =>
    new RouterBlocks(numbers, event.hashesAt, count, stopped);
  if (numbers.repeats(event.hashesAt, event.blockCount, event.hasParent, event.parentLow, event.parentHigh)) {
    return taken(0, 'self-reference');
  }
  if (event.blockCount > 0 && event.blockSize !== options.blockSize) return taken(0, 'foreign-block-size');
  const eagle = event.tokenPairs;
  const whole = Math.max(0, Math.floor((event.tokenCount - (eagle ? 1 : 0)) / options.blockSize));
  const count = Math.min(event.blockCount, whole);
  hashBlocks(stored, numbers, count, options);
  return taken(count, count < event.blockCount ? 'tokens-missing' : null);
}

function hashBlocks(stored: NormalisedStored, numbers: Numbers, count: number, options: RouterBlockOptions): void {
  const { event, namespace } = stored;
  const seed = seedOf(event.loraName, namespace);
  const { blockSize, imageTokenId = null } = options;
  if (event.tokenPairs) numbers.hashWindows(event.tokensAt, count, blockSize, seed, event.hashesAt);
  else if (!event.hashed) numbers.hashBlocks(event.tokensAt, count, blockSize, seed, event.hashesAt);
  if (event.shape.nilKeys && event.blockMmInfos === undefined) return;
  const objects = blockMmHashes(event, count, (bytes) => numbers.hash(bytes, NO_SEED));
  objects?.forEach((hashes, block) => {
    if (hashes === null) return;
    const from = event.tokensAt + block * blockSize;
    const tokens = numbers.tokens.slice(from, from + blockSize + (event.tokenPairs ? 1 : 0));
    const padded = imageTokenId !== null;
    if (padded) padImages(tokens, imageTokenId, hashes);
    numbers.setLocal(event.hashesAt + block, numbers.hash(mmBlockBytes(tokens, padded ? [] : hashes), seed));
  });
}
