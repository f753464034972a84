// Checks on evidence built by hand: verdicts that a fleet does not come to by itself, each told by its words.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type Contract, validateContract } from '../src/contract/index.js';
import { geometryOf } from '../src/fleet/worker/geometry.js';
import { CHECKS } from '../src/server/doctor/checks/index.js';
import type {
  Evidence,
  KeyEvidence,
  PortEvidence,
  RankEvidence,
  RankTally,
  StoreEvidence,
  TokenizingEvidence,
  WorkerEvidence,
} from '../src/server/doctor/evidence.js';
import type { Verdict } from '../src/server/doctor/finding.js';
import { targetOf } from './support/doctor.js';

const HEARD: RankTally = {
  messages: 5,
  unreadable: {},
  rejected: {},
  faultText: null,
  missed: 0,
  topics: [''],
  dpRanks: { 0: 5 },
  stored: 5,
  eligible: 5,
  ineligible: {},
  dropped: {},
  blockSizes: { 16: 5 },
  hashForms: { integers: 5, digests: 0 },
  adapters: {},
  untagged: { salts: 0, images: 0, adapters: {} },
  tagged: 0,
  hashes: [1n, 2n],
  firstBlocks: [],
};
const SILENT: RankTally = {
  ...HEARD,
  messages: 0,
  stored: 0,
  eligible: 0,
  topics: [],
  dpRanks: {},
  blockSizes: {},
  hashForms: { integers: 0, digests: 0 },
  hashes: [],
};
const PORT: PortEvidence = { endpoint: 'tcp://10.0.0.1:5557', connected: true, lost: null, found: 'events' };

function contractOf(kvHeads?: number, groups = 1): Contract {
  const group = { kind: 'full_attention' as const, ...(kvHeads === undefined ? {} : { kvHeads }) };
  const others = Array.from({ length: groups - 1 }, () => ({ kind: 'sliding_window' as const, window: 48 }));
  return validateContract(
    geometryOf({ model: 'm', cachePrefix: 'c', blockSize: 16, tp: 2, groups: [group, ...others] }).descriptor,
  );
}
const CONTRACT = contractOf();
const PREFIXES = CONTRACT.groups.flatMap(({ keyPrefixes }) => keyPrefixes);

function rankOf(changes: Partial<RankEvidence> = {}, heard: Partial<RankTally> = {}): RankEvidence {
  return { dpRank: 0, events: PORT, replay: null, heard: { ...HEARD, ...heard }, probe: null, ...changes };
}

function workerOf(changes: Partial<WorkerEvidence> = {}, rank: RankEvidence = rankOf()): WorkerEvidence {
  return {
    spec: {
      id: 'w',
      url: 'http://10.0.0.1:8000',
      events: PORT.endpoint,
      replay: null,
      topic: '',
      dpRanks: { start: 0, size: 1 },
      contract: 'endpoint',
    },
    httpFault: null,
    models: { base: ['m'], adapters: [] },
    contract: { contract: CONTRACT, code: null, fault: null },
    ranks: [rank],
    tokenizing: [],
    ...changes,
  };
}

function keysOf(required: readonly number[], foreign: KeyEvidence['foreign'] = [], prefixes = PREFIXES): StoreEvidence {
  const counts = prefixes.map((prefix, i) => ({ prefix, keys: required[i] ?? 0 }));
  const total = [...counts, ...foreign].reduce((sum, { keys }) => sum + keys, 0);
  return { masters: [], keys: { total, required: counts, foreign, met: new Set() }, keysFault: null, drift: null };
}

function evidenceOf(workers: readonly WorkerEvidence[], store: StoreEvidence | null = keysOf([5, 5])): Evidence {
  const target = {
    ...targetOf([], []),
    sharedCache: { type: store === null ? 'none' : 'mooncake-store', masters: [] } as const,
  };
  return { target, seconds: 10, workers, store };
}

function verdicts(code: string, evidence: Evidence): Verdict[] {
  return [...CHECKS.find((check) => check.code === code)!.run(evidence)];
}

const TOKENS: TokenizingEvidence = {
  sample: 'a sentence',
  kind: 'text',
  worker: [1, 2],
  workerFault: null,
  local: null,
  localFault: null,
};
const NO_CHATS: TokenizingEvidence = { ...TOKENS, kind: 'chat', worker: null, workerFault: 'status 400' };
const many = (n: number): bigint[] => Array.from({ length: n }, (_, i) => BigInt(i));
const rank = (heard: Partial<RankTally>, changes: Partial<RankEvidence> = {}) => workerOf({}, rankOf(changes, heard));
const port = (changes: Partial<PortEvidence>) => rank({}, { events: { ...PORT, ...changes } });
const contract = (code: string | null, fault: string | null) => workerOf({ contract: { contract: null, code, fault } });

/** Check, worker, store, what the one verdict is and says. */
const TABLE: readonly (readonly [
  string,
  WorkerEvidence,
  StoreEvidence | null | undefined,
  Verdict['status'],
  RegExp,
])[] = [
  [
    'worker-http',
    workerOf({ httpFault: 'http://10.0.0.1:8000/health: ECONNREFUSED' }),
    undefined,
    'failed',
    /ECONNREFUSED/,
  ],
  ['model', workerOf({ models: null }), undefined, 'skipped', /was not to be had/],
  [
    'events-port',
    port({ connected: false, lost: { cause: 'disconnect', detail: 'the peer closed it' } }),
    undefined,
    'failed',
    /was an event socket, and the connection is lost \(the peer closed it\)/,
  ],
  [
    'events-port',
    port({ found: 'other', lost: { cause: 'timeout', detail: 'no handshake' } }),
    undefined,
    'failed',
    /is no event socket \(timeout: no handshake\)/,
  ],
  ['events-port', rank({}, { events: null }), undefined, 'skipped', /routed by load alone/],
  ['events-arrive', rank({ missed: 3 }), undefined, 'failed', /5 messages, and 3 messages missed between them/],
  [
    'events-arrive',
    rank(SILENT, { probe: { fault: 'status 503' } }),
    undefined,
    'failed',
    /the small completion failed: status 503/,
  ],
  ['events-arrive', rank(SILENT, { events: { ...PORT, connected: false } }), undefined, 'skipped', /no connection/],
  ['events-arrive', rank(SILENT), undefined, 'skipped', /say --probe/],
  [
    'block-size',
    workerOf({ contract: { contract: null, code: null, fault: null } }, rankOf({}, SILENT)),
    undefined,
    'skipped',
    /no event was heard, and there is no contract/,
  ],
  ['block-size', rank(SILENT), undefined, 'ok', /contract and configuration say 16 tokens/],
  ['block-size', rank({ blockSizes: { 16: 3, 64: 2 } }), undefined, 'failed', /blocks of 64 tokens/],
  [
    'hash-form',
    rank({ rejected: { 'hash-width': 4 } }),
    undefined,
    'failed',
    /hashes of 4 events can't be read \(4 hash-width\)/,
  ],
  [
    'hash-form',
    rank({ hashForms: { integers: 1, digests: 2 } }),
    undefined,
    'ok',
    /binary in 2 events, integers in 1 event/,
  ],
  ['hash-form', rank({ hashForms: { integers: 0, digests: 2 } }), undefined, 'ok', /binary, 32 bytes/],
  ['contract', contract(null, null), undefined, 'failed', /no contract is configured/],
  ['contract', contract('http-status', 'status 404'), undefined, 'failed', /http-status: status 404/],
  ['contract', contract('http-status', 'status 404'), null, 'skipped', /no shared cache/],
  ['contract-agreement', contract(null, null), undefined, 'skipped', /there is no contract/],
  [
    'eligible-share',
    rank({ ...SILENT, dropped: { unknown_medium: 7 } }),
    undefined,
    'failed',
    /all of 7 events were dropped \(7 unknown_medium\)/,
  ],
  [
    'eligible-share',
    rank({ stored: 10, eligible: 4, ineligible: { multimodal: 6 } }),
    undefined,
    'ok',
    /40 % of 10 stored events; against the others: 6 multimodal/,
  ],
  [
    'lora-naming',
    workerOf(
      { models: { base: ['m'], adapters: ['sql'] } },
      rankOf({}, { untagged: { salts: 0, images: 0, adapters: { sql: 2 } } }),
    ),
    undefined,
    'failed',
    /lists sql, and events carry that name among the extra keys/,
  ],
  [
    'lora-naming',
    workerOf({ models: null }, rankOf({}, { adapters: { sql: 2 } })),
    undefined,
    'skipped',
    /events name sql/,
  ],
  [
    'lora-naming',
    workerOf({ models: { base: ['m'], adapters: ['sql'] } }),
    undefined,
    'skipped',
    /no event of sql was heard/,
  ],
  [
    'tokenizer',
    workerOf({ tokenizing: [{ ...TOKENS, worker: null, workerFault: 'status 404' }] }),
    undefined,
    'failed',
    /\/tokenize does not answer: status 404/,
  ],
  [
    'tokenizer',
    workerOf({ tokenizing: [{ ...TOKENS, localFault: 'it refuses' }] }),
    undefined,
    'failed',
    /the local one fails: it refuses/,
  ],
  [
    'tokenizer',
    workerOf({ tokenizing: [{ ...TOKENS, local: [1, 2, 3] }] }),
    undefined,
    'failed',
    /3 and 2 tokens, first apart at 2 \(3 and end\)/,
  ],
  ['tokenizer', workerOf({ httpFault: 'down' }), undefined, 'skipped', /its HTTP does not answer/],
  [
    'chat-template',
    workerOf({ tokenizing: [TOKENS, NO_CHATS] }),
    undefined,
    'skipped',
    /the worker renders no chats: status 400/,
  ],
  ['hashes-meet-store', rank({ hashes: many(50) }), undefined, 'failed', /none of 50 hashes is among 10 keys/],
  ['hashes-meet-store', rank({ hashes: many(49) }), undefined, 'skipped', /49 hashes heard, and 50 are needed/],
  [
    'hashes-meet-store',
    rank({ hashes: many(50) }),
    keysOf([0, 0]),
    'skipped',
    /holds nothing under the required prefixes/,
  ],
  ['key-prefixes', contract(null, null), undefined, 'skipped', /no valid contract/],
  ['key-prefixes', workerOf(), keysOf([0, 0]), 'skipped', /the store is empty/],
  [
    'key-prefixes',
    workerOf(),
    keysOf([0, 0], [{ prefix: 'vllm@m@2@0', keys: 7 }]),
    'failed',
    /none of 7 keys is under a required prefix, nor near one; they begin like "vllm@m@2@0"/,
  ],
  ['key-prefixes', workerOf(), keysOf([7, 0]), 'ok', /7 keys under 2 required prefixes/],
  ['key-prefixes', workerOf(), keysOf([8, 0]), 'failed', /no key under 1 required prefix, as c@m@tp_rank:1@/],
  [
    'key-prefixes',
    workerOf(),
    keysOf([8, 8], [{ prefix: PREFIXES[0]!.replace('tp_rank:0', 'tp_rank:2'), keys: 8 }]),
    'failed',
    /tp_rank is "2", required are "0", "1" FIX The tensor-parallel size differs/,
  ],
  [
    'key-prefixes',
    workerOf(),
    keysOf([8, 8], [{ prefix: PREFIXES[0]!.replace('c@m', 'c@other'), keys: 8 }]),
    'ok',
    /8 keys of others/,
  ],
  ['tenants', workerOf(), undefined, 'skipped', /no event was heard/],
];

for (const [i, [code, worker, store, status, words]] of TABLE.entries()) {
  test(`row ${i}: ${code} is ${status}: ${words.source}`, () => {
    const found = verdicts(code, evidenceOf([worker], store));
    assert.is(found.length, 1);
    assert.is(found[0]!.status, status);
    assert.match(`${found[0]!.seen} FIX ${found[0]!.fix}`, words);
    assert.is(found[0]!.fix !== null, status === 'failed');
  });
}

test('groups that are put at few places may be without keys in a small store, and not in a large one', () => {
  const wide = contractOf(undefined, 2);
  const prefixes = wide.groups.flatMap(({ keyPrefixes }) => keyPrefixes);
  const worker = workerOf({ contract: { contract: wide, code: null, fault: null } });
  const statusOf = (keys: number) =>
    verdicts('key-prefixes', evidenceOf([worker], keysOf([keys, keys], [], prefixes)))[0]!.status;
  assert.is(statusOf(999), 'ok');
  assert.is(statusOf(1000), 'failed');
});

test('workers of unlike contracts are named by camps, the largest first', () => {
  const other = { contract: contractOf(1), code: null, fault: null };
  const named = (id: string, changes: Partial<WorkerEvidence> = {}) =>
    workerOf({ spec: { ...workerOf().spec, id }, ...changes });
  const [verdict] = verdicts(
    'contract-agreement',
    evidenceOf([named('a', { contract: other }), named('b'), named('c')]),
  );
  assert.match(verdict!.seen, /2 contracts: b, c \/ a/);
});

test('a check that has nothing to look at says so', () => {
  for (const { code, run } of CHECKS) {
    for (const { status } of run(evidenceOf([], null))) assert.is(status, 'skipped', code);
  }
});

test.run();
