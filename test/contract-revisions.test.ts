// Which vLLM revisions a contract may name: the pinned one by default, others only with their own case file, its verdict, and
// facts that moonroute supports. Sets never change.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  acceptRevision,
  agreeOnContract,
  defaultRevisions,
  findRevision,
  type OracleVerdict,
  PINNED_REVISION,
  type RevisionClaim,
  validateContract,
} from '../src/contract/index.js';
import { caseFile, refusalOf, validDescriptor } from './support/descriptor.js';

const revision = 'feedc0de00000000000000000000000000000001';
const twin = 'feedc0de00000000000000000000000000000002';
const verdict: OracleVerdict = { cases: 3, equal: 1, under: 1, over: 0, unsupported: 1 };

function claim(change: Partial<Record<keyof RevisionClaim, unknown>> = {}): RevisionClaim {
  return {
    revision,
    date: '2026-10-01',
    emitsExtraKeys: true,
    hashRule: 'sha256',
    keyFormat: 'compact',
    caseFile: { source: { pinned_revision: revision }, cases: [{}, {}, {}] },
    oracleVerdict: verdict,
    ...change,
  } as RevisionClaim;
}

function descriptorOf(vllm_revision: string, adapter = `vllm-${vllm_revision.slice(0, 8)}`) {
  return { ...validDescriptor(), vllm_revision, adapter };
}

test('the default set accepts the pinned revision and nothing else', () => {
  assert.is(PINNED_REVISION, '1085b64425a9e6f5ca52876ad32e55fda5665f4e');
  assert.equal(
    defaultRevisions.map(({ revision, adapter }) => ({ revision, adapter })),
    [{ revision: PINNED_REVISION, adapter: 'vllm-1085b644' }],
  );
  assert.is(refusalOf(() => validateContract(descriptorOf(revision))).code, 'unsupported-adapter');
});

test('an accepted revision is accepted under its own adapter, beside the old ones', () => {
  const revisions = acceptRevision(defaultRevisions, claim());
  assert.is(validateContract(descriptorOf(revision), { revisions }).adapter, 'vllm-feedc0de');
  assert.is(validateContract(descriptorOf(PINNED_REVISION), { revisions }).revision, PINNED_REVISION);
  const sent = [{ rank: 0, dp_rank: 0, descriptor: descriptorOf(revision) }];
  assert.is(agreeOnContract(sent, { worldSize: 1, revisions }).revision, revision);
  assert.is(refusalOf(() => agreeOnContract(sent, { worldSize: 1 })).code, 'metadata-disagrees');
});

test("one accepted revision under another one's adapter breaks rule 3", () => {
  const revisions = acceptRevision(defaultRevisions, claim());
  for (const descriptor of [descriptorOf(revision, 'vllm-1085b644'), descriptorOf(PINNED_REVISION, 'vllm-feedc0de')]) {
    assert.is(refusalOf(() => validateContract(descriptor, { revisions })).code, 'unsupported-revision');
    const sent = [{ rank: 0, dp_rank: 0, descriptor }];
    assert.is(refusalOf(() => agreeOnContract(sent, { worldSize: 1, revisions })).code, 'metadata-disagrees');
  }
});

test('revisions that share their first 8 digits are told apart by their full ids', () => {
  const one = acceptRevision(defaultRevisions, claim());
  assert.is(refusalOf(() => validateContract(descriptorOf(twin), { revisions: one })).code, 'unsupported-revision');
  const both = acceptRevision(one, claim({ revision: twin, caseFile: { vllm_revision: twin, cases: [1, 2, 3] } }));
  for (const id of [revision, twin]) assert.is(validateContract(descriptorOf(id), { revisions: both }).revision, id);
});

test('sets never change, and a revision is in a set once', () => {
  const one = acceptRevision(defaultRevisions, claim());
  const again = acceptRevision(one, claim({ date: '2026-10-02' }));
  assert.is(defaultRevisions.length, 1);
  assert.is(one.length, 2);
  assert.is(again.length, 2);
  assert.is(findRevision(one, revision)?.date, '2026-10-01');
  assert.is(findRevision(again, revision)?.date, '2026-10-02');
  for (const set of [defaultRevisions, one, again]) assert.ok([set, ...set].every((part) => Object.isFrozen(part)));
});

test('the revision of either kind of case file is read', () => {
  for (const name of ['oracle-cases.json', 'oracle-upstream.json']) {
    const file = caseFile(name);
    if (file === undefined) continue;
    const cases = file.cases.length;
    const result = { cases, equal: cases, under: 0, over: 0, unsupported: 0 };
    acceptRevision(defaultRevisions, claim({ revision: PINNED_REVISION, caseFile: file, oracleVerdict: result }));
    const foreign = claim({ caseFile: file, oracleVerdict: result });
    assert.is(refusalOf(() => acceptRevision(defaultRevisions, foreign)).code, 'foreign-case-file');
  }
});

test('the first day with extra keys is accepted', () => {
  acceptRevision(defaultRevisions, claim({ date: '2026-02-20' }));
  acceptRevision(defaultRevisions, claim({ date: '2028-02-29' }));
});

const refusals: Readonly<Record<string, readonly Partial<Record<keyof RevisionClaim, unknown>>[]>> = {
  'invalid-revision': [
    { revision: 'feedc0de' },
    { revision: revision.toUpperCase() },
    { revision: `${revision}0` },
    { revision: `${revision}\n` },
    { revision: undefined },
  ],
  'invalid-revision-date': [
    { date: '2026-2-20' },
    { date: '2026-02-30' },
    { date: '2026-13-01' },
    { date: '20 Feb 2026' },
    { date: '2026-10-01T00:00:00Z' },
    { date: 20260220 },
    { date: undefined },
  ],
  'revision-too-old': [{ date: '2026-02-19' }, { date: '2025-12-31' }, { date: '0001-01-01' }],
  'no-extra-keys': [{ emitsExtraKeys: false }, { emitsExtraKeys: undefined }, { emitsExtraKeys: 'true' }],
  'unsupported-hash-rule': [{ hashRule: 'sha256_cbor' }, { hashRule: undefined }],
  'unsupported-key-format': [{ keyFormat: 'concatenated' }, { keyFormat: undefined }],
  'foreign-case-file': [
    { caseFile: undefined },
    { caseFile: [] },
    { caseFile: { cases: [1, 2, 3] } },
    { caseFile: { vllm_revision: PINNED_REVISION, cases: [1, 2, 3] } },
    { caseFile: { vllm_revision: revision, source: { pinned_revision: twin }, cases: [1, 2, 3] } },
    { caseFile: { vllm_revision: twin, source: { pinned_revision: revision }, cases: [1, 2, 3] } },
    { caseFile: { vllm_revision: revision.slice(0, 8), cases: [1, 2, 3] } },
  ],
  'empty-case-file': [{ caseFile: { vllm_revision: revision } }, { caseFile: { vllm_revision: revision, cases: [] } }],
  'incomplete-oracle-verdict': [
    { oracleVerdict: undefined },
    { oracleVerdict: { ...verdict, cases: 2, under: 0 } },
    { oracleVerdict: { ...verdict, under: 0 } },
    { oracleVerdict: { ...verdict, equal: -1, under: 3 } },
    { oracleVerdict: { ...verdict, equal: '1' } },
    { oracleVerdict: { ...verdict, over: undefined } },
  ],
  'oracle-over-credit': [{ oracleVerdict: { ...verdict, over: 1, under: 0 } }],
  'oracle-nothing-equal': [{ oracleVerdict: { ...verdict, equal: 0, unsupported: 2 } }],
};

for (const [code, changes] of Object.entries(refusals)) {
  for (const change of changes) {
    test(`refused as ${code}: ${JSON.stringify(change)}`, () => {
      const error = refusalOf(() => acceptRevision(defaultRevisions, claim(change)));
      assert.is(error.code, code, error.message);
      assert.match(error.message, /^vLLM revision .+ is not accepted: .+\. .+\.$/);
    });
  }
}

test.run();
