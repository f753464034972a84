// How large a cache may be and which build of the core serves it: limits are checked by name, a contract that needs more groups or
// prefixes gets the wide build, and one that no build of the wanted size holds gives no hints, with the reason (design.md 5).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { validateContract } from '../src/contract/validate.js';
import { ConfigError } from '../src/errors.js';
import { type ContractShape, contractOf, Pool, Prompt, SOURCE, stored, storeMessage } from './support/messages.js';

const MOST_EDGES = 4_194_304;
const groupsOf = (groups: number): ContractShape => ({ groups: Array.from({ length: groups }, () => ({})) });

for (const edges of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, MOST_EDGES + 1, 2 ** 53]) {
  test(`limits.edges ${edges} is refused by name`, async () => {
    try {
      await SharedCache.create({ limits: { edges } });
    } catch (error) {
      assert.instance(error, ConfigError);
      assert.is((error as ConfigError).code, 'limits-edges');
      assert.match((error as ConfigError).message, 'limits.edges');
      assert.match((error as ConfigError).message, String(edges));
      return;
    }
    assert.unreachable('no error');
  });
}

for (const [edges, build] of [
  [undefined, 'default'],
  [1, 'default'],
  [262_144, 'default'],
  [262_145, 'large'],
  [MOST_EDGES, 'large'],
] as const) {
  test(`limits.edges ${edges ?? 'left out'} takes the ${build} build, which holds at least as many`, async () => {
    const pool = await Pool.open({}, edges === undefined ? {} : { limits: { edges } });
    const { core, build: built } = pool.cache.stats();
    assert.is(built, build);
    assert.ok(core!.caps.edges >= (edges ?? 262_144) && core!.caps.digests >= core!.caps.edges);
    assert.is(pool.hits(pool.filled(1, 3)), 3);
  });
}

test('before a contract there is no core', async () => {
  const cache = await SharedCache.create();
  assert.equal([cache.stats().build, cache.stats().core, cache.contract, cache.census()], [null, null, null, []]);
});

for (const [what, shape, build] of [
  ['8 groups', groupsOf(8), 'default'],
  ['9 groups', groupsOf(9), 'wide'],
  ['64 groups', groupsOf(64), 'wide'],
  ['64 prefixes', { groups: [{ ranks: 64 }] }, 'default'],
  ['65 prefixes', { groups: [{ ranks: 65 }] }, 'wide'],
  ['64 prefixes of 8 groups', { groups: Array.from({ length: 8 }, () => ({ ranks: 8 })) }, 'default'],
  ['65 prefixes of 8 groups', { groups: Array.from({ length: 8 }, (_, i) => ({ ranks: i === 0 ? 9 : 8 })) }, 'wide'],
  ['1,024 prefixes', { groups: Array.from({ length: 16 }, () => ({ ranks: 64 })) }, 'wide'],
] as const satisfies readonly (readonly [string, ContractShape, string])[]) {
  test(`a contract of ${what} is served by the ${build} build: whole blocks are credited, and one missing part ends it`, async () => {
    const pool = await Pool.open(shape);
    assert.is(pool.cache.stats().build, build);
    const prompt = pool.prompt(1, 2);
    const keys = prompt.keys(pool.contract);
    pool.teach(prompt);
    pool.send(keys.map((key) => stored(key)));
    assert.equal([pool.hits(prompt), pool.objects], [2, keys.length]);
    pool.cache.streamLost('reconnect');
    const lastOfSecondBlock = keys.filter((key) => key.endsWith(prompt.digest(1))).at(-1)!;
    const allBut = keys.filter((key) => key !== lastOfSecondBlock);
    pool.send(allBut.map((key) => stored(key)));
    assert.equal([pool.hits(prompt), pool.objects], [1, keys.length - 1]);
    const [why] = pool.explain(prompt).reasons;
    assert.equal([why!.code, why!.block, why!.missing], ['object-missing', 1, [lastOfSecondBlock]]);
  });
}

test('going from a small contract to a large one and back changes the build, and remembers nothing', async () => {
  const cache = await SharedCache.create();
  const builds = [];
  for (const shape of [groupsOf(1), groupsOf(9), groupsOf(9), groupsOf(1), { groups: [{ ranks: 65 }] }]) {
    const contract = contractOf(shape);
    cache.updateContract(contract, [SOURCE]);
    const { build, core } = cache.stats();
    builds.push([build, core!.edges]);
    const prompt = new Prompt(1, 1, contract);
    const keys = prompt.keys(contract);
    assert.is(
      cache.applyStoreMessage(
        storeMessage(
          builds.length,
          keys.map((key) => stored(key)),
        ),
      ).objects,
      keys.length,
    );
  }
  assert.equal(builds, [
    ['default', 0],
    ['wide', 0],
    ['wide', 0],
    ['default', 0],
    ['wide', 0],
  ]);
});

for (const [what, shape] of [
  ['9 groups', groupsOf(9)],
  ['65 prefixes', { groups: [{ ranks: 65 }] }],
] as const) {
  test(`limits.edges above 262,144 and a contract of ${what}: no hints, and the reason says what to do`, async () => {
    const pool = await Pool.open(shape, { limits: { edges: 262_145 } });
    const prompt = pool.prompt(1, 2);
    assert.is(pool.teach(prompt).refused, 'no-contract');
    assert.is(pool.send(prompt.keys(pool.contract).map((key) => stored(key))).fate, 'no-contract');
    assert.equal(pool.cache.lookup(prompt.query()), { blocks: 0, tokens: 0 });
    const [why, ...more] = pool.explain(prompt).reasons;
    assert.equal([why!.code, more], ['contract-too-large', []]);
    assert.match(why!.text, 'limits.edges');
    assert.match(why!.text, '262144');
    assert.equal([pool.cache.contract, pool.cache.stats().build, pool.cache.census()], [null, null, []]);
    // The next contract that fits is served; none at all has its own reason again.
    pool.cache.updateContract(contractOf(), [SOURCE]);
    assert.is(pool.cache.stats().build, 'large');
    pool.cache.updateContract(contractOf(shape), [SOURCE]);
    pool.cache.updateContract(null);
    assert.is(pool.explain(prompt).reasons[0]!.code, 'no-contract');
  });
}

test('a contract that is too large, given again with other sources, is no contract change', async () => {
  const pool = await Pool.open(groupsOf(9), { limits: { edges: 262_145 } });
  const { generation } = pool.cache;
  pool.cache.updateContract(pool.contract, []);
  assert.equal([pool.cache.generation, pool.clears('contract-change')], [generation, 1]);
});

test('memory is reserved when the contract comes, and never grows', async () => {
  const pool = await Pool.open();
  const { memoryBytes } = pool.cache.stats().core!;
  for (let name = 0; name < 50; name++) pool.filled(name, 40);
  assert.is(pool.cache.stats().core!.memoryBytes, memoryBytes);
});

test('the largest contract that validation lets through fits: 1,024 prefixes of 4,096 bytes', async () => {
  const descriptor = descriptorFromCase({
    hash_block_size: 16,
    coordinator_alignment: 16,
    partial_hash_hits: false,
    main_event_block_size: 16,
    groups: Array.from({ length: 64 }, (_, group_id) => ({
      group_id,
      kind: 'full_attention' as const,
      block_size: 16,
      window: null,
      prefixes: Array.from({ length: 16 }, (__, rank) => `${group_id}.${rank}.`.padEnd(4096, 'x')),
    })),
  });
  const cache = await SharedCache.create();
  cache.updateContract(validateContract(descriptor), [SOURCE]);
  assert.is(cache.stats().build, 'wide');
});

test('blocks of more tokens than the core takes at once are not hashed, and credit nothing', async () => {
  const blockSize = 2_000_000;
  const pool = await Pool.open({ blockSize });
  const tokens = new Uint32Array(2 * blockSize + 1);
  const query = { tokens, tokenCount: tokens.length, blockSize, eligible: true };
  assert.equal(pool.cache.lookup(query), { blocks: 0, tokens: 0 });
  assert.is(pool.cache.explain(query).reasons[0]!.code, 'hashes-missing');
});

test.run();
