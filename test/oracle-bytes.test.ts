// Oracle cases: both file formats become the same case, a file that is wrong says where, and a case's bytes are those that
// real publishers send, compared with captured streams byte for byte.
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { Decoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import { EventNormaliser, type NormalisedStored } from '../src/events/normaliser.js';
import { whyNotLearned } from '../src/events/stored-blocks.js';
import { storeMessages, workerMessages } from '../src/oracle/case-bytes.js';
import { CaseFileError, type OracleCase, readCaseFile } from '../src/oracle/case-file.js';
import { digestFromHex, low64OfHex } from '../src/wire/engine-hashes.js';
import { MAX_STORE_MESSAGE_BYTES, splitStoreFrames } from '../src/wire/mooncake.js';
import { decodeWorkerMessage, type StoredEvent } from '../src/wire/vllm.js';

const FIXTURES = 'test/fixtures';
const text = gunzipSync(readFileSync(`${FIXTURES}/oracle-cases.json.gz`)).toString('utf8');
const cases = readCaseFile(text, 'oracle-cases.json');
const byName = new Map(cases.map((oracleCase) => [oracleCase.name, oracleCase]));
const decoder = new Decoder({ useBigInt64: true });
const FORMS = ['map', 'positional'] as const;
const HASHES = ['u64', 'i64', 'binary'] as const;

type Json = ReturnType<typeof JSON.parse>;
/** A case of this project's file as plain JSON, to be spoilt. */
const rawCase = (name: string): Json => JSON.parse(text).cases.find((raw: Json) => raw['name'] === name);
const sampleName = 'dev-fa_mamba_partial-275';

test('all 600 cases are read, with tokens by their formula and keys by their indices', () => {
  assert.is(cases.length, 600);
  const sample = byName.get(sampleName)!;
  assert.equal([...sample.tokens.subarray(0, 3)], [65400, 65407, 65414]);
  assert.equal([sample.tokens.length, sample.requestTokenCount, sample.digests.length], [225, 193, 7]);
  assert.equal([sample.hashBlockSize, sample.alignment, sample.partialHashHits], [32, 64, true]);
  assert.equal(sample.objects[1], {
    group: 0,
    key: `Llama-3.1-8B-Instruct@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${sample.digests[1]}`,
  });
  assert.equal(sample.expected, { oracleHitTokens: 128, workerHitTokens: 128 });
  assert.is(cases.filter((oracleCase) => oracleCase.mainEventBlockSize === null).length, 15);
  const wrapped = cases.find(({ name }) => name === 'dev-extra_keys-540')!;
  assert.equal([wrapped.loraName, wrapped.cacheSalt], ['adapter-a', 'tenant-1']);
});

/** The published format of the reference, made from a case of ours: low64 as a JSON number beyond 2^53. */
function upstreamText(oracleCase: OracleCase): string {
  const { hashBlockSize, digests } = oracleCase;
  const hashes = digests.map(
    (digest, i) => `{"digest":"${digest}","end_token":${(i + 1) * hashBlockSize},"low64":${low64OfHex(digest)}}`,
  );
  const raw = {
    name: oracleCase.name,
    coordinator_alignment: oracleCase.alignment,
    hash_block_size: hashBlockSize,
    partial_hash_hits: oracleCase.partialHashHits,
    groups: oracleCase.groups.map(({ kind, blockSize, window, prefixes }, group_id) => ({
      block_size: blockSize,
      group_id,
      kind,
      prefixes,
      window,
    })),
    main_event_block_size: oracleCase.mainEventBlockSize,
    oracle_hit_tokens: oracleCase.expected.oracleHitTokens,
    present: oracleCase.objects.map(({ group, key }) => [group, key.slice(0, -65), key.slice(-64)]),
    request_token_count: oracleCase.requestTokenCount,
    reusable_endpoints: [],
    token_ids: [...oracleCase.tokens],
  };
  return `{"_generated":"x","cases":[${JSON.stringify(raw).slice(0, -1)},"hashes":[${hashes}]}]}`;
}

test("the reference's format gives the same case; its rounded low64 is not used", () => {
  const sample = byName.get(sampleName)!;
  assert.equal(readCaseFile(upstreamText(sample), 'x'), [{ ...sample, family: 'upstream' }]);
  const wrong = upstreamText(sample).replace('"low64":2900486192685233112', '"low64":2900486192685239999');
  assert.throws(() => readCaseFile(wrong, 'x'), /hashes\[0\]\.low64/);
});

test('a file of neither format says what was seen', () => {
  const rows: [string, RegExp, string][] = [
    ['{', /^a\.json: not JSON/, 'case-file-json'],
    ['[]', /a list of 0/, 'case-file-format'],
    ['7', /holds 7/, 'case-file-format'],
    ['{"samples":[]}', /an object with samples/, 'case-file-format'],
    ['{"cases":{}}', /"cases" is an object/, 'case-file-format'],
    ['{"cases":[]}', /"cases" is a list of 0/, 'case-file-format'],
    ['{"cases":[7]}', /case 0: expected a case, got 7/, 'case-file-format'],
    ['{"cases":[{"name":"n","prompt":1}]}', /^a\.json: n: neither format.*it has name, prompt/, 'case-file-format'],
  ];
  for (const [content, message, code] of rows) {
    try {
      readCaseFile(content, 'a.json');
      assert.unreachable(content);
    } catch (error) {
      assert.instance(error, CaseFileError);
      assert.instance(error, MoonrouteError);
      assert.match((error as CaseFileError).message, message);
      assert.is((error as CaseFileError).code, code);
    }
  }
});

test('a wrong field is named with file, case and path', () => {
  const rows: [field: string, change: (raw: Json) => void][] = [
    ['hash_block_size', (raw) => (raw['hash_block_size'] = 0)],
    ['coordinator_alignment', (raw) => (raw['coordinator_alignment'] = '64')],
    ['partial_hash_hits', (raw) => (raw['partial_hash_hits'] = 1)],
    ['groups', (raw) => (raw['groups'] = [])],
    ['groups[1].group_id', (raw) => (raw['groups'][1].group_id = 0)],
    ['groups[0].kind', (raw) => (raw['groups'][0].kind = 'full')],
    ['groups[0].block_size', (raw) => (raw['groups'][0].block_size = 33)],
    ['groups[0].window', (raw) => (raw['groups'][0].window = 3)],
    ['groups[0].prefixes', (raw) => (raw['groups'][0].prefixes = [])],
    ['groups[0].prefixes[0]', (raw) => (raw['groups'][0].prefixes[0] = 7)],
    ['main_event_block_size', (raw) => (raw['main_event_block_size'] = 64)],
    ['tokens', (raw) => (raw['tokens'] = [1, 2])],
    ['tokens.mod', (raw) => (raw['tokens'].mod = 0)],
    ['tokens.count', (raw) => (raw['tokens'].count = 2 ** 30)],
    ['digests', (raw) => (raw['tokens'].count = 200)],
    ['digests[2]', (raw) => (raw['digests'][2] = raw['digests'][2].toUpperCase())],
    ['low64', (raw) => raw['low64'].pop()],
    ['low64[3]', (raw) => (raw['low64'][3] = '1')],
    ['present[0]', (raw) => (raw['present'][0] = [0, 0])],
    ['present[0][0]', (raw) => (raw['present'][0] = [2, 0, 0])],
    ['present[0][1]', (raw) => (raw['present'][0] = [0, 1, 0])],
    ['present[0][2]', (raw) => (raw['present'][0] = [0, 0, 7])],
    ['request_token_count', (raw) => (raw['request_token_count'] = 226)],
    ['oracle_hit_tokens', (raw) => (raw['oracle_hit_tokens'] = -1)],
    ['worker_hit_tokens', (raw) => delete raw['worker_hit_tokens']],
    ['lora_name', (raw) => delete raw['lora_name']],
    ['cache_salt', (raw) => (raw['cache_salt'] = 7)],
    ['family', (raw) => (raw['family'] = null)],
    ['name', (raw) => (raw['name'] = null)],
  ];
  for (const [field, change] of rows) {
    const raw = rawCase(sampleName);
    change(raw);
    try {
      readCaseFile(JSON.stringify({ cases: [raw] }), 'b.json');
      assert.unreachable(field);
    } catch (error) {
      assert.instance(error, CaseFileError, field);
      const { file, caseName, field: named } = error as CaseFileError;
      assert.equal([file, caseName, named], ['b.json', field === 'name' ? 'case 0' : sampleName, field]);
    }
  }
});

test("worker bytes of every case, in every encoding, decode to the request's chain", () => {
  for (const oracleCase of cases) {
    const { mainEventBlockSize: blockSize, hashBlockSize, digests, tokens } = oracleCase;
    for (const form of FORMS) {
      for (const hashes of HASHES) {
        const messages = workerMessages(oracleCase, { form, hashes }).map(decodeWorkerMessage);
        if (blockSize === null) {
          assert.is(messages.length, 0);
          continue;
        }
        const blocks = Math.floor(tokens.length / blockSize);
        assert.is(messages.length, blocks === 0 ? 0 : blocks > 3 ? 2 : 1);
        const ends = Array.from({ length: blocks }, (_, k) => digests[((k + 1) * blockSize) / hashBlockSize - 1]!);
        let seen = 0;
        const normaliser = new EventNormaliser();
        const publisher = normaliser.publisher();
        messages.forEach(({ topic, sequence, batch }, i) => {
          assert.equal([topic, sequence, batch.dpRank, batch.rejected.length], ['', BigInt(i), 0, 0]);
          const event = batch.events[0] as StoredEvent;
          const own = ends.slice(seen, seen + event.blockHashes.low64.length);
          assert.equal(
            [event.form, event.blockSize, event.medium, event.specKind],
            [form, blockSize, 'GPU', 'full_attention'],
          );
          assert.is(oracleCase.groups[event.groupIdx!]!.kind, 'full_attention');
          assert.equal([...event.blockHashes.low64], own.map(low64OfHex));
          if (hashes === 'binary')
            assert.equal(event.blockHashes.digests, Uint8Array.from(own.flatMap((d) => [...digestFromHex(d)])));
          else assert.is(event.blockHashes.digests, null);
          assert.is(event.parentBlockHash?.low64 ?? null, seen === 0 ? null : low64OfHex(ends[seen - 1]!));
          assert.equal(event.tokenIds, tokens.slice(seen * blockSize, (seen + own.length) * blockSize));
          const stored = normaliser.normalise(publisher, event) as NormalisedStored;
          const refused = whyNotLearned(stored, { mainEventBlockSize: blockSize, mainEventGroup: event.groupIdx! });
          // A raw salt is no namespace of ours: what its block teaches could be another tenant's.
          assert.is(refused, oracleCase.cacheSalt && seen === 0 ? 'extra-key-unknown' : null);
          seen += own.length;
        });
        assert.is(seen, blocks);
      }
    }
  }
});

test('a worker message has the keys of the real capture, in order, and the widths that vLLM writes', () => {
  const oracleCase = byName.get('dev-extra_keys-540')!;
  const [topic, sequence, payload] = workerMessages(oracleCase, { form: 'map', hashes: 'u64' })[0]!;
  assert.equal([topic!.length, [...sequence!]], [0, [0, 0, 0, 0, 0, 0, 0, 0]]);
  const [ts, [event], rank] = decoder.decode(payload!) as [number, [Record<string, unknown>], number];
  assert.is(payload![1], 0xcb); // the timestamp is a float
  assert.ok(ts > 1.7e9);
  assert.is(rank, 0);
  assert.equal(Object.keys(event), [
    'type',
    'block_hashes',
    'parent_block_hash',
    'token_ids',
    'block_size',
    'lora_id',
    'medium',
    'lora_name',
    'extra_keys',
    'group_idx',
    'kv_cache_spec_kind',
  ]);
  assert.equal(event['block_hashes'], [5760013008648990728n, 16856383955543097002n]);
  assert.equal([event['lora_id'], event['lora_name']], [1, 'adapter-a']);
  assert.equal(event['extra_keys'], [['adapter-a', 'tenant-1'], ['adapter-a']]);
  const signed = decoder.decode(workerMessages(oracleCase, { form: 'positional', hashes: 'i64' })[0]![2]!) as [
    unknown,
    [unknown[]],
  ];
  assert.equal(signed[1][0].slice(0, 3), ['BlockStored', [5760013008648990728n, -1590360118166454614n], null]);
  const plain = workerMessages(byName.get('dev-fa_only-0')!, { form: 'map', hashes: 'u64' });
  const [, [first]] = decoder.decode(plain[0]![2]!) as [number, [Record<string, unknown>]];
  assert.equal([first['lora_id'], first['lora_name']], [null, null]);
  assert.equal(new Set(first['extra_keys'] as null[]), new Set([null]));
});

test('store bytes of every case carry every object once, in order, under the limits', () => {
  for (const oracleCase of cases) {
    for (const generation of ['A', 'C'] as const) {
      const keys: unknown[] = [];
      storeMessages(oracleCase, { generation, medium: 'disk' }).forEach((frames, i) => {
        const { sequence, payload } = splitStoreFrames(frames);
        assert.equal([frames[0]!.length, sequence], [0, BigInt(i + 1)]);
        assert.ok(payload.length < MAX_STORE_MESSAGE_BYTES);
        const [timestamp, events, rank] = decoder.decode(payload) as [bigint, Record<string, unknown>[], number];
        assert.equal([typeof timestamp, rank, events.length <= 64], ['bigint', 0, true]);
        for (const event of events) {
          keys.push(event['object_key']);
          assert.equal(
            [event['event_id'], event['timestamp'], event['medium'], event['dp_rank']],
            [keys.length, timestamp, 'disk', generation === 'A' ? null : 0],
          );
        }
      });
      assert.equal(
        keys,
        oracleCase.objects.map(({ key }) => key),
      );
    }
  }
});

test('batch sizes are kept, and a senseless one is refused', () => {
  const oracleCase = byName.get(sampleName)!;
  assert.is(oracleCase.objects.length, 18);
  const lengths = storeMessages(oracleCase, { generation: 'C', batch: 7 }).map(
    (frames) => (decoder.decode(frames[2]!) as [bigint, unknown[]])[1].length,
  );
  assert.equal(lengths, [7, 7, 4]);
  for (const batch of [0, -1, 1.5, Number.NaN]) {
    assert.throws(() => storeMessages(oracleCase, { generation: 'C', batch }), RangeError);
  }
});

/** The events of a payload as hex, back to back, every copy of their batch's timestamp (uint 64, bytes 1 to 9) zero. */
function eventsHex(payload: Uint8Array): string {
  const hex = Buffer.from(payload).toString('hex');
  const listHeader = hex.startsWith('dc', 20) ? 6 : 2;
  return hex.replaceAll(hex.slice(2, 20), `cf${'0'.repeat(16)}`).slice(20 + listHeader, -2);
}

test('generation A is byte for byte what a running master sent for the same objects', () => {
  let compared = 0;
  for (const oracleCase of cases) {
    const path = `${FIXTURES}/mooncake-captures/${oracleCase.name}.jsonl`;
    if (!existsSync(path)) continue;
    const captured = readFileSync(path, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => Uint8Array.from(Buffer.from((JSON.parse(line) as { payload: string }).payload, 'hex')));
    const eventsOf = (payload: Uint8Array) => (decoder.decode(payload) as [bigint, Record<string, string>[]])[1];
    const backendId = eventsOf(captured[0]!)[0]!['backend_id']!;
    // The master sends what is queued when it wakes, so its batches are of no fixed size: events are compared one by one.
    const ours = storeMessages(oracleCase, { generation: 'A', batch: 1, backendId }).map((frames) => frames[2]!);
    for (let message = 0, done = 0; done < ours.length; message++) {
      const payload = captured[message]!;
      const count = eventsOf(payload).length;
      const expected = ours
        .slice(done, done + count)
        .map(eventsHex)
        .join('');
      // Behind the last object the capture goes on with others, perhaps in the same message.
      assert.ok(eventsHex(payload).startsWith(expected), `${oracleCase.name}, message ${message + 1}`);
      assert.equal([...payload.subarray(0, 2), payload.at(-1)], [...ours[done]!.subarray(0, 2), ours[done]!.at(-1)]);
      if (count === 1) assert.is(payload.length, ours[done]!.length);
      done += count;
      compared += count;
    }
  }
  assert.ok(compared > 1000, `${compared} events compared`);
});

test('generation C has the keys, the order and the bytes of the newer format', () => {
  const { samples } = JSON.parse(readFileSync(`${FIXTURES}/mooncake-event-samples.json`, 'utf8')) as {
    samples: { name: string; frames: { payload_hex: string } }[];
  };
  const sample = samples.find(({ name }) => name === 'genC_stored_removed_cleared')!;
  const [, events] = decoder.decode(Buffer.from(sample.frames.payload_hex, 'hex')) as [
    bigint,
    Record<string, unknown>[],
  ];
  const ours = storeMessages(byName.get(sampleName)!, { generation: 'C' })[0]!;
  const [, [event]] = decoder.decode(ours[2]!) as [bigint, [Record<string, unknown>]];
  assert.equal(Object.keys(event), Object.keys(events[0]!));
  const { model_name, block_size, backend_id, object_key, timestamp, ...rest } = event;
  for (const [key, value] of Object.entries(rest)) assert.equal(value, events[0]![key], key);
});

test.run();
