// Label values that can't run away. Codes come from the router's rooms, which have few, but also from tokenizers, engines and faults; a value that
// looks like no code, or comes after too many others, is counted as `other`. So no prompt, user or model name ever becomes a series.

/** Different codes of one family. The longest list in the router, that of reasons for no shared credit, has under forty. */
const MOST_CODES = 64;
const OTHER = 'other';
/** Longest name of a worker that is shown; its end is cut. */
const MOST_NAME_CHARS = 128;

/** Remembers the codes of one family. */
export class BoundedCodes {
  readonly #known = new Set<string>();

  of(code: string): string {
    if (this.#known.has(code)) return code;
    if (this.#known.size === MOST_CODES || !/^[\w.:-]{1,64}$/.test(code)) return OTHER;
    this.#known.add(code);
    return code;
  }
}

/** A worker's name as a label. Their number is bounded where they are added. */
export function workerLabel(id: unknown): string {
  return String(id).slice(0, MOST_NAME_CHARS);
}
