// Lines to requests: the first rows tell the format, then each row is read by it, its ids are numbered and looked at. Every line is either
// a request, a counted skip, or a CSV's header; but of a recording, requests are rebuilt from many lines.
import type { TraceId, TraceIds } from './ids.js';
import type { Line } from './lines.js';
import { ParentCheck } from './parents.js';
import {
  type FormatOptions,
  type RecognisedLines,
  type RecognisedRows,
  recognise,
  unknownFormat,
} from './recognise.js';
import type { Row, RowRebuilder } from './row.js';
import type { TraceTally } from './tally.js';
import type { TraceRequest } from './types.js';

/** A request before its place in the order of arrival is known. */
export type UnplacedRequest = Omit<TraceRequest, 'index'>;

export class Requests {
  readonly #options: FormatOptions;
  readonly #ids: TraceIds;
  readonly #tally: TraceTally;
  readonly #parents = new ParentCheck();
  #format: RecognisedRows | null = null;
  #rebuild: RowRebuilder | null = null;
  /** The first row that told no format. */
  #broken: string | null = null;

  constructor(options: FormatOptions, ids: TraceIds, tally: TraceTally) {
    this.#options = options;
    this.#ids = ids;
    this.#tally = tally;
  }

  /** @throws MoonrouteError `trace-format` where the format is not known, `trace-ids` where ids are too many */
  read(line: Line): UnplacedRequest | null {
    if (this.#rebuild === null) return this.#readRow(line);
    if (line.text.trim() !== '') this.#rebuild.add(line.text, line.number);
    return this.next();
  }

  /** A further request that the line completed; null for none. */
  next(): UnplacedRequest | null {
    const row = this.#rebuild?.take() ?? null;
    if (row === null) return null;
    this.#tally.rows++;
    return this.#numbered(row, this.#rebuild!.idTokens);
  }

  #readRow(line: Line): UnplacedRequest | null {
    const { text, number } = line;
    const tally = this.#tally;
    if (text.trim() === '') {
      tally.rows++;
      return tally.skip('blank-row', number, text);
    }
    if (this.#format === null) {
      const recognised = recognise(text, this.#options, this.#ids, tally);
      tally.format = recognised?.format ?? null;
      if (recognised !== null && isLines(recognised)) {
        this.#rebuild = recognised.rebuild;
        return this.read(line);
      }
      this.#format = recognised;
      if (recognised?.header) return null;
    }
    tally.rows++;
    if (this.#format === null) {
      this.#broken ??= text;
      return tally.skip('malformed-row', number, text);
    }
    const row = this.#format.read(text, number);
    return row === null ? null : this.#numbered(row, this.#options.idTokens ?? this.#format.idTokens);
  }

  /**
   * There are no more lines; `next` has what is left.
   * @throws MoonrouteError `trace-format` when there were rows, and none of them told a format
   */
  end(): void {
    this.#rebuild?.end();
    if (this.#rebuild === null && this.#format === null && this.#broken !== null) throw unknownFormat(this.#broken);
  }

  #numbered(row: Row, idTokens: number): UnplacedRequest {
    const { line, at, inputTokens, outputTokens, ids, sessionId, delay } = row;
    const wholeBlocks = Math.floor(inputTokens / idTokens);
    const hashIds = ids === null || ids instanceof Uint32Array ? ids : this.#numbersOf(ids);
    if (hashIds !== null) {
      const blocks = Math.ceil(inputTokens / idTokens);
      if (hashIds.length !== blocks) this.#tally.note('block-count', line);
      else if (blocks > wholeBlocks) this.#tally.note('partial-tail', line);
      const { conflicts, unchecked } = this.#parents.check(hashIds);
      this.#tally.note('two-parents', line, conflicts);
      this.#tally.note('parent-not-checked', line, unchecked);
    }
    const fullIds = Math.min(wholeBlocks, hashIds?.length ?? 0);
    return { at, inputTokens, outputTokens, hashIds, idTokens, fullIds, sessionId, delay, line };
  }

  #numbersOf(ids: readonly TraceId[]): Uint32Array {
    const numbers = new Uint32Array(ids.length);
    for (let i = 0; i < ids.length; i++) numbers[i] = this.#ids.numberOf(ids[i]!);
    return numbers;
  }
}

const isLines = (format: RecognisedLines | RecognisedRows): format is RecognisedLines => format.format === 'recording';
