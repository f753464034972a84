// Which option is to blame for a refusal. The errors of the simulator, its readers and the router name what is wrong by their code; a person who fills in
// a form, or types a command, wants to know the option.
import { ConfigError, MoonrouteError } from '../../errors.js';
import { SETTING_OPTIONS } from './options.js';

/** A refusal that is put down to one option; code and text are those of what was refused. */
export class SettingError extends ConfigError {
  /** Without its dashes. */
  readonly flag: string;

  constructor(flag: string, { code, message }: MoonrouteError, options?: ErrorOptions) {
    super(code, message, options);
    this.flag = flag;
  }
}

/** Runs `work`; what it refuses is put down to `flag`. */
export function blaming<T>(flag: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ConfigError) || error instanceof SettingError) throw error;
    throw new SettingError(flag, error, { cause: error });
  }
}

/** Codes of others, by the option that they are about; those of numbers of the configuration follow from the table. */
const FLAGS_BY_CODE: ReadonlyMap<string, string> = new Map([
  ['sim-workers-gpu-blocks', 'gpu'],
  ['sim-restarts', 'restart'],
  ['sim-wire', 'wire'],
  ['sim-groups', 'groups'],
  ['sim-id-tokens', 'block-size'],
  ['limits-edges', 'core-edges'],
  ['trace-columns', 'columns'],
  ['trace-format', 'format'],
  ['workload-requests', 'requests'],
  ['workload-rate', 'rate'],
  ['workload-mix', 'mix'],
  ['workload-seed', 'workload-seed'],
  ['workload-id-tokens', 'block-size'],
  ...SETTING_OPTIONS.flatMap(({ flag, path }) =>
    path === null ? [] : [[`sim-${path.map(kebab).join('-')}`, flag] as const],
  ),
]);

/** The option that an error is about, without its dashes; null where none is. */
export function flagOf(error: unknown): string | null {
  if (error instanceof SettingError) return error.flag;
  return error instanceof MoonrouteError ? (FLAGS_BY_CODE.get(error.code) ?? null) : null;
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
