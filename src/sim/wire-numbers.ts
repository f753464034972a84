// Sequence numbers of a stream on the wire, where a message of the feed may take several: each further one moves all later ones on.

export class WireNumbers {
  readonly #first: number;
  #begun = -1;
  #extra = 0;
  #parts = 0;

  /** @param first the number that a stream begins with */
  constructor(first: number) {
    this.#first = first;
  }

  /** The number given out last; one below the first where none was since the stream began. */
  get last(): number {
    return this.#begun < 0 ? this.#first - 1 : this.#first + this.#begun + this.#extra;
  }

  /** Begins the feed's message `sequence`. One that is not above the last began the stream anew. */
  begin(sequence: number): void {
    if (sequence <= this.#begun) this.restart();
    this.#begun = sequence;
    this.#parts = 0;
  }

  /** The number of the message's next part. */
  next(): number {
    if (this.#parts++ > 0) this.#extra++;
    return this.last;
  }

  /** The stream begins anew. */
  restart(): void {
    this.#begun = -1;
    this.#extra = 0;
  }
}
