// Every option of a simulation as one table: the command makes its options of it, and the page its form. Flag, words, unit, default, and the place in
// the configuration of those that have one. What is about files on disk or about output is the command's own.
import { ConfigError } from '../../errors.js';
import { BUILT_IN_INPUTS } from '../../router/roles.js';
import { checkSimConfig } from '../config.js';
import { TRACE_FORMATS } from '../traces/types.js';
import type { SimConfig } from '../types.js';
import { namedValues, policiesOf, restartsOf, settingsOf } from './lists.js';
import { MODEL_PRESETS } from './models.js';
import { COUNT, NUMBER, RATE, SHARE, SIZE, TIME, type Unit } from './units.js';

/** Headings under which options stand, in order; the first ones stand under none. */
export const HEADINGS = [
  'Simulation',
  'Trace',
  'Built-in workload',
  'Workers',
  'Store',
  'Model',
  'Events to the router',
  'Router and clock',
] as const;

export type Heading = (typeof HEADINGS)[number];

/** One option. */
export interface SettingOption {
  /** Without its dashes: `store-rate`. */
  readonly flag: string;
  /** What is given with it, for help: `size`; null for one that is on or off (its text is `true` or `false`). */
  readonly value: string | null;
  readonly heading: Heading;
  /** What it is, without its default. */
  readonly text: string;
  /** The default in words; null where it is nothing. */
  readonly usual: string | null;
  /** A right text. */
  readonly example: string;
  /** The only texts that are taken; null for any. */
  readonly choices: readonly string[] | null;
  /** Whether several can be given: on the command line by repeating it, in one text with commas. */
  readonly repeats: boolean;
  /** Its place in the configuration; null for one that has none of its own. */
  readonly path: readonly string[] | null;
  /** @throws ConfigError for a text that is none */
  readonly parse: (text: string, before?: unknown) => unknown;
}

export const DEFAULT_POLICIES = 'kv,round-robin';
export const DEFAULT_REQUESTS = 5000;

const USUAL = checkSimConfig();
const MIX_EXAMPLE = 'chat=65,agent=35';
const COLUMNS_EXAMPLE = 'time=arrived,input=prompt,output=answer';

type Given = Pick<SettingOption, 'flag' | 'value' | 'heading' | 'text'> & Partial<SettingOption>;

const option = (given: Given): SettingOption => ({
  usual: null,
  example: given.choices?.[0] ?? given.value ?? 'true',
  choices: null,
  repeats: false,
  path: null,
  parse: given.choices === undefined || given.choices === null ? asIs : choiceOf(given.choices),
  ...given,
});

/** A number of the configuration; its default is the simulator's. */
const number = (
  heading: Heading,
  flag: string,
  value: string,
  path: readonly string[],
  unit: Unit,
  text: string,
): SettingOption =>
  option({
    ...{ flag, value, heading, text, path },
    usual: unit.say(valueAt(USUAL, path)),
    example: unit.example,
    parse: (given) => unit.parse(given),
  });

const asIs = (text: string): string => text;

const choiceOf =
  (choices: readonly string[]) =>
  (text: string): string => {
    if (!choices.includes(text))
      throw new ConfigError('choice', `"${text}" is none of them; take ${choices.join(', ')}`);
    return text;
  };

/** On or off. */
const switched = (text: string): boolean => choiceOf(['true', 'false'])(text) === 'true';

/** A count of at least one. */
function someOf(text: string): number {
  const count = COUNT.parse(text);
  if (count === 0) throw new ConfigError('quantity', 'give 1 or more');
  return count;
}

function mixOf(text: string): Record<string, number> {
  const shares = namedValues(text, ['chat', 'agent'], MIX_EXAMPLE);
  return Object.fromEntries(Object.entries(shares).map(([kind, share]) => [kind, NUMBER.parse(share)]));
}

const columnsOf = (text: string): Record<string, string> =>
  namedValues(text, ['time', 'input', 'output'], COLUMNS_EXAMPLE);

function valueAt(config: SimConfig, path: readonly string[]): number {
  return path.reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], config) as number;
}

/** In the order of the command's help. */
export const SETTING_OPTIONS: readonly SettingOption[] = [
  option({
    flag: 'policy',
    value: 'list',
    heading: 'Simulation',
    text: `policies, run one after the other, of ${Object.keys(BUILT_IN_INPUTS).join(', ')}`,
    usual: DEFAULT_POLICIES,
    example: DEFAULT_POLICIES,
    parse: (text) => policiesOf(text),
  }),
  option({
    flag: 'sweep',
    value: 'axis=list',
    heading: 'Simulation',
    text: 'a run for each value: store=0,50GB, ssd=, gpu=, workers=, speedup=; store=auto is --curve',
    example: 'store=0,50GB,100GB',
  }),
  option({
    flag: 'curve',
    value: null,
    heading: 'Simulation',
    text: 'hit rate of one shared LRU cache at many capacities, in one pass; no run unless --policy or --sweep asks',
    parse: switched,
  }),
  option({
    flag: 'limit',
    value: 'n',
    heading: 'Simulation',
    text: 'take so many requests of each trace',
    example: COUNT.example,
    parse: someOf,
  }),
  option({
    flag: 'format',
    value: 'name',
    heading: 'Trace',
    text: 'format, where the first row does not tell',
    choices: TRACE_FORMATS,
  }),
  option({
    flag: 'id-tokens',
    value: 'n',
    heading: 'Trace',
    text: "tokens of one hash id, where they are not the format's own; of a recording, the block size that counts",
    example: '512',
    parse: someOf,
  }),
  option({
    flag: 'columns',
    value: 'names',
    heading: 'Trace',
    text: `columns of a CSV by their header, like ${COLUMNS_EXAMPLE}`,
    example: COLUMNS_EXAMPLE,
    parse: columnsOf,
  }),
  option({
    flag: 'time-unit',
    value: 'unit',
    heading: 'Trace',
    text: "unit of a CSV's times",
    choices: ['ms', 's'],
  }),
  option({
    flag: 'requests',
    value: 'n',
    heading: 'Built-in workload',
    text: 'requests',
    usual: `${DEFAULT_REQUESTS}`,
    example: COUNT.example,
    parse: someOf,
  }),
  option({
    flag: 'rate',
    value: 'n',
    heading: 'Built-in workload',
    text: 'requests a second',
    usual: 'all within ten minutes',
    example: NUMBER.example,
    parse: (text) => NUMBER.parse(text),
  }),
  option({
    flag: 'mix',
    value: 'shares',
    heading: 'Built-in workload',
    text: 'chats and agents',
    usual: MIX_EXAMPLE,
    example: MIX_EXAMPLE,
    parse: mixOf,
  }),
  option({
    flag: 'workload-seed',
    value: 'n',
    heading: 'Built-in workload',
    text: 'seed',
    usual: '1',
    example: '1',
    parse: (text) => COUNT.parse(text),
  }),
  number('Workers', 'workers', 'n', ['workers', 'count'], COUNT, 'simulated workers'),
  number(
    'Workers',
    'prefill',
    'n',
    ['workers', 'prefillTokensPerSecond'],
    COUNT,
    'prompt tokens that a worker computes a second',
  ),
  number('Workers', 'chunk', 'n', ['workers', 'chunkTokens'], COUNT, 'most prompt tokens in one step'),
  number('Workers', 'decode-step', 'time', ['workers', 'decodeStep'], TIME, 'step that decodes one request'),
  number(
    'Workers',
    'decode-step-more',
    'time',
    ['workers', 'decodeStepPerRequest'],
    TIME,
    'added to a step by each further request',
  ),
  number('Workers', 'batch', 'n', ['workers', 'batch'], COUNT, 'requests that a worker runs at once'),
  number('Store', 'store', 'size', ['store', 'dramBytes'], SIZE, 'memory of the store, 0 for none'),
  number('Store', 'ssd', 'size', ['store', 'ssdBytes'], SIZE, 'SSD to which memory spills, 0 for none'),
  number('Store', 'link', 'rate', ['store', 'linkBytesPerSecond'], RATE, 'what one worker can fetch'),
  number('Store', 'store-rate', 'rate', ['store', 'totalBytesPerSecond'], RATE, 'what all workers together can fetch'),
  number('Store', 'ssd-rate', 'rate', ['store', 'ssdBytesPerSecond'], RATE, 'what the SSDs together can give'),
  number('Store', 'latency', 'time', ['store', 'latency'], TIME, 'before the first byte of a fetch'),
  number('Model', 'block-size', 'n', ['blockSize'], COUNT, 'tokens of a block'),
  number('Model', 'ranks', 'n', ['ranks'], COUNT, 'ranks whose objects make a block complete'),
  number('Events to the router', 'delay', 'time', ['events', 'delay'], TIME, 'from the fact to the router'),
  number('Events to the router', 'jitter', 'time', ['events', 'jitter'], TIME, 'up to so much more, at random'),
  number('Events to the router', 'loss', 'share', ['events', 'loss'], SHARE, 'messages that are lost'),
  number(
    'Events to the router',
    'reconcile-after',
    'time',
    ['events', 'reconcileAfter'],
    TIME,
    "from a gap in the store's stream to the reconcile that mends it",
  ),
  number('Router and clock', 'speedup', 'times', ['speedup'], NUMBER, "divides the trace's times: 2 is twice the load"),
  number('Router and clock', 'seed', 'n', ['seed'], COUNT, 'seed of everything that is drawn'),
  number('Router and clock', 'index', 'size', ['indexBytes'], SIZE, "the router's GPU index"),
  number('Router and clock', 'core-edges', 'n', ['coreEdges'], COUNT, "hash edges that the router's core keeps"),
  option({
    flag: 'gpu',
    value: 'blocks|size',
    heading: 'Workers',
    text: 'GPU KV blocks of a worker, or memory for them like 100GB, counted by full-attention groups',
    usual: `${COUNT.say(USUAL.workers.gpuBlocks)} blocks`,
    example: '64k or 100GB',
  }),
  option({
    flag: 'model',
    value: 'name',
    heading: 'Model',
    text: 'KV geometry of a preset, listed below',
    usual: 'full',
    example: Object.keys(MODEL_PRESETS).join(', '),
  }),
  option({
    flag: 'groups',
    value: 'file',
    heading: 'Model',
    text: 'JSON list of { kind, window, bytesPerBlock }, all ranks together',
    example: '[{"kind":"full_attention","window":null,"bytesPerBlock":5242880}]',
  }),
  option({
    flag: 'restart',
    value: 'what@time',
    heading: 'Router and clock',
    text: 'store@2min or worker:3@60s starts anew, empty; may be repeated',
    example: 'store@2min,worker:3@60s',
    repeats: true,
    parse: (text, before) => restartsOf(text, before as ReturnType<typeof restartsOf> | undefined),
  }),
  option({
    flag: 'setting',
    value: 'name=value',
    heading: 'Router and clock',
    text: 'a setting of the router, like temperature=0.5; may be repeated',
    example: 'temperature=0.5',
    repeats: true,
    parse: (text, before) => settingsOf(text, before as Record<string, unknown> | undefined),
  }),
  option({
    flag: 'wire',
    value: null,
    heading: 'Router and clock',
    text: 'feed the router the bytes of real messages: slow, for checking',
    parse: switched,
  }),
];

const BY_FLAG = new Map(SETTING_OPTIONS.map((each) => [each.flag, each]));

/** The option of a flag. */
export const optionOf = (flag: string): SettingOption | undefined => BY_FLAG.get(flag);
