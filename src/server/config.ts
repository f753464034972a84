// The configuration: one JSON document, checked once. Its schema is published (config.schema.json), and each refusal names the setting, what was
// seen and what to do.
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import { refusalOf } from './config-refusal.js';
import { resolved } from './config-resolve.js';
import { refuseRouterSettings } from './config-router.js';
import { refuseContradictions } from './config-rules.js';
import { type ConfigDocument, type ConfigInput, configSchema } from './config-schema.js';

export type { ConfigInput };

/** The configuration in force: every default filled in, file names absolute, secrets looked up. */
export type ServerConfig = Omit<ConfigDocument, '$schema' | 'auth' | 'curve' | 'eventPlane'> & {
  readonly auth: { readonly clientKeys: readonly string[]; readonly adminKeys: readonly string[] };
  readonly curve: { readonly serverKey: string; readonly publicKey: string; readonly secretKey: string } | null;
  readonly eventPlane:
    | (Omit<NonNullable<ConfigDocument['eventPlane']>, 'url'> & { readonly url: string | readonly string[] })
    | null;
};

/** Where a document comes from. */
export interface ConfigPlace {
  /** Folder that its file names are relative to. Default the working directory. */
  readonly folder?: string;
  /** Variables that its `{"env": NAME}` may name. Default none. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where a setting's value was given, if not in the document itself: by its path, like `listen.port`; a flag or a variable. */
  readonly origins?: ReadonlyMap<string, string>;
}

/**
 * Checks a document, as parsed JSON.
 * @throws ConfigError, of several faults the first in this order: `config-document`; `unknown-setting`, `setting-excluded`, or the path of a
 *   setting with a wrong value, in kebab-case without list positions (`listen-port`), those of the router under its own codes; `config-secret`;
 *   the router's contradictions, then those of `refuseContradictions`
 */
export function checkConfig(given: unknown, place: ConfigPlace = {}): ServerConfig {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new ConfigError('config-document', `the configuration is ${shown(given)}; give one JSON object.`);
  }
  const { data, error } = configSchema.safeParse(given);
  if (error !== undefined) throw refusalOf(error.issues, given, place.origins);
  const config = resolved(data, place);
  refuseRouterSettings(config);
  refuseContradictions(config);
  return config;
}
