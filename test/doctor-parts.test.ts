// The doctor's small parts: which part of a key differs, edit distance, expected hashes, lists cut anywhere, drift, tallies, and words.
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WorkerEvents } from '../src/events/worker-events.js';
import { CHECKS } from '../src/server/doctor/checks/index.js';
import { DriftJudge } from '../src/server/doctor/drift-judge.js';
import { editDistance, MOST_CHARS } from '../src/server/doctor/edit-distance.js';
import { expectedHash, PROMISED_RULE, ruleOf } from '../src/server/doctor/expected-hashes.js';
import { keyParts, nearestPrefix } from '../src/server/doctor/key-parts.js';
import { KeyReader } from '../src/server/doctor/key-tally.js';
import { type KeyFate, MasterReader } from '../src/server/doctor/master-tally.js';
import { RankReader } from '../src/server/doctor/rank-tally.js';
import { reportOf, reportText } from '../src/server/doctor/report.js';
import { Tallies } from '../src/server/doctor/tallies.js';
import { shareText, tallyText } from '../src/server/doctor/words.js';
import { low64Of, MAX_HASH_BLOCK_TOKENS } from '../src/wire/block-digests.js';
import { vllmDigests } from './support/engine-digests.js';
import { digestCases } from './support/engine-hash-cases.js';
import { framesOf, removed, stored, storeMessage } from './support/messages.js';

const REQUIRED = [
  'fleet@llama-70b@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0',
  'fleet@llama-70b@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0',
];

test('a prefix falls into its parts, from the right', () => {
  assert.equal(keyParts(REQUIRED[1]!), {
    'cache prefix': 'fleet',
    model: 'llama-70b',
    tp_rank: '1',
    pcp: '0',
    dcp: '0',
    pp_rank: '0',
    group: '0',
  });
  assert.is(keyParts('a@b@m@tp_rank:0@pcp0@dcp0@pp_rank:0')?.['cache prefix'], 'a@b');
  assert.is(keyParts('m@tp_rank:0@pcp0@dcp0@pp_rank:0')?.group, '');
  assert.is(keyParts('vllm@model@1@0'), null);
});

for (const [seen, part, required] of [
  ['flet@llama-70b@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0', 'cache prefix', 0],
  ['fleet@llama-7b@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0', 'model', 1],
  ['fleet@llama-70b@tp_rank:3@pcp0@dcp0@pp_rank:0@group:0', 'tp_rank', 0],
  ['fleet@llama-70b@tp_rank:1@pcp0@dcp0@pp_rank:0@group:2', 'group', 1],
  ['fleet@llama-70b@tp_rank:1@pcp0@dcp0@pp_rank:0', 'group', 1],
  ['fleet@llama-70b@tp_rank:1@pcp1@dcp0@pp_rank:0@group:0', 'pcp', 1],
  ['fleet@llama-70b@tp_rank:0@pcp0@dcp0@pp_rank:1@group:0', 'pp_rank', 0],
] as const) {
  test(`the nearest to ${seen} differs in ${part}`, () => {
    const nearest = nearestPrefix(seen, REQUIRED)!;
    assert.is(nearest.required, REQUIRED[required]);
    assert.equal(
      nearest.differences?.map((difference) => difference.part),
      [part],
    );
  });
}

test('edit distance, and its bound', () => {
  for (const [a, b, distance] of [
    ['', '', 0],
    ['abc', '', 3],
    ['kitten', 'sitting', 3],
    ['fleet', 'flet', 1],
    ['x'.repeat(MOST_CHARS + 5), 'x'.repeat(MOST_CHARS), 5],
  ] as const) {
    assert.is(editDistance(a, b), distance);
    assert.is(editDistance(b, a), distance);
  }
});

test('expected hashes are those of vLLM, over coarse blocks as well, and seeds are recognised', () => {
  const tokens = Uint32Array.from({ length: 64 }, (_, i) => i * 1000);
  for (const seed of ['0', '42', 'vllm-none-hash']) {
    const digests = vllmDigests(tokens, 16, { seed });
    const rule = { algorithm: 'sha256', seed } as const;
    assert.is(expectedHash({ tokens, blockSize: 16 }, 16, rule), low64Of(digests[0]!));
    assert.is(expectedHash({ tokens, blockSize: 48 }, 16, rule), low64Of(digests[2]!));
    const block = { tokens, blockSize: 16, hashes: BigUint64Array.of(low64Of(digests[0]!)) };
    assert.equal(ruleOf(block, 16, PROMISED_RULE), rule);
  }
  assert.is(ruleOf({ tokens, blockSize: 16, hashes: BigUint64Array.of(1n) }, 16, PROMISED_RULE), null);
  assert.is(expectedHash({ tokens, blockSize: 16 }, 32), null);
  assert.is(expectedHash({ tokens, blockSize: 128 }, 16), null);
});

test('expected hashes of both algorithms are those that Python gives', () => {
  let told = 0;
  for (const [name, algorithm] of [
    ['pickle', 'sha256'],
    ['cbor', 'sha256_cbor'],
  ] as const) {
    for (const { rule, blockSize, tokens, extraKeys, digests, name: what } of digestCases(name, algorithm)) {
      if (extraKeys.loraName || extraKeys.rawSalt || blockSize > MAX_HASH_BLOCK_TOKENS) continue;
      const wanted = BigInt(`0x${digests[0]!.slice(-16)}`);
      assert.is(expectedHash({ tokens, blockSize }, blockSize, rule), wanted, what);
      const block = { tokens, blockSize, hashes: BigUint64Array.of(wanted) };
      assert.equal(ruleOf(block, blockSize, rule), rule, what);
      told++;
    }
  }
  assert.ok(told > 60, `${told}`);
});

test('a key list cut anywhere counts alike', () => {
  const digest = 'ab'.repeat(32);
  const list = `${REQUIRED[0]}@${digest}\r\n${REQUIRED[1]}@${digest}\n${REQUIRED[0]}@no-digest\nother@${digest}\nplain\n\n`;
  const wanted = BigInt('0xabababababababab');
  for (let size = 1; size < list.length; size += 7) {
    const reader = new KeyReader(REQUIRED, [REQUIRED[0]!], [wanted, 5n]);
    const bytes = new TextEncoder().encode(list);
    for (let at = 0; at < bytes.length; at += size) reader.add(bytes.subarray(at, at + size));
    reader.end();
    const { total, required, foreign, met } = reader.result();
    assert.is(total, 5);
    assert.equal(
      required.map(({ keys }) => keys),
      [2, 1],
    );
    assert.equal(foreign, [
      { prefix: 'other', keys: 1 },
      { prefix: '', keys: 1 },
    ]);
    assert.equal([...met], [wanted]);
  }
});

test('drift: each key is held against the list before and the events since', () => {
  const fates: [string, KeyFate][] = [
    ['put', 'there'],
    ['put, vanished', 'there'],
    ['taken', 'gone'],
    ['taken, still there', 'gone'],
    ['who knows', 'unsure'],
  ];
  const judge = new DriftJudge(
    new Set(['old', 'vanished', 'taken', 'taken, still there', 'who knows']),
    new Map(fates),
  );
  for (const key of ['old', 'put', 'taken, still there', 'who knows', 'new']) judge.take(key);
  assert.equal(judge.result(), { missing: 2, unannounced: 2, judged: 6, unjudged: null });
});

test("a master's messages: fates of default's keys, tenants, gaps, and what can't be read", () => {
  const reader = new MasterReader();
  reader.take(storeMessage(1, [stored('a'), stored('b', { tenant: 'other' })]));
  reader.take(storeMessage(2, [removed('a')]));
  reader.take(storeMessage(5, [stored('c')]));
  reader.take(framesOf(6, Uint8Array.of(0xc1)));
  reader.take([new Uint8Array(0)]);
  const { messages, missed, stored: put, removed: taken, tenants, unreadable, lastSequence } = reader.result();
  assert.equal([messages, missed, put, taken, lastSequence], [5, 2, 3, 1, 6n]);
  assert.equal(tenants, { default: 3, other: 1 });
  assert.equal(unreadable, { 'payload-malformed': 1, 'frame-count': 1 });
  assert.equal([...reader.fates.keys()], ['a', 'c']);
});

test("a rank's unreadable messages are counted by code, and cost nothing else", () => {
  const reader = new RankReader(new WorkerEvents(), 'worker-0/0');
  reader.take([new Uint8Array(0)]);
  reader.take(framesOf(3, Uint8Array.of(1)));
  const { messages, unreadable, faultText, topics } = reader.result();
  assert.is(messages, 2);
  assert.equal(unreadable, { 'frame-count': 1, 'batch-shape': 1 });
  assert.match(faultText!, /a worker message has 3 frames/);
  assert.equal(topics, ['']);
});

test('tallies are bounded, and lose no count', () => {
  const tallies = new Tallies();
  for (let i = 0; i < 1000; i++) tallies.add(`name ${i % 500}`);
  const counts = Object.values(tallies.toJSON());
  assert.is(counts.length, 257);
  assert.is(
    counts.reduce((sum, n) => sum + n),
    1000,
  );
});

test('words: the most frequent first, and no 100 % of what is not all', () => {
  assert.is(tallyText({ a: 1, b: 3, c: 2, d: 1 }, 2), '3 b, 2 c, 2 more');
  assert.is(shareText(999, 1000), '99 %');
  assert.is(shareText(1, 1000), '1 %');
  assert.is(shareText(0, 10), '0 %');
});

test('a report shows nothing that moves the cursor, and counts by status', () => {
  const finding = { code: 'model', subject: 'w\u001b[2J', seen: 'a\nb' };
  const report = reportOf([
    { ...finding, status: 'failed', fix: 'mend\u0007 it' },
    { ...finding, status: 'skipped', fix: null },
  ]);
  assert.is(report.ok, false);
  const text = reportText(report);
  assert.match(text, / {2}✗ w\?\[2J: a\?b\n {6}fix: mend\? it\n {2}– w/);
  assert.match(text, /✗ 0 fine, 1 failed, 1 not applicable$/);
});

test('codes are unique, and docs/doctor.md lists them in this order', () => {
  const codes = CHECKS.map(({ code }) => code);
  assert.is(new Set(codes).size, codes.length);
  const [, table = ''] = readFileSync('docs/doctor.md', 'utf8').split('## All checks');
  assert.equal(
    [...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, code]) => code),
    codes,
  );
});

test.run();
