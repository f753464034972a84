// The bytes that `wire` feeds are those of real publishers: digests as vLLM makes them, messages that the readers take whole.
import { decode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blockHashes } from '../src/core/local-hash.js';
import { BlockTree } from '../src/sim/blocks.js';
import { WireBlocks } from '../src/sim/wire-blocks.js';
import { WireNumbers } from '../src/sim/wire-numbers.js';
import { objectTemplates, StoreBatch } from '../src/sim/wire-store-batch.js';
import { blockRemoved, blockStored, workerMessage } from '../src/sim/wire-worker-messages.js';
import { splitStoreFrames } from '../src/wire/mooncake.js';
import { decodeWorkerMessage } from '../src/wire/vllm.js';
import { vllmDigests } from './support/engine-digests.js';
import { stored, storeMessage } from './support/messages.js';
import { ids, requestsOf } from './support/sim-requests.js';

const PREFIX = 'sim@model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0';

/** Two prompts of which the second shares three nodes, and has one of its own in their midst in number. */
function forest(blockSize: number, blocksPerNode: number) {
  const tree = new BlockTree(blockSize, 100_000);
  const idTokens = blockSize * blocksPerNode;
  const rows = [{ ids: ids(0, 5) }, { ids: [0, 1, 2, 9, 10] }, { ids: [7, 3] }];
  const paths = requestsOf(idTokens, rows).map((request) => tree.pathOf(request));
  return { tree, paths, blocks: new WireBlocks(tree) };
}

for (const [blockSize, blocksPerNode] of [
  [1, 1],
  [2, 3],
  [3, 1],
  [16, 4],
  [300, 2],
] as const) {
  test(`blocks of ${blockSize}: digests and hashes are those of the prompt's tokens`, () => {
    const { paths, blocks } = forest(blockSize, blocksPerNode);
    // The deepest first, so that all before it are made for it.
    for (const path of paths.toReversed()) {
      const numbers = [...path].flatMap((node) => ids(node * blocksPerNode, (node + 1) * blocksPerNode));
      const tokens = numbers.flatMap((block) => [...blocks.tokens(block, 1)]);
      const digests = vllmDigests(tokens, blockSize);
      const hex = new Uint8Array(64);
      numbers.toReversed().forEach((block, i) => {
        const digest = digests[numbers.length - 1 - i]!;
        blocks.writeHex(block, hex, 0);
        assert.is(Buffer.from(hex).toString(), digest.toString('hex'));
        assert.is(blocks.low64(block), digest.readBigUInt64BE(24));
      });
      const locals = new BigUint64Array(numbers.length);
      blocks.writeLocals(path, numbers.length, new Uint32Array(locals.buffer));
      assert.equal(locals, blockHashes(tokens, blockSize));
    }
  });
}

test('no two blocks have the same tokens, also with a token of every width', () => {
  const { blocks } = forest(16, 4);
  const seen = new Set<string>();
  for (const first of [0, 200, 65_400, 16_777_000]) {
    for (let block = first; block < first + 200; block++) seen.add(blocks.tokens(block, 1).join());
  }
  assert.is(seen.size, 800);
  const tokens = [0, 255, 256, 65_535, 65_536, 0x07ff_ffff].flatMap((block) => [...blocks.tokens(block, 1)]);
  assert.ok(tokens.every((token) => token < 2 ** 31));
});

test("a worker's message is read whole, with its parent and its group", () => {
  const hashes = [0x8000_0000_0000_0001n, 5n];
  const tokens = Uint32Array.from(ids(0, 32));
  const frames = workerMessage(7, [blockStored(9n, hashes, tokens, 1), blockRemoved(5n, 1)]);
  const { topic, sequence, batch } = decodeWorkerMessage(frames);
  assert.equal([topic, sequence, batch.dpRank, batch.rejected], ['', 7n, 0, []]);
  assert.type(batch.timestamp, 'number');
  const [first, second] = batch.events;
  if (first?.type !== 'stored' || second?.type !== 'removed') assert.unreachable();
  else {
    assert.equal([first.blockCount, first.blockSize, first.tokenCount], [2, 16, 32]);
    assert.equal([first.groupIdx, first.specKind, first.medium], [1, 'full_attention', 'GPU']);
    assert.ok(first.hasParent && first.parentLow === 9 && first.dense && first.wellLaid);
    assert.equal([second.blockCount, second.groupIdx, second.medium], [1, 1, 'GPU']);
  }
});

test("the master's message is what an encoder would make of its events", () => {
  const templates = objectTemplates(PREFIX);
  const batch = new StoreBatch();
  for (const sequence of [1, 2]) {
    batch.begin(sequence);
    for (let id = 1; id <= 20; id++) {
      batch.add(templates[id % 2 === 0 ? 'removed-disk' : 'stored-cpu'], id);
      batch.bytes.fill(0x61, batch.hexAt, batch.hexAt + 64);
    }
    const frames = batch.frames();
    const read = splitStoreFrames(frames);
    assert.is(read.sequence, BigInt(sequence));
    const [time, events, rank] = decode(read.payload, { useBigInt64: true }) as [bigint, Record<string, unknown>[], 0];
    assert.equal([time, events.length, rank], [1_796_015_123_383n + BigInt(sequence), 20, 0]);
    events.forEach((event, i) => {
      const removes = i % 2 === 1;
      assert.is(event.event_id, i + 1);
      assert.is(event.timestamp, time);
      assert.equal([event.event_type, event.medium], removes ? ['removed', 'disk'] : ['stored', 'cpu']);
      assert.is(event.object_key, `${PREFIX}@${'a'.repeat(64)}`);
      assert.is(Object.keys(event).length, removes ? 17 : 20);
    });
  }
  // The names, in the order of a captured event of that generation.
  const [, [captured]] = decode(storeMessage(1, [stored('key', { generation: 'C' })])[2]!, {
    useBigInt64: true,
  }) as [bigint, [object]];
  batch.begin(3);
  batch.add(templates['stored-disk'], 1);
  const [, [made]] = decode(batch.frames()[2]!, { useBigInt64: true }) as [bigint, [object]];
  const known = Object.keys(captured);
  assert.equal(
    Object.keys(made).filter((name) => known.includes(name)),
    known,
  );
});

test('messages are numbered as one stream, whatever parts they take', () => {
  const numbers = new WireNumbers(1);
  assert.is(numbers.last, 0);
  const said: number[] = [];
  const send = (sequence: number, parts: number) => {
    numbers.begin(sequence);
    for (let part = 0; part < parts; part++) said.push(numbers.next());
  };
  send(0, 1);
  send(1, 3);
  send(2, 1);
  send(4, 2); // 3 was lost
  assert.equal(said, [1, 2, 3, 4, 5, 7, 8]);
  assert.is(numbers.last, 8);
  send(0, 2); // began anew
  assert.equal(said.slice(7), [1, 2]);
  numbers.restart();
  assert.is(numbers.last, 0);
});

test.run();
