// A lookup by tokens hashes the prompt in growing parts and stops with the walk (core/core.ts, lookupTokens). Whatever is known of a
// prompt, its hit must be that of a lookup by hashes, and the number of blocks hashed must follow what is known instead of the
// prompt's length. Lengths lie around the ends of the parts: 128, 256, 512 and 1,024 blocks.
import { Encoder } from '@msgpack/msgpack';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { Core } from '../src/core/core.js';
import { blockHashes, type HashScope } from '../src/core/local-hash.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { MAX_EVENT_TOKENS } from '../src/wire/vllm.js';
import { contractOf, framesOf, prefixOf, stored, storeMessage } from './support/messages.js';
import { Random } from './support/random.js';

const FIRST_PART = 128;
const PROMPT_BLOCKS = 1100;
const AROUND_PARTS = [127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025];
const LENGTHS = [1, 2, ...AROUND_PARTS, PROMPT_BLOCKS];
const SOURCE = { workerId: 'worker-a', dpRank: 0 };

const encoder = new Encoder({ useBigInt64: true });

/** Blocks hashed by all caches of this file so far. */
let hashed = 0;
const makeCore = Core.fromModule;
Core.fromModule = (build, module) => {
  const core = makeCore(build, module);
  const { hashBlocks } = core.exports;
  core.exports.hashBlocks = (blocks, ...rest) => {
    hashed += blocks;
    hashBlocks(blocks, ...rest);
  };
  return core;
};

/** A cache that was told of a chain of blocks, every one of them resident, and prompts that start like it. */
class Chain {
  readonly #workers = new WorkerEvents();
  readonly #tokens: Uint32Array;
  readonly #digests: readonly string[];

  private constructor(
    readonly cache: SharedCache,
    readonly blockSize: number,
    blocks: number,
    readonly scope: HashScope,
  ) {
    const random = new Random(blockSize);
    this.#tokens = Uint32Array.from({ length: blocks * blockSize }, () => random.uint32() >>> 1);
    this.#digests = Array.from({ length: blocks }, () => random.hex(32));
    cache.updateContract(contractOf({ blockSize }), [SOURCE]);
    const objects = this.#digests.map((digest) => stored(`${prefixOf(0, 0)}@${digest}`));
    assert.is(cache.applyStoreMessage(storeMessage(1, objects)).objects, blocks);
    const atOnce = Math.floor(MAX_EVENT_TOKENS / blockSize);
    for (let first = 0; first < blocks; first += atOnce) {
      const digests = this.#digests.slice(first, first + atOnce);
      assert.is(this.#announce(first, digests), digests.length);
    }
  }

  static async open(
    blockSize: number,
    { blocks = PROMPT_BLOCKS, scope = {} }: { blocks?: number; scope?: HashScope } = {},
  ): Promise<Chain> {
    return new Chain(await SharedCache.create(), blockSize, blocks, scope);
  }

  /** A worker's event that says that the blocks from `first` on have these digests; returns how many were learned. */
  #announce(first: number, digests: readonly string[]): number {
    const low64 = (digest: string | undefined) => (digest === undefined ? null : BigInt(`0x${digest.slice(48)}`));
    const event = {
      type: 'BlockStored',
      block_hashes: digests.map(low64),
      parent_block_hash: low64(this.#digests[first - 1]),
      token_ids: [...this.#tokens.subarray(first * this.blockSize, (first + digests.length) * this.blockSize)],
      block_size: this.blockSize,
      lora_name: this.scope.loraName ?? null,
      cache_salt: this.scope.cacheNamespace ?? null,
    };
    const { source, events } = this.#workers.read(SOURCE.workerId, framesOf(0, encoder.encode([0, [event], 0])));
    const [said] = events;
    if (said?.kind !== 'stored') throw new Error('not read as sent');
    return this.cache.observeStored(source, said).blocks;
  }

  /** Says that block `block` has another hash than it had. */
  contradict(block: number): void {
    assert.is(this.#announce(block, [new Random(block).hex(32)]), 0);
  }

  /** A prompt of `blocks` blocks and `rest` tokens that starts with the chain's first `known` blocks and then goes its own way. */
  prompt(blocks: number, known: number, rest: number): Uint32Array {
    const tokens = new Uint32Array(blocks * this.blockSize + rest).fill(0xffff_fff0);
    tokens.set(this.#tokens.subarray(0, known * this.blockSize));
    return tokens;
  }

  #query(tokenCount: number) {
    const { loraName = null, cacheNamespace = null } = this.scope;
    return { tokenCount, blockSize: this.blockSize, eligible: true, loraName, cacheSalt: cacheNamespace };
  }

  /** The hit by tokens, which must be that by hashes and that which is explained; how many blocks were hashed for it. */
  lookup(tokens: Uint32Array, tokenCount = tokens.length): { hit: number; hashes: number } {
    const query = this.#query(tokenCount);
    const localHashes = blockHashes(tokens, this.blockSize, this.scope);
    const before = hashed;
    const { blocks: hit } = this.cache.lookup({ ...query, tokens });
    const hashes = hashed - before;
    assert.is(this.cache.lookup({ ...query, localHashes }).blocks, hit, 'by hashes');
    assert.is(this.cache.explain({ ...query, tokens }).hits.blocks, hit, 'explained');
    return { hit, hashes };
  }
}

/** What vLLM would restore when everything known is resident: whole blocks, and never the prompt's last token. */
function expectedHit(blockSize: number, known: number, tokens: Uint32Array, tokenCount = tokens.length): number {
  return Math.min(known, Math.floor(tokens.length / blockSize), Math.floor((tokenCount - 1) / blockSize));
}

/** Hashing may run ahead of what is known by a part: the first one, or as much again. */
function checkHashes(hashes: number, known: number, blocks: number, label: string): void {
  assert.ok(hashes >= Math.min(blocks, known), `${label}: only ${hashes} blocks were hashed`);
  assert.ok(hashes <= Math.min(blocks, Math.max(FIRST_PART, 2 * known)), `${label}: ${hashes} blocks were hashed`);
}

const parts = suite('lookups by tokens');

for (const blockSize of [1, 16, 512]) {
  parts(
    `blocks of ${blockSize}: prompts of ${LENGTHS.at(0)} to ${LENGTHS.at(-1)} blocks of which so many are known`,
    async () => {
      const chain = await Chain.open(blockSize);
      for (const blocks of LENGTHS) {
        for (const known of [0, ...LENGTHS].filter((known) => known <= blocks)) {
          for (const rest of blockSize === 1 ? [0] : [0, 1, blockSize - 1]) {
            const label = `${known} of ${blocks} blocks and ${rest} tokens`;
            const tokens = chain.prompt(blocks, known, rest);
            const { hit, hashes } = chain.lookup(tokens);
            assert.is(hit, expectedHit(blockSize, known, tokens), label);
            checkHashes(hashes, known, blocks, label);
          }
        }
      }
    },
  );

  parts(`blocks of ${blockSize}: contradicted blocks, coming nearer`, async () => {
    const chain = await Chain.open(blockSize);
    const tokens = chain.prompt(PROMPT_BLOCKS, PROMPT_BLOCKS, 0);
    for (const known of [0, 1, ...AROUND_PARTS].toReversed()) {
      chain.contradict(known);
      const { hit, hashes } = chain.lookup(tokens);
      assert.is(hit, known);
      checkHashes(hashes, known, PROMPT_BLOCKS, `block ${known} contradicted`);
    }
  });

  parts(`blocks of ${blockSize}: only the first tokenCount tokens count`, async () => {
    const chain = await Chain.open(blockSize);
    const tokens = chain.prompt(PROMPT_BLOCKS, PROMPT_BLOCKS, 0);
    for (const blocks of LENGTHS) {
      for (const tokenCount of [blocks * blockSize - 1, blocks * blockSize, blocks * blockSize + 1]) {
        if (tokenCount < 1 || tokenCount > tokens.length) continue;
        const { hit, hashes } = chain.lookup(tokens, tokenCount);
        assert.is(hit, expectedHit(blockSize, PROMPT_BLOCKS, tokens, tokenCount), `${tokenCount} tokens`);
        assert.ok(hashes <= Math.floor(tokenCount / blockSize), `${tokenCount} tokens: ${hashes} blocks were hashed`);
      }
    }
  });

  parts(`blocks of ${blockSize}: a prompt that is longer than the tokens given`, async () => {
    const chain = await Chain.open(blockSize);
    for (const blocks of LENGTHS) {
      const tokens = chain.prompt(blocks, blocks, 0);
      for (const tokenCount of [tokens.length + 1, tokens.length + 5 * blockSize, 0xffff_ffff]) {
        assert.is(chain.lookup(tokens, tokenCount).hit, blocks, `${blocks} blocks of ${tokenCount} tokens`);
      }
    }
  });
}

parts('no tokens, and fewer than a block', async () => {
  const chain = await Chain.open(16);
  for (const length of [0, 1, 15]) {
    const tokens = chain.prompt(1, 1, 0).subarray(0, length);
    assert.equal(chain.lookup(tokens, 1000), { hit: 0, hashes: 0 });
  }
});

parts('every part is hashed under the LoRA and the namespace', async () => {
  const scope = { loraName: 'adapter-a', cacheNamespace: 'tenant-a' };
  const chain = await Chain.open(16, { scope });
  for (const known of AROUND_PARTS) {
    assert.is(chain.lookup(chain.prompt(PROMPT_BLOCKS, known, 1)).hit, known);
  }
  const tokens = chain.prompt(PROMPT_BLOCKS, PROMPT_BLOCKS, 1);
  const query = { tokens, tokenCount: tokens.length, blockSize: 16, eligible: true };
  assert.is(chain.cache.lookup({ ...query, loraName: 'adapter-a' }).blocks, 0);
  assert.is(chain.cache.lookup({ ...query, cacheSalt: 'tenant-a' }).blocks, 0);
});

parts('tokens that are a part of a larger array, not aligned to a block', async () => {
  const chain = await Chain.open(16);
  const tokens = chain.prompt(600, 600, 1);
  const shifted = new Uint32Array(tokens.length + 3);
  shifted.set(tokens, 3);
  assert.is(chain.lookup(shifted.subarray(3)).hit, 600);
});

parts('blocks so large that fewer than a first part are hashed at once', async () => {
  const chain = await Chain.open(65_536, { blocks: 40 });
  for (const known of [0, 1, 15, 16, 17, 31, 32, 33, 40]) {
    const tokens = chain.prompt(40, known, 1);
    const { hit, hashes } = chain.lookup(tokens);
    assert.is(hit, known);
    checkHashes(hashes, known, 40, `${known} blocks`);
  }
});

for (const blockSize of [1, 16, 512]) {
  parts(`blocks of ${blockSize}: an unknown prompt of 100,000 tokens costs at most the first part`, async () => {
    const chain = await Chain.open(blockSize);
    const { hit, hashes } = chain.lookup(new Uint32Array(100_000));
    assert.is(hit, 0);
    assert.ok(hashes > 0 && hashes <= FIRST_PART, `${hashes} blocks were hashed`);
  });
}

parts('of a prompt of 100,000 blocks not much more is hashed than is known', async () => {
  const chain = await Chain.open(1);
  for (const known of [0, ...LENGTHS]) {
    const { hit, hashes } = chain.lookup(chain.prompt(100_000, known, 0));
    assert.is(hit, known);
    checkHashes(hashes, known, 100_000, `${known} blocks`);
  }
});

parts.run();
