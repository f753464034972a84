// A simulated engine's digests, object keys and store hits are the real engine's: held against the cases that vLLM's own coordinator computed.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { validateContract } from '../src/contract/validate.js';
import { ConfigError } from '../src/errors.js';
import { restorable } from '../src/fleet/worker/coordinator.js';
import { type Geometry, type GroupOptions, geometryOf } from '../src/fleet/worker/geometry.js';
import { BlockDigests, hexOf, low64Of } from '../src/wire/block-digests.js';
import { caseFile, type StoredCase } from './support/descriptor.js';
import { vllmDigests } from './support/engine-digests.js';

/** A case with the fields that only this test reads. */
interface Case extends StoredCase {
  readonly tp: number;
  readonly pp: number;
  readonly num_kv_heads: number;
  readonly tokens: { readonly start: number; readonly step: number; readonly mod: number; readonly count: number };
  readonly digests: readonly string[];
  readonly low64: readonly string[];
  readonly present: readonly (readonly [group: number, prefix: number, digest: number])[];
  readonly request_token_count: number;
  readonly worker_hit_tokens: number;
}

const cases = caseFile('oracle-cases.json')!.cases as readonly Case[];

function tokensOf({ tokens: { start, step, mod, count } }: Case): number[] {
  return Array.from({ length: count }, (_, i) => (start + step * i) % mod);
}

/** The geometry of a case as a worker of this fleet would have it; null for what is not simulated. */
function geometry(one: Case): Geometry | null {
  if (one.partial_hash_hits || one.pp > 1 || !one.groups.some(({ kind }) => kind === 'full_attention')) return null;
  const [first] = one.groups[0]!.prefixes;
  const [model, ...rest] = first!.split('@tp_rank')[0]!.split('@').reverse();
  const made = geometryOf({
    model: model!,
    cachePrefix: rest.reverse().join('@'),
    blockSize: one.main_event_block_size!,
    tp: one.tp,
    groups: one.groups.map(
      ({ kind, block_size, window }): GroupOptions => ({
        kind,
        blockSize: block_size,
        kvHeads: one.num_kv_heads,
        ...(window === null ? {} : { window }),
      }),
    ),
  });
  return made.hashBlockSize === one.hash_block_size ? made : null;
}

test('every digest of the oracle cases, with LoRA names and salts', () => {
  let digests = 0;
  let keyed = 0;
  for (const one of cases) {
    const tokens = tokensOf(one);
    const maker = new BlockDigests(one.hash_block_size);
    let parent: Uint8Array | null = null;
    for (const [i, expected] of one.digests.entries()) {
      const salt = i === 0 ? one.cache_salt : null;
      const extraKeys = [one.lora_name, salt].filter((key): key is string => typeof key === 'string');
      parent = maker.digest(parent, tokens, i * one.hash_block_size, extraKeys);
      assert.is(hexOf(parent), expected, `${one.name}, digest ${i}`);
      assert.is(String(low64Of(parent)), one.low64[i]);
      digests++;
      if (extraKeys.length > 0) keyed++;
    }
  }
  assert.ok(digests > 5_000 && keyed > 100, `${digests} digests, ${keyed} with extra keys`);
});

test('blocks of one to three tokens, large token ids, long and foreign names', () => {
  for (const size of [1, 2, 3, 4, 300]) {
    const tokens = Array.from({ length: size * 2 }, (_, i) => [0, 255, 256, 65_535, 65_536, 2 ** 31 - 1][i % 6]!);
    const scope = { loraName: 'é'.repeat(127), cacheSalt: 'dynamo-cache-salt:tenant-a' };
    const maker = new BlockDigests(size);
    const first = maker.digest(null, tokens, 0, [scope.loraName, scope.cacheSalt]);
    const second = maker.digest(first, tokens, size, [scope.loraName]);
    assert.equal(
      [first, second].map(hexOf),
      vllmDigests(tokens, size, scope).map((digest) => digest.toString('hex')),
    );
  }
});

test('plain blocks: many in one buffer are the same digests', () => {
  const size = 16;
  const tokens = Uint32Array.from({ length: size * 8 }, (_, i) => i * 40_503);
  const digests = new Uint8Array(8 * 32);
  const maker = new BlockDigests(size);
  let parent: Uint8Array | null = null;
  for (let block = 0; block < 8; block++) {
    maker.write(digests, block * 32, block === 0 ? -1 : (block - 1) * 32, tokens, block * size);
    parent = maker.digest(parent, tokens, block * size);
    assert.equal(parent, digests.subarray(block * 32, block * 32 + 32));
  }
});

test('object key prefixes: of every rank, shared where there are fewer KV heads', () => {
  let compared = 0;
  for (const one of cases) {
    const made = geometry(one);
    if (made === null) continue;
    assert.equal(
      made.groups.map(({ keyPrefixes }) => [...keyPrefixes].sort()),
      one.groups.map(({ prefixes }) => [...prefixes].sort()),
      one.name,
    );
    compared++;
  }
  assert.ok(compared > 200, `${compared} compared`);
});

test('what the store restores is what vLLM’s connector said', () => {
  let hits = 0;
  let compared = 0;
  for (const one of cases) {
    const made = geometry(one);
    if (made === null) continue;
    const present = new Set(one.present.map(([group, prefix, digest]) => `${group} ${prefix} ${digest}`));
    const hit = restorable(made, one.request_token_count, ({ index }, tokens) => {
      const digest = tokens / made.hashBlockSize - 1;
      return one.groups[index]!.prefixes.every((_, prefix) => present.has(`${index} ${prefix} ${digest}`));
    });
    assert.is(hit, one.worker_hit_tokens, one.name);
    compared++;
    if (hit > 0) hits++;
  }
  assert.ok(compared > 200 && hits > 100, `${compared} compared, ${hits} hits`);
});

test('the published descriptor is a valid contract', () => {
  const { descriptor } = geometryOf({
    model: 'org/Some-Model/',
    cachePrefix: 'pool',
    blockSize: 16,
    tp: 2,
    groups: [{ kind: 'full_attention', kvHeads: 1 }, { kind: 'sliding_window', window: 128 }, { kind: 'mamba' }],
  });
  const { groups, lcmBlockSize } = validateContract(descriptor);
  assert.is(lcmBlockSize, 16);
  assert.equal(
    groups.map(({ keyPrefixes }) => keyPrefixes),
    [
      ['pool@Some-Model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0'],
      [0, 1].map((rank) => `pool@Some-Model@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:1`),
      [0, 1].map((rank) => `pool@Some-Model@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:2`),
    ],
  );
});

for (const [what, groups] of [
  ['no group', []],
  ['no full attention', [{ kind: 'mamba' }]],
  ['a window of one token', [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 1 }]],
  ['a sliding window without its size', [{ kind: 'full_attention' }, { kind: 'sliding_window' }]],
  ['a window of full attention', [{ kind: 'full_attention', window: 16 }]],
  ['states over finer digests', [{ kind: 'full_attention' }, { kind: 'mamba', blockSize: 32 }]],
  ['blocks of nothing', [{ kind: 'full_attention', blockSize: 0 }]],
] as const) {
  test(`${what}: refused by name`, () => {
    const make = () =>
      geometryOf({ model: 'm', cachePrefix: '', blockSize: 16, tp: 1, groups: groups as readonly GroupOptions[] });
    assert.throws(make, (error: unknown) => error instanceof ConfigError && error.code === 'worker-groups');
  });
}

test.run();
