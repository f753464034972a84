// What the benchmark sets beside each other makes the same digests.
import { createHash } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CoreDigests } from '../bench/core-digests.js';
import { Stream } from '../bench/method/random.js';
import { plainDigests, TunedDigests } from '../bench/rivals/engine-digests.js';
import { loadCore } from './support/cores.js';
import { vllmDigests } from './support/engine-digests.js';

test('core, plain and tuned rival agree', async () => {
  const core = await loadCore('tiny');
  for (const size of [4, 16, 64]) {
    const stream = new Stream(5n);
    const tokens = Uint32Array.from({ length: 1_500 * size + 3 }, () => stream.below(128_000));
    tokens.set([0, 255, 256, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]);
    const wanted = Buffer.concat(vllmDigests(tokens, size));
    const made = new Uint8Array(wanted.length);
    new CoreDigests(core, size).digest(tokens, made);
    assert.equal(Buffer.from(made), wanted, `core, ${size} a block`);
    new TunedDigests(createHash, size).digest(tokens, made.fill(0));
    assert.equal(Buffer.from(made), wanted, `tuned, ${size} a block`);
    assert.equal(Buffer.concat(plainDigests(createHash, tokens, size)), wanted, `plain, ${size} a block`);
  }
});

test.run();
