// The rivals, the reference design first.
import type { RivalMaker } from '../suites.js';
import { LinkedCore } from './linked-core.js';
import { NestedMapCore } from './nested-map.js';

/** A rival, and whether the project's aims are stated against it. */
export const rivals: readonly (RivalMaker & { readonly reference: boolean })[] = [
  {
    name: 'nested Maps (the reference design)',
    style: 'plain',
    reference: true,
    make: (options) => new NestedMapCore(options),
  },
  {
    name: 'linked objects (the fastest plain JavaScript we know)',
    style: 'tuned',
    reference: false,
    make: (options) => new LinkedCore(options),
  },
];
