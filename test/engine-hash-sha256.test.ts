// SHA-256 of core and reader is node:crypto's, whatever the length.
import { createHash } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Numbers } from '../src/core/numbers.js';
import { loadCore } from './support/cores.js';
import { HashingCore, hex } from './support/engine-hash-cases.js';
import { Random } from './support/random.js';

const random = new Random(8);
const LENGTHS = [...Array.from({ length: 601 }, (_, length) => length), 4_095, 65_536, 1_000_003, 4_000_000];
const messages = LENGTHS.map((length) => Uint8Array.from({ length }, () => random.int(256)));
const core = new HashingCore(await loadCore('tiny'));
const numbers = new Numbers();

for (const [where, sha256] of [
  ['core', (message: Uint8Array) => core.sha256(message)],
  ['reader', (message: Uint8Array) => numbers.sha256(message)],
] as const) {
  test(`${where}: every length up to 600, and some long ones`, () => {
    for (const message of messages) {
      assert.is(hex(sha256(message)), createHash('sha256').update(message).digest('hex'), `${message.length} bytes`);
    }
  });
}

test('the examples of FIPS 180-4', () => {
  const of = (text: string) => hex(core.sha256(new TextEncoder().encode(text)));
  assert.is(of('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  assert.is(
    of('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq'),
    '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
  );
});

test.run();
