// The core against the model: tens of thousands of random operations on builds whose caps are small enough to be hit all the time, with
// the whole state compared, not only the answers. The seed is printed; MOONROUTE_SEED=n repeats a run, MOONROUTE_OPS=n lengthens it.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Episode, type EpisodeOptions, prefixesOf } from './support/core-episode.js';
import { coreSnapshot } from './support/core-state.js';
import {
  type Prompt,
  randomContract,
  randomDerivedContract,
  randomPrompts,
  randomTokenPrompts,
} from './support/core-traffic.js';
import { loadCore } from './support/cores.js';
import { setClearGeneration } from './support/poke.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const OPERATIONS = Number(process.env['MOONROUTE_OPS'] ?? 60_000);
const EPISODE = 1_500;
const COMPARE_EVERY = 25;
console.log(`differential-core: seed ${seed}, ${OPERATIONS} operations a build`);

const BUILDS = ['tiny', 'tiny-wide'] as const;
type Counts = Record<string, number>;
/** Takes a step and counts it. */
type Step = (episode: Episode, prompt: Prompt, random: Random, counts: Counts) => void;

const learn: Step = (episode, prompt, _, counts) => {
  counts['learn']!++;
  episode.learn(prompt);
};
const store: Step = (episode, prompt, _, counts) => {
  counts['store']!++;
  episode.store(prompt);
};
const clear: Step = (episode, _, random, counts) => {
  if (random.chance(0.7)) {
    counts['clear']!++;
    episode.clear();
  } else {
    counts['reconcile']!++;
    episode.reconcile();
  }
};
const lookup: Step = (episode, prompt, random, counts) => {
  counts['lookup']!++;
  if (episode.lookup(prompt) > 0) counts['hits']!++;
  compact(episode, random, counts);
};
const explain: Step = (episode, prompt, _, counts) => {
  counts['explain']!++;
  episode.explain(prompt);
};
const derive: Step = (episode, prompt, random, counts) => {
  const { ended, hit } = episode.derive(prompt);
  counts[ended]!++;
  if (hit > 0) counts['derivedHits']!++;
  compact(episode, random, counts);
};
const digestBehind: Step = (episode, prompt, _, counts) => {
  if (episode.digestBehind(prompt)) counts['digests']!++;
};
const distrust: Step = (episode, prompt, _, counts) => {
  counts['distrust']!++;
  episode.distrust(prompt);
};
function compact({ core }: Episode, random: Random, counts: Counts): void {
  if (!random.chance(0.3)) return;
  core.compact(random.pick([1, 7, 64]));
  counts['compact']!++;
}

/** How many of a hundred steps are of which kind; rarer are contradictions that end credit. */
type Mix = readonly (readonly [number, Step])[];
const LEARNED: Mix = [
  [30, learn],
  [29, store],
  [3, clear],
  [30, lookup],
  [8, explain],
];
const BOTH: Mix = [
  [18, learn],
  [26, store],
  [3, clear],
  [16, lookup],
  [4, explain],
  [30, derive],
  [3, digestBehind],
];
const DERIVED: Mix = [
  [40, store],
  [3, clear],
  [52, derive],
  [5, digestBehind],
];

interface Kind {
  readonly name: string;
  readonly counted: readonly string[];
  /** Counters that must have moved. */
  readonly happened: readonly string[];
  draw(
    random: Random,
    wide: boolean,
  ): { mix: Mix; prompts: Prompt[] } & Pick<EpisodeOptions, 'contract' | 'hashing' | 'keys'>;
}

const ALWAYS = ['store', 'clear', 'reconcile', 'compact', 'wraps', 'states'];
const LEARNING = ['learn', 'distrust', 'lookup', 'hits', 'explain'];
const HAPPENED = ['ambiguities', 'dropsByAmbiguity', 'edgeEvictions', 'digestEvictions', 'full'];
const CONTRADICTED = ['repeated', 'replaced', 'outranked', 'conflicts', 'dropsByConflict'];

const KINDS: readonly Kind[] = [
  {
    name: 'learned edges',
    counted: [...ALWAYS, ...LEARNING],
    happened: [...HAPPENED, ...CONTRADICTED],
    draw: (random, wide) => ({
      mix: LEARNED,
      contract: randomContract(random, wide),
      hashing: 'learned',
      keys: 'of the host',
      prompts: randomPrompts(random),
    }),
  },
  {
    name: 'learned and derived edges',
    counted: [...ALWAYS, ...LEARNING, 'end', 'gap', 'cut', 'derivedHits', 'digests', 'shared'],
    happened: [...HAPPENED, ...CONTRADICTED, 'derivedBlocks'],
    draw(random, wide) {
      const both = random.chance(0.75);
      const contract = both ? randomContract(random, wide) : randomDerivedContract(random, wide);
      const alike = random.chance(0.5);
      return {
        mix: both ? BOTH : DERIVED,
        contract,
        hashing: both ? 'both' : 'derived',
        keys: alike ? 'of the prompts' : 'of the host',
        prompts: randomTokenPrompts(random, contract, alike),
      };
    },
  },
];

for (const build of BUILDS) {
  for (const [number, kind] of KINDS.entries()) {
    test(`${build}, ${kind.name}: answers and the whole state are those of the model`, async () => {
      const random = new Random(seed ^ ((build === 'tiny' ? 1 : 2) + 4 * number));
      const core = await loadCore(build);
      const counts: Counts = Object.fromEntries(kind.counted.map((name) => [name, 0]));
      for (let done = 0; done < OPERATIONS; ) {
        const { mix, prompts, ...rest } = kind.draw(random, build === 'tiny-wide');
        if (prefixesOf(rest.contract).length > (build === 'tiny' ? 64 : 1024)) continue;
        const evil = random.chance(0.5) ? 0.02 : 0.002;
        const episode = new Episode(core, random, prompts, { ...rest, build, evil });
        if (random.chance(0.2)) {
          setClearGeneration(core, 0xffff_fffe);
          counts['wraps']!++;
        }
        for (let i = 0; i < EPISODE && done < OPERATIONS; i++, done++) {
          const where = `seed ${seed}, ${build}, ${kind.name}, operation ${done}`;
          try {
            const step = mix === DERIVED || !random.chance(0.05 * evil) ? pickStep(random, mix) : distrust;
            step(episode, random.pick(prompts), random, counts);
            episode.check();
          } catch (error) {
            (error as Error).message = `${where}: ${(error as Error).message}`;
            throw error;
          }
          if (i % COMPARE_EVERY !== 0 && i !== EPISODE - 1) continue;
          counts['states']!++;
          episode.compare(where);
          if ('shared' in counts && coreSnapshot(core).digests.some(({ kinds }) => kinds.length === 2))
            counts['shared']!++;
        }
      }
      console.log(`  ${build}, ${kind.name}: ${JSON.stringify(counts)}`);
      for (const [what, count] of Object.entries(counts)) assert.ok(count > 0, `no ${what} happened`);
      assert.ok(core.stats().movedSlots > 0, 'compaction moved nothing');
      const counters = coreSnapshot(core).counters as unknown as Counts;
      for (const name of kind.happened) assert.ok(counters[name]! > 0, `${name} never happened`);
    });
  }
}

function pickStep(random: Random, mix: Mix): Step {
  let roll = random.int(mix.reduce((sum, [share]) => sum + share, 0));
  for (const [share, step] of mix) {
    if (roll < share) return step;
    roll -= share;
  }
  throw new Error('the shares do not add up');
}

test.run();
