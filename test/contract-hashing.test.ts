// What a contract is held to where digests are derived (`hashing` derived and both): the rules that only learning needs refuse nothing and are
// noted instead, rule 4 takes more ways of hashing, and hash blocks have a longest length. In `learned`, the default, nothing differs.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  acceptRevision,
  agreeOnContract,
  type Contract,
  contractRules,
  type Descriptor,
  defaultRevisions,
  descriptorFromCase,
  HASHINGS,
  type Hashing,
  type HashRule,
  MAX_DERIVED_HASH_SPAN,
  MAX_SPAN,
  type RevisionSet,
  unlearnedRule,
  validateContract,
} from '../src/contract/index.js';
import { isValidatedContract } from '../src/contract/validate.js';
import { ConfigError, ContractError } from '../src/errors.js';
import { requiredPrefixes } from '../src/server/doctor/required-prefixes.js';
import { type Breach, rows } from './support/contract-breaches.js';
import { caseFile, type Mutable, refusalOf, smallDescriptor, validDescriptor } from './support/descriptor.js';

const DERIVING = ['derived', 'both'] as const;

function broken(...breaches: Breach[]): Mutable<Descriptor> {
  const descriptor = validDescriptor();
  for (const breach of breaches) breach(descriptor);
  return descriptor;
}

/** The code of the refusal; null where the contract is accepted. */
function codeOf(descriptor: unknown, hashing?: Hashing, revisions?: RevisionSet): string | null {
  try {
    validateContract(descriptor, { hashing, revisions });
    return null;
  } catch (error) {
    if (error instanceof ContractError) return error.code;
    throw error;
  }
}

// Rule by rule, the main group that is left. Rule 14 stands below: nothing that keeps rules 12 and 16 can break it.
const learningRules: Readonly<Record<number, number | null>> = { 11: null, 12: null, 13: null, 18: 1, 22: 1 };

test('the rules that only learning needs are 11 to 14, 18 and 22', () => {
  const of = (kind: string) => contractRules.filter(({ teaching }) => teaching === kind).map(({ number }) => number);
  assert.equal(of('main-group'), [11, 12, 13]);
  assert.equal(of('boundaries'), [14, 18, 22]);
});

for (const [rule, mainEventGroup] of Object.entries(learningRules)) {
  const { code, breaches } = rows[Number(rule) - 1]!;
  for (const [name, breach] of Object.entries(breaches)) {
    test(`rule ${rule} (${code}) is for learning only: ${name}`, () => {
      assert.is(codeOf(broken(breach)), code);
      assert.is(codeOf(broken(breach), 'learned'), code);
      for (const hashing of DERIVING) {
        const contract = validateContract(broken(breach), { hashing });
        assert.is(contract.learnable, false);
        assert.is(unlearnedRule(contract)?.number, Number(rule));
        assert.is(contract.mainEventGroup, mainEventGroup);
        assert.is(contract.mainEventBlockSize, broken(breach).main_event_block_size);
        assert.is(isValidatedContract(contract), false, 'it is none that edges may be learned under');
        for (const other of DERIVING) assert.ok(isValidatedContract(contract, other));
      }
    });
  }
}

test('rule 14: a main span that no hash block divides is no span of a group, so rule 12 is broken too', () => {
  const between: Breach = (d) => (d.main_event_block_size = 12);
  assert.is(codeOf(broken(between)), 'main-span-not-full-attention');
  for (const hashing of DERIVING) {
    const { learnable, mainEventGroup } = validateContract(broken(between), { hashing });
    assert.equal({ learnable, mainEventGroup }, { learnable: false, mainEventGroup: null });
  }
});

test('rule 14: a hash span that does not divide its blocks is refused by rule 16 instead', () => {
  for (const breach of Object.values(rows[13]!.breaches)) {
    assert.is(codeOf(broken(breach)), 'unobservable-hash-span');
    for (const hashing of DERIVING) assert.is(codeOf(broken(breach), hashing), 'invalid-spans');
  }
});

const taken = (rule: number, name: string) => rule === 4 && name === 'algorithm'; // sha256_cbor

for (const { rule, code, breaches } of rows.filter(({ rule }) => contractRules[rule - 1]!.teaching === undefined)) {
  test(`rule ${rule} (${code}) refuses where digests are derived, whatever learning lacks`, () => {
    for (const [name, breach] of Object.entries(breaches)) {
      if (taken(rule, name)) continue;
      for (const hashing of DERIVING) assert.is(codeOf(broken(breach), hashing), code, name);
      for (const lacking of Object.keys(learningRules)) {
        for (const also of Object.values(rows[Number(lacking) - 1]!.breaches)) {
          assert.is(codeOf(broken(also, breach), 'derived'), code, `${name}, without rule ${lacking}`);
        }
      }
    }
  });
}

function hashed(hash: Partial<Descriptor['hash']>, revision?: string): Mutable<Descriptor> {
  return broken(
    (d) => Object.assign(d.hash, hash),
    (d) =>
      revision !== undefined && Object.assign(d, { vllm_revision: revision, adapter: `vllm-${revision.slice(0, 8)}` }),
  );
}

const longest = '9'.repeat(64);
const told: readonly (readonly [algorithm: HashRule['algorithm'], policy: string, seed: string])[] = [
  ['sha256', 'pythonhashseed-0', '0'],
  ['sha256', 'pythonhashseed-42', '42'],
  ['sha256', 'pythonhashseed-007', '007'],
  ['sha256', `pythonhashseed-${longest}`, longest],
  ['sha256', 'pythonhashseed- ', ' '],
  ['sha256', 'pythonhashseed-~"\\-', '~"\\-'],
  ['sha256', 'pythonhashseed-random', 'random'],
  ['sha256', 'vllm-none-hash', 'vllm-none-hash'],
  ['sha256_cbor', 'pythonhashseed-0', '0'],
  ['sha256_cbor', 'vllm-none-hash', 'vllm-none-hash'],
];

for (const [algorithm, seed_policy, seed] of told) {
  test(`rule 4 takes ${algorithm} with ${seed_policy} where digests are derived`, () => {
    const learned = algorithm === 'sha256' && seed === '0';
    assert.is(codeOf(hashed({ algorithm, seed_policy })), learned ? null : 'unsupported-hash-contract');
    for (const hashing of DERIVING) {
      const contract = validateContract(hashed({ algorithm, seed_policy }), { hashing });
      assert.equal(contract.hashRule, { algorithm, seed });
      assert.ok(Object.isFrozen(contract.hashRule));
      assert.is(contract.learnable, true, 'its events would teach all the same');
      assert.is(unlearnedRule(contract), null);
      assert.is(isValidatedContract(contract), learned);
    }
  });
}

const untold: readonly Partial<Descriptor['hash']>[] = [
  ...['', 'random', 'pythonhashseed', 'pythonhashseed-', 'pythonhashseed_0', 'PYTHONHASHSEED-0', '0'],
  ...[' pythonhashseed-0', 'pythonhashseed-0\n', 'pythonhashseed-\u0000', 'pythonhashseed-\u007f', 'pythonhashseed-é'],
  ...[`pythonhashseed-${longest}9`, `pythonhashseed-${'9'.repeat(1_000_000)}`, 'vllm-none-hash ', 'VLLM-NONE-HASH'],
].map((seed_policy) => ({ seed_policy }));
const otherAlgorithms = ['', 'md5', 'SHA256', 'sha256_cbor_64bit', 'xxhash', 'xxhash_cbor', 'toString'];
const others: readonly Partial<Descriptor['hash']>[] = [
  ...otherAlgorithms.map((algorithm) => ({ algorithm })),
  { digest_encoding: 'base64' },
  { gpu_event_hash: 'sha256' },
  { key_separator: '/' },
];

for (const hash of [...untold, ...others]) {
  test(`rule 4 refuses ${JSON.stringify(hash).slice(0, 60)} in every mode, and says what to set`, () => {
    for (const hashing of HASHINGS) {
      const { code, message } = refusalOf(() => validateContract(hashed(hash), { hashing }));
      assert.is(code, 'unsupported-hash-contract');
      assert.match(message, `hash.${Object.keys(hash)[0]} is `);
      assert.match(message, /sha256.*PYTHONHASHSEED.*\(contract rule 4\)\.$/);
      assert.ok(message.length < 600, `a message of ${message.length} characters`);
    }
  });
}

test('an unset seed is told only by revisions since it is no longer random', () => {
  for (const [date, accepted] of [
    ['2026-08-17', false],
    ['2026-08-18', true],
  ] as const) {
    const revision = 'feedc0de00000000000000000000000000000001';
    const revisions = acceptRevision(defaultRevisions, {
      ...{ revision, date, emitsExtraKeys: true, hashRule: 'sha256', keyFormat: 'compact' },
      caseFile: { vllm_revision: revision, cases: [{}] },
      oracleVerdict: { cases: 1, equal: 1, under: 0, over: 0, unsupported: 0 },
    });
    const unset = hashed({ seed_policy: 'vllm-none-hash' }, revision);
    for (const hashing of DERIVING) {
      assert.is(codeOf(unset, hashing, revisions), accepted ? null : 'unsupported-hash-contract');
      assert.is(codeOf(hashed({ seed_policy: 'pythonhashseed-1' }, revision), hashing, revisions), null);
    }
    if (!accepted) {
      assert.match(
        refusalOf(() => validateContract(unset, { hashing: 'derived', revisions })).message,
        /"vllm-none-hash" with a vLLM revision of 2026-08-17.*random.*set PYTHONHASHSEED/,
      );
    }
  }
});

/** One full-attention group of blocks of `span` tokens, hashed whole. */
function whole(span: number): Mutable<Descriptor> {
  const descriptor = smallDescriptor();
  descriptor.main_event_block_size = span;
  descriptor.coordinator.lcm_block_size = span;
  Object.assign(descriptor.groups[0]!, { block_size: span, hash_block_size: span });
  return descriptor;
}

test('hash blocks that are derived have at most 4,096 tokens, said after every rule', () => {
  assert.is(MAX_DERIVED_HASH_SPAN, 4096);
  for (const hashing of HASHINGS) assert.is(codeOf(whole(4096), hashing), null);
  const learned = validateContract(whole(4097));
  assert.ok(isValidatedContract(learned));
  for (const hashing of DERIVING) {
    assert.is(isValidatedContract(learned, hashing), false, 'a contract for learning is not one for deriving');
    const { code, message } = refusalOf(() => validateContract(whole(4097), { hashing }));
    assert.is(code, 'underivable-hash-span');
    assert.match(message, 'hash_block_size is 4097, at most 4096 tokens');
    assert.is(codeOf(whole(MAX_SPAN), hashing), 'underivable-hash-span');
    assert.is(codeOf(whole(MAX_SPAN + 1), hashing), 'alignment-overflow');
  }
});

test('rule 28 counts a main span that is no span of a group', () => {
  const spanned = (main: number) => broken((d) => (d.main_event_block_size = main));
  // 192 and the span have a common multiple within the limit, or none.
  for (const main of [1, 5, 7, 24, 1024, 11_184_809]) assert.is(codeOf(spanned(main), 'derived'), null, `${main}`);
  for (const main of [11_184_811, MAX_SPAN, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
    const { code, message } = refusalOf(() => validateContract(spanned(main), { hashing: 'derived' }));
    assert.is(code, 'alignment-overflow');
    assert.match(message, `coordinator.lcm_block_size is 192, main_event_block_size is ${main}.`);
    assert.is(codeOf(spanned(main)), 'main-span-not-full-attention');
  }
});

test('the ranks of a worker agree on what derivation needs', () => {
  const lacking = broken(rows[21]!.breaches['two blocks']!);
  const replies = [0, 1].map((rank) => ({ rank, dp_rank: 0, descriptor: lacking }));
  assert.is(refusalOf(() => agreeOnContract(replies, { worldSize: 2 })).code, 'unobservable-sliding-window');
  for (const hashing of DERIVING) {
    const agreed = agreeOnContract(replies, { worldSize: 2, hashing, registeredBlockSize: 16 });
    assert.equal(agreed, validateContract(lacking, { hashing }));
    assert.is(
      refusalOf(() => agreeOnContract(replies, { worldSize: 2, hashing, registeredBlockSize: 8 })).code,
      'metadata-disagrees',
    );
  }
});

test('a mode that there is not is refused by name', () => {
  for (const hashing of ['', 'Derived', 'none', null, true, {}] as Hashing[]) {
    assert.throws(
      () => validateContract(validDescriptor(), { hashing }),
      (error: unknown) =>
        error instanceof ConfigError && error.code === 'hashing' && /learned, derived, both/.test(error.message),
    );
  }
  validateContract(validDescriptor(), { hashing: undefined });
});

test('nothing but what validateContract made is a validated contract, in any mode', () => {
  const contract = validateContract(validDescriptor(), { hashing: 'both' });
  for (const hashing of HASHINGS) {
    assert.ok(isValidatedContract(contract, hashing));
    for (const other of [{ ...contract }, null, undefined, 1, 'contract'])
      assert.not(isValidatedContract(other, hashing));
  }
});

test('a contract follows from its descriptor, whatever the mode: learned takes those that derived takes and learning can use', () => {
  const paths: string[][] = [];
  const collect = (value: unknown, path: string[]): void => {
    if (typeof value !== 'object' || value === null) paths.push(path);
    else for (const [name, item] of Object.entries(value)) collect(item, [...path, name]);
  };
  collect(validDescriptor(), []);
  const spans = fc.constantFrom(0, 1, 2, 4, 5, 8, 12, 16, 24, 32, 48, 64, 192, 384, 8200, MAX_SPAN);
  const value = fc.oneof(
    spans,
    spans,
    fc.constantFrom(null, 'sha256_cbor', 'pythonhashseed-1', 'vllm-none-hash', 'align'),
  );
  const change = fc.tuple(fc.constantFrom(...paths), value);
  const seen = { both: 0, derived: 0 };
  const property = fc.property(fc.array(change, { maxLength: 2 }), fc.nat(16), (changes, main) => {
    const descriptor = validDescriptor();
    if (main > 12) descriptor.main_event_group = main;
    for (const [path, changed] of changes) {
      let parent = descriptor as unknown as Record<string, unknown>;
      for (const name of path.slice(0, -1)) parent = parent[name] as Record<string, unknown>;
      parent[path.at(-1)!] = changed;
    }
    const made = HASHINGS.map((hashing): Contract | null => {
      try {
        return validateContract(descriptor, { hashing });
      } catch (error) {
        if (error instanceof ContractError) return null;
        throw error;
      }
    });
    const [learned, derived, both] = made as [Contract | null, Contract | null, Contract | null];
    assert.equal(both, derived);
    if (derived === null) return; // no change here makes hash blocks too long and keeps the other rules
    const { algorithm, seed } = derived.hashRule;
    const usable = derived.learnable && algorithm === 'sha256' && seed === '0';
    assert.equal(learned, usable ? derived : null);
    if (derived.learnable) assert.is(derived.mainEventGroup, descriptor.main_event_group);
    seen[usable ? 'both' : 'derived']++;
  });
  fc.assert(property, { numRuns: 3000 });
  assert.ok(seen.both > 100 && seen.derived > 100, JSON.stringify(seen));
});

test('all 600 oracle cases have a contract to derive under; 517 can be learned, 15 have no main group', () => {
  const { cases } = caseFile('oracle-cases.json')!;
  const contracts = cases.map((each) => validateContract(descriptorFromCase(each), { hashing: 'derived' }));
  assert.is(contracts.length, 600);
  for (const [i, { learnable, hashRule }] of contracts.entries()) {
    assert.is(codeOf(descriptorFromCase(cases[i]!)) === null, learnable, cases[i]!.name);
    assert.equal(hashRule, { algorithm: 'sha256', seed: '0' });
  }
  assert.is(contracts.filter(({ learnable }) => learnable).length, 517);
  const groupless = cases.filter((_, i) => contracts[i]!.mainEventGroup === null);
  assert.is(groupless.length, 15);
  assert.ok(groupless.every(({ family }) => family === 'no_full_attention'));
});

test('the prefixes of a main group are those of the contract that has one', () => {
  const withMain = validateContract(validDescriptor(), { hashing: 'derived' });
  const without = validateContract(
    broken((d) => (d.main_event_group = 0)),
    { hashing: 'derived' },
  );
  assert.is(requiredPrefixes([withMain]).all.length, 30);
  assert.equal(requiredPrefixes([withMain]).main, withMain.groups[0]!.keyPrefixes);
  assert.is(requiredPrefixes([without]).all.length, 30);
  assert.equal(requiredPrefixes([without]).main, []);
});

test.run();
