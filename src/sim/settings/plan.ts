// What is simulated for the options that were given: the command's, as it collects them, or a page's. One way to make it, so that both do the same, and
// refuse the same.
import { ConfigError } from '../../errors.js';
import type { BuiltInPolicy } from '../../router/roles.js';
import { validateSettings } from '../../router/settings.js';
import { checkSimConfig, type SimConfigInput } from '../config.js';
import { blockBytes } from '../report-curve.js';
import { routerSettings } from '../router-settings.js';
import { type PlannedRun, planRuns } from '../sweep.js';
import type { TraceOptions } from '../traces/read.js';
import type { GroupModel, Restart, SimConfig } from '../types.js';
import type { WorkloadOptions } from '../workload.js';
import { configInput, inputAt, joined } from './config-input.js';
import { checkRuns, policiesOf, sweepOf } from './lists.js';
import { presetGroups } from './models.js';
import { DEFAULT_POLICIES, DEFAULT_REQUESTS, type Heading, SETTING_OPTIONS } from './options.js';
import { blaming, SettingError } from './refusal.js';
import { gpuBlocksOf } from './units.js';

/** Values of options by flag, as the table's `parse` gives them; what is left out takes its default. */
export interface SettingValues extends Readonly<Record<string, unknown>> {
  readonly policy?: readonly BuiltInPolicy[];
  readonly sweep?: string;
  readonly curve?: boolean;
  readonly limit?: number;
  readonly gpu?: string;
  readonly model?: string;
  /** What is handed to `readJson`. */
  readonly groups?: string;
  /** Likewise; of the command only. */
  readonly config?: string;
  readonly restart?: readonly Restart[];
  readonly setting?: Readonly<Record<string, unknown>>;
  readonly wire?: boolean;
}

/** What is to be run over each trace. */
export interface RunPlan {
  readonly base: SimConfig;
  readonly runs: readonly PlannedRun[];
  /** Whether the capacity curve was asked for, and nothing else. */
  readonly curve: boolean;
  readonly curveOnly: boolean;
  /** Requests taken of each trace. */
  readonly limit: number;
  /** The built-in workload; null where there are traces. */
  readonly workload: WorkloadOptions | null;
  /** How traces are read. */
  readonly trace: TraceOptions;
}

/** What options name instead of saying it. */
export interface NamedJson {
  /** The JSON value that `--config` or `--groups` names. */
  readonly readJson: (name: string) => unknown;
  /** How refusals call it; by default as it is named. */
  readonly called?: string;
}

/**
 * What the options ask for, checked.
 * @param traces whether there are any; without, the built-in workload runs
 * @throws ConfigError; a `SettingError` where one option is to blame
 */
export function planOf(values: SettingValues, traces: boolean, json: NamedJson): RunPlan {
  const input = inputOf(values, json.readJson, json.called);
  const base = checkSimConfig(input);
  const sweeps =
    values.sweep === undefined ? null : blaming('sweep', () => sweepOf(values.sweep!, blockBytes(base.groups)));
  const sweep = sweeps === 'curve' ? null : sweeps;
  const curve = values.curve === true || sweeps === 'curve';
  const curveOnly = curve && sweep === null && values.policy === undefined;
  const policies = values.policy ?? blaming('policy', () => policiesOf(input.policy ?? DEFAULT_POLICIES));
  const runs = curveOnly ? [] : planRuns(base, policies, sweep);
  blaming('sweep', () => {
    checkRuns(runs.length);
    if (sweep !== null) for (const { config } of runs) checkSimConfig(config);
  });
  blaming('setting', () => {
    for (const { config } of runs) validateSettings(routerSettings(config));
  });
  return {
    ...{ base, runs, curve, curveOnly },
    limit: values.limit ?? Number.POSITIVE_INFINITY,
    ...sourceOf(values, traces, base.blockSize),
  };
}

/**
 * The configuration that options and files give together; what they leave out is left to the simulator's defaults.
 * @param called how refusals call what an option names; by default as it is named
 */
export function inputOf(values: SettingValues, readJson: NamedJson['readJson'], called?: string): SimConfigInput {
  const { config, model, groups, restart, setting, wire, gpu } = values;
  let input: SimConfigInput =
    config === undefined ? {} : blaming('config', () => configInput(readJson(config), called ?? config));
  for (const { flag, path } of SETTING_OPTIONS) {
    if (path !== null && values[flag] !== undefined) input = joined(input, inputAt(path, values[flag]));
  }
  if (model !== undefined && groups !== undefined)
    throw new SettingError(
      'groups',
      new ConfigError('model-twice', '--model and --groups both name the groups; give one of them'),
    );
  if (model !== undefined) {
    const blockSize = input.blockSize ?? checkSimConfig().blockSize;
    input = { ...input, groups: blaming('model', () => presetGroups(model, blockSize)) };
  }
  if (groups !== undefined) {
    const given = blaming('groups', () => configInput({ groups: readJson(groups) }, called ?? groups));
    input = joined(input, { groups: (given.groups as readonly GroupModel[]).map((group) => ({ ...group })) });
  }
  if (restart !== undefined) input = { ...input, restarts: restart };
  if (setting !== undefined) input = joined(input, { settings: setting });
  if (wire !== undefined) input = { ...input, wire };
  if (gpu === undefined) return input;
  const bytes = blockBytes(checkSimConfig(input).groups);
  return joined(input, { workers: { gpuBlocks: blaming('gpu', () => gpuBlocksOf(gpu, bytes)) } });
}

/** Options under a heading that were given. */
function givenUnder(heading: Heading, values: SettingValues): [flag: string, value: unknown][] {
  return SETTING_OPTIONS.filter((option) => option.heading === heading && values[option.flag] !== undefined).map(
    ({ flag }) => [flag, values[flag]],
  );
}

function sourceOf(values: SettingValues, traces: boolean, blockSize: number): Pick<RunPlan, 'workload' | 'trace'> {
  const misplaced = givenUnder(traces ? 'Built-in workload' : 'Trace', values)[0];
  if (misplaced !== undefined) {
    const [flag] = misplaced;
    const text = traces
      ? `--${flag} is for the built-in workload, which runs without a trace; for fewer requests of a trace say --limit`
      : `--${flag} is for traces; name one`;
    throw new SettingError(flag, new ConfigError('option-misplaced', text));
  }
  const named = Object.fromEntries(
    givenUnder(traces ? 'Trace' : 'Built-in workload', values).map(([flag, value]) => [camelCase(flag), value]),
  );
  if (traces) return { workload: null, trace: named };
  const { workloadSeed, ...more } = named as WorkloadOptions & { readonly workloadSeed?: number };
  const seed = workloadSeed === undefined ? {} : { seed: workloadSeed };
  return { workload: { requests: DEFAULT_REQUESTS, idTokens: blockSize, ...more, ...seed }, trace: {} };
}

/** `id-tokens` → `idTokens`. */
export const camelCase = (flag: string): string =>
  flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
