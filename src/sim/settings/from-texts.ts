// Options as texts by flag, as a form or a link has them, become what the command makes of the same options.
import { ConfigError } from '../../errors.js';
import { optionOf, SETTING_OPTIONS } from './options.js';
import { planOf, type RunPlan, type SettingValues } from './plan.js';
import { blaming, SettingError } from './refusal.js';

/** The command's options by flag, as their texts are typed: `{ policy: 'kv,round-robin', workers: '8', store: '2TB' }`. */
export type SettingTexts = Readonly<Record<string, string>>;

/**
 * What is simulated for these texts; those that are empty take their defaults. `groups` is the JSON list itself, which the command reads from a file.
 * @param traces whether there is a trace; without one the built-in workload runs
 * @throws SettingError with the flag that is to blame; ConfigError where no single one is
 */
export function runOf(texts: SettingTexts, traces: boolean): RunPlan {
  return planOf(valuesOf(texts), traces, { readJson: jsonOf, called: 'groups' });
}

/** Each text read by its option. @throws SettingError */
export function valuesOf(texts: SettingTexts): SettingValues {
  const values: Record<string, unknown> = {};
  for (const [flag, text] of Object.entries(texts)) {
    const option = optionOf(flag);
    if (option === undefined) {
      const known = SETTING_OPTIONS.map((each) => each.flag).join(', ');
      throw new SettingError(
        flag,
        new ConfigError('unknown-option', `--${flag} is no option of a simulation; there are ${known}`),
      );
    }
    if (text.trim() === '' || isOff(flag, text)) continue;
    values[flag] = blaming(flag, () => option.parse(text.trim()));
  }
  return values;
}

/** A switch that is off, which a command line leaves out. */
export const isOff = (flag: string, text: string): boolean => optionOf(flag)?.value === null && text.trim() === 'false';

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError('config-json', `groups is not JSON: ${(error as Error).message}`);
  }
}
