// Lines to requests: the first rows tell the format, then each row is read by it, its ids are numbered and looked at. Every line is either
// a request, a counted skip, or a CSV's header.
import type { TraceIds } from './ids.js';
import type { Line } from './lines.js';
import { ParentCheck } from './parents.js';
import { type FormatOptions, type Recognised, recognise, unknownFormat } from './recognise.js';
import type { Row } from './row.js';
import type { TraceTally } from './tally.js';
import type { TraceRequest } from './types.js';

/** A request before its place in the order of arrival is known. */
export type UnplacedRequest = Omit<TraceRequest, 'index'>;

export interface RequestOptions extends FormatOptions {
  readonly idTokens?: number | undefined;
}

export class Requests {
  readonly #options: RequestOptions;
  readonly #ids: TraceIds;
  readonly #tally: TraceTally;
  readonly #parents = new ParentCheck();
  #format: Recognised | null = null;
  /** The first row that told no format. */
  #broken: string | null = null;

  constructor(options: RequestOptions, ids: TraceIds, tally: TraceTally) {
    this.#options = options;
    this.#ids = ids;
    this.#tally = tally;
  }

  /** @throws MoonrouteError `trace-format` where the format is not known, `trace-ids` where ids are too many */
  read({ text, number }: Line): UnplacedRequest | null {
    const tally = this.#tally;
    if (text.trim() === '') {
      tally.rows++;
      return tally.skip('blank-row', number, text);
    }
    if (this.#format === null) {
      this.#format = recognise(text, this.#options, tally);
      tally.format = this.#format?.format ?? null;
      if (this.#format?.header) return null;
    }
    tally.rows++;
    if (this.#format === null) {
      this.#broken ??= text;
      return tally.skip('malformed-row', number, text);
    }
    const row = this.#format.read(text, number);
    return row === null ? null : this.#numbered(row, this.#options.idTokens ?? this.#format.idTokens);
  }

  /** @throws MoonrouteError `trace-format` when there were rows, and none of them told a format */
  end(): void {
    if (this.#format === null && this.#broken !== null) throw unknownFormat(this.#broken);
  }

  #numbered(row: Row, idTokens: number): UnplacedRequest {
    const { line, at, inputTokens, outputTokens, ids, sessionId, delay } = row;
    const wholeBlocks = Math.floor(inputTokens / idTokens);
    let hashIds: Uint32Array | null = null;
    if (ids !== null) {
      hashIds = new Uint32Array(ids.length);
      for (let i = 0; i < ids.length; i++) hashIds[i] = this.#ids.numberOf(ids[i]!);
      const blocks = Math.ceil(inputTokens / idTokens);
      if (ids.length !== blocks) this.#tally.note('block-count', line);
      else if (blocks > wholeBlocks) this.#tally.note('partial-tail', line);
      const { conflicts, unchecked } = this.#parents.check(hashIds);
      this.#tally.note('two-parents', line, conflicts);
      this.#tally.note('parent-not-checked', line, unchecked);
    }
    const fullIds = Math.min(wholeBlocks, hashIds?.length ?? 0);
    return { at, inputTokens, outputTokens, hashIds, idTokens, fullIds, sessionId, delay, line };
  }
}
