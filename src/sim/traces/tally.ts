// What a trace's reader counts: each oddity with its number, its first line and what was done about it. Warnings are a closed list, and
// quotes are few and short, so a file of nothing but faults stays cheap to report.
import type { TraceIds } from './ids.js';
import { RECORDING_ODDITIES } from './recording-oddities.js';
import type { TraceFormat, TraceOddity, TraceReport, TraceSkip, TraceWarning } from './types.js';

const QUOTES = 3;
const QUOTE_CHARACTERS = 80;

const SKIPS: Readonly<Record<TraceSkip, string>> = {
  'blank-row': 'blank lines; skipped',
  'malformed-row': 'rows that are not of the format; skipped',
  'missing-field': 'rows without an arrival time or a prompt length; skipped',
  'bad-value': 'rows whose time or length is no number of the right kind; skipped',
};

const ODDITIES: Readonly<Record<TraceOddity, string>> = {
  'no-output-length': 'rows that do not say how much was generated; taken as 1 token',
  'no-hash-ids': 'rows without hash_ids; their prompts share nothing',
  'bad-hash-ids': 'rows whose hash_ids are no list of whole numbers or texts; their prompts share nothing',
  'block-count': 'rows with more or fewer ids than their prompt has blocks; no more is credited than both say',
  'partial-tail': 'rows whose last id stands for less than a block; that tail is never credited',
  'two-parents': 'ids that stand after another id than at first, so they do not name a whole prefix',
  'parent-not-checked': 'ids past the bound of the check for two parents; not checked',
  'delay-without-session': 'rows with a delay but no session_id, so it follows nothing; the delay is ignored',
  'placed-by-delay':
    "rows with a delay but no time; placed that long after the arrival of their session's previous row",
  'unknown-parent-chat': 'rows whose parent chat was not seen, or too long ago; each begins a session',
  'equal-timestamps': 'rows that arrive at the same time as the row before; kept in the order of the file',
  'unsorted-row': 'rows earlier than one before them; sorted within the reordering window',
  'out-of-order': 'rows that the reordering window could not put right; taken as they come',
  ...RECORDING_ODDITIES,
};

interface Entry {
  count: number;
  readonly firstLine: number;
  readonly quotes: string[];
}

export class TraceTally implements TraceReport {
  format: TraceFormat | null = null;
  gzip = false;
  rows = 0;
  requests = 0;
  skipped = 0;
  readonly #ids: TraceIds;
  readonly #entries = new Map<TraceSkip | TraceOddity, Entry>();

  constructor(ids: TraceIds) {
    this.#ids = ids;
  }

  get distinctIds(): number {
    return this.#ids.count;
  }

  get warnings(): readonly TraceWarning[] {
    return [...this.#entries].map(([code, { count, firstLine, quotes }]) => ({
      code,
      count,
      firstLine,
      skipped: isSkip(code),
      text: isSkip(code) ? SKIPS[code] : ODDITIES[code],
      quotes: [...quotes],
    }));
  }

  /** Counts a row that gives no request. */
  skip(code: TraceSkip, line: number, row: string): null {
    this.skipped++;
    this.#count(code, line, 1, code === 'blank-row' ? null : row);
    return null;
  }

  /** Counts what is odd about a row that gives one; `row` is quoted where seeing it helps. */
  note(code: TraceOddity, line: number, count = 1, row: string | null = null): void {
    if (count > 0) this.#count(code, line, count, row);
  }

  #count(code: TraceSkip | TraceOddity, line: number, count: number, row: string | null): void {
    let entry = this.#entries.get(code);
    if (entry === undefined) {
      entry = { count: 0, firstLine: line, quotes: [] };
      this.#entries.set(code, entry);
    }
    entry.count += count;
    if (row !== null && entry.quotes.length < QUOTES) entry.quotes.push(quoted(row));
  }
}

const isSkip = (code: TraceSkip | TraceOddity): code is TraceSkip => code in SKIPS;

/** The beginning of a row, fit for a terminal. */
export const quoted = (row: string): string => row.slice(0, QUOTE_CHARACTERS).replace(/\p{Cc}/gu, '?');
