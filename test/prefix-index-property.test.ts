// The GPU prefix index against the brute force: random traffic of every kind, from one rank to 1,024, whose results and lookups must be the
// same below the caps. At the caps its answers may only be lower, and no block is forgotten before those behind it. MOONROUTE_SEED=n
// repeats a run, MOONROUTE_FUZZ=n lengthens it to n operations in all.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PrefixIndex } from '../src/core/prefix-index.js';
import type { PrefixIndexStats } from '../src/core/prefix-types.js';
import { depthsAbove, differentDepths, dumpedSet, loadDumps } from './support/prefix-dumps.js';
import { apply, PrefixTraffic, type TrafficShape } from './support/prefix-traffic.js';
import { Random } from './support/random.js';
import { ReferencePrefixIndex } from './support/reference-prefix-index.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? 4);
const OPERATIONS = Number(process.env['MOONROUTE_FUZZ'] ?? 60_000);
console.log(`prefix-index-property: seed ${seed}, ${OPERATIONS} operations`);

const MIB = 1 << 20;
/** Operations on one index, before the next one is made. */
const EPISODE = 1_500;
/** Operations between comparisons of all that an index holds. */
const CENSUS_EVERY = 100;

/** A kind of run; they share the operations. */
interface Run {
  readonly name: string;
  readonly bytes: number;
  readonly provenance: boolean;
  readonly shape: TrafficShape;
}

/** Few blocks, met again and again. */
const DENSE = { sessions: 10, alphabet: 3, depth: 10, removals: 30, clears: 8, hostile: true };
const EXACT: readonly Run[] = [
  { name: '1 rank', bytes: 8 * MIB, provenance: true, shape: { ...DENSE, ranks: 1, naming: 'own' } },
  {
    name: '3 ranks, each its own names',
    bytes: 8 * MIB,
    provenance: true,
    shape: { ...DENSE, ranks: 3, naming: 'own' },
  },
  {
    name: '64 ranks, names shared',
    bytes: 8 * MIB,
    provenance: false,
    shape: { ...DENSE, ranks: 64, naming: 'shared' },
  },
  { name: '64 ranks, names mixed', bytes: 8 * MIB, provenance: true, shape: { ...DENSE, ranks: 64, naming: 'mixed' } },
  { name: '65 ranks, names mixed', bytes: 8 * MIB, provenance: true, shape: { ...DENSE, ranks: 65, naming: 'mixed' } },
  {
    name: '3 ranks, few blocks, no hostile names',
    bytes: 2 * MIB,
    provenance: true,
    shape: { ...DENSE, ranks: 3, naming: 'mixed', sessions: 3, alphabet: 2, depth: 5, removals: 45, hostile: false },
  },
  {
    name: '1,024 ranks, names shared',
    bytes: 8 * MIB,
    provenance: true,
    shape: { ...DENSE, ranks: 1_024, naming: 'shared', sessions: 4, clears: 50 },
  },
  {
    name: '1,024 ranks, names mixed',
    bytes: 8 * MIB,
    provenance: false,
    shape: { ...DENSE, ranks: 1_024, naming: 'mixed', sessions: 4 },
  },
];

/** Many blocks of many ranks in as little memory as an index takes. */
const WIDE = { sessions: 5_000, alphabet: 1 << 20, depth: 60, removals: 15, clears: 1, hostile: false };
interface CappedRun extends Run {
  /** What a run must have met, or it shows nothing. */
  readonly met: (stats: PrefixIndexStats) => boolean;
  /** Nothing leaves but by eviction, so that a rank holds every chain from its start. */
  readonly whole: boolean;
}
const CAPPED: readonly CappedRun[] = [
  {
    name: 'the cap of blocks, nothing removed',
    bytes: MIB,
    provenance: true,
    shape: { ...WIDE, ranks: 3, naming: 'shared', removals: 0, clears: 0 },
    met: ({ evicted }) => evicted > 300,
    whole: true,
  },
  {
    name: 'the cap of blocks',
    bytes: MIB,
    provenance: true,
    shape: { ...WIDE, ranks: 16, naming: 'shared', depth: 120 },
    met: ({ evicted }) => evicted > 300,
    whole: false,
  },
  {
    name: 'the cap of aliases',
    bytes: MIB,
    provenance: false,
    shape: { ...WIDE, ranks: 64, naming: 'own', sessions: 30, depth: 100, removals: 4 },
    met: ({ aliases, aliasCap }) => aliases > 0.9 * aliasCap,
    whole: false,
  },
  {
    name: 'the cap of sets',
    bytes: MIB,
    provenance: false,
    shape: { ...WIDE, ranks: 1_024, naming: 'shared', sessions: 40 },
    met: ({ sets, setCap }) => sets > 0.9 * setCap,
    whole: false,
  },
  {
    name: 'the caps of sets and aliases',
    bytes: MIB,
    provenance: false,
    shape: { ...WIDE, ranks: 1_024, naming: 'own', sessions: 40 },
    met: ({ sets, setCap }) => sets > 0.9 * setCap,
    whole: false,
  },
];
const SHARE = Math.ceil(OPERATIONS / (EXACT.length + CAPPED.length));

/** Runs episodes until the run has had its share; a failure names the seed and the operation. */
async function episodes(
  { name, bytes, provenance, shape }: Run,
  share: number,
  play: (episode: Episode, operations: number) => void,
): Promise<void> {
  const count = Math.ceil(share / EPISODE);
  for (let number = 0; number < count; number++) {
    const random = new Random(seed + 1_000 * number);
    const { ranks } = shape;
    const index = await PrefixIndex.create({ bytes, ranks, provenance, tableSeed: random.bigint64() });
    const truth = new ReferencePrefixIndex({ ranks, provenance });
    const episode = { index, truth, random, traffic: new PrefixTraffic(random, shape), provenance, at: 0 };
    try {
      play(episode, Math.ceil(share / count));
    } catch (error) {
      const where = `${name}: MOONROUTE_SEED=${seed}, episode ${number}, operation ${episode.at}`;
      throw new Error(`${where}: ${(error as Error).message}`, { cause: error });
    }
  }
}

interface Episode {
  readonly index: PrefixIndex;
  readonly truth: ReferencePrefixIndex;
  readonly random: Random;
  readonly traffic: PrefixTraffic;
  readonly provenance: boolean;
  at: number;
}

for (const run of EXACT) {
  test(`the brute force's answers: ${run.name}`, async () => {
    await episodes(run, SHARE, (episode, operations) => {
      const { index, truth, random, traffic } = episode;
      while (episode.at++ < operations) {
        const operation = traffic.operation();
        const [ours, expected] = [apply(index, operation), apply(truth, operation)];
        assert.is(ours, expected, `${operation.kind}: ${ours}, not ${expected}`);
        const prompt = traffic.prompt();
        const how = random.chance(0.5) ? 'lookup' : 'peek';
        assert.is(differentDepths(index[how](prompt), truth[how](prompt)), null, `${how} after ${operation.kind}`);
        if (episode.at % CENSUS_EVERY === 0) compareAll(episode);
      }
      compareLoaded(episode);
      clearAll(episode);
    });
  });
}

/** Counters that mean the same whatever an index is made of. */
const counters = ({ entries, evicted, unknownParents, renamed, unknownRemovals, lookups }: PrefixIndexStats) => ({
  entries,
  evicted,
  unknownParents,
  renamed,
  unknownRemovals,
  lookups,
});

/** Counters, and the dump of a rank. */
function compareAll({ index, truth, traffic }: Episode): void {
  index.tidy();
  assert.equal(counters(index.stats()), counters(truth.stats()));
  const rank = traffic.rank();
  const dumped = dumpedSet(index.dump(rank));
  const expected = dumpedSet(truth.dump(rank));
  assert.equal([...dumped.keys()].sort(), [...expected.keys()].sort());
  for (const [key, { name, eligible }] of dumped) {
    assert.is(eligible, expected.get(key)!.eligible, `eligible: ${key}`);
    assert.is(truth.pathOf(rank, name), key.slice(key.indexOf('/')), 'the name leads there');
  }
}

/** An index loaded with the dumps of all ranks answers alike. */
function compareLoaded({ index, truth, traffic, provenance }: Episode): void {
  const loaded = new ReferencePrefixIndex({ ranks: truth.ranks, provenance });
  loadDumps(index, loaded, Array(index.ranks).keys());
  for (let i = 0; i < 50; i++) {
    const prompt = traffic.prompt();
    assert.is(differentDepths(loaded.peek(prompt), truth.peek(prompt)), null, 'loaded from dumps');
  }
}

/** Nothing is left behind when every rank is cleared. */
function clearAll({ index }: Episode): void {
  for (let rank = 0; rank < index.ranks; rank++) index.clear(rank);
  index.tidy();
  const { entries, aliases, sets } = index.stats();
  assert.equal({ entries, aliases, sets }, { entries: 0, aliases: 0, sets: 0 });
}

for (const run of CAPPED) {
  test(`nothing above the truth at ${run.name}`, async () => {
    await episodes(run, SHARE, (episode, operations) => {
      const { index, truth, traffic } = episode;
      while (episode.at++ < operations) {
        const operation = traffic.operation();
        const ours = apply(index, operation);
        // What was stored before may be forgotten, and a parent with it; then the whole event is to leave no trace.
        if (ours !== 'unknown-parent') {
          const expected = apply(truth, operation);
          if (operation.kind === 'removed') assert.ok(ours <= expected, `${ours} removed, at most ${expected}`);
          else if (ours !== 'no-room') assert.is(ours, expected, `${operation.kind}: ${ours}, not ${expected}`);
        }
        const prompt = traffic.prompt();
        assert.is(depthsAbove(index.peek(prompt), truth.peek(prompt)), null, `peek after ${operation.kind}`);
        assert.is(depthsAbove(index.lookup(prompt), truth.lookup(prompt)), null, `lookup after ${operation.kind}`);
        if (episode.at % CENSUS_EVERY === 0) checkBounds(episode, run.whole);
      }
      if (operations >= EPISODE / 2) assert.ok(run.met(index.stats()), `met its cap: ${JSON.stringify(index.stats())}`);
      clearAll(episode);
    });
  });
}

/** Every part within its cap, dumps within the truth and, where nothing is removed, every known block reachable. */
function checkBounds({ index, truth, traffic }: Episode, whole: boolean): void {
  const { entries, entryCap, aliases, aliasCap, sets, setCap } = index.stats();
  assert.ok(entries <= entryCap && aliases <= aliasCap && sets <= setCap);
  const ranks = whole ? [...Array(index.ranks).keys()] : [traffic.rank()];
  const reachable = new Set<string>();
  for (const rank of ranks) {
    for (const [key, { name }] of dumpedSet(index.dump(rank))) {
      const path = key.slice(key.indexOf('/'));
      assert.is(truth.pathOf(rank, name), path, 'the name leads there');
      reachable.add(path);
    }
  }
  if (whole) assert.is(reachable.size, entries, 'a block is known whose parents are not');
}

test.run();
