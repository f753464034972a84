// Block digests from tokens are vLLM's: held against what Python's own pickle and cbor2 made, against a writer over node:crypto, and against the cases
// that vLLM computed.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { HashRule } from '../src/contract/descriptor.js';
import { MAX_HASH_BLOCK_TOKENS, MAX_TAIL_BYTES, tailsOf } from '../src/core/engine-hash.js';
import { loadCore } from './support/cores.js';
import { caseFile } from './support/descriptor.js';
import { vllmDigests } from './support/engine-digests.js';
import { digestCases, HashingCore, hex, hexes, tokensOf } from './support/engine-hash-cases.js';
import { Random } from './support/random.js';

const SHA256: HashRule = { algorithm: 'sha256', seed: '0' };
const AT_ONCE = 1024;
/** Token ids at every edge of a width, and some between. */
const EDGES = [0, 1, 23, 24, 255, 256, 65_535, 65_536, 128_255, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];

const core = new HashingCore(await loadCore('tiny'));
const random = new Random(88);

function randomTokens(count: number): Uint32Array {
  const kind = random.int(4);
  return Uint32Array.from({ length: count }, () => {
    if (kind === 0) return EDGES[random.int(EDGES.length)]!;
    return kind === 1 ? random.int(256) : kind === 2 ? random.int(128_000) : random.int(2 ** 32);
  });
}

for (const [name, algorithm] of [
  ['pickle', 'sha256'],
  ['cbor', 'sha256_cbor'],
] as const) {
  const cases = digestCases(name, algorithm);
  test(`${cases.length} cases that Python's ${name} made, in one call and split at every block`, () => {
    assert.ok(cases.length >= 90);
    for (const { name, rule, root, blockSize, tokens, extraKeys, digests } of cases) {
      assert.is(hex(core.take(rule, blockSize, extraKeys)), root, name);
      const made = core.digests(tokens, blockSize, null);
      assert.equal(hexes(made), digests, name);
      for (let blocks = 1; blocks < digests.length; blocks++) {
        const front = core.digests(tokens.subarray(0, blocks * blockSize), blockSize, null);
        const back = core.digests(tokens.subarray(blocks * blockSize), blockSize, front.subarray(-32));
        assert.equal([...hexes(front), ...hexes(back)], digests, `${name}, split at ${blocks}`);
      }
    }
  });
}

test('blocks of 1 to 64 tokens and some larger ones are those of another writer', () => {
  for (const size of [...Array.from({ length: 64 }, (_, i) => i + 1), 128, 257, 1000, 2048, MAX_HASH_BLOCK_TOKENS]) {
    for (const [loraName, cacheSalt] of [
      [null, null],
      ['adapter', null],
      [null, 'dynamo-cache-salt:tenant'],
      ['the same', 'the same'],
    ] as const) {
      const blocks = 1 + random.int(size > 64 ? 3 : 70);
      const tokens = randomTokens(size * blocks);
      core.take(SHA256, size, { loraName, rawSalt: cacheSalt });
      const wanted = vllmDigests(tokens, size, { loraName, cacheSalt }).map(hex);
      assert.equal(hexes(core.digests(tokens, size, null)), wanted, `${blocks} blocks of ${size}`);
    }
  }
});

test('as many blocks as a call takes, in two calls split anywhere', () => {
  for (const size of [1, 5, 16]) {
    const tokens = randomTokens(size * AT_ONCE);
    core.take(SHA256, size, { loraName: 'l', rawSalt: 's' });
    const whole = core.digests(tokens, size, null);
    assert.equal(hexes(whole), vllmDigests(tokens, size, { loraName: 'l', cacheSalt: 's' }).map(hex));
    for (let turn = 0; turn < 40; turn++) {
      const at = turn < 34 ? turn + 1 : 1 + random.int(AT_ONCE - 1);
      const front = core.digests(tokens.subarray(0, at * size), size, null);
      const back = core.digests(tokens.subarray(at * size), size, front.subarray(-32));
      assert.equal(Buffer.concat([front, back]), Buffer.from(whole), `split at ${at}`);
    }
  }
});

test('every digest that vLLM computed for the oracle cases', () => {
  const cases = caseFile('oracle-cases.json')!.cases as unknown as readonly {
    readonly name: string;
    readonly hash_block_size: number;
    readonly tokens: { readonly start: number; readonly step: number; readonly mod: number; readonly count: number };
    readonly lora_name: string | null;
    readonly cache_salt: string | null;
    readonly digests: readonly string[];
  }[];
  let digests = 0;
  for (const one of cases) {
    const size = one.hash_block_size;
    const tokens = tokensOf(one.tokens).subarray(0, one.digests.length * size);
    core.take(SHA256, size, { loraName: one.lora_name, rawSalt: one.cache_salt });
    assert.equal(hexes(core.digests(tokens, size, null)), one.digests, one.name);
    digests += one.digests.length;
  }
  assert.is(digests, 14_676);
});

test('nothing but its own areas is written', () => {
  for (const [size, blocks] of [
    [16, AT_ONCE],
    [MAX_HASH_BLOCK_TOKENS, 3],
  ] as const) {
    const own = [
      [core.at('RESULT'), core.at('RESULT') + 32],
      [core.at('HASH_RULE'), 0xd000],
      [core.at('TAIL_FIRST'), core.at('DIGESTS_OUT') + blocks * 32],
    ] as const;
    core.take(SHA256, size, { loraName: '字'.repeat(4096), rawSalt: '字'.repeat(4096) });
    const tokens = randomTokens(size * blocks);
    core.digests(tokens, size, null);
    for (const filler of [0x00, 0xff]) {
      // Whatever stands elsewhere stays, and what stands behind the areas does not matter.
      const kept = core.memory.slice();
      const rest = core.at('DIGESTS_OUT') + blocks * 32;
      core.memory.fill(filler, rest, core.at('INPUT'));
      const before = core.memory.slice();
      const made = core.digests(tokens, size, null);
      assert.equal(Buffer.from(made), Buffer.from(kept.subarray(core.at('DIGESTS_OUT'), rest)));
      let start = 0;
      for (const [from, to] of [...own, [before.length, before.length] as const]) {
        const same = Buffer.compare(core.memory.subarray(start, from), before.subarray(start, from)) === 0;
        assert.ok(same, `${size} tokens: bytes between ${start} and ${from} changed`);
        start = to;
      }
    }
  }
});

test('the longest names fit, longer ones are refused', () => {
  const name = '字'.repeat(4096);
  const { first } = tailsOf('sha256', { loraName: name, rawSalt: `dynamo-cache-salt:${name}` });
  assert.ok(first.length <= MAX_TAIL_BYTES && first.length > MAX_TAIL_BYTES - 64, `${first.length} bytes`);
  assert.throws(() => tailsOf('sha256', { loraName: name, rawSalt: `${name}${name}` }), RangeError);
  assert.is(core.at('TAIL_BYTES'), MAX_TAIL_BYTES);
});

test('the largest block with the longest tail is one frame of pickle, one token more may not be', () => {
  const around = 35 + 1 + 2; // the parent's digest, and the tokens' tuple
  const most = (tokens: number) => around + tokens * 7 + MAX_TAIL_BYTES;
  assert.ok(most(MAX_HASH_BLOCK_TOKENS) < 65_536 && most(MAX_HASH_BLOCK_TOKENS + 1) >= 65_536);
});

test.run();
