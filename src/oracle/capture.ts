// A captured stream of the Mooncake master or of a worker: one JSON line a message, {"seq": decimal u64, "topic": hex, "payload": hex}.
import { MoonrouteError, WireError } from '../errors.js';
import { writeSequence } from '../wire/frames.js';
import { boundedDecoder } from '../wire/msgpack.js';
import { isMap } from '../wire/values.js';

/** Who published a stream. */
export type Publisher = 'store' | 'worker';

const LIMITS = { bytes: 16 * 1024 * 1024, depth: 64, objects: 4_194_304 };
const decode = boundedDecoder(['event_type', 'object_key'], LIMITS);
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

/** Who published these messages, by their first event; null when none can be read. Only the master names an object's key. */
export function publisherOf(messages: readonly (readonly Uint8Array[])[]): Publisher | null {
  for (const [, , payload] of messages) {
    const batch = tryDecode(payload!);
    if (isMap(batch)) return 'worker'; // a map for a batch is a worker's alone
    const events: unknown = Array.isArray(batch) ? batch[1] : null;
    if (!Array.isArray(events) || events.length === 0) continue;
    const event: unknown = events[0];
    return isMap(event) && ('event_type' in event || 'object_key' in event) ? 'store' : 'worker';
  }
  return null;
}

function tryDecode(payload: Uint8Array): unknown {
  try {
    return decode(payload);
  } catch (error) {
    if (error instanceof WireError) return null;
    throw error;
  }
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
