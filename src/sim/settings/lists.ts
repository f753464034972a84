// Texts that name several things: policies, sweeps, restarts, the router's settings, named values. What is refused says what was seen and shows a
// right one.
import { ConfigError } from '../../errors.js';
import { BUILT_IN_INPUTS, type BuiltInPolicy } from '../../router/roles.js';
import { isSweepAxis, SWEEP_AXES, type Sweep, type SweepAxis } from '../sweep.js';
import type { Restart } from '../types.js';
import { COUNT, gpuBlocksOf, NUMBER, SIZE, TIME, type Unit } from './units.js';

/** Runs that are made of one trace. */
const MAX_RUNS = 256;

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

/** `store@2min,worker:3@60s`, after those of `before`. @throws ConfigError `restart` */
export const restartsOf = (text: string, before: readonly Restart[] = []): Restart[] => [
  ...before,
  ...text.split(',').map((part) => restartOf(part.trim())),
];

function restartOf(text: string): Restart {
  const parts = /^(?:store|worker:(\d+))@(.+)$/.exec(text);
  if (parts === null)
    throw new ConfigError('restart', `"${text}" is no restart; write it like store@2min or worker:3@60s`);
  return { at: TIME.parse(parts[2]!), worker: parts[1] === undefined ? null : Number(parts[1]) };
}

/** `temperature=0.5,seed=2`, over those of `before`; names and ranges are the router's to check. @throws ConfigError `setting` */
export function settingsOf(text: string, before: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const given = text.split(',').map((part) => {
    const [name = '', value = ''] = part.split(/=(.*)/s).map((word) => word.trim());
    if (name === '' || value === '')
      throw new ConfigError('setting', `"${part}" is no setting; write it like temperature=0.5`);
    return [name, settingValue(value)] as const;
  });
  return { ...before, ...Object.fromEntries(given) };
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
