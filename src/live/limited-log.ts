// A log that one fault can't flood: one line a second per cause. What was left out is counted, and said with the cause's next line.
import type { Clock } from './clock.js';

/** How much a line matters. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Where lines go: a logger's method, or a test's list. */
export type LogSink = (level: LogLevel, text: string) => void;

const LINE_EVERY = 1000;
/** Causes remembered; beyond, the one not heard of for longest is forgotten. They are few: some thirty a stream. */
const CAUSES_KEPT = 4096;

interface Cause {
  readonly saidAt: number;
  leftOut: number;
}

/** Says at most one line a second per cause. */
export class LimitedLog {
  readonly #sink: LogSink;
  readonly #clock: Clock;
  readonly #causes = new Map<string, Cause>();

  constructor(sink: LogSink, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  /** `cause` names what is limited: a stream and what happened to it, never a text that the wire brought. */
  say(cause: string, level: LogLevel, text: string): void {
    const now = this.#clock.now();
    const last = this.#causes.get(cause);
    if (last !== undefined && now - last.saidAt < LINE_EVERY) {
      last.leftOut++;
      return;
    }
    this.#causes.delete(cause);
    if (this.#causes.size >= CAUSES_KEPT) this.#causes.delete(this.#causes.keys().next().value!);
    this.#causes.set(cause, { saidAt: now, leftOut: 0 });
    const leftOut = last?.leftOut ?? 0;
    this.#write(level, leftOut > 0 ? `${text} (and ${leftOut} like it since the last line)` : text);
  }

  /** A sink that throws must not end a stream: the line is lost. */
  #write(level: LogLevel, text: string): void {
    try {
      this.#sink(level, text);
    } catch {
      // there is nowhere to say it
    }
  }
}
