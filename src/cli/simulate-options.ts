// The table of a simulation's options (sim/settings/options.ts) as options of a command.
import { InvalidArgumentError, Option } from 'commander';
import { ConfigError } from '../errors.js';
import { SETTING_OPTIONS, type SettingOption } from '../sim/settings/options.js';
import { camelCase, type SettingValues } from '../sim/settings/plan.js';

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

/** Options of the table, each under its heading but those of the simulation as a whole. */
export function settingOptions(): Option[] {
  return SETTING_OPTIONS.map(({ flag, value, heading, text, usual, choices, parse }: SettingOption) => {
    const option = new Option(
      value === null ? `--${flag}` : `--${flag} <${value}>`,
      usual === null ? text : `${text} (default ${usual})`,
    );
    if (choices !== null) option.choices([...choices]);
    else if (value !== null) option.argParser(parser<unknown>(parse));
    return heading === 'Simulation' ? option : option.helpGroup(`${heading}:`);
  });
}

/** Values by flag, out of those that commander collects by its own names. */
export function settingValues(collected: Readonly<Record<string, unknown>>): SettingValues {
  const flags = ['config', ...SETTING_OPTIONS.map(({ flag }) => flag)];
  return Object.fromEntries(
    flags.map((flag) => [flag, collected[camelCase(flag)]]).filter(([, value]) => value !== undefined),
  );
}
