// What the built bundle (build/bench/bench.js) offers to the command and to the page: suites and rivals in one file, the same in every engine.
import type { BenchBundle } from '../src/bench/bundle.js';
import { baselineOf, compare, shownFinding } from './method/compare.js';
import { clockStep } from './method/pairing.js';
import { run } from './run.js';
import { actionOf, markdownOf, tableOf } from './shown.js';
import { suites, WORKLOAD } from './suites/index.js';

export const bench: BenchBundle = {
  suites: suites.map(({ name, title, rival, sizeOf, sizes, quickSizes }) => ({
    ...{ name, title, rival, sizeOf, sizes, quickSizes },
  })),
  run: (names, options) =>
    run(
      suites.filter(({ name, quickSizes }) =>
        names === null ? options.mode === 'full' || quickSizes.length > 0 : names.includes(name),
      ),
      options,
    ),
  workload: WORKLOAD,
  ...{ clockStep, baselineOf, compare, shownFinding, tableOf, markdownOf, actionOf },
};
