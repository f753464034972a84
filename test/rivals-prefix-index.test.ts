// The plain rivals of the GPU prefix index are right, or a benchmark beside them would mean nothing: random traffic, every result and every
// lookup compared with the brute force.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BitMaskIndex, MapOfSetsIndex, type PrefixRival } from '../bench/rivals/prefix-index.js';
import { differentDepths } from './support/prefix-dumps.js';
import { apply, type Naming, PrefixTraffic } from './support/prefix-traffic.js';
import { Random } from './support/random.js';
import { ReferencePrefixIndex } from './support/reference-prefix-index.js';

const RIVALS: readonly [name: string, make: (ranks: number) => PrefixRival][] = [
  ['MapOfSetsIndex', (ranks) => new MapOfSetsIndex(ranks)],
  ['BitMaskIndex', (ranks) => new BitMaskIndex(ranks)],
];
const SHAPE = { sessions: 6, alphabet: 3, depth: 10, removals: 30, clears: 10, hostile: true };

for (const [name, make] of RIVALS) {
  for (const [ranks, naming] of [
    [64, 'own'],
    [64, 'shared'],
    [128, 'mixed'],
    [1_024, 'mixed'],
  ] as const satisfies readonly [number, Naming][]) {
    test(`${name}: the brute force's answers, ${ranks} ranks, names ${naming}`, () => {
      const random = new Random(ranks + naming.length);
      for (let episode = 0; episode < 4; episode++) {
        const traffic = new PrefixTraffic(random, { ...SHAPE, ranks: episode === 0 ? 3 : ranks, naming });
        const rival = make(ranks);
        const truth = new ReferencePrefixIndex({ ranks });
        for (let i = 0; i < 1_000; i++) {
          const operation = traffic.operation();
          const where = `episode ${episode}, operation ${i}: ${operation.kind}`;
          assert.is(apply(rival, operation), apply(truth, operation), where);
          const prompt = traffic.prompt();
          assert.is(differentDepths(rival.lookup(prompt), truth.lookup(prompt)), null, where);
        }
        assert.is(rival.entries, truth.stats().entries);
        for (let rank = 0; rank < ranks; rank++) rival.clear(rank);
        assert.is(rival.entries, 0);
      }
    });
  }
}

test.run();
