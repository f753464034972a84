// Checks on evidence built by hand: verdicts that a fleet does not come to by itself, each told by its words.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { type Contract, type Descriptor, validateContract } from '../src/contract/index.js';
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
import { low64Of } from '../src/wire/block-digests.js';
import { targetOf } from './support/doctor.js';
import { vllmDigests } from './support/engine-digests.js';

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

function descriptorOf(kvHeads?: number, groups = 1): Descriptor {
  const group = { kind: 'full_attention' as const, ...(kvHeads === undefined ? {} : { kvHeads }) };
  const others = Array.from({ length: groups - 1 }, () => ({ kind: 'sliding_window' as const, window: 48 }));
  return geometryOf({ model: 'm', cachePrefix: 'c', blockSize: 16, tp: 2, groups: [group, ...others] }).descriptor;
}
const contractOf = (kvHeads?: number, groups?: number): Contract => validateContract(descriptorOf(kvHeads, groups));

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
  return {
    masters: [],
    keys: { total, required: counts, foreign, met: new Set(), scopes: [] },
    keysFault: null,
    drift: null,
  };
}

const TARGET = targetOf([], []);

function evidenceOf(
  workers: readonly WorkerEvidence[],
  store: StoreEvidence | null = keysOf([5, 5]),
  changes: Partial<Evidence['target']> = {},
): Evidence {
  const target = {
    ...TARGET,
    sharedCache: { ...TARGET.sharedCache, type: store === null ? 'none' : 'mooncake-store' } as const,
    ...changes,
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

// ---- derived hashes ----

/** A model of windows alone: no group is the main one. */
const WINDOWS = validateContract(
  descriptorFromCase({
    hash_block_size: 16,
    coordinator_alignment: 16,
    partial_hash_hits: false,
    main_event_block_size: 16,
    groups: [{ group_id: 0, kind: 'sliding_window', block_size: 16, window: 48, prefixes: ['c@m@tp_rank:0@group:0'] }],
  }),
  { hashing: 'derived' },
);
const DERIVED = { ...TARGET.sharedCache, type: 'mooncake-store', hashing: 'derived' } as const;
const VOUCHED = { ...DERIVED, trustSeed: true };
const windows = (heard: Partial<RankTally> = {}) =>
  workerOf({ contract: { contract: WINDOWS, code: null, fault: null } }, rankOf({}, heard));
const SEED_42 = validateContract(
  { ...descriptorOf(), hash: { ...descriptorOf().hash, seed_policy: 'pythonhashseed-42' } },
  { hashing: 'derived' },
);
const CBOR = validateContract(
  { ...descriptorOf(), hash: { ...descriptorOf().hash, algorithm: 'sha256_cbor' } },
  { hashing: 'derived' },
);
const TOKEN_IDS = Uint32Array.from({ length: 16 }, (_, i) => i * 7000);
const hashedWith = (contract: Contract, seed: string) => {
  const hashes = BigUint64Array.from(vllmDigests(TOKEN_IDS, 16, { seed }), (digest) => low64Of(digest));
  const firstBlocks = [{ tokens: TOKEN_IDS, blockSize: 16, hashes }];
  return workerOf({ contract: { contract, code: null, fault: null } }, rankOf({}, { firstBlocks }));
};

const DERIVED_TABLE: readonly (readonly [string, WorkerEvidence, typeof VOUCHED | typeof DERIVED, string, RegExp])[] = [
  ['contract', workerOf(), DERIVED, 'ok', /blocks of 16 tokens, hashes of sha256 and PYTHONHASHSEED=0$/],
  [
    'contract',
    windows(),
    DERIVED,
    'failed',
    /no event can prove how the engine hashes.* FIX .*sharedCache\.trustSeed to true/,
  ],
  ['contract', windows(), VOUCHED, 'ok', /no main event group, hashes of sha256/],
  ['block-size', windows(), VOUCHED, 'ok', /^16 tokens/],
  ['block-size', windows(SILENT), VOUCHED, 'skipped', /no event was heard, and the contract has no main event group/],
  ['hashes-meet-store', windows({ hashes: many(50) }), VOUCHED, 'skipped', /its contract has no main event group/],
  ['hash-seed', hashedWith(SEED_42, '42'), DERIVED, 'ok', /1 first block hashed as sha256 and PYTHONHASHSEED=42 give/],
  [
    'hash-seed',
    hashedWith(SEED_42, '0'),
    DERIVED,
    'failed',
    /they are those of sha256 and PYTHONHASHSEED=0 FIX Start every worker with PYTHONHASHSEED=42 .*, or publish a contract/,
  ],
  [
    'hash-seed',
    hashedWith(CONTRACT, '42'),
    DERIVED,
    'failed',
    /sha256 and PYTHONHASHSEED=0 do not give; they are those of .*=42/,
  ],
  [
    'hash-seed',
    hashedWith(CBOR, '0'),
    DERIVED,
    'failed',
    /that sha256_cbor and PYTHONHASHSEED=0 do not give; they are those of sha256 and PYTHONHASHSEED=0 FIX .*-hash-algo sha256_cbor/,
  ],
  [
    'hash-seed',
    workerOf({}, rankOf({}, { firstBlocks: [{ tokens: TOKEN_IDS, blockSize: 8, hashes: BigUint64Array.of(1n, 2n) }] })),
    DERIVED,
    'skipped',
    /what sha256 and PYTHONHASHSEED=0 give can't be told of such blocks/,
  ],
];

for (const [i, [code, worker, sharedCache, status, words]] of DERIVED_TABLE.entries()) {
  test(`derived, row ${i}: ${code} is ${status}: ${words.source}`, () => {
    const [verdict] = verdicts(code, evidenceOf([worker], keysOf([5, 5]), { sharedCache })) as [Verdict];
    assert.is(verdict.status, status);
    assert.match(verdict.fix === null ? verdict.seen : `${verdict.seen} FIX ${verdict.fix}`, words);
  });
}

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
