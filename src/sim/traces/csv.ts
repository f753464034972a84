// Plain CSV: arrival, prompt length, output length; no hashes, so prompts share nothing. Columns are found by their header, under the names
// that published traces use or those given; without a header the first three columns are taken in that order. Cells are split at the
// separator that the first row has (comma, semicolon or tab) and may be in double quotes; a quoted line end is not supported.
import { ConfigError } from '../../errors.js';
import { isTime, isTokens, type RowReader, UNKNOWN_OUTPUT_TOKENS } from './row.js';
import { quoted, type TraceTally } from './tally.js';

/** Header names of the three columns, where they are not among the known ones. */
export interface CsvColumns {
  readonly time?: string;
  readonly input?: string;
  readonly output?: string;
}

/** Unit of a CSV's numeric times: milliseconds or seconds. */
export type TimeUnit = 'ms' | 's';

/** Known header names, in lower case without spaces, dashes and underscores. */
const NAMES = {
  time: [
    'timestamp',
    'timestampms',
    'time',
    'timems',
    'timesec',
    'times',
    'seconds',
    'arrivedat',
    'arrivaltime',
    'arrival',
    'at',
    'ts',
  ],
  input: [
    'in',
    'input',
    'inputlength',
    'inputtokens',
    'contexttokens',
    'prompttokens',
    'requesttokens',
    'numprefilltokens',
  ],
  output: [
    'out',
    'output',
    'outputlength',
    'outputtokens',
    'generatedtokens',
    'completiontokens',
    'responsetokens',
    'numdecodetokens',
  ],
} as const;

/** Header names that say seconds, where no unit is given. */
const IN_SECONDS = ['timesec', 'times', 'seconds'];

export interface CsvLayout {
  readonly separator: string;
  readonly time: number;
  readonly input: number;
  /** −1 where the file has none. */
  readonly output: number;
  readonly unit: TimeUnit;
  /** Whether the row that showed it was a header, and no request. */
  readonly header: boolean;
}

/** How to read a CSV whose first row is `text`; null when it is none that is known. */
export function csvLayoutOf(text: string, columns: CsvColumns = {}, unit?: TimeUnit): CsvLayout | null {
  const separator = [',', ';', '\t'].find((mark) => text.includes(mark));
  if (separator === undefined) return null;
  const cells = cellsOf(text, separator);
  if (cells === null) return null;
  const names = cells.map(plain);
  const find = (role: keyof typeof NAMES): number => {
    const chosen = columns[role];
    if (chosen === undefined) return names.findIndex((name) => (NAMES[role] as readonly string[]).includes(name));
    const place = names.indexOf(plain(chosen));
    if (place < 0)
      throw new ConfigError(
        'trace-columns',
        `no column is called '${chosen}' (for ${role}); the first row of the trace is '${quoted(text)}'`,
      );
    return place;
  };
  const [time, input, output] = [find('time'), find('input'), find('output')];
  if (time >= 0 && input >= 0) {
    const unitOfName = IN_SECONDS.includes(names[time]!) ? 's' : 'ms';
    return { separator, time, input, output, unit: unit ?? unitOfName, header: true };
  }
  const bare = cells.length >= 3 && timeOf(cells[0]!, 1) !== null && numberOf(cells[1]!) !== null;
  return bare ? { separator, time: 0, input: 1, output: 2, unit: unit ?? 'ms', header: false } : null;
}

export function csvReader(tally: TraceTally, layout: CsvLayout): RowReader {
  const { separator, time, input, output } = layout;
  const msPerUnit = layout.unit === 's' ? 1000 : 1;
  return (text, line) => {
    const cells = cellsOf(text, separator);
    if (cells === null) return tally.skip('malformed-row', line, text);
    const timeCell = cells[time] ?? '';
    const inputCell = cells[input] ?? '';
    const outputCell = cells[output] ?? '';
    if (timeCell === '' || inputCell === '') return tally.skip('missing-field', line, text);
    const at = timeOf(timeCell, msPerUnit);
    const inputTokens = numberOf(inputCell);
    const outputTokens = outputCell === '' ? UNKNOWN_OUTPUT_TOKENS : numberOf(outputCell);
    if (!isTime(at) || !isTokens(inputTokens, 1) || !isTokens(outputTokens, 0))
      return tally.skip('bad-value', line, text);
    if (outputCell === '') tally.note('no-output-length', line);
    return { line, at, inputTokens, outputTokens, ids: null, sessionId: null, delay: null };
  };
}

const plain = (name: string): string => name.toLowerCase().replace(/[\s_-]/g, '');

/** The cells of a row without blanks around them; null when a quote is left open. */
function cellsOf(text: string, separator: string): string[] | null {
  if (!text.includes('"')) return text.split(separator).map((cell) => cell.trim());
  const cells: string[] = [];
  let cell = '';
  let inQuotes = false;
  for (let i = 0; i < text.length; i++) {
    const mark = text[i]!;
    if (mark === '"') {
      if (inQuotes && text[i + 1] === '"') cell += text[i++];
      else inQuotes = !inQuotes;
    } else if (mark === separator && !inQuotes) {
      cells.push(cell.trim());
      cell = '';
    } else cell += mark;
  }
  if (inQuotes) return null;
  cells.push(cell.trim());
  return cells;
}

const numberOf = (cell: string): number | null =>
  /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(cell) ? Number(cell) : null;

const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(\.\d+)?(?:Z|([+-])(\d\d):?(\d\d))?$/;

/** A number of units or a date and time (UTC unless it says), in milliseconds; null when it is neither. */
function timeOf(cell: string, msPerUnit: number): number | null {
  const units = numberOf(cell);
  if (units !== null) return units * msPerUnit;
  const parts = DATE_TIME.exec(cell);
  if (parts === null) return null;
  const [, year, month, day, hour, minute, second, fraction = '0', sign = '+', zoneHours = '0', zoneMinutes = '0'] =
    parts;
  const utc = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  const zone = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000;
  return utc - (sign === '-' ? -zone : zone) + Number(fraction) * 1000;
}
