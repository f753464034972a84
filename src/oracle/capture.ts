// A captured stream of the Mooncake master or of a worker: one JSON line a message, {"seq": decimal u64, "topic": hex, "payload": hex}.
// Times and sources are what a recording has besides (live/recording.ts).
import { MoonrouteError } from '../errors.js';
import { readRecordedLine } from '../live/recording-read.js';

/**
 * The messages of a capture's text, as frames `[topic, sequence, payload]`. `file` names it in errors.
 * @throws MoonrouteError `capture-line` with the line's number and what it lacks.
 */
export function readCapture(text: string, file: string): Uint8Array[][] {
  const messages: Uint8Array[][] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const place = `${file}:${index + 1}`;
    const read = readRecordedLine(line, place);
    if (read?.type !== 'message' || read.t !== null)
      throw new MoonrouteError('capture-line', `${place}: a capture's line has "seq", "topic" and "payload".`);
    messages.push(read.frames);
  }
  return messages;
}
