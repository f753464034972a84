// Names, types and ranges of options, checked at start: what is wrong is refused by name, as everywhere (design.md 7). The code is the part
// of the router and the option's name in kebab-case: `feedback-max-marks`.
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';

/** For each name that a part knows, what `typeof` must say of its value; `any` where the part looks itself. */
export type FieldTypes<Options> = Readonly<
  Record<keyof Options, 'number' | 'boolean' | 'bigint' | 'function' | 'object' | 'any'>
>;

/**
 * The options of a part, without those that are undefined; null stands for none given.
 * @param code the part's name in error codes
 * @throws {ConfigError} `malformed-option` for what is no object, `unknown-option` for a name that the part does not know, and the option's
 *   own code for a value of another type
 */
export function checkedPart<Options extends object>(
  part: string,
  given: Options | null | undefined,
  types: FieldTypes<Options>,
  code = part,
): Options | undefined {
  if (given === undefined || given === null) return undefined;
  const names = Object.keys(types);
  if (typeof given !== 'object' || Array.isArray(given)) {
    throw new ConfigError('malformed-option', `${part} is ${shown(given)}; give an object of ${names.join(', ')}.`);
  }
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name, value] of entries) {
    if (!Object.hasOwn(types, name)) {
      throw new ConfigError(
        'unknown-option',
        `unknown option ${shown(name)} of ${part}; its options are ${names.join(', ')}.`,
      );
    }
    const wanted = types[name as keyof Options];
    const fits = wanted === 'any' || (typeof value === wanted && value !== null);
    if (!fits) throw refusal(code, name, value, `a ${wanted}`, part);
  }
  return Object.fromEntries(entries) as Options;
}

/** @throws {ConfigError} unless the value is a whole number from 1 to `most` */
export function checkWhole(part: string, name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw refusal(part, name, value, `a whole number from 1 to ${most}`);
}

/** @throws {ConfigError} unless the value is a finite number of milliseconds, `least` or more */
export function checkTime(part: string, name: string, value: number, least: number): void {
  if (Number.isFinite(value) && value >= least) return;
  throw refusal(part, name, value, `a finite number of milliseconds, ${least} or more`);
}

function refusal(code: string, name: string, value: unknown, wanted: string, part = code): ConfigError {
  const kebab = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return new ConfigError(`${code}-${kebab}`, `${part}: ${name} is ${shown(value)}; give ${wanted}.`);
}
