// Which format a trace has, told from its first row that can tell.
import { MoonrouteError } from '../../errors.js';
import { looksRecorded } from '../../live/recording.js';
import { type CsvColumns, csvLayoutOf, csvReader, type TimeUnit } from './csv.js';
import { FAST25_ID_TOKENS, fast25Reader, looksLikeFast25 } from './fast25.js';
import type { TraceIds } from './ids.js';
import { objectIn } from './json-row.js';
import { looksLikeQwenBailian, QWEN_BAILIAN_ID_TOKENS, qwenBailianReader } from './qwen-bailian.js';
import { RecordingRequests } from './recording.js';
import type { RowReader, RowRebuilder } from './row.js';
import { quoted, type TraceTally } from './tally.js';
import type { TraceFormat } from './types.js';

export interface FormatOptions {
  readonly format?: TraceFormat | undefined;
  readonly columns?: CsvColumns | undefined;
  readonly timeUnit?: TimeUnit | undefined;
  /** Of a recording, the block size of the events that count. */
  readonly idTokens?: number | undefined;
}

/** A format that makes a request of each row. */
export interface RecognisedRows {
  readonly format: TraceFormat;
  readonly read: RowReader;
  /** Tokens an id stands for. */
  readonly idTokens: number;
  /** Whether the row is a header, and no request. */
  readonly header: boolean;
}

/** A format whose rows are requests only together. */
export interface RecognisedLines {
  readonly format: 'recording';
  readonly rebuild: RowRebuilder;
}

export type Recognised = RecognisedRows | RecognisedLines;

/**
 * The format of a trace whose first row is `text`. Null when that row is broken JSON, which tells nothing: the next one may.
 * @throws MoonrouteError `trace-format` when it is no format that is known
 */
export function recognise(text: string, options: FormatOptions, ids: TraceIds, tally: TraceTally): Recognised | null {
  const { format = formatOf(text) } = options;
  if (format === 'fast25') return { format, read: fast25Reader(tally), idTokens: FAST25_ID_TOKENS, header: false };
  if (format === 'qwen-bailian')
    return { format, read: qwenBailianReader(tally), idTokens: QWEN_BAILIAN_ID_TOKENS, header: false };
  if (format === 'recording') return { format, rebuild: new RecordingRequests(ids, tally, options.idTokens) };
  if (format === null) return null;
  const layout = csvLayoutOf(text, options.columns, options.timeUnit);
  if (layout === null) throw unknownFormat(text);
  return { format, read: csvReader(tally, layout), idTokens: FAST25_ID_TOKENS, header: layout.header };
}

function formatOf(text: string): TraceFormat | null {
  if (!text.trimStart().startsWith('{')) return 'csv';
  const row = objectIn(text);
  if (row === null) return null;
  if (looksRecorded(row)) return 'recording';
  if (looksLikeQwenBailian(row)) return 'qwen-bailian';
  if (looksLikeFast25(row)) return 'fast25';
  throw unknownFormat(text);
}

export const unknownFormat = (row: string): MoonrouteError =>
  new MoonrouteError(
    'trace-format',
    `no known trace begins with '${quoted(row)}'. Known are: fast25, JSON lines with timestamp (ms), input_length, output_length ` +
      'and hash_ids; qwen-bailian, JSON lines with chat_id, timestamp (s), input_length, output_length and hash_ids; csv, with a ' +
      'header that names time, input and output columns, or those three in this order; recording, what moonroute record writes. ' +
      'Any of them may be gzip',
  );
