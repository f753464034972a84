// The scan of request bodies: where values stand, and that no name stands twice, whatever the text looks like.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { ApiError } from '../src/server/http/errors.js';
import { readJsonObject, withValue } from '../src/server/http/json-text.js';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

test('places of values, whatever surrounds them', () => {
  const placed = (text: string, name: string) => {
    const place = readJsonObject(bytesOf(text)).place(name);
    return place === null ? null : textOf(bytesOf(text).subarray(place.start, place.end));
  };
  for (const [text, value] of [
    ['{"a":1}', '1'],
    ['{ "a" :\n\t1 , "b":2}', '1'],
    ['{"b":{"a":2},"a":[1,{"a":3}]}', '[1,{"a":3}]'],
    ['{"b":"\\"a\\":5","a":"x,}\\\\"}', '"x,}\\\\"'],
    ['{"\\u0061":null}', 'null'],
    ['{"b":[{"a":1},"a"],"é":"€","a":"€,"}', '"€,"'],
    ['{"b":1}', null],
    ['{}', null],
    [' \n{"a":{}}\n', '{}'],
    ['{"__proto__":1,"a":true}', 'true'],
  ] as const)
    assert.is(placed(text, 'a'), value, text);
});

test('bodies of countless values are refused before they are parsed; token ids are not countless', () => {
  const code = (text: string): string | null => {
    try {
      readJsonObject(bytesOf(text));
      return null;
    } catch (error) {
      return (error as ApiError).code;
    }
  };
  const list = (of: string, count: number) => `{"prompt":[${`${of},`.repeat(count - 1)}${of}]}`;
  for (const [name, text, expected] of [
    ['ids', list('1', 1_000_000), null],
    ['ids in batches', list(`[${'7,'.repeat(9999)}7]`, 100), null],
    ['objects', list('{}', 120_000), null],
    ['too many objects', list('{}', 3_000_000), 'too-many-values'],
    ['too many lists', list('[]', 3_000_000), 'too-many-values'],
    ['too many texts', list('""', 3_000_000), 'too-many-values'],
    ['too many deep lists', list('['.repeat(100) + ']'.repeat(100), 50_000), 'too-many-values'],
    ['too many fields', `{${Array.from({ length: 300_000 }, (_, i) => `"${i}":1`).join(',')}}`, 'too-many-values'],
    ['too many, and no JSON', `{"a":[${'{},'.repeat(3_000_000)}`, 'too-many-values'],
    ['brackets and commas of a text', JSON.stringify({ a: '[{,\\"'.repeat(300_000) }), null],
    ['a text without an end', '{"a":"', 'invalid-json'],
    ['an escape without an end', '{"a":"\\\\\\"', 'invalid-json'],
    ['too deep', `{"a":${'['.repeat(4_000_000)}`, 'invalid-json'],
  ] as const) {
    const started = performance.now();
    assert.is(code(text), expected, name);
    assert.ok(performance.now() - started < 1000, name);
  }
});

/** JSON objects as texts with spaces of every kind between everything. */
const spaces = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 3 });
const names = fc.oneof(
  fc.constantFrom('a', 'b', 'cache_salt', '__proto__', 'é', '"', '\\', '{', '}'),
  fc.string({ unit: 'binary' }),
);
const values = fc.oneof(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom('"', '\\', '{"a":1}', ':', ',', '}'));

function textFrom(fields: readonly (readonly [string, unknown])[], space: string): string {
  const parts = fields.map(([name, value]) => {
    return `${space}${JSON.stringify(name)}${space}:${space}${JSON.stringify(value, null, space.length)}${space}`;
  });
  return `${space}{${parts.join(',')}${space}}${space}`;
}

test('property: every value is where it is said to be, and only it changes when it is replaced', () => {
  fc.assert(
    fc.property(fc.dictionary(names, values, { noNullPrototype: false }), spaces, fc.string(), (object, space, put) => {
      const fields = Object.entries(object);
      const bytes = bytesOf(textFrom(fields, space));
      const read = readJsonObject(bytes);
      for (const [name, value] of fields) {
        const place = read.place(name)!;
        assert.equal(JSON.parse(textOf(bytes.subarray(place.start, place.end))), value);
        const changed = withValue(bytes, place, put);
        assert.equal(changed.subarray(0, place.start), bytes.subarray(0, place.start));
        assert.equal(changed.subarray(changed.length - (bytes.length - place.end)), bytes.subarray(place.end));
        assert.is(readJsonObject(changed).fields[name], put);
      }
      assert.is(read.place('no such name'), null);
    }),
    { numRuns: 500, seed: 7 },
  );
});

test('property: a name that stands twice is found, at any depth and however it is written', () => {
  const code = (text: string): string | null => {
    try {
      readJsonObject(bytesOf(text));
      return null;
    } catch (error) {
      return (error as ApiError).code;
    }
  };
  const escaped = (name: string) =>
    `"${[...name].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`;
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 5 }), values, spaces, fc.nat(5), (name, value, space, depth) => {
      const once = JSON.stringify(value);
      const twice = `{${JSON.stringify(name)}:${once},${space}${escaped(name)}${space}:${once}}`;
      const wrap = (inner: string) => `${'{"x":['.repeat(depth)}${inner}${']}'.repeat(depth)}`;
      assert.is(code(wrap(twice)), 'duplicate-field');
      // The same name in two objects is none.
      assert.is(code(`{"l":[{${JSON.stringify(name)}:1},{${JSON.stringify(name)}:1}]}`), null);
    }),
    { numRuns: 500, seed: 7 },
  );
});

test.run();
