// Every shipped build filled to its caps and beyond, from events and from the store: the newest chains are answered, the oldest have left, the
// tables stay at their caps, and memory does not grow. What the small builds of the other tests cannot show: wide indices, long probes.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { randomLongs } from '../bench/method/random.js';
import type { Plan } from '../src/core/plan.js';
import { loadCore } from './support/cores.js';

const CHAIN = 4_096;
const PLAN: Plan = {
  groups: 1,
  learned: {
    blockSize: 16,
    step: 1,
    partial: false,
    endMask: 0n,
    fullUnits: [{ mask: 1n, span: 1, extra: 0 }],
    windowUnits: [],
  },
  derived: null,
  prefixes: [{ group: 0, text: 'p@m@group:0' }],
};
const HEX = new Uint8Array(256 * 2);
for (let byte = 0; byte < 256; byte++) HEX.set(new TextEncoder().encode(byte.toString(16).padStart(2, '0')), byte * 2);

/** One store message's payload for a whole chain, encoded once; afterwards only the digests' digits are written over. */
class StoreTemplate {
  readonly #payload: Uint8Array;
  readonly #digits: number[] = [];

  constructor() {
    const event = { event_type: 'stored', medium: 'cpu', object_key: `p@m@group:0@${'0'.repeat(64)}` };
    this.#payload = encode([0, Array.from({ length: CHAIN }, () => event), 0]);
    const zeros = Buffer.from('0'.repeat(64));
    for (let at = -1; ; ) {
      at = Buffer.from(this.#payload.buffer).indexOf(zeros, at + 1);
      if (at < 0) break;
      this.#digits.push(at);
      at += 63;
    }
    assert.is(this.#digits.length, CHAIN);
  }

  /** The payload for digests with these low 64 bits; the other 24 bytes are made from them. */
  of(lows: BigUint64Array): Uint8Array {
    const bytes = new Uint8Array(lows.buffer, lows.byteOffset, lows.byteLength);
    for (let i = 0; i < CHAIN; i++) {
      for (let k = 0; k < 32; k++) {
        const byte = bytes[i * 8 + 7 - (k & 7)]! ^ (k < 24 ? k | 1 : 0);
        const at = this.#digits[i]! + k * 2;
        this.#payload[at] = HEX[byte * 2]!;
        this.#payload[at + 1] = HEX[byte * 2 + 1]!;
      }
    }
    return this.#payload;
  }
}

for (const build of ['default', 'wide', 'large'] as const) {
  test(`${build}: 1/8 more than the caps, then as much again`, async () => {
    const core = await loadCore(build);
    core.configure(PLAN, 11n);
    const { caps, memoryBytes } = core.stats();
    const { exports } = core;
    const template = new StoreTemplate();
    const chains = caps.edges / CHAIN;
    const seedOf = (chain: number) => 0x51n + BigInt(chain) * 0x1_0000_0000n;
    const localsOf = (chain: number) => randomLongs(CHAIN, seedOf(chain));
    const childrenOf = (chain: number) => randomLongs(CHAIN, seedOf(chain) + 0x9999n);
    /** Learns a chain and stores its objects. */
    const add = (chain: number) => {
      core.loadLocals(localsOf(chain));
      const lows = childrenOf(chain);
      assert.is(core.learn({ parent: null, lows, digests: null, salted: false }), CHAIN);
      assert.is(core.applyPayload(template.of(lows)).outcome, 'applied');
    };
    const hitOf = (chain: number) => core.lookup(core.loadLocals(localsOf(chain)), CHAIN * 16 + 1);
    const total = Math.floor(chains * 1.125);
    for (let chain = 0; chain < total; chain++) add(chain);
    let { edges, digests, edgeEvictions } = core.stats();
    assert.equal([edges, edgeEvictions], [caps.edges, total * CHAIN - caps.edges]);
    assert.is(digests, caps.digests);
    assert.is(hitOf(total - 1), CHAIN);
    assert.is(hitOf(total - chains + 1), CHAIN, 'the oldest chain that must still be whole');
    assert.is(hitOf(0), 0, 'the oldest of all has left');
    for (let chain = total; chain < total * 2; chain++) add(chain);
    ({ edges, digests, edgeEvictions } = core.stats());
    assert.is(edges, caps.edges);
    assert.is(edgeEvictions, 2 * total * CHAIN - caps.edges);
    for (let chain = 2 * total - chains + 1; chain < 2 * total; chain += Math.ceil(chains / 16))
      assert.is(hitOf(chain), CHAIN, `chain ${chain}`);
    for (let chain = 0; chain < 2 * total - chains; chain += Math.ceil(chains / 16))
      assert.is(hitOf(chain), 0, `chain ${chain}`);
    core.clearResidency();
    assert.is(hitOf(2 * total - 1), 0);
    assert.is(core.stats().digests, 0);
    assert.is(exports.memory.buffer.byteLength, memoryBytes);
  });
}

test.run();
