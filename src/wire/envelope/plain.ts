// Values that are passed on without being understood (multimodal information, a state's source): plain numbers, bigints beyond 2^53, texts, truths,
// null, lists, maps with texts as names, and binary. What was a whole float comes out as an integer; all else is kept.
import { MAX_PLAIN_BYTES, MAX_PLAIN_DEPTH, MAX_PLAIN_OBJECTS } from './limits.js';
import { Fault, type Reader } from './reader.js';
import { unwritable, type Writer } from './writer.js';

/** Reads the plain values of one payload, within its bounds. */
export class PlainReader {
  #objects = 0;
  #bytes = 0;

  /** Starts on a payload. */
  start(): void {
    this.#objects = 0;
    this.#bytes = 0;
  }

  /** The value that starts here. @throws {Fault} `passed-on-value` */
  read(reader: Reader): unknown {
    const start = reader.at;
    reader.skip();
    this.#bytes += reader.at - start;
    if (this.#bytes > MAX_PLAIN_BYTES) {
      throw refused(`the payload passes on more than ${MAX_PLAIN_BYTES} bytes of other values`);
    }
    reader.at = start;
    return this.#value(reader, 0);
  }

  #value(reader: Reader, depth: number): unknown {
    if (reader.nil()) return null;
    const number = reader.number();
    if (number !== null) return number;
    const truth = reader.bool();
    if (truth !== null) return truth;
    if (++this.#objects > MAX_PLAIN_OBJECTS) {
      throw refused(`the payload passes on more than ${MAX_PLAIN_OBJECTS} lists, maps and texts`);
    }
    const text = reader.text(MAX_PLAIN_BYTES);
    if (text !== null) return text;
    if (depth === MAX_PLAIN_DEPTH) throw refused(`a value passed on nests deeper than ${MAX_PLAIN_DEPTH} containers`);
    const items = reader.array();
    if (items >= 0) {
      const list: unknown[] = [];
      for (let i = 0; i < items; i++) list.push(this.#value(reader, depth + 1));
      return list;
    }
    const pairs = reader.map();
    if (pairs >= 0) return this.#map(reader, pairs, depth + 1);
    const length = reader.binaryBytes();
    if (length < 0) throw refused(`a value passed on is ${reader.describe()}`);
    reader.at += length;
    return reader.bytes.slice(reader.at - length, reader.at);
  }

  #map(reader: Reader, pairs: number, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    for (let i = 0; i < pairs; i++) {
      const name = reader.text(MAX_PLAIN_BYTES);
      if (name === null) throw refused(`a map passed on has ${reader.describe()} for a name`);
      const value = this.#value(reader, depth);
      if (name === '__proto__')
        Object.defineProperty(map, name, { value, enumerable: true, writable: true, configurable: true });
      else map[name] = value;
    }
    return map;
  }
}

/** Writes a plain value. Undefined is nil, and left out of maps. @throws {WireError} `unwritable` */
export function writePlain(writer: Writer, value: unknown, depth = 0): void {
  if (value === null || value === undefined) writer.nil();
  else if (typeof value === 'number') writer.number(value);
  else if (typeof value === 'bigint') writer.big(value);
  else if (typeof value === 'string') writer.text(value);
  else if (typeof value === 'boolean') writer.bool(value);
  else if (value instanceof Uint8Array) writer.binary(value);
  else if (typeof value !== 'object') throw unwritable(`a ${typeof value} can't be passed on`);
  else if (depth === MAX_PLAIN_DEPTH)
    throw unwritable(`a value to pass on nests deeper than ${MAX_PLAIN_DEPTH} containers`);
  else if (Array.isArray(value)) {
    writer.array(value.length);
    for (const item of value) writePlain(writer, item, depth + 1);
  } else {
    const pairs = Object.entries(value).filter(([, each]) => each !== undefined);
    writer.map(pairs.length);
    for (const [name, each] of pairs) {
      writer.text(name);
      writePlain(writer, each, depth + 1);
    }
  }
}

function refused(text: string): Fault {
  return new Fault('passed-on-value', text);
}
