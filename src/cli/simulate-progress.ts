// How far the simulations are: a bar on a terminal, a line every few seconds elsewhere. What is drawn is decided here; `write` shows it.
import { countText, timeText } from '../sim/report-format.js';
import type { Standing } from '../sim/run-all.js';

const BAR_CHARACTERS = 24;
const TERMINAL_EVERY_MS = 100;
const LINE_EVERY_MS = 5000;
/** Back to the start of the line, and nothing of it left. */
const CLEAR_LINE = '\r\x1b[K';

export interface ProgressOptions {
  readonly terminal: boolean;
  /** Characters a line has. */
  readonly width: number;
  readonly write: (text: string) => void;
  /** Milliseconds, of any beginning. */
  readonly now: () => number;
}

/** One line: which run, how far, how much. */
export function progressText(
  label: string,
  run: number,
  runs: number,
  { part, requests, at }: Standing,
  width: number,
): string {
  const which = runs > 1 ? `${run + 1}/${runs} ` : '';
  const bar = part === null ? '' : `${barOf(part)} ${`${Math.floor(part * 100)}`.padStart(3)} % `;
  const text = `${which}${bar}${countText(requests)} requests, ${timeText(at)} of the trace  ${label}`;
  return text.length > width ? `${text.slice(0, Math.max(1, width - 1))}…` : text;
}

function barOf(part: number): string {
  const full = Math.floor(Math.min(1, Math.max(0, part)) * BAR_CHARACTERS);
  return `${'█'.repeat(full)}${'░'.repeat(BAR_CHARACTERS - full)}`;
}

/** Shows where things stand, not too often. */
export class Progress {
  readonly #options: ProgressOptions;
  #shownAt: number;
  #drawn = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#shownAt = options.now();
  }

  tell(label: string, run: number, runs: number, standing: Standing): void {
    const { terminal, width, write, now } = this.#options;
    const time = now();
    if (time - this.#shownAt < (terminal ? TERMINAL_EVERY_MS : LINE_EVERY_MS)) return;
    this.#shownAt = time;
    const text = progressText(label, run, runs, standing, terminal ? width - 1 : Number.POSITIVE_INFINITY);
    write(terminal ? `${CLEAR_LINE}${text}` : `${text}\n`);
    this.#drawn = terminal;
  }

  /** Takes the bar off the terminal, so that other lines can be written. */
  clear(): void {
    if (this.#drawn) this.#options.write(CLEAR_LINE);
    this.#drawn = false;
  }
}
