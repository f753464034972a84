// One request inside a simulated engine: its tokens, their digests, the blocks that it holds, and how far it is.

import { type BlockDigests, hexOf } from '../../wire/block-digests.js';
import type { Block } from './block-pool.js';
import { alignedDown, firstOfTail } from './coordinator.js';
import type { Geometry, Group } from './geometry.js';
import type { Lora } from './kv-events.js';

/** A request as an engine takes it. */
export interface EngineRequest {
  readonly prompt: ArrayLike<number>;
  /** The tokens that will be generated: at least one. */
  readonly answer: readonly number[];
  readonly lora?: Lora | null;
  readonly cacheSalt?: string | null;
}

/**
 * Windows of which endpoints a prompt keeps, vLLM's `prefix_cache_retention_interval`: 0, its default, of the last one alone; N, of each multiple
 * of N tokens too; null, of all.
 */
export type Retention = number | null;

/** Where a prompt's tokens came from. */
export interface PromptSources {
  /** Found in the GPU's blocks. */
  readonly gpuTokens: number;
  /** Beyond those, restored from the store. */
  readonly storeTokens: number;
}

export class EngineRun {
  readonly id: number;
  readonly lora: Lora | null;
  readonly promptLength: number;
  readonly answer: readonly number[];
  /** Prompt, and what has been generated. */
  readonly tokens: number[];
  /** The last endpoint before the prompt's end: windows and states are kept for it. */
  readonly endpoint: number;
  /** By group: blocks held, by their place in the prompt. */
  readonly held: readonly Map<number, Block>[];
  /** By group: tokens up to which blocks have been announced. */
  readonly announced: number[];
  /** Tokens whose KV is there. */
  computed = 0;
  /** Null while it waits. */
  sources: PromptSources | null = null;
  /** Tokens up to which its objects have been put into the store. */
  put = 0;
  readonly #salt: string | null;
  readonly #retention: Retention;
  readonly #hashBlockSize: number;
  readonly #maker: BlockDigests;
  readonly #digests: Uint8Array[] = [];
  readonly #hexes: string[] = [];

  constructor(id: number, request: EngineRequest, geometry: Geometry, maker: BlockDigests, retention: Retention) {
    this.id = id;
    this.#retention = retention;
    this.lora = request.lora ?? null;
    this.#salt = request.cacheSalt || null;
    this.tokens = Array.from(request.prompt);
    this.promptLength = this.tokens.length;
    this.answer = request.answer;
    this.endpoint = alignedDown(this.promptLength - 1, geometry.alignment);
    this.held = geometry.groups.map(() => new Map());
    this.announced = geometry.groups.map(() => 0);
    this.#hashBlockSize = geometry.hashBlockSize;
    this.#maker = maker;
  }

  /** Tokens generated. */
  get generated(): number {
    return this.tokens.length - this.promptLength;
  }

  /** Tokens at its end, all told. */
  get finalLength(): number {
    return this.promptLength + this.answer.length;
  }

  /** The digest of the first `tokens` tokens, a multiple of the hash span. */
  digestAt(tokens: number): Uint8Array {
    this.#makeUpTo(tokens);
    return this.#digests[tokens / this.#hashBlockSize - 1]!;
  }

  /** The same as object keys have it. */
  hexAt(tokens: number): string {
    this.#makeUpTo(tokens);
    return this.#hexes[tokens / this.#hashBlockSize - 1]!;
  }

  /** The name of the block of `group` that ends behind `tokens` tokens. */
  keyOf(group: Group, tokens: number): string {
    return `${group.index}:${this.hexAt(tokens)}`;
  }

  /** What enters the hash of the block that begins at token `start`, besides tokens. */
  extraKeysAt(start: number): readonly string[] {
    const keys = this.lora === null ? [] : [this.lora.name];
    if (start === 0 && this.#salt !== null) keys.push(this.#salt);
    return keys;
  }

  /**
   * Whether the block of `group` at place `index` is kept for others once it is full: all of full attention, windows before the endpoints that
   * are retained and whatever follows the last one, a prompt's state.
   */
  keeps(group: Group, index: number): boolean {
    const end = (index + 1) * group.blockSize;
    if (group.kind === 'mamba') return end === this.endpoint;
    if (this.#retention === null || end > firstOfTail(group, this.endpoint)) return true;
    const next = this.#retention === 0 ? 0 : Math.ceil(end / this.#retention) * this.#retention;
    return next > 0 && end > firstOfTail(group, next);
  }

  #makeUpTo(tokens: number): void {
    const span = this.#hashBlockSize;
    for (let made = this.#digests.length; made < tokens / span; made++) {
      const digest = this.#maker.digest(
        this.#digests.at(-1) ?? null,
        this.tokens,
        made * span,
        this.extraKeysAt(made * span),
      );
      this.#digests.push(digest);
      this.#hexes.push(hexOf(digest));
    }
  }
}
