// How bytes become lines: chunks of any size, streams and iterables, gzip by its first bytes, line ends of both kinds, and bounds.
import { gzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import { readTrace } from '../src/sim/traces/read.js';
import { bytesOf, chunked, readAll } from './support/traces.js';

const ROWS = Array.from(
  { length: 40 },
  (_, i) =>
    `{"timestamp": ${i}, "input_length": ${512 + i}, "output_length": 1, "hash_ids": [0, ${i + 1}], "note": "é✓"}`,
);
const PLAIN = bytesOf(...ROWS);
const PACKED = new Uint8Array(gzipSync(PLAIN));
const wanted = await readAll([PLAIN]);

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    assert.instance(error, MoonrouteError);
    return (error as MoonrouteError).code;
  }
  return 'none';
}

for (const [name, bytes] of [
  ['plain', PLAIN],
  ['gzip', PACKED],
] as const) {
  test(`${name}: the same requests whatever the chunks`, async () => {
    for (const size of [1, 2, 3, 7, 100, 1e6]) {
      const { requests, report } = await readAll(chunked(bytes, size));
      assert.equal(requests, wanted.requests, `chunks of ${size}`);
      assert.is(report.gzip, name === 'gzip');
    }
  });

  test(`${name}: a web stream and an async iterable give the same`, async () => {
    assert.equal((await readAll(new Blob([bytes as Uint8Array<ArrayBuffer>]).stream())).requests, wanted.requests);
    const chunks = (async function* () {
      yield* chunked(bytes, 50);
    })();
    assert.equal((await readAll(chunks)).requests, wanted.requests);
  });

  test(`${name}: a reader that stops early lets go of its source`, async () => {
    let left = false;
    const source = (async function* () {
      try {
        for (;;) yield bytes;
      } finally {
        left = true;
      }
    })();
    for await (const request of readTrace(source, { reorderRows: 0 })) if (request.index === 3) break;
    assert.is(left, true);
  });

  test(`${name}: what the source throws comes through as it is`, async () => {
    const fault = new Error('the disk is gone');
    const source = (async function* () {
      yield bytes.subarray(0, 90);
      throw fault;
    })();
    const error = await readAll(source).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.is(error, fault);
  });
}

test('a source may use its buffer again', async () => {
  const buffer = new Uint8Array(64);
  const source = (async function* () {
    for (const chunk of chunked(PLAIN, buffer.length)) {
      buffer.set(chunk);
      yield buffer.subarray(0, chunk.length);
    }
  })();
  assert.equal((await readAll(source)).requests, wanted.requests);
});

test('line ends of both kinds, a byte order mark, and a last line with or without an end', async () => {
  for (const text of [ROWS.join('\r\n'), `\ufeff${ROWS.join('\n')}\n`, `${ROWS.join('\r\n')}\r\n`]) {
    const { requests, report } = await readAll([new TextEncoder().encode(text)]);
    assert.equal(requests, wanted.requests);
    assert.is(report.skipped, 0);
  }
});

test('damaged or cut gzip is an error of its own', async () => {
  const damaged = PACKED.slice();
  damaged[30]! ^= 0xff;
  assert.is(await codeOf(readAll([damaged])), 'trace-gzip');
  assert.is(await codeOf(readAll([PACKED.subarray(0, PACKED.length - 20)])), 'trace-gzip');
});

test('a line longer than the bound is an error that names it, whatever the chunks; one as long as it is not', async () => {
  const longest = Math.max(...ROWS.map((row) => bytesOf(row).length));
  for (const size of [1, 10, 1e6]) {
    assert.is(await codeOf(readAll(chunked(PLAIN, size), { maxLineBytes: longest })), 'none');
    assert.is(await codeOf(readAll(chunked(PLAIN, size), { maxLineBytes: longest - 1 })), 'trace-line-length');
  }
  const error = await readAll([bytesOf(ROWS[0]!, 'x'.repeat(500))], { maxLineBytes: 200 }).then(() => '', String);
  assert.match(error, 'line 2');
  assert.match(error, '200 bytes');
});

test('a packed file that unpacks to one endless line stops at the bound', async () => {
  const bomb = new Uint8Array(gzipSync(new Uint8Array(30_000_000).fill(0x78)));
  assert.is(await codeOf(readAll([bomb])), 'trace-line-length');
});

test.run();
