// Bytes to lines of text, a line at a time: LF or CR LF, a byte order mark dropped, a last line without an end taken too. What is held is
// the pieces of one line, and a line that is too long is an error before it is held.
import { MoonrouteError } from '../../errors.js';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
}

export class Lines {
  readonly #maxLineBytes: number;
  readonly #decoder = new TextDecoder();
  #pieces: Uint8Array[] = [];
  #held = 0;
  #number = 1;

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes;
  }

  /**
   * The lines that end in this chunk; its bytes may be used again when all are taken.
   * @throws MoonrouteError `trace-line-length` at a line of more than the bound
   */
  *split(chunk: Uint8Array): Generator<Line, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      this.#hold(chunk.subarray(start, end));
      start = end + 1;
      yield this.#take();
    }
    this.#hold(chunk.slice(start));
  }

  /** The last line, where the file does not end with a line end. */
  *end(): Generator<Line, void, undefined> {
    if (this.#held > 0) yield this.#take();
  }

  #hold(piece: Uint8Array): void {
    this.#held += piece.length;
    if (this.#held > this.#maxLineBytes)
      throw new MoonrouteError(
        'trace-line-length',
        `line ${this.#number} is longer than ${this.#maxLineBytes} bytes; traces and recordings are lines of text: ` +
          'if they are really that long, raise maxLineBytes',
      );
    if (piece.length > 0) this.#pieces.push(piece);
  }

  #take(): Line {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : joined(this.#pieces, this.#held);
    this.#pieces = [];
    this.#held = 0;
    const end = bytes[bytes.length - 1] === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length;
    return { text: this.#decoder.decode(bytes.subarray(0, end)), number: this.#number++ };
  }
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const piece of pieces) {
    bytes.set(piece, offset);
    offset += piece.length;
  }
  return bytes;
}
