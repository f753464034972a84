// Which contract is in force and who may teach under it, for every way in which ranks agree and disagree (design.md 7; strict mode:
// spec/kv-events.md 6.4), and a long random run held against a brute force.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { publisherKey, type Source } from '../src/events/worker-events.js';
import {
  type Admission,
  type AdmissionCode,
  ContractAdmission,
  type ContractOffer,
  MAX_ADMISSION_RANKS,
} from '../src/router/admission.js';
import { Random } from './support/random.js';

const BAD: ContractOffer = { invalid: 'missing required object prefixes' };
const UNVERIFIED: ContractOffer = { invalid: 'nobody vouches for it', unverified: true };

/** `w2` is rank 0 of worker w2, `w2/3` its rank 3. */
function sourceOf(name: string): Source {
  const [workerId, dpRank = '0'] = name.split('/') as [string, string?];
  return { workerId, dpRank: Number(dpRank) };
}

const nameOf = ({ workerId, dpRank }: Source): string => (dpRank === 0 ? `${workerId}` : `${workerId}/${dpRank}`);

const statusOf = (admission: Admission, name: string): AdmissionCode => {
  const { workerId, dpRank } = sourceOf(name);
  return admission.ranks.get(publisherKey(workerId, dpRank))!.code;
};

/** Changes that are decided on together: what each rank offers now, or that it left. */
type Step = Readonly<Record<string, ContractOffer | 'left'>>;

interface Scenario {
  readonly name: string;
  readonly strict?: boolean;
  readonly steps: readonly Step[];
  /** After the last step. */
  readonly inForce: string | null;
  readonly teach: readonly string[];
  readonly status: Readonly<Record<string, AdmissionCode>>;
  readonly changed: boolean;
}

const scenarios: readonly Scenario[] = [
  { name: 'no rank', steps: [{}], inForce: null, teach: [], status: {}, changed: false },
  {
    name: 'one rank with a contract',
    steps: [{ a: 'X' }],
    inForce: 'X',
    teach: ['a'],
    status: { a: 'admitted' },
    changed: true,
  },
  {
    name: 'one rank without',
    steps: [{ a: null }],
    inForce: null,
    teach: [],
    status: { a: 'no-contract' },
    changed: false,
  },
  {
    name: 'one rank with an invalid one',
    steps: [{ a: BAD }],
    inForce: null,
    teach: [],
    status: { a: 'contract-invalid' },
    changed: false,
  },
  {
    name: 'one rank with an unverified one, however many others have it',
    steps: [{ a: UNVERIFIED, b: UNVERIFIED, c: 'X' }],
    inForce: 'X',
    teach: ['c'],
    status: { a: 'contract-unverified', b: 'contract-unverified', c: 'admitted' },
    changed: true,
  },
  {
    name: 'an unverified one that becomes invalid, and a good one that becomes unverified',
    steps: [
      { a: UNVERIFIED, b: 'X' },
      { a: BAD, b: UNVERIFIED },
    ],
    inForce: null,
    teach: [],
    status: { a: 'contract-invalid', b: 'contract-unverified' },
    changed: true,
  },
  {
    name: 'ranks that agree, beside one without and one invalid',
    steps: [{ a: 'X', b: 'X', c: null, d: BAD }],
    inForce: 'X',
    teach: ['a', 'b'],
    status: { a: 'admitted', b: 'admitted', c: 'no-contract', d: 'contract-invalid' },
    changed: true,
  },
  {
    name: 'most ranks win from nothing',
    steps: [{ a: 'X', b: 'Y', c: 'Y' }],
    inForce: 'Y',
    teach: ['b', 'c'],
    status: { a: 'contract-disagrees', b: 'admitted', c: 'admitted' },
    changed: true,
  },
  {
    name: 'a tie from nothing goes to the first text',
    steps: [{ a: 'Y', b: 'X' }],
    inForce: 'X',
    teach: ['b'],
    status: { a: 'contract-disagrees', b: 'admitted' },
    changed: true,
  },
  {
    name: 'the incumbent keeps its place at a tie',
    steps: [{ a: 'Y' }, { b: 'X' }],
    inForce: 'Y',
    teach: ['a'],
    status: { a: 'admitted', b: 'contract-disagrees' },
    changed: false,
  },
  {
    name: 'a strict majority takes over',
    steps: [{ a: 'Y' }, { b: 'X' }, { c: 'X' }],
    inForce: 'X',
    teach: ['b', 'c'],
    status: { a: 'contract-disagrees', b: 'admitted', c: 'admitted' },
    changed: true,
  },
  {
    name: 'a strict majority over the incumbent is enough, it need not be half of all',
    steps: [{ a: 'Y' }, { b: 'X', c: 'X', d: 'Z', e: null, f: null, g: null }],
    inForce: 'X',
    teach: ['b', 'c'],
    status: { a: 'contract-disagrees', d: 'contract-disagrees', e: 'no-contract' },
    changed: true,
  },
  {
    name: 'of two that overtake at once the larger wins',
    steps: [{ a: 'Y' }, { b: 'X', c: 'X', d: 'Z', e: 'Z', f: 'Z' }],
    inForce: 'Z',
    teach: ['d', 'e', 'f'],
    status: { a: 'contract-disagrees', b: 'contract-disagrees', d: 'admitted' },
    changed: true,
  },
  {
    name: 'of two equals that overtake at once the first text wins',
    steps: [{ a: 'A' }, { b: 'Z', c: 'Z', d: 'X', e: 'X' }],
    inForce: 'X',
    teach: ['d', 'e'],
    status: { a: 'contract-disagrees', b: 'contract-disagrees', d: 'admitted' },
    changed: true,
  },
  {
    name: 'the incumbent loses by a leaver',
    steps: [{ a: 'Y', b: 'Y', c: 'X', d: 'X' }, { e: 'X' }, { a: 'left' }],
    inForce: 'X',
    teach: ['c', 'd', 'e'],
    status: { b: 'contract-disagrees' },
    changed: false,
  },
  {
    name: 'the incumbent leaves',
    steps: [{ a: 'Y' }, { b: 'X' }, { a: 'left' }],
    inForce: 'X',
    teach: ['b'],
    status: { b: 'admitted' },
    changed: true,
  },
  {
    name: 'the incumbent leaves and nobody else has a contract',
    steps: [{ a: 'Y', b: null }, { a: 'left' }],
    inForce: null,
    teach: [],
    status: { b: 'no-contract' },
    changed: true,
  },
  { name: 'all leave', steps: [{ a: 'Y' }, { a: 'left' }], inForce: null, teach: [], status: {}, changed: true },
  {
    name: 'what all had left for is not remembered',
    steps: [{ a: 'Y' }, { a: 'left' }, { a: 'Y', b: 'X' }],
    inForce: 'X',
    teach: ['b'],
    status: { a: 'contract-disagrees' },
    changed: true,
  },
  {
    name: 'a rank that leaves and returns between two decisions is no change',
    steps: [{ a: 'Y' }, { a: 'left', b: null }, { a: 'Y' }, { a: 'Y' }],
    inForce: 'Y',
    teach: ['a'],
    status: { a: 'admitted' },
    changed: false,
  },
  {
    name: 'a compatible joiner changes who teaches',
    steps: [{ a: 'X' }, { b: 'X' }],
    inForce: 'X',
    teach: ['a', 'b'],
    status: { b: 'admitted' },
    changed: true,
  },
  {
    name: 'a leaver can no longer teach',
    steps: [{ a: 'X', b: 'X' }, { b: 'left' }],
    inForce: 'X',
    teach: ['a'],
    status: { a: 'admitted' },
    changed: true,
  },
  {
    name: 'one that takes the place of another as teacher is a change',
    steps: [
      { a: 'X', b: 'X' },
      { b: 'left', c: 'X' },
    ],
    inForce: 'X',
    teach: ['a', 'c'],
    status: { c: 'admitted' },
    changed: true,
  },
  {
    name: 'a rank without a contract that comes or goes is no change',
    steps: [
      { a: 'X', b: null },
      { b: 'left', c: null, d: BAD },
    ],
    inForce: 'X',
    teach: ['a'],
    status: { c: 'no-contract', d: 'contract-invalid' },
    changed: false,
  },
  {
    name: 'a contract that turns invalid no longer counts',
    steps: [{ a: 'X', b: 'X', c: 'Y', d: 'Y' }, { a: BAD }],
    inForce: 'Y',
    teach: ['c', 'd'],
    status: { a: 'contract-invalid', b: 'contract-disagrees' },
    changed: true,
  },
  {
    name: 'a contract that comes late counts',
    steps: [{ a: null }, { a: 'X' }],
    inForce: 'X',
    teach: ['a'],
    status: { a: 'admitted' },
    changed: true,
  },
  {
    name: 'ranks are counted, not workers',
    steps: [{ a: 'X', b: 'X', 'c/0': 'Y', 'c/1': 'Y', 'c/2': 'Y' }],
    inForce: 'Y',
    teach: ['c', 'c/1', 'c/2'],
    status: { a: 'contract-disagrees', 'c/1': 'admitted' },
    changed: true,
  },
  {
    name: 'ranks of one worker may differ',
    steps: [{ 'a/0': 'X', 'a/1': 'X', 'a/2': 'Y', 'a/3': null }],
    inForce: 'X',
    teach: ['a', 'a/1'],
    status: { 'a/1': 'admitted', 'a/2': 'contract-disagrees', 'a/3': 'no-contract' },
    changed: true,
  },
  {
    name: 'strict: all agree',
    strict: true,
    steps: [{ a: 'X', b: 'X' }],
    inForce: 'X',
    teach: ['a', 'b'],
    status: { a: 'admitted', b: 'admitted' },
    changed: true,
  },
  {
    name: 'strict: one disagrees with many',
    strict: true,
    steps: [{ a: 'X', b: 'X', c: 'X' }, { d: 'Y' }],
    inForce: null,
    teach: [],
    status: { a: 'contract-disagrees', c: 'contract-disagrees', d: 'contract-disagrees' },
    changed: true,
  },
  {
    name: 'strict: one has none',
    strict: true,
    steps: [{ a: 'X', b: 'X' }, { c: null }],
    inForce: null,
    teach: [],
    status: { a: 'contract-disagrees', c: 'no-contract' },
    changed: true,
  },
  {
    name: 'strict: one is invalid',
    strict: true,
    steps: [{ a: 'X', b: BAD }],
    inForce: null,
    teach: [],
    status: { a: 'contract-disagrees', b: 'contract-invalid' },
    changed: false,
  },
  {
    name: 'strict: agreement returns when the odd one leaves',
    strict: true,
    steps: [{ a: 'X', b: 'Y' }, { b: 'left' }],
    inForce: 'X',
    teach: ['a'],
    status: { a: 'admitted' },
    changed: true,
  },
  {
    name: 'strict: a rolling change of all ends under the new contract',
    strict: true,
    steps: [{ a: 'X', b: 'X' }, { a: 'Y' }, { b: 'Y' }],
    inForce: 'Y',
    teach: ['a', 'b'],
    status: { a: 'admitted' },
    changed: true,
  },
  { name: 'strict: no rank', strict: true, steps: [{}], inForce: null, teach: [], status: {}, changed: false },
];

function apply(
  admission: ContractAdmission,
  changes: readonly (readonly [string, ContractOffer | 'left'])[],
): Admission {
  for (const [name, offer] of changes) {
    if (offer === 'left') admission.remove(sourceOf(name));
    else admission.set(sourceOf(name), offer);
  }
  return admission.decide();
}

for (const { name, strict = false, steps, inForce, teach, status, changed } of scenarios) {
  test(name, () => {
    const admission = new ContractAdmission({ strict });
    const backwards = new ContractAdmission({ strict });
    let decided = admission.decide();
    let mirrored = decided;
    for (const step of steps) {
      decided = apply(admission, Object.entries(step));
      mirrored = apply(backwards, Object.entries(step).reverse());
    }
    assert.is(decided.fingerprint, inForce);
    assert.equal(decided.sources.map(nameOf), teach);
    for (const [rank, code] of Object.entries(status)) assert.is(statusOf(decided, rank), code, rank);
    assert.is(decided.changed, changed);
    assert.is(decided.reason === null, inForce !== null, 'a reason exactly where there is no contract');
    assert.equal([...mirrored.ranks], [...decided.ranks], 'the order within a step makes no difference');
    assert.is(mirrored.fingerprint, decided.fingerprint);
    assert.is(admission.decide().changed, false, 'deciding again changes nothing');
  });
}

test('every rank that is not admitted has a sentence, and none that is', () => {
  const decided = apply(new ContractAdmission(), Object.entries({ a: 'X', b: 'X', c: 'Y', d: null, e: BAD }));
  const texts = [...decided.ranks.values()].map(({ source, text }) => [nameOf(source), text]);
  assert.equal(texts, [
    ['a', null],
    ['b', null],
    ['c', 'Its contract (1 of 5 ranks) is not the one in force (2 ranks).'],
    ['d', 'It has published no Mooncake Store contract.'],
    ['e', 'Its contract was refused: missing required object prefixes'],
  ]);
});

for (const [offers, reason] of [
  [{}, 'No worker rank is admitted.'],
  [{ a: 'X', b: null }, 'Strict admission: worker b rank 0 has no supported Mooncake Store contract.'],
  [{ 'a/1': BAD, b: 'X' }, 'Strict admission: worker a rank 1 has no supported Mooncake Store contract.'],
  [{ a: 'X', b: 'Y' }, 'Strict admission: worker b rank 0 has another Mooncake Store contract than worker a rank 0.'],
] as const) {
  test(`strict mode names the rank: ${reason}`, () => {
    const decided = apply(new ContractAdmission({ strict: true }), Object.entries(offers));
    assert.is(decided.reason, reason);
  });
}

test('numbers and texts as worker ids stay apart, and what else a source holds is not kept', () => {
  const admission = new ContractAdmission();
  const source = { workerId: 7, dpRank: 0, socket: {} };
  admission.set(source, 'X');
  admission.set({ workerId: '7', dpRank: 0 }, 'X');
  assert.equal(admission.decide().sources, [
    { workerId: 7, dpRank: 0 },
    { workerId: '7', dpRank: 0 },
  ]);
});

test('a long reason is cut', () => {
  const admission = new ContractAdmission();
  admission.set(sourceOf('a'), { invalid: 'x'.repeat(1_000_000) });
  const { text } = [...admission.decide().ranks.values()][0]!;
  assert.ok(text!.length < 300);
});

test('a rank beyond the most is refused by name and changes nothing; those that are known may change', () => {
  const admission = new ContractAdmission();
  for (let dpRank = 0; dpRank < MAX_ADMISSION_RANKS; dpRank++) admission.set({ workerId: 'a', dpRank }, 'X');
  assert.throws(
    () => admission.set(sourceOf('b'), 'Y'),
    (error: unknown) =>
      error instanceof ConfigError && error.code === 'admission-ranks' && /worker b/.test(error.message),
  );
  admission.set({ workerId: 'a', dpRank: 0 }, null);
  const decided = admission.decide();
  assert.is(decided.ranks.size, MAX_ADMISSION_RANKS);
  assert.is(decided.sources.length, MAX_ADMISSION_RANKS - 1);
});

/** The rule said once more, over plain lists: the contract in force after `before`, given what every rank offers. */
function bruteForce(offers: ReadonlyMap<string, ContractOffer>, before: string | null, strict: boolean): string | null {
  const contracts = [...offers.values()].filter((offer) => typeof offer === 'string');
  if (strict) return contracts.length === offers.size && new Set(contracts).size === 1 ? contracts[0]! : null;
  const count = (fingerprint: string) => contracts.filter((other) => other === fingerprint).length;
  let best = before !== null && count(before) > 0 ? before : null;
  for (const fingerprint of [...new Set(contracts)].sort()) {
    if (best === null || count(fingerprint) > count(best)) best = fingerprint;
  }
  return best;
}

for (const strict of [false, true]) {
  for (const seed of [1, 2]) {
    test(`20,000 random changes give what the rule says (strict ${strict}, seed ${seed})`, () => {
      const random = new Random(seed);
      const admission = new ContractAdmission({ strict });
      const shuffled = new ContractAdmission({ strict });
      const offers = new Map<string, ContractOffer>();
      const names = Array.from({ length: 9 }, (_, i) => `w${i % 4}/${i}`);
      const some: readonly ContractOffer[] = strict ? ['X', 'X', 'X', 'X', 'Y'] : ['X', 'Y', 'Z', null, BAD];
      let inForce: string | null = null;
      let teachers = '';
      let takeovers = 0;
      for (let done = 0; done < 20_000; ) {
        const batch = new Map<string, ContractOffer | 'left'>();
        for (let left = random.between(1, 3); left > 0; left--, done++) {
          batch.set(random.pick(names), random.chance(0.3) ? 'left' : random.pick(some));
        }
        for (const [name, offer] of batch) {
          if (offer === 'left') offers.delete(name);
          else offers.set(name, offer);
        }
        const decided = apply(admission, [...batch]);
        const other = apply(shuffled, random.shuffle([...batch]));
        const expected = bruteForce(offers, inForce, strict);
        const teach = [...offers]
          .flatMap(([name, offer]) => (offer !== null && offer === expected ? [name] : []))
          .sort();
        assert.is(decided.fingerprint, expected, `change ${done}`);
        assert.equal(decided.sources.map(({ workerId, dpRank }) => `${workerId}/${dpRank}`).sort(), teach);
        assert.is(decided.changed, expected !== inForce || teach.join() !== teachers, `change ${done}`);
        assert.is(decided.ranks.size, offers.size);
        for (const [name, offer] of offers) {
          const code =
            offer === null
              ? 'no-contract'
              : typeof offer === 'object'
                ? 'contract-invalid'
                : offer === expected
                  ? 'admitted'
                  : 'contract-disagrees';
          assert.is(statusOf(decided, name), code);
        }
        assert.is(other.fingerprint, decided.fingerprint);
        assert.is(other.changed, decided.changed);
        if (inForce !== null && expected !== null && expected !== inForce) takeovers++;
        inForce = expected;
        teachers = teach.join();
      }
      if (!strict) assert.ok(takeovers > 500, `${takeovers} takeovers`);
    });
  }
}

test.run();
