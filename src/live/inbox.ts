// What a socket brought and nobody has looked at yet: a queue between the receive loop, which must drain fast, and the work, which must
// not hold up decisions. It is bounded by pausing the socket: then the publisher's own queue fills, drops, and leaves a gap that is seen.

/** A full inbox pauses its socket; a half empty one resumes it. */
export interface InboxValve {
  pause(): void;
  resume(): void;
}

/** Most items in one inbox: half a second of the fastest stream measured, and ten times libzmq's default mark. */
export const INBOX_ITEMS = 10_000;
/** Most bytes of their messages. */
export const INBOX_BYTES = 64 << 20;

const TAKEN_KEPT = 256;

/** One thing that a stream said: a message, or what happened to its connection. Their order is that in which they came. */
export type StreamItem =
  /** `generation`: of the contract in force when it came. */
  | { readonly kind: 'message'; readonly frames: readonly Uint8Array[]; readonly generation: number }
  | { readonly kind: 'connected' }
  /** It has been down for longer than its evidence is worth. */
  | { readonly kind: 'stale' };

/** A queue of stream items, first in, first out. */
export class Inbox {
  readonly #valve: InboxValve;
  #items: StreamItem[] = [];
  #head = 0;
  #bytes = 0;
  #paused = false;
  #pauses = 0;
  #pushed = 0;

  constructor(valve: InboxValve) {
    this.#valve = valve;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }
  get bytes(): number {
    return this.#bytes;
  }
  /** Times that the socket had to wait. */
  get pauses(): number {
    return this.#pauses;
  }

  /** Items that ever came; and of those, the ones that are taken or dropped. */
  get pushed(): number {
    return this.#pushed;
  }
  get done(): number {
    return this.#pushed - this.size;
  }

  push(item: StreamItem): void {
    this.#pushed++;
    this.#items.push(item);
    this.#bytes += bytesOf(item);
    if (this.#paused || (this.size < INBOX_ITEMS && this.#bytes < INBOX_BYTES)) return;
    this.#paused = true;
    this.#pauses++;
    this.#valve.pause();
  }

  /** The next item, left where it is. */
  peek(): StreamItem | undefined {
    return this.#items[this.#head];
  }

  take(): StreamItem | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#head++;
    this.#bytes -= bytesOf(item);
    this.#compact();
    this.#reopen();
    return item;
  }

  /** Forgets all that waits. */
  clear(): void {
    this.#items = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#reopen();
  }

  /** Taken items are dropped in one go, when they are many and no fewer than those that wait. */
  #compact(): void {
    if (this.#head === this.#items.length) this.#items.length = 0;
    else if (this.#head < TAKEN_KEPT || this.#head * 2 < this.#items.length) return;
    else this.#items.splice(0, this.#head);
    this.#head = 0;
  }

  #reopen(): void {
    if (!this.#paused || this.size > INBOX_ITEMS / 2 || this.#bytes > INBOX_BYTES / 2) return;
    this.#paused = false;
    this.#valve.resume();
  }
}

function bytesOf(item: StreamItem): number {
  return item.kind === 'message' ? item.frames.reduce((bytes, frame) => bytes + frame.length, 0) : 0;
}
