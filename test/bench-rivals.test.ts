// The benchmark's rivals of hashing, of the key list and of whole decisions give the answers that the project gives, on random input: a rival that did
// less would be a rival of something else.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Stream } from '../bench/method/random.js';
import { plainKeyList } from '../bench/rivals/key-list.js';
import { PackageHasher } from '../bench/rivals/package-hasher.js';
import { PlainRouter } from '../bench/rivals/plain-router.js';
import { contractOf, storePayloads } from '../bench/suites/worker-contenders.js';
import { sessionChain, workerBatch } from '../bench/worker-workload.js';
import { BLOCK, rivalOptions } from '../bench/workload.js';
import { blockHashes } from '../src/core/local-hash.js';
import { indexedBlocks } from '../src/core/prefix-types.js';
import { Router } from '../src/router/router.js';
import { writeSequence } from '../src/wire/frames.js';

const random = new Stream(9n);

for (const blockSize of [1, 16, 48, 512])
  test(`the package's hashes of blocks of ${blockSize} tokens are the local hashes`, async () => {
    const tokens = Uint32Array.from({ length: 2_000 }, () => random.next() >>> 0);
    const hasher = await PackageHasher.create();
    assert.equal([...hasher.hash(tokens, blockSize)], [...blockHashes(tokens, blockSize)]);
    const part = tokens.subarray(7, 1_031);
    assert.equal([...hasher.hash(part, blockSize)], [...blockHashes(part, blockSize)]);
  });

test('the plain key list keeps required prefixes and whole digests', () => {
  const digest = 'ab'.repeat(32);
  const text = [`p@${digest}`, `q@${digest}`, `p@${digest}`, `r@${digest}`, 'p@short', `p@${digest.toUpperCase()}`, ''];
  const prefixIds = new Map([
    ['p', 0],
    ['q', 1],
  ]);
  const listed = plainKeyList(new TextEncoder().encode(text.join('\n')), prefixIds);
  assert.equal(
    [...listed].map(([key, ids]) => [key, [...ids]]),
    [[digest, [0, 1]]],
  );
});

test('the plain router credits its choice as much as the router does', async () => {
  const [workers, sessions, blocks, multiplier] = [8, 5, 24, 0.5];
  const options = rivalOptions(blocks);
  const router = await Router.create({
    settings: { sharedCacheType: 'mooncake-store', sharedCacheMultiplier: multiplier, seed: 1 },
    blockSize: BLOCK,
  });
  const rival = await PlainRouter.create(64, options, multiplier);
  const contract = contractOf(options);
  for (let worker = 0; worker < workers; worker++) router.addWorker({ id: worker, contract });
  const sequences = new Array<bigint>(workers).fill(0n);
  let stored = 0n;
  const prompts = Array.from({ length: sessions }, (_, session) => {
    const { tokens, hashes } = sessionChain(session, blocks, 1);
    const locals = blockHashes(tokens, BLOCK);
    rival.store.learn({ parent: null, salted: false, locals, children: hashes });
    for (let worker = 0; worker < workers; worker++) {
      // The last one held all of it, so that its edges are known, and leaves.
      const depth = worker === workers - 1 ? blocks : random.below(blocks / 2);
      for (let step = 0; step < depth; step++) {
        const payload = workerBatch({ events: 1, blocksPerEvent: 1, form: 'map', step, firstSession: session });
        router.onWorkerMessage(worker, [new Uint8Array(0), writeSequence(sequences[worker]!++), payload]);
        const parent = step === 0 ? null : hashes[step - 1]!;
        const event = indexedBlocks(parent, hashes.slice(step, step + 1), locals.slice(step, step + 1));
        rival.index.stored(worker, 'device', event);
      }
    }
    for (const payload of storePayloads(hashes.subarray(0, random.below(blocks)))) {
      router.onStoreMessage([new Uint8Array(0), writeSequence(stored++), payload]);
      rival.store.applyBatch(payload);
    }
    return tokens;
  });
  router.removeWorker(workers - 1);
  rival.index.clear(workers - 1);
  let shared = 0;
  for (let request = 0; request < 300; request++) {
    const session = random.below(sessions);
    const prompt = prompts[session]!.slice(0, 1 + random.below(blocks * BLOCK));
    if (random.below(3) === 0) prompt[random.below(prompt.length)]! ^= 1;
    const { blocks: ours, lease } = router.route({ tokens: prompt, textOnly: true, now: request });
    lease.complete(request);
    const theirs = rival.route(prompt);
    rival.complete(theirs.lease);
    assert.is(
      ours.device + multiplier * ours.shared,
      theirs.device + multiplier * theirs.shared,
      `request ${request}: ${prompt.length} tokens, ${JSON.stringify(ours)} and ${JSON.stringify(theirs)}`,
    );
    shared += ours.shared;
  }
  assert.ok(shared > 0, 'no request met the store');
});

test.run();
