// Whether tokenising is believed. The local tokenizer first has to agree with the workers' own on a number of prompts of each shape, and after each
// prompt that it gets wrong on twice as many, from nothing. What workers say is believed, unless their engines keep counting otherwise. Pure decisions.
import type { PromptStats } from './types.js';

/** Distinct prompts of a shape that are compared before the local tokenizer is used for that shape, at first. */
export const COMPARED_PROMPTS = 8;
/** The most that it comes to: seven disagreements. Their hashes are kept. */
const MAX_COMPARED_PROMPTS = 1024;
/** Shapes that are told apart; those beyond stay unverified. There are some thirty. */
const MAX_SHAPES = 256;
/** Counts of engines in a row that change what is thought of `/tokenize`. One may be chance: a worker that came back with another tokenizer. */
const COUNTS_IN_A_ROW = 3;
/** Variants whose prompts `/tokenize` is told whole. */
export const PLAIN_VARIANTS: ReadonlySet<string> = new Set(['text', 'chat', 'chat arguments']);

/** Trust in the local tokenizer. */
export class LocalTrust {
  /** Of each shape the prompts that agreed, by their hashes. */
  readonly #agreed = new Map<string, Set<string>>();
  #needed = COMPARED_PROMPTS;
  /** Prompts that go by before one is compared again: another model's tokenizer would have each prompt tokenised twice for nothing. */
  #pause = 0;
  /** The last one since which no shape is trusted again. */
  #disagreement: string | null = null;

  /** Prompts of a shape that have to agree now. */
  get needed(): number {
    return this.#needed;
  }

  /** Whether it is used for prompts of that shape. */
  trusts(shape: string): boolean {
    return (this.#agreed.get(shape)?.size ?? 0) >= this.#needed;
  }

  /** Whether a prompt of that shape is still to be compared. */
  wants(shape: string, key: string): boolean {
    if (this.#pause > 0 || this.trusts(shape)) return false;
    const agreed = this.#agreed.get(shape);
    return agreed === undefined ? this.#agreed.size < MAX_SHAPES : !agreed.has(key);
  }

  /** A prompt goes by that is not compared. */
  pass(): void {
    if (this.#pause > 0) this.#pause--;
  }

  agree(shape: string, key: string): void {
    const agreed = this.#agreed.get(shape) ?? new Set();
    this.#agreed.set(shape, agreed.add(key));
    if (this.trusts(shape)) this.#disagreement = null;
  }

  /** It got a prompt wrong. True when it was not known to get prompts wrong. */
  disagree(detail: string): boolean {
    this.#agreed.clear();
    this.#needed = Math.min(2 * this.#needed, MAX_COMPARED_PROMPTS);
    this.#pause = this.#needed;
    if (this.#disagreement !== null) return false;
    this.#disagreement = detail;
    return true;
  }

  get state(): PromptStats['local'] {
    const most = Math.max(0, ...[...this.#agreed.values()].map(({ size }) => size));
    if (most >= this.#needed) return { state: 'agrees', detail: null };
    const progress = `${most} of ${this.#needed} prompts of one shape agree so far`;
    if (this.#disagreement === null) return { state: 'unverified', detail: progress };
    return { state: 'disagrees', detail: `${this.#disagreement}; since then ${progress}` };
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
