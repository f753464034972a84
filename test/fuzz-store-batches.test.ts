// Hostile store payloads: at least 200,000 mutations of real captured batches, and plain noise, applied to a filled core on the build
// whose caps are small. The core never traps and never grows, judges every payload as the model does (which reads it through
// @msgpack/msgpack), and its whole state stays that of the model. MOONROUTE_SEED=n repeats a run, MOONROUTE_FUZZ=n lengthens it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Contract } from '../src/contract/descriptor.js';
import { planOf } from '../src/core/plan.js';
import { readCapture } from '../src/oracle/capture.js';
import { coreSnapshot } from './support/core-state.js';
import { loadCore } from './support/cores.js';
import { CoreModel } from './support/model.js';
import { Random } from './support/random.js';
import { applyJudged, judgeBatch } from './support/store-batch-model.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const MUTATIONS = Number(process.env['MOONROUTE_FUZZ'] ?? 200_000);
const NOISE = MUTATIONS / 10;
console.log(`fuzz-store-batches: seed ${seed}, ${MUTATIONS} mutations and ${NOISE} payloads of noise`);

const PREFIXES = [0, 1].flatMap((group) => [0, 1].map((rank) => `oracle@model@tp_rank:${rank}@group:${group}`));
const CONTRACT: Contract = {
  revision: '',
  adapter: '',
  verified: true,
  mainEventBlockSize: 16,
  hashBlockSize: 16,
  lcmBlockSize: 16,
  partialHashHits: false,
  gpuToStoreGroup: [0, 1],
  mainEventGroup: 0,
  hashRule: { algorithm: 'sha256', seed: '0' },
  learnable: true,
  groups: [
    { groupId: 0, kind: 'full_attention', blockSize: 16, slidingWindow: null, keyPrefixes: PREFIXES.slice(0, 2) },
    { groupId: 1, kind: 'mamba', blockSize: 16, slidingWindow: null, keyPrefixes: PREFIXES.slice(2) },
  ],
  fingerprint: '',
};

/** Payloads of the captures, in their own words; those of the case above fit the contract, the others are foreign. */
function capturedPayloads(): Uint8Array[] {
  const folder = 'test/fixtures/mooncake-captures';
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.jsonl'));
  return files.flatMap((file) =>
    readCapture(readFileSync(join(folder, file), 'utf8'), file)
      .map((frames) => frames[2]!)
      .filter((payload) => payload.length < 1200)
      .slice(0, file.startsWith('tp2') ? 100 : 6),
  );
}

interface Named {
  local: bigint;
  child: bigint;
  digest: string;
}

/** Batches of the newer generations and of several events, which the captures with our keys lack. */
function madePayload(random: Random, blocks: readonly Named[]): Uint8Array {
  const events = Array.from({ length: random.between(1, 4) }, () => {
    if (random.chance(0.03))
      return { event_type: 'cleared', type: 'AllBlocksCleared', tenant_id: 'default', medium: null };
    const digest = random.chance(0.03)
      ? random.hex(24) + random.pick(blocks).digest.slice(48)
      : random.pick(blocks).digest;
    const kind = random.chance(0.75) ? 'stored' : 'removed';
    const event: Record<string, unknown> = {
      event_id: 1,
      event_type: kind,
      type: kind === 'stored' ? 'BlockStored' : 'BlockRemoved',
      tenant_id: random.chance(0.95) ? 'default' : 'other',
      medium: random.pick(['cpu', 'disk']),
      dp_rank: random.pick([null, 0, 3]),
      object_key: `${random.pick(PREFIXES)}@${digest}`,
      seq_hashes: [2n ** 63n + 5n],
      extra: { nested: [1.5, 'x', new Uint8Array(3)] },
    };
    if (random.chance(0.3)) delete event[random.pick(['type', 'tenant_id', 'dp_rank', 'extra', 'event_id'])];
    return event;
  });
  return encode([1_796_015_123_383, events, 0], { useBigInt64: true });
}

const INTERESTING = [
  0, 1, 0x7f, 0x80, 0x90, 0xa0, 0xc0, 0xc1, 0xc4, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcf, 0xd3, 0xd4, 0xd8, 0xd9, 0xdb,
  0xdc, 0xdd, 0xde, 0xdf, 0xff,
];

function mutate(random: Random, payload: Uint8Array, other: Uint8Array): Uint8Array {
  let bytes = [...payload];
  const times = random.pick([1, 1, 1, 2, 5]);
  for (let i = 0; i < times; i++) {
    const at = random.int(bytes.length + 1);
    switch (random.int(9)) {
      case 0:
      case 1:
        bytes[at % Math.max(1, bytes.length)] = random.int(256);
        break;
      case 2:
        bytes[at % Math.max(1, bytes.length)] = random.pick(INTERESTING);
        break;
      case 3:
        bytes = bytes.slice(0, at);
        break;
      case 4:
        bytes.splice(at, 0, random.pick(INTERESTING));
        break;
      case 5:
        bytes.splice(at, random.between(1, 8));
        break;
      case 6:
        bytes.splice(at, 4, ...Array.from({ length: 4 }, () => random.pick([0, 0xff, random.int(256)])));
        break;
      case 7:
        bytes = [...bytes.slice(0, at), ...other.slice(random.int(other.length))];
        break;
      default: // one text for another of the same length: the structure stays sound, the meaning changes
        replaceText(random, bytes);
    }
  }
  return Uint8Array.from(bytes);
}

const TEXTS = [
  'stored',
  'medium',
  'removed',
  'cleared',
  'default',
  'dp_rank',
  'event_type',
  'object_key',
  'tenant_id',
  'type',
  'disk',
  'cpu',
  '@group:0',
  '@group:1',
];

function replaceText(random: Random, bytes: number[]): void {
  const from = random.pick(TEXTS);
  const to = random.pick(TEXTS.filter(({ length }) => length === from.length));
  const at = Buffer.from(bytes).indexOf(from);
  if (at >= 0) bytes.splice(at, to.length, ...Buffer.from(to));
}

test('mutated and random payloads: no trap, no growth, the model’s verdict and the model’s state', async () => {
  const random = new Random(seed);
  const core = await loadCore('tiny');
  core.configure(planOf(CONTRACT), 7n);
  const model = new CoreModel({
    edgeCap: 64,
    ambiguousCap: 8,
    contract: {
      blockSize: 16,
      lcm: 16,
      hashBlock: 16,
      partial: false,
      groups: CONTRACT.groups.map(({ kind, blockSize }) => ({ kind, blockSize, window: null })),
      prefixes: [0, 0, 1, 1],
    },
  });
  const captured = capturedPayloads();
  assert.ok(captured.length > 150, `${captured.length} captured payloads`);
  // Digests of the captures that fit the contract, and as many made up ones as overfill the caps.
  const seen = new Set<string>();
  for (const payload of captured) {
    const judged = judgeBatch(payload, PREFIXES);
    if (judged.unreadable) continue;
    for (const op of judged.ops) if (op.op !== 'cleared') seen.add(op.high + op.low64.toString(16).padStart(16, '0'));
  }
  assert.ok(seen.size >= 4, `${seen.size} captured digests under the contract's prefixes`);
  while (seen.size < 72) seen.add(random.hex(32));
  const blocks: Named[] = [...seen].map((digest) => ({
    digest,
    child: BigInt(`0x${digest.slice(48)}`),
    local: random.bigint64(),
  }));
  const relearn = () => {
    const known = blocks.slice(0, 56);
    const event = { parent: null, salted: false, blocks: known.map(({ local, child }) => ({ local, child })) };
    core.loadLocals(BigUint64Array.from(known, ({ local }) => local));
    core.learn({ parent: null, salted: false, lows: BigUint64Array.from(known, ({ child }) => child), digests: null });
    model.learn(event);
  };
  const contractBytes = () => Buffer.from(core.exports.memory.buffer, 0x6c00, 0x3400).toString('base64');
  const contractBefore = contractBytes();
  const memoryBefore = core.exports.memory.buffer.byteLength;
  const fates = { applied: 0, malformed: 0, unreadable: 0 };
  const compare = (where: string) => {
    const { counters: core_, ...state } = coreSnapshot(core);
    const { counters: model_, ...expected } = model.snapshot();
    assert.equal(state, JSON.parse(JSON.stringify(expected)), where);
    assert.equal(core_, { ...model_ }, where);
  };
  const apply = (payload: Uint8Array, where: string) => {
    const judged = judgeBatch(payload, PREFIXES);
    applyJudged(model, judged);
    const { outcome } = core.applyPayload(payload);
    const expected = judged.unreadable ? 'unreadable' : judged.malformed === null ? 'applied' : 'malformed';
    if (outcome !== expected)
      assert.unreachable(
        `${where}: core ${outcome}, model ${JSON.stringify(judged, (_, v) => (typeof v === 'bigint' ? `${v}` : v))}, payload ${Buffer.from(payload).toString('hex')}`,
      );
    fates[outcome]++;
  };
  relearn();
  let largest = 0;
  for (let i = 0; i < MUTATIONS; i++) {
    const where = `seed ${seed}, mutation ${i}`;
    // Mutations clear residency most of the time, so it is filled again in between.
    for (let fill = i % 50 === 0 ? 60 : random.pick([0, 0, 1, 2]); fill > 0; fill--)
      apply(madePayload(random, blocks), where);
    const base = random.chance(0.5) ? random.pick(captured) : madePayload(random, blocks);
    apply(mutate(random, base, random.pick(captured)), where);
    largest = Math.max(largest, core.stats().digests);
    if (i % 500 === 0) {
      compare(where);
      relearn();
    }
  }
  for (let i = 0; i < NOISE; i++) {
    apply(
      Uint8Array.from({ length: random.int(64) }, () =>
        random.chance(0.5) ? random.pick(INTERESTING) : random.int(256),
      ),
      `seed ${seed}, noise ${i}`,
    );
  }
  compare(`seed ${seed}, at the end`);
  console.log(
    `  ${JSON.stringify(fates)}, at most ${largest} digests resident, ${coreSnapshot(core).ambiguous.length} ambiguous at the end`,
  );
  assert.ok(fates.applied > MUTATIONS / 4 && fates.malformed > MUTATIONS / 100 && fates.unreadable > MUTATIONS / 10);
  assert.is(core.exports.memory.buffer.byteLength, memoryBefore);
  assert.is(contractBytes(), contractBefore, 'the contract in the core changed');
});

test.run();
