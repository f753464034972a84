// A captured stream of the Mooncake master: one JSON line a message, {"seq": decimal u64, "topic": hex, "payload": hex}.
import { MoonrouteError } from '../errors.js';
import { writeSequence } from '../wire/frames.js';

const HEX = /^(?:[0-9a-f]{2})*$/;
const DECIMAL = /^\d{1,20}$/;

/**
 * The messages of a capture's text, as frames `[topic, sequence, payload]`. `file` names it in errors.
 * @throws MoonrouteError `capture-line` with the line's number and what it lacks.
 */
export function readCapture(text: string, file: string): Uint8Array[][] {
  const messages: Uint8Array[][] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    messages.push(readLine(line, `${file}:${index + 1}`));
  }
  return messages;
}

function readLine(line: string, place: string): Uint8Array[] {
  let value: { seq?: unknown; topic?: unknown; payload?: unknown };
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new MoonrouteError(
      'capture-line',
      `${place}: not JSON (${(error as Error).message}); a capture has one JSON object a line.`,
    );
  }
  const { seq, topic, payload } = value ?? {};
  if (typeof seq !== 'string' || !DECIMAL.test(seq) || BigInt(seq) >= 1n << 64n) {
    throw new MoonrouteError(
      'capture-line',
      `${place}: "seq" must be a decimal u64 as text, got ${JSON.stringify(seq)}.`,
    );
  }
  if (typeof topic !== 'string' || !HEX.test(topic) || typeof payload !== 'string' || !HEX.test(payload)) {
    throw new MoonrouteError('capture-line', `${place}: "topic" and "payload" must be lowercase hex texts.`);
  }
  return [bytesOf(topic), writeSequence(BigInt(seq)), bytesOf(payload)];
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, i) => Number.parseInt(hex.slice(i * 2, i * 2 + 2), 16));
}
