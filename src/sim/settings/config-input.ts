// The configuration of a simulation as it is given: a file and options, which win over it. Both are sparse; what they leave out takes the
// simulator's defaults. Here names and types are checked, where the file can still be named; ranges are the simulator's own to check.
import { ConfigError } from '../../errors.js';
import { checkSimConfig, type SimConfigInput } from '../config.js';

/** The router checks the names in there itself. */
const OPEN = 'settings';

/** `path` set to `value`: ['store', 'latency'] → { store: { latency } }. */
export const inputAt = (path: readonly string[], value: unknown): SimConfigInput =>
  path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as SimConfigInput;

/**
 * A JSON value as configuration.
 * @param where for refusals: where it comes from
 * @throws ConfigError `config-unknown`, `config-type`
 */
export function configInput(json: unknown, where: string): SimConfigInput {
  check(json, checkSimConfig(), where, '');
  return json as SimConfigInput;
}

function check(given: unknown, model: unknown, where: string, path: string): void {
  if (kindOf(given) !== kindOf(model)) {
    const seen = isObject(given) || Array.isArray(given) ? '' : ` (${JSON.stringify(given)})`;
    throw new ConfigError(
      'config-type',
      `${where}: ${path === '' ? 'a configuration' : path} must be ${kindOf(model)}, and is ${kindOf(given)}${seen}`,
    );
  }
  if (Array.isArray(given)) {
    const other = given.findIndex((part) => !isObject(part));
    if (other < 0) return;
    throw new ConfigError(
      'config-type',
      `${where}: ${path}[${other}] must be an object, and is ${kindOf(given[other])}`,
    );
  }
  if (!isObject(given) || !isObject(model) || path === OPEN) return;
  for (const [name, value] of Object.entries(given)) {
    const below = path === '' ? name : `${path}.${name}`;
    if (!Object.hasOwn(model, name))
      throw new ConfigError(
        'config-unknown',
        `${where}: ${below} is not known; ${path === '' ? 'there are' : `${path} has`} ${Object.keys(model).join(', ')}`,
      );
    check(value, model[name], where, below);
  }
}

/** Both, `over` winning: sections are joined, lists are taken whole. */
export function joined(under: SimConfigInput, over: SimConfigInput): SimConfigInput {
  const both: Record<string, unknown> = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const below = both[name];
    both[name] = isObject(below) && isObject(value) ? { ...below, ...value } : value;
  }
  return both as SimConfigInput;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value === null) return 'null';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'boolean') return 'true or false';
  return typeof value === 'string' ? 'a text' : 'a number';
}
