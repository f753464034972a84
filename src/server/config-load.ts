// From command line, environment and file to one document. What stands on the command line goes before the environment, that before the file, and
// all before the defaults; lists are replaced, not joined.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import { checkConfig, type ServerConfig } from './config.js';
import { CONFIG_FILE, CONFIG_SETTINGS, type ConfigSetting, MASTER_VARIABLE } from './config-settings.js';

/** Where settings are taken from. */
export interface ConfigSources {
  /** Parsed options by their names (`ConfigSetting.option`); repeated ones are lists. Others are not looked at. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads the file's bytes. Default from disk. */
  readonly read?: (file: string) => Uint8Array;
}

/** A document that is put together and not yet checked. */
export interface GatheredConfig {
  readonly document: Readonly<Record<string, unknown>>;
  /** The file's absolute name; null without one. */
  readonly file: string | null;
  /** By path, the flag or variable that gave a value. */
  readonly origins: ReadonlyMap<string, string>;
  /** It names neither a file nor a worker nor a master: nothing to route to. */
  readonly empty: boolean;
  /** What a person should know, in sentences. */
  readonly notes: readonly string[];
}

/** Largest configuration: inline contracts of 1,024 workers fit. */
const MAX_FILE_BYTES = 64 * 2 ** 20;

/**
 * Puts the document together.
 * @throws ConfigError `config-file` (unreadable, too large, no JSON object), `option`, `mooncake-store-endpoint` for a blank one
 */
export function gatherConfig({ flags, env, read = readBytes }: ConfigSources): GatheredConfig {
  const file = given(CONFIG_FILE, flags, env)?.texts[0];
  const document: Record<string, unknown> = file === undefined ? {} : readDocument(file, read);
  const ofFile = mastersOf(document);
  const origins = new Map<string, string>();
  for (const setting of CONFIG_SETTINGS) {
    const found = given(setting, flags, env);
    if (found === null) continue;
    const values = found.texts.map((text) => setting.read(text, found.name));
    place(document, setting.path!, setting.repeats ? values : values[0]);
    origins.set(setting.path!.join('.'), found.name);
  }
  const notes = settleMasters(document, origins, env, ofFile);
  return {
    document,
    file: file === undefined ? null : resolve(file),
    origins,
    empty: file === undefined && !('workers' in document) && mastersOf(document).length === 0,
    notes,
  };
}

/**
 * The configuration in force.
 * @throws ConfigError of `gatherConfig` and `checkConfig`
 */
export function loadConfig(sources: ConfigSources): GatheredConfig & { readonly config: ServerConfig } {
  const gathered = gatherConfig(sources);
  return { ...gathered, config: checkGathered(gathered, sources) };
}

/** @throws ConfigError of `checkConfig` */
export function checkGathered({ document, file, origins }: GatheredConfig, { env }: ConfigSources): ServerConfig {
  return checkConfig(document, { folder: file === null ? '.' : dirname(file), env, origins });
}

/** What was given of a setting, and by which name; null for nothing. A variable that is empty is not set, but that of the master (see there). */
function given(
  { flag, option, env: variable, repeats }: ConfigSetting,
  flags: ConfigSources['flags'],
  env: ConfigSources['env'],
): { readonly texts: readonly string[]; readonly name: string } | null {
  const said = flags[option];
  if (said !== undefined) return { texts: [said].flat().map(String), name: flag.split(' ')[0]! };
  const text = env[variable];
  if (text === undefined || text.trim() === '') return null;
  return { texts: repeats ? text.trim().split(/\s+/) : [text], name: variable };
}

/**
 * The field's variable names the master's event socket alone, and counts only where a store is set: it may be there for other routers. Blank, it is
 * refused then (spec/kv-events.md 6.4). A master of the file with that socket keeps its HTTP.
 */
function settleMasters(
  document: Record<string, unknown>,
  origins: Map<string, string>,
  env: ConfigSources['env'],
  ofFile: readonly unknown[],
): string[] {
  const sharedCache = asRecord(document['sharedCache']);
  const wanted = sharedCache?.['type'] === 'mooncake-store';
  const fromVariable = origins.get('sharedCache.masters') === MASTER_VARIABLE;
  if (wanted && !origins.has('sharedCache.masters') && env[MASTER_VARIABLE]?.trim() === '') {
    throw new ConfigError(
      'mooncake-store-endpoint',
      `mooncake-store requires ${MASTER_VARIABLE}: it is ${shown(env[MASTER_VARIABLE])}. Set it to tcp://HOST:PORT of the master's event socket, or unset it and name the master in sharedCache.masters.`,
    );
  }
  if (!fromVariable) return [];
  if (wanted) {
    const masters = mastersOf(document).map((master) => {
      const known = ofFile.find((one) => asRecord(one)?.['events'] === asRecord(master)?.['events']);
      return { ...asRecord(known), ...asRecord(master) };
    });
    place(document, ['sharedCache', 'masters'], masters);
    return [];
  }
  origins.delete('sharedCache.masters');
  const { masters: _, ...rest } = sharedCache!;
  document['sharedCache'] = ofFile.length === 0 ? rest : { ...rest, masters: ofFile };
  return [
    `${MASTER_VARIABLE} is set and not used, for no shared cache is; set --shared-cache-type mooncake-store, or DYN_SHARED_CACHE_TYPE, to read the store.`,
  ];
}

/** Puts a value in, making room for it. What is there and no object is left for the schema to refuse. */
function place(document: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name, below] = path as [string, string?];
  if (below === undefined) document[name] = value;
  else if (!(name in document)) document[name] = { [below]: value };
  else {
    const room = asRecord(document[name]);
    if (room !== null) document[name] = { ...room, [below]: value };
  }
}

function mastersOf(document: Readonly<Record<string, unknown>>): readonly unknown[] {
  const masters = asRecord(document['sharedCache'])?.['masters'];
  return Array.isArray(masters) ? masters : [];
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function readDocument(file: string, read: (file: string) => Uint8Array): Record<string, unknown> {
  let bytes: Uint8Array;
  try {
    bytes = read(file);
  } catch (error) {
    throw unusable(file, `can't be read: ${(error as Error).message}`);
  }
  if (bytes.length > MAX_FILE_BYTES) throw unusable(file, `has ${bytes.length} bytes, more than ${MAX_FILE_BYTES}`);
  let document: unknown;
  try {
    document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw unusable(file, `is not JSON: ${jsonFault(error)}`);
  }
  if (asRecord(document) === null) throw unusable(file, `holds ${shown(document)}, not an object`);
  return document as Record<string, unknown>;
}

/** What the parser says, without the text around the place that it quotes: it may be a key. */
function jsonFault(error: unknown): string {
  const place = /(?:at position \d+(?: \(line \d+ column \d+\))?)|end of JSON input/.exec(
    (error as Error).message,
  )?.[0];
  return place === undefined ? 'it can not be parsed' : `a fault ${place.startsWith('at') ? place : `at the ${place}`}`;
}

function unusable(file: string, why: string): ConfigError {
  return new ConfigError(
    'config-file',
    `the configuration file ${file} ${why}. Give one JSON document as config.schema.json describes.`,
  );
}

function readBytes(file: string): Uint8Array {
  return readFileSync(file);
}
