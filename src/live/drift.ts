// Whether the master's counters and its stream still tell one story. Between two reconciles a stream may lose its tail, a master may be
// another one, and a Gen A master removes objects without a word (spec/mooncake-events.md 2, 4); none of it shows in the messages.
// Pure: readings in, suspicion out. A difference counts only when it is still there a second later, since messages may be under way.

/** Why the stream is no longer believed. */
export type DriftCause =
  | 'counters-went-back' // the master began anew, or it is another one
  | 'lost-tail' //          it has sent messages that never came
  | 'counters-behind' //    messages came that it has not sent
  | 'key-count'; //         it holds more or fewer objects than its messages explain

/** What was read, and how the stream stood around the reading. */
export interface Reading {
  /** `published_batches + dropped_events`. */
  readonly sequence: bigint;
  /** `master_key_count`, which counts foreign objects too; null where unknown. */
  readonly keys: number | null;
  /** The last message's sequence before and after the reading; null when none is known. */
  readonly heard: readonly [bigint | null, bigint | null];
  /** Stored minus removed events of all messages so far, before and after. */
  readonly net: readonly [number, number];
}

/** Milliseconds that a difference must last. */
export const DRIFT_LASTS = 1000;
/** Most events in one message (spec/mooncake-events.md 2). */
const MESSAGE_EVENTS = 64;

/** Compares readings with what they began from. */
export class Drift {
  #highest: bigint | null = null;
  /** Objects that no message explains: from … to, since the last reconcile. */
  #unexplained: readonly [number, number] | null = null;
  readonly #since = new Map<DriftCause, number>();
  #behind = 0n;

  /** The stream begins anew, at another master even: nothing is known of it. */
  reset(): void {
    this.#highest = null;
    this.#unexplained = null;
    this.#since.clear();
  }

  /** A reconcile was accepted whose list was taken around this reading. */
  baseline(reading: Reading): void {
    this.#highest = reading.sequence;
    this.#unexplained = unexplained(reading);
    this.#since.clear();
  }

  /** Whether a difference was seen last time that has not lasted yet: look again soon. */
  get suspects(): boolean {
    return this.#since.size > 0;
  }

  /** What is wrong, null when nothing is or it must be seen again. */
  observe(now: number, reading: Reading): DriftCause | null {
    const { sequence, heard } = reading;
    if (this.#highest !== null && sequence < this.#highest) return 'counters-went-back';
    this.#highest = sequence;
    // What is missing must be missing twice: the messages up to the number that was said first.
    if (!this.#since.has('lost-tail')) this.#behind = sequence;
    const [before, after] = heard;
    const found: readonly (readonly [DriftCause, boolean])[] = [
      ['lost-tail', after !== null && after < this.#behind],
      ['counters-behind', before !== null && before > sequence],
      ['key-count', this.#keysDiffer(reading)],
    ];
    for (const [cause, holds] of found) if (this.#lasts(cause, holds, now)) return cause;
    return null;
  }

  #keysDiffer(reading: Reading): boolean {
    const now = unexplained(reading);
    const then = this.#unexplained;
    return now !== null && then !== null && (now[1] < then[0] || now[0] > then[1]);
  }

  #lasts(cause: DriftCause, holds: boolean, now: number): boolean {
    if (!holds) {
      this.#since.delete(cause);
      return false;
    }
    const since = this.#since.get(cause);
    if (since === undefined) this.#since.set(cause, now);
    return since !== undefined && now - since >= DRIFT_LASTS;
  }
}

/** Objects minus what messages explain, as far apart as messages under way allow. */
function unexplained({ sequence, keys, heard, net }: Reading): readonly [number, number] | null {
  if (keys === null) return null;
  const [before] = heard;
  const underWay = before === null || sequence <= before ? 0 : MESSAGE_EVENTS * Number(sequence - before);
  return [keys - Math.max(...net) - underWay, keys - Math.min(...net) + underWay];
}
