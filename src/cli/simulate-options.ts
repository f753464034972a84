// The options of `moonroute simulate` that make up its configuration, as one table: flag, place in the configuration, unit. Defaults in
// the help are the simulator's own.
import { InvalidArgumentError, Option } from 'commander';
import { ConfigError } from '../errors.js';
import { BUILT_IN_INPUTS, type BuiltInPolicy } from '../router/roles.js';
import { checkSimConfig, type SimConfigInput } from '../sim/config.js';
import { blockBytes } from '../sim/report-curve.js';
import { isSweepAxis, SWEEP_AXES, type Sweep, type SweepAxis } from '../sim/sweep.js';
import type { GroupModel, Restart, SimConfig } from '../sim/types.js';
import { configInput, inputAt, joined } from './simulate-config.js';
import { presetGroups } from './simulate-models.js';
import { COUNT, gpuBlocksOf, NUMBER, RATE, SHARE, SIZE, TIME, type Unit } from './simulate-units.js';

interface ConfigOption {
  readonly flag: string;
  readonly path: readonly string[];
  readonly unit: Unit;
  readonly text: string;
}

const GROUPS: Readonly<Record<string, readonly ConfigOption[]>> = {
  'Workers:': [
    { flag: '--workers <n>', path: ['workers', 'count'], unit: COUNT, text: 'simulated workers' },
    {
      flag: '--prefill <n>',
      path: ['workers', 'prefillTokensPerSecond'],
      unit: COUNT,
      text: 'prompt tokens that a worker computes a second',
    },
    { flag: '--chunk <n>', path: ['workers', 'chunkTokens'], unit: COUNT, text: 'most prompt tokens in one step' },
    {
      flag: '--decode-step <time>',
      path: ['workers', 'decodeStep'],
      unit: TIME,
      text: 'step that decodes one request',
    },
    {
      flag: '--decode-step-more <time>',
      path: ['workers', 'decodeStepPerRequest'],
      unit: TIME,
      text: 'added to a step by each further request',
    },
    { flag: '--batch <n>', path: ['workers', 'batch'], unit: COUNT, text: 'requests that a worker runs at once' },
  ],
  'Store:': [
    { flag: '--store <size>', path: ['store', 'dramBytes'], unit: SIZE, text: 'memory of the store, 0 for none' },
    { flag: '--ssd <size>', path: ['store', 'ssdBytes'], unit: SIZE, text: 'SSD to which memory spills, 0 for none' },
    {
      flag: '--link <rate>',
      path: ['store', 'linkBytesPerSecond'],
      unit: RATE,
      text: 'what one worker can fetch',
    },
    {
      flag: '--store-rate <rate>',
      path: ['store', 'totalBytesPerSecond'],
      unit: RATE,
      text: 'what all workers together can fetch',
    },
    {
      flag: '--ssd-rate <rate>',
      path: ['store', 'ssdBytesPerSecond'],
      unit: RATE,
      text: 'what the SSDs together can give',
    },
    { flag: '--latency <time>', path: ['store', 'latency'], unit: TIME, text: 'before the first byte of a fetch' },
  ],
  'Model:': [
    { flag: '--block-size <n>', path: ['blockSize'], unit: COUNT, text: 'tokens of a block' },
    { flag: '--ranks <n>', path: ['ranks'], unit: COUNT, text: 'ranks whose objects make a block complete' },
  ],
  'Events to the router:': [
    { flag: '--delay <time>', path: ['events', 'delay'], unit: TIME, text: 'from the fact to the router' },
    { flag: '--jitter <time>', path: ['events', 'jitter'], unit: TIME, text: 'up to so much more, at random' },
    { flag: '--loss <share>', path: ['events', 'loss'], unit: SHARE, text: 'messages that are lost' },
    {
      flag: '--reconcile-after <time>',
      path: ['events', 'reconcileAfter'],
      unit: TIME,
      text: "from a gap in the store's stream to the reconcile that mends it",
    },
  ],
  'Router and clock:': [
    {
      flag: '--speedup <times>',
      path: ['speedup'],
      unit: NUMBER,
      text: "divides the trace's times: 2 is twice the load",
    },
    { flag: '--seed <n>', path: ['seed'], unit: COUNT, text: 'seed of everything that is drawn' },
    { flag: '--index <size>', path: ['indexBytes'], unit: SIZE, text: "the router's GPU index" },
    { flag: '--core-edges <n>', path: ['coreEdges'], unit: COUNT, text: "hash edges that the router's core keeps" },
  ],
};

/** Values of options that are not in the table. */
export interface SpecialOptions {
  readonly config?: string;
  readonly gpu?: string;
  readonly model?: string;
  readonly groups?: string;
  readonly restart?: readonly Restart[];
  readonly setting?: Readonly<Record<string, unknown>>;
  readonly wire?: boolean;
}

/** Runs that one command makes for a trace. */
const MAX_RUNS = 256;

/** A commander parser: what it throws becomes the option's own refusal. */
export function parser<T>(
  parse: (text: string, before: T | undefined) => T,
): (text: string, before: T | undefined) => T {
  return (text, before) => {
    try {
      return parse(text, before);
    } catch (error) {
      if (error instanceof ConfigError) throw new InvalidArgumentError(`${error.message}.`);
      throw error;
    }
  };
}

/** The table's options, each under its heading. */
export function configOptions(): Option[] {
  const defaults = checkSimConfig();
  return Object.entries(GROUPS).flatMap(([heading, options]) =>
    options.map(({ flag, path, unit, text }) => {
      const usual = unit.say(valueAt(defaults, path));
      return new Option(flag, `${text} (default ${usual})`).argParser(parser(unit.parse)).helpGroup(heading);
    }),
  );
}

function valueAt(config: SimConfig, path: readonly string[]): number {
  return path.reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], config) as number;
}

/**
 * What options and files give together; what they leave out is left to the simulator's defaults.
 * @param values by attribute name, as commander collects them
 * @param readJson reads a file that an option names
 */
export function inputOf(
  values: Readonly<Record<string, unknown>> & SpecialOptions,
  readJson: (file: string) => unknown,
): SimConfigInput {
  let input: SimConfigInput = values.config === undefined ? {} : configInput(readJson(values.config), values.config);
  for (const { flag, path } of Object.values(GROUPS).flat()) {
    const value = values[new Option(flag).attributeName()];
    if (value !== undefined) input = joined(input, inputAt(path, value));
  }
  if (values.model !== undefined && values.groups !== undefined)
    throw new ConfigError('model-twice', '--model and --groups both name the groups; give one of them');
  if (values.model !== undefined)
    input = { ...input, groups: presetGroups(values.model, input.blockSize ?? checkSimConfig().blockSize) };
  if (values.groups !== undefined) {
    const file = configInput({ groups: readJson(values.groups) }, values.groups);
    input = joined(input, { groups: (file.groups as readonly GroupModel[]).map((group) => ({ ...group })) });
  }
  if (values.restart !== undefined) input = { ...input, restarts: values.restart };
  if (values.setting !== undefined) input = joined(input, { settings: values.setting });
  if (values.wire !== undefined) input = { ...input, wire: values.wire };
  if (values.gpu === undefined) return input;
  const { groups } = checkSimConfig(input);
  return joined(input, { workers: { gpuBlocks: gpuBlocksOf(values.gpu, blockBytes(groups)) } });
}

/** `kv,ttft` → those policies, each once. @throws ConfigError `policy` */
export function policiesOf(text: string): BuiltInPolicy[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  const unknown = names.find((name) => !Object.hasOwn(BUILT_IN_INPUTS, name));
  if (unknown !== undefined)
    throw new ConfigError(
      'policy',
      `the policy "${unknown}" is not known; take some of ${Object.keys(BUILT_IN_INPUTS).join(',')}`,
    );
  return names as BuiltInPolicy[];
}

const SWEEP_UNITS: Readonly<Record<Exclude<SweepAxis, 'gpu'>, Unit>> = {
  store: SIZE,
  ssd: SIZE,
  workers: COUNT,
  speedup: NUMBER,
};

/**
 * `store=0,50GB` → a sweep; `store=auto` → the capacity curve, which is no run.
 * @param bytesPerBlock for GPU memory as a size
 * @throws ConfigError `sweep`, `quantity`
 */
export function sweepOf(text: string, bytesPerBlock: number): Sweep | 'curve' {
  const [axis = '', list = ''] = text.split(/=(.*)/s);
  if (!isSweepAxis(axis))
    throw new ConfigError(
      'sweep',
      `--sweep ${text}: write it like store=0,50GB,100GB or store=auto; ${Object.keys(SWEEP_AXES).join(', ')} can be swept`,
    );
  if (axis === 'store' && list === 'auto') return 'curve';
  const values = list
    .split(',')
    .map((value) => (axis === 'gpu' ? gpuBlocksOf(value, bytesPerBlock) : SWEEP_UNITS[axis].parse(value)));
  return { axis, values: [...new Set(values)].sort((a, b) => a - b) };
}

/** @throws ConfigError `sweep` when there are too many runs */
export function checkRuns(runs: number): void {
  if (runs > MAX_RUNS)
    throw new ConfigError('sweep', `${runs} runs of each trace are asked for; ${MAX_RUNS} at most: take fewer points`);
}

/** `store@2min` and `worker:3@60s`, one after the other. @throws ConfigError `restart` */
export function restartsOf(text: string, before: readonly Restart[] = []): Restart[] {
  const parts = /^(?:store|worker:(\d+))@(.+)$/.exec(text);
  if (parts === null)
    throw new ConfigError('restart', `"${text}" is no restart; write it like store@2min or worker:3@60s`);
  return [...before, { at: TIME.parse(parts[2]!), worker: parts[1] === undefined ? null : Number(parts[1]) }];
}

/** `temperature=0.5`, one after the other; names and ranges are the router's to check. @throws ConfigError `setting` */
export function settingsOf(text: string, before: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const [name = '', value] = text.split(/=(.*)/s);
  if (name === '' || value === undefined || value === '')
    throw new ConfigError('setting', `"${text}" is no setting; write it like temperature=0.5`);
  return { ...before, [name]: settingValue(value) };
}

function settingValue(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  return Number.isNaN(Number(text)) ? text : Number(text);
}

/** `name=value,name=value` → an object, of these names only. @throws ConfigError `named-values` */
export function namedValues(text: string, names: readonly string[], example: string): Record<string, string> {
  return Object.fromEntries(
    text.split(',').map((part) => {
      const [name = '', value = ''] = part.split(/=(.*)/s).map((word) => word.trim());
      if (!names.includes(name) || value === '')
        throw new ConfigError('named-values', `"${part}" is not understood; write it like ${example}`);
      return [name, value] as const;
    }),
  );
}
