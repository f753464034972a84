// How a publisher answers recovery questions, whatever brought them: a few at a time, none longer than the transport takes.
import { MAX_QUESTION_BYTES, MAX_QUESTIONS } from './options.js';

export type Answer = (question: Uint8Array) => Uint8Array | Promise<Uint8Array>;

/** An answer, or why there is none. */
export type Outcome = { readonly answer: Uint8Array } | { readonly refused: string };

/** One publisher's answers. */
export class Answering {
  readonly #maxPayload: () => number;
  /** Null until somebody answers. */
  answer: Answer | null = null;
  #running = 0;

  constructor(maxPayload: () => number) {
    this.#maxPayload = maxPayload;
  }

  /** Never fails. */
  async of(question: Uint8Array): Promise<Outcome> {
    const { answer } = this;
    if (answer === null) return { refused: 'nothing answers here yet' };
    if (question.length > MAX_QUESTION_BYTES) return { refused: `a question of ${question.length} bytes is too long` };
    if (this.#running >= MAX_QUESTIONS) return { refused: `${MAX_QUESTIONS} questions are being answered, ask again` };
    this.#running++;
    try {
      const found = await answer(question);
      const most = this.#maxPayload();
      return found.length > most
        ? { refused: `the answer has ${found.length} bytes, above the ${most} that the transport takes` }
        : { answer: found };
    } catch (error) {
      return { refused: `answering failed: ${(error as Error).message}` };
    } finally {
      this.#running--;
    }
  }
}
