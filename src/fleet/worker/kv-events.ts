// The KV events of a simulated engine, before they are encoded: what vLLM says of its blocks, with whole digests (spec/kv-events.md 1.5).

/** Blocks of one group that became full. */
export interface BlocksStored {
  readonly kind: 'stored';
  readonly group: number;
  /** The chain's digest before the first token; null at a prompt's start. */
  readonly parent: Uint8Array | null;
  /** Of the blocks that are kept: all of them in a full-attention group, the last ones in others. */
  readonly digests: readonly Uint8Array[];
  /** Tokens of all blocks of the range, kept or not. */
  readonly tokens: readonly number[];
  readonly blockSize: number;
  readonly lora: Lora | null;
  /** For each digest what entered its block's hash besides tokens. */
  readonly extraKeys: readonly (readonly string[] | null)[];
}

/** A block whose place was taken. */
export interface BlockRemoved {
  readonly kind: 'removed';
  readonly group: number;
  readonly digest: Uint8Array;
}

/** Everything of the rank was forgotten. */
export interface AllBlocksCleared {
  readonly kind: 'cleared';
}

/** A block that the connector has put into the shared store; that it leaves it again is never said. */
export interface BlocksPut extends Omit<BlocksStored, 'kind' | 'lora' | 'extraKeys'> {
  readonly kind: 'put';
}

export type KvEvent = BlocksStored | BlocksPut | BlockRemoved | AllBlocksCleared;

/** A LoRA adapter. */
export interface Lora {
  /** 1 or more. */
  readonly id: number;
  readonly name: string;
}
