// Whether tokenising is believed. The local tokenizer first has to agree with the workers' own on a number of prompts of each shape, and is
// out for good with the first prompt that it gets wrong. What workers say is believed, unless their engines keep counting otherwise. Pure decisions.
import type { PromptStats } from './types.js';

/** Distinct prompts of a shape that are compared before the local tokenizer is used for that shape. */
export const COMPARED_PROMPTS = 8;
/** Shapes that are told apart; those beyond stay unverified. There are some thirty. */
const MAX_SHAPES = 256;
/** Counts of engines in a row that change what is thought of `/tokenize`. One may be chance: a worker that came back with another tokenizer. */
const COUNTS_IN_A_ROW = 3;
/** Variants whose prompts `/tokenize` is told whole. */
export const PLAIN_VARIANTS: ReadonlySet<string> = new Set(['text', 'chat']);

/** Trust in the local tokenizer. */
export class LocalTrust {
  /** Of each shape the prompts that agreed, by their hashes. */
  readonly #agreed = new Map<string, Set<string>>();
  #disagreement: string | null = null;

  /** Whether it is used for prompts of that shape. */
  trusts(shape: string): boolean {
    return this.#disagreement === null && (this.#agreed.get(shape)?.size ?? 0) >= COMPARED_PROMPTS;
  }

  /** Whether a prompt of that shape is still to be compared. */
  wants(shape: string, key: string): boolean {
    if (this.#disagreement !== null || this.trusts(shape)) return false;
    const agreed = this.#agreed.get(shape);
    return agreed === undefined ? this.#agreed.size < MAX_SHAPES : !agreed.has(key);
  }

  agree(shape: string, key: string): void {
    const agreed = this.#agreed.get(shape) ?? new Set();
    this.#agreed.set(shape, agreed.add(key));
  }

  /** It got a prompt wrong. True for the first time. */
  disagree(detail: string): boolean {
    if (this.#disagreement !== null) return false;
    this.#disagreement = detail;
    return true;
  }

  get state(): PromptStats['local'] {
    if (this.#disagreement !== null) return { state: 'disagrees', detail: this.#disagreement };
    const sizes = [...this.#agreed.values()].map(({ size }) => size);
    if (sizes.some((size) => size >= COMPARED_PROMPTS)) return { state: 'agrees', detail: null };
    const most = Math.max(0, ...sizes);
    return { state: 'unverified', detail: `${most} of ${COMPARED_PROMPTS} prompts of one shape agree so far` };
  }
}

/**
 * Trust in the workers' `/tokenize`, for each variant of requests. Plain texts and chats are trusted until their engines keep counting other tokens;
 * the other variants hold what `/tokenize` is not told and a template may show, so that engines have to confirm them first.
 */
export class WorkerTrust {
  readonly #variants = new Map<string, { trusted: boolean; against: number }>();

  trusts(variant: string): boolean {
    return this.#variants.get(variant)?.trusted ?? PLAIN_VARIANTS.has(variant);
  }

  /** The engine's count of a prompt. True when it changed what is trusted. */
  take(variant: string, agrees: boolean): boolean {
    const { trusted, against } = this.#variants.get(variant) ?? { trusted: PLAIN_VARIANTS.has(variant), against: 0 };
    const now = agrees === trusted ? 0 : against + 1;
    const changes = now >= COUNTS_IN_A_ROW;
    this.#variants.set(variant, changes ? { trusted: !trusted, against: 0 } : { trusted, against: now });
    return changes;
  }
}
