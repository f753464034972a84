// The fields of a JSON object as its text has them, for whoever must not read them his own way.
import { Buffer } from 'node:buffer';
import type { RawFields } from '../types.js';
import { type JsonObject, readJsonObject } from './json-text.js';

/** An object that was read, with the text that it was read from. */
interface ReadObject extends Pick<JsonObject, 'place'> {
  readonly bytes: Uint8Array;
}

/** Texts of the object's fields. */
export function rawFieldsOf({ bytes, place }: ReadObject): RawFields {
  return (name) => {
    const text = textAt(bytes, place(name));
    return text === null ? null : Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8');
  };
}

/** Texts of the fields of an object that is one of the object's own fields. @throws ApiError as for any object */
export function rawFieldsWithin({ bytes, place }: ReadObject, name: string): RawFields | null {
  const text = textAt(bytes, place(name));
  return text === null ? null : rawFieldsOf({ bytes: text, place: readJsonObject(text).place });
}

function textAt(bytes: Uint8Array, place: ReturnType<JsonObject['place']>): Uint8Array | null {
  return place === null ? null : bytes.subarray(place.start, place.end);
}
