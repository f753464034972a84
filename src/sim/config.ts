// A simulation's configuration with every default filled in, checked at start, by name. What the router checks itself (settings, policy) is
// left to it, and refused by its own errors.
import { shown } from '../contract/descriptor.js';
import { candidateBuilds, fittingBuild } from '../core/builds.js';
import { ConfigError } from '../errors.js';
import { MAX_HASH_BLOCK_TOKENS } from '../wire/block-digests.js';
import type { EventModel, GroupModel, Restart, SimConfig, StoreModel, WorkerModel } from './types.js';

/** A configuration as it is given: parts left out, or undefined, take their defaults. */
export type SimConfigInput = {
  readonly [Name in keyof SimConfig]?: SimConfig[Name] extends WorkerModel | StoreModel | EventModel
    ? { readonly [Field in keyof SimConfig[Name]]?: SimConfig[Name][Field] | undefined } | undefined
    : SimConfig[Name] | undefined;
};

/** Of a 70B model: 80 layers × 8 KV heads × 128 values × 2 bytes × 2 (keys and values). */
const DEFAULT_BYTES_PER_TOKEN = 327_680;
const MAX_COUNT = 0x7fff_ffff;
const MAX_SEED = 0xffff_ffff;
const MAX_BLOCK_SIZE = 65_536;
const MAX_WORKERS = 1024;
const MIN_INDEX_BYTES = 1 << 20;
const MAX_INDEX_BYTES = 1 << 30;
const MAX_GROUPS = 64;
const MAX_PREFIXES = 1024;

interface Range {
  readonly holds: (value: number) => boolean;
  readonly words: string;
}

const whole = (least: number, most: number): Range => ({
  holds: (value) => Number.isInteger(value) && value >= least && value <= most,
  words: `a whole number from ${least} to ${most}`,
});
const BYTES: Range = {
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  words: 'whole bytes, 0 or more',
};
const ABOVE_0: Range = { holds: (value) => value > 0 && value < Number.POSITIVE_INFINITY, words: 'a number above 0' };
const NOT_NEGATIVE: Range = {
  holds: (value) => value >= 0 && value < Number.POSITIVE_INFINITY,
  words: 'a number, 0 or more',
};
const UNIT: Range = { holds: (value) => value >= 0 && value <= 1, words: 'a number from 0 to 1' };

const COUNT = whole(1, MAX_COUNT);
const WORKERS: Readonly<Record<keyof WorkerModel, readonly [usual: number, range: Range]>> = {
  count: [8, whole(1, MAX_WORKERS)],
  gpuBlocks: [65_536, COUNT],
  prefillTokensPerSecond: [20_000, ABOVE_0],
  chunkTokens: [2048, COUNT],
  decodeStep: [20, NOT_NEGATIVE],
  decodeStepPerRequest: [0.2, NOT_NEGATIVE],
  batch: [64, COUNT],
};
const STORE: Readonly<Record<keyof StoreModel, readonly [usual: number, range: Range]>> = {
  dramBytes: [2e12, BYTES],
  ssdBytes: [0, BYTES],
  linkBytesPerSecond: [25e9, ABOVE_0],
  totalBytesPerSecond: [100e9, ABOVE_0],
  ssdBytesPerSecond: [20e9, ABOVE_0],
  latency: [2, NOT_NEGATIVE],
};
const EVENTS: Readonly<Record<keyof EventModel, readonly [usual: number, range: Range]>> = {
  delay: [5, NOT_NEGATIVE],
  jitter: [0, NOT_NEGATIVE],
  loss: [0, UNIT],
  reconcileAfter: [1000, NOT_NEGATIVE],
};

const NAMES: Readonly<Record<keyof SimConfig, true>> = {
  policy: true,
  settings: true,
  blockSize: true,
  workers: true,
  store: true,
  groups: true,
  ranks: true,
  events: true,
  restarts: true,
  speedup: true,
  seed: true,
  indexBytes: true,
  coreEdges: true,
  wire: true,
};

/**
 * The configuration with every default filled in, frozen.
 * @throws ConfigError `unknown-option`; `sim-` and an option's path in kebab-case where its value is out of range (`sim-workers-count`);
 *   `sim-groups`, `sim-restarts`, `sim-wire`, and `limits-edges`
 */
export function checkSimConfig(given: SimConfigInput = {}): SimConfig {
  refuseUnknown('the simulation', given, NAMES);
  const blockSize = numberOf('blockSize', given.blockSize, 16, whole(1, MAX_BLOCK_SIZE));
  const workers = sectionOf('workers', given.workers, WORKERS) as unknown as WorkerModel;
  const config: SimConfig = {
    policy: given.policy ?? 'kv',
    settings: given.settings ?? {},
    blockSize,
    workers,
    store: sectionOf('store', given.store, STORE) as unknown as StoreModel,
    groups: groupsOf(given.groups, blockSize),
    ranks: numberOf('ranks', given.ranks, 2, whole(1, MAX_PREFIXES)),
    events: sectionOf('events', given.events, EVENTS) as unknown as EventModel,
    restarts: restartsOf(given.restarts ?? [], workers.count),
    speedup: numberOf('speedup', given.speedup, 1, ABOVE_0),
    seed: numberOf('seed', given.seed, 1, whole(0, MAX_SEED)),
    indexBytes: numberOf('indexBytes', given.indexBytes, 64 << 20, whole(MIN_INDEX_BYTES, MAX_INDEX_BYTES)),
    coreEdges: given.coreEdges ?? 262_144,
    wire: wireOf(given.wire, blockSize),
  };
  refuseOverflow(config);
  return Object.freeze(config);
}

function wireOf(given: boolean | undefined, blockSize: number): boolean {
  if (given !== undefined && typeof given !== 'boolean') {
    throw new ConfigError('sim-wire', `wire is ${shown(given)}; give true or false (default false).`);
  }
  if (given === true && blockSize > MAX_HASH_BLOCK_TOKENS) {
    throw new ConfigError(
      'sim-wire',
      `with wire, blocks have at most ${MAX_HASH_BLOCK_TOKENS} tokens, and blockSize is ${blockSize}. Use a smaller one, or leave wire out.`,
    );
  }
  return given ?? false;
}

/** Contracts that no build of the core with so many edges has room for. */
function refuseOverflow({ groups, ranks, coreEdges }: SimConfig): void {
  const prefixes = groups.length * ranks;
  if (prefixes <= MAX_PREFIXES && fittingBuild(candidateBuilds(coreEdges), groups.length, prefixes) !== null) return;
  throw new ConfigError(
    'sim-groups',
    `${groups.length} groups of ${ranks} ranks are ${prefixes} prefixes, more than a core of ${coreEdges} edges takes. Use fewer, or lower coreEdges to 262,144.`,
  );
}

function groupsOf(given: readonly GroupModel[] | undefined, blockSize: number): readonly GroupModel[] {
  if (given === undefined) {
    const group = { kind: 'full_attention', window: null, bytesPerBlock: DEFAULT_BYTES_PER_TOKEN * blockSize } as const;
    return Object.freeze([Object.freeze(group)]);
  }
  const groups = given.map((group, i) => groupOf(group, `groups[${i}]`));
  if (groups.length <= MAX_GROUPS && groups.some(({ kind }) => kind === 'full_attention')) return Object.freeze(groups);
  throw new ConfigError(
    'sim-groups',
    `${groups.length} groups, of which ${groups.filter(({ kind }) => kind === 'full_attention').length} of full attention; give at most ${MAX_GROUPS}, one of them full_attention: its events teach the router.`,
  );
}

function groupOf({ kind, window, bytesPerBlock }: GroupModel, where: string): GroupModel {
  const refuse = (what: string, value: unknown, wanted: string): never => {
    throw new ConfigError('sim-groups', `${where}.${what} is ${shown(value)}; give ${wanted}.`);
  };
  if (kind !== 'full_attention' && kind !== 'sliding_window' && kind !== 'mamba')
    refuse('kind', kind, 'full_attention, sliding_window or mamba');
  if (!(Number.isSafeInteger(bytesPerBlock) && bytesPerBlock > 0))
    refuse('bytesPerBlock', bytesPerBlock, 'whole bytes, 1 or more');
  const given = window ?? null;
  if (kind === 'sliding_window' ? !(Number.isInteger(given) && given! > 1 && given! <= MAX_COUNT) : given !== null)
    refuse('window', given, kind === 'sliding_window' ? 'tokens, 2 or more' : `null for ${kind}`);
  return Object.freeze({ kind, window: given, bytesPerBlock });
}

function restartsOf(given: readonly Restart[], workers: number): readonly Restart[] {
  given.forEach(({ at, worker }, i) => {
    const known = worker === null || (Number.isInteger(worker) && worker >= 0 && worker < workers);
    if (Number.isFinite(at) && known) return;
    throw new ConfigError(
      'sim-restarts',
      `restarts[${i}] is at ${shown(at)} of worker ${shown(worker)}; give milliseconds, and a worker from 0 to ${workers - 1} or null for the store.`,
    );
  });
  return Object.freeze(given.map(({ at, worker }) => Object.freeze({ at, worker })));
}

function sectionOf(
  section: 'workers' | 'store' | 'events',
  given: object | undefined,
  fields: Readonly<Record<string, readonly [usual: number, range: Range]>>,
): Readonly<Record<string, number>> {
  refuseUnknown(section, given ?? {}, fields);
  const values = (given ?? {}) as Readonly<Record<string, number | undefined>>;
  return Object.freeze(
    Object.fromEntries(
      Object.entries(fields).map(([name, [usual, range]]) => [
        name,
        numberOf(`${section}.${name}`, values[name], usual, range),
      ]),
    ),
  );
}

function numberOf(path: string, given: number | undefined, usual: number, range: Range): number {
  if (given === undefined) return usual;
  if (typeof given === 'number' && range.holds(given)) return given;
  const code = path.replace('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new ConfigError(`sim-${code}`, `${path} is ${shown(given)}; give ${range.words} (default ${usual}).`);
}

function refuseUnknown(where: string, given: object, known: object): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw new ConfigError(
    'unknown-option',
    `unknown option ${shown(unknown)} of ${where}; the options are ${Object.keys(known).join(', ')}.`,
  );
}
