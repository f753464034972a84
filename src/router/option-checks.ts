// Ranges of options, checked at start: what is out of range is refused by name, as everywhere (design.md 7). The code is the part of the
// router and the option's name in kebab-case: `feedback-max-marks`.
import { ConfigError } from '../errors.js';

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

function refusal(part: string, name: string, value: unknown, wanted: string): ConfigError {
  const code = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return new ConfigError(`${part}-${code}`, `${part}: ${name} is ${value}; give ${wanted}.`);
}
