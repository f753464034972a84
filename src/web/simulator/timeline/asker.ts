// Asks one question at a time: while one is on its way only the newest wish is kept, so that a fast hand never queues up work for the simulation's worker.

export class Asker<Question, Answer> {
  readonly #ask: (question: Question) => Promise<Answer>;
  readonly #answered: (answer: Answer, question: Question) => void;
  readonly #failed: (error: unknown, question: Question) => void;
  readonly #idle: () => void;
  #wanted: Question | null = null;
  #busy = false;
  #epoch = 0;

  constructor(parts: {
    ask: (question: Question) => Promise<Answer>;
    answered: (answer: Answer, question: Question) => void;
    failed: (error: unknown, question: Question) => void;
    /** Nothing is on its way any more: the time to ask for what is still missing. */
    idle: () => void;
  }) {
    this.#ask = parts.ask;
    this.#answered = parts.answered;
    this.#failed = parts.failed;
    this.#idle = parts.idle;
  }

  get busy(): boolean {
    return this.#busy;
  }

  want(question: Question): void {
    this.#wanted = question;
    if (!this.#busy) void this.#run();
  }

  /** What is on its way or wished for is of no interest any more. */
  drop(): void {
    this.#epoch++;
    this.#wanted = null;
  }

  async #run(): Promise<void> {
    this.#busy = true;
    while (this.#wanted !== null) {
      const question = this.#wanted;
      const epoch = this.#epoch;
      this.#wanted = null;
      try {
        const answer = await this.#ask(question);
        if (epoch === this.#epoch) this.#answered(answer, question);
      } catch (error) {
        if (epoch === this.#epoch) this.#failed(error, question);
      }
    }
    this.#busy = false;
    this.#idle();
  }
}
