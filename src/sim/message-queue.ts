// Messages of one stream that are under way or kept for replay, oldest first: lists of block runs in one flat array. Room of messages that
// are gone is used again, so memory goes by what is under way.

const FIRST_ROOM = 64;
/** Numbers of a block run: what happened, node, first block, blocks. */
export const RUN_WORDS = 4;

export class MessageQueue {
  #words = new Int32Array(FIRST_ROOM * RUN_WORDS);
  /** By message: where its runs begin; one more, where the next message's will. */
  #starts = new Int32Array(FIRST_ROOM);
  /** By message: 1 where it was lost on the way. */
  #lost = new Uint8Array(FIRST_ROOM);
  #head = 0;
  #tail = 0;
  /** Words of the message being written. */
  #written = 0;
  /** Sequence of the oldest message. */
  firstSequence = 0;

  /** Sequence of the message being written. */
  get nextSequence(): number {
    return this.firstSequence + this.#tail - this.#head;
  }

  /** Messages that are kept. */
  get length(): number {
    return this.#tail - this.#head;
  }

  /** Adds a run to the message being written. */
  add(what: number, node: number, from: number, count: number): void {
    const at = this.#starts[this.#tail]! + this.#written;
    if (at + RUN_WORDS > this.#words.length) {
      this.#makeRoom();
      this.add(what, node, from, count);
      return;
    }
    this.#words[at] = what;
    this.#words[at + 1] = node;
    this.#words[at + 2] = from;
    this.#words[at + 3] = count;
    this.#written += RUN_WORDS;
  }

  /** Whether a message is begun. */
  get begun(): boolean {
    return this.#written > 0;
  }

  /** Ends the message being written; with `drops` its runs are forgotten, and its sequence alone is kept. Returns that. */
  end(lost: boolean, drops: boolean): number {
    if (this.#tail + 1 === this.#starts.length) this.#makeRoomForStarts();
    const sequence = this.nextSequence;
    const begin = this.#starts[this.#tail]!;
    this.#lost[this.#tail] = lost ? 1 : 0;
    this.#starts[++this.#tail] = drops ? begin : begin + this.#written;
    this.#written = 0;
    return sequence;
  }

  /** The oldest message was lost. */
  get firstIsLost(): boolean {
    return this.#lost[this.#head] === 1;
  }

  /** Where runs stand; those of the oldest message are words `begin` … `stop` − 1. */
  get words(): Int32Array {
    return this.#words;
  }

  get begin(): number {
    return this.#starts[this.#head]!;
  }

  get stop(): number {
    return this.#starts[this.#head + 1]!;
  }

  /** Forgets the oldest message. */
  shift(): void {
    this.#head++;
    this.firstSequence++;
    if (this.#head === this.#tail && this.#written === 0) {
      this.#head = 0;
      this.#tail = 0;
      this.#starts[0] = 0;
    }
  }

  /** Forgets all messages, the one being written too; sequences start from 0 again. */
  clear(): void {
    this.#head = 0;
    this.#tail = 0;
    this.#starts[0] = 0;
    this.#written = 0;
    this.firstSequence = 0;
  }

  #makeRoom(): void {
    const begin = this.#starts[this.#head]!;
    const used = this.#starts[this.#tail]! + this.#written - begin;
    const words = used * 2 > this.#words.length ? new Int32Array(this.#words.length * 2) : this.#words;
    if (words === this.#words) words.copyWithin(0, begin, begin + used);
    else words.set(this.#words.subarray(begin, begin + used));
    this.#words = words;
    for (let i = this.#head; i <= this.#tail; i++) this.#starts[i]! -= begin;
  }

  #makeRoomForStarts(): void {
    const kept = this.#tail - this.#head + 1;
    const grows = kept * 2 > this.#starts.length;
    const starts = grows ? new Int32Array(this.#starts.length * 2) : this.#starts;
    const lost = grows ? new Uint8Array(this.#starts.length * 2) : this.#lost;
    starts.set(this.#starts.subarray(this.#head, this.#tail + 1));
    lost.set(this.#lost.subarray(this.#head, this.#tail + 1));
    this.#starts = starts;
    this.#lost = lost;
    this.#tail -= this.#head;
    this.#head = 0;
  }
}
