// What the command line and the environment can set, as one table: flag, variable (the field's own where it has one), place in the document.
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import { withoutPassword } from './config-refusal.js';

/** One such setting. */
export interface ConfigSetting {
  /** As commander writes it. */
  readonly flag: string;
  /** Its name among parsed options. */
  readonly option: string;
  readonly env: string;
  /** Where it stands in the document; null for what is no part of it. */
  readonly path: readonly [string] | readonly [string, string] | null;
  /** The document's value. Texts that can't be read are handed on as they are: the schema refuses them. */
  readonly read: (text: string, name: string) => unknown;
  /** It may be given several times; in the environment, separated by spaces. */
  readonly repeats?: true;
  readonly help: string;
}

/** The option, and variable, that name the file. */
export const CONFIG_FILE: ConfigSetting = {
  flag: '--config <file>',
  option: 'config',
  env: 'MOONROUTE_CONFIG',
  path: null,
  read: asText,
  help: 'the configuration, one JSON document (schema: config.schema.json)',
};

/** The master's event socket, as the field names it. */
export const MASTER_VARIABLE = 'DYN_MOONCAKE_KV_EVENTS_ENDPOINT';

/** All settings of command line and environment but the file. */
export const CONFIG_SETTINGS: readonly ConfigSetting[] = [
  {
    flag: '--host <address>',
    option: 'host',
    env: 'MOONROUTE_HOST',
    path: ['listen', 'host'],
    read: asText,
    help: 'address to listen on; other than loopback needs auth.clientKeys in the file',
  },
  {
    flag: '--port <n>',
    option: 'port',
    env: 'MOONROUTE_PORT',
    path: ['listen', 'port'],
    read: asNumber,
    help: 'port to listen on, 0 for any that is free',
  },
  {
    flag: '--policy <name>',
    option: 'policy',
    env: 'MOONROUTE_POLICY',
    path: ['policy'],
    read: asText,
    help: 'kv, ttft, round-robin, random or least-loaded',
  },
  {
    flag: '--worker <id=url>',
    option: 'worker',
    env: 'MOONROUTE_WORKERS',
    path: ['workers'],
    read: asWorker,
    repeats: true,
    help: 'a worker, as ID=http://HOST:PORT[,events=tcp://…][,replay=tcp://…]; they stand in place of the file’s',
  },
  {
    flag: '--shared-cache-type <type>',
    option: 'sharedCacheType',
    env: 'DYN_SHARED_CACHE_TYPE',
    path: ['sharedCache', 'type'],
    read: asText,
    help: 'none or mooncake-store',
  },
  {
    flag: '--shared-cache-multiplier <share>',
    option: 'sharedCacheMultiplier',
    env: 'DYN_SHARED_CACHE_MULTIPLIER',
    path: ['sharedCache', 'multiplier'],
    read: asNumber,
    help: 'worth of a block that only the shared cache holds, 0 to 1',
  },
  {
    flag: '--hashing <mode>',
    option: 'hashing',
    env: 'MOONROUTE_HASHING',
    path: ['sharedCache', 'hashing'],
    read: asText,
    help: 'where the engine hashes of a prompt come from: learned, derived or both',
  },
  {
    flag: '--trust-seed',
    option: 'trustSeed',
    env: 'MOONROUTE_TRUST_SEED',
    path: ['sharedCache', 'trustSeed'],
    read: asFlag,
    help: 'credit derived hashes before workers’ events have agreed with them: true or false in the environment',
  },
  {
    flag: '--allow-unverified-contract',
    option: 'allowUnverifiedContract',
    env: 'MOONROUTE_ALLOW_UNVERIFIED_CONTRACT',
    path: ['sharedCache', 'allowUnverifiedContract'],
    read: asFlag,
    help: 'credit under contracts that were derived (moonroute contract derive): true or false in the environment',
  },
  {
    flag: '--master <events>',
    option: 'master',
    env: MASTER_VARIABLE,
    path: ['sharedCache', 'masters'],
    read: asMaster,
    repeats: true,
    help: 'a master of the store, as tcp://HOST:PORT[,http=http://HOST:PORT]; they stand in place of the file’s',
  },
  {
    flag: '--log-level <level>',
    option: 'logLevel',
    env: 'MOONROUTE_LOG_LEVEL',
    path: ['log', 'level'],
    read: asText,
    help: 'trace, debug, info, warn, error, fatal or silent',
  },
];

function asText(text: string): string {
  return text;
}

function asNumber(text: string): unknown {
  return /^[-+.\deE]+$/.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}

function asFlag(text: string): unknown {
  return text === 'true' ? true : text === 'false' ? false : text;
}

function asWorker(text: string, name: string): object {
  const [, id, rest] = /^([^=,]+)=(.+)$/.exec(text) ?? [];
  if (id === undefined)
    throw unread(name, text, 'ID=http://HOST:PORT[,events=tcp://HOST:PORT][,replay=tcp://HOST:PORT]');
  const [url, ...more] = rest!.split(',');
  return { id, url, ...fields(more, ['events', 'replay'], name, text) };
}

function asMaster(text: string, name: string): object {
  const [events, ...more] = text.split(',');
  return { events, ...fields(more, ['http'], name, text) };
}

function fields(parts: readonly string[], known: readonly string[], name: string, text: string): object {
  const found: Record<string, string> = {};
  for (const part of parts) {
    const [, field, value] = /^([a-z]+)=(.+)$/.exec(part) ?? [];
    if (field === undefined || !known.includes(field) || field in found) {
      throw unread(name, text, `after each comma ${known.map((one) => `${one}=…`).join(' or ')}, once`);
    }
    found[field] = value!;
  }
  return found;
}

function unread(name: string, text: string, words: string): ConfigError {
  return new ConfigError('option', `${name} is ${shown(withoutPassword(text))}; give ${words}.`);
}
