// The settings of the `kv` policy and of the shared cache, with the defaults, ranges and refusals of spec/kv-events.md 7.3; the blank
// endpoint is refused as in 6.4. Whatever is wrong is refused at start, by name (design.md 7). A message begins with the text of the
// specification, whose setting names are those of the command line, and ends with the name used here and the value seen.
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';

/** Where prefixes live that any worker can restore. */
export type SharedCacheType = 'none' | 'mooncake-store';

/** Validated settings. Weights have no unit: they are the worth of a cached block, a block on the GPU being worth 1. */
export interface RouterSettings {
  /** Worth of a block that the worker's device holds: 0 or more. */
  readonly overlapScoreCredit: number;
  /** How fast that worth falls with a worker's excess prefill load: 0 (not at all) or more. */
  readonly overlapScoreCreditDecay: number;
  /** Cost of one block to prefill, in blocks of decode load: 0 or more. */
  readonly prefillLoadScale: number;
  /** Cost of one active request, in blocks: 0 or more. */
  readonly decodeActiveRequestWeight: number;
  /** Worth of a block in the worker's host memory: 0 … 1. */
  readonly hostCacheHitWeight: number;
  /** Worth of a block on the worker's disk or in its external tier: 0 … 1. */
  readonly diskCacheHitWeight: number;
  /** Worth of a block that only the shared cache holds: 0 … 1. A request may override it. */
  readonly sharedCacheMultiplier: number;
  readonly sharedCacheType: SharedCacheType;
  /** The master's event socket; null where the caller hands in the messages itself. */
  readonly mooncakeKvEventsEndpoint: string | null;
  /** The workers' GPU events are read. */
  readonly useKvEvents: boolean;
  /** Another process answers what workers hold. */
  readonly useRemoteIndexer: boolean;
  /** Route by load alone. */
  readonly loadAware: boolean;
  /** How long a routed prefix is believed to stay cached where no events tell, in seconds: 0 or more. */
  readonly routerTtlSecs: number;
  /** 0 picks the least cost. Above it, a candidate that costs so many units more is e times less likely: 0 or more. */
  readonly temperature: number;
  /** Seed of the random choices, an unsigned 32-bit number. See `RouterOptions.settings` for what else follows from it. */
  readonly seed: number;
}

/** Settings as they are given: those left out, or undefined, take their defaults. */
export type RouterSettingsInput = { readonly [Name in keyof RouterSettings]?: RouterSettings[Name] | undefined };

/** What a number may be, in words and as a test. */
interface NumberRange {
  readonly words: string;
  readonly holds: (value: number) => boolean;
}

const UNIT: NumberRange = { words: 'between 0 and 1', holds: (value) => value >= 0 && value <= 1 };
const NOT_NEGATIVE: NumberRange = {
  words: 'a finite number, 0 or more',
  holds: (value) => Number.isFinite(value) && value >= 0,
};
const MAX_SEED = 2 ** 32 - 1;
const SEED: NumberRange = {
  words: `a whole number between 0 and ${MAX_SEED}`,
  holds: (value) => Number.isInteger(value) && value >= 0 && value <= MAX_SEED,
};

/** The multiplier where a shared cache is named and no value given (the command line's default in 7.3), and where none is. */
const MULTIPLIER_WITH_CACHE = 0.5;
const MULTIPLIER_WITHOUT = 0;

const TYPES: readonly SharedCacheType[] = ['none', 'mooncake-store'];

/** What contradicts a Mooncake store: a setting, its state, and the refusal's text. In the order of 7.3, then 6.4. */
interface Conflict {
  readonly code: string;
  readonly text: string;
  readonly name: keyof RouterSettings;
  readonly holds: (settings: RouterSettings) => boolean;
}

const MOONCAKE_CONFLICTS: readonly Conflict[] = [
  {
    code: 'mooncake-store-remote-indexer',
    text: 'shared_cache_type=mooncake-store requires use_remote_indexer=false',
    name: 'useRemoteIndexer',
    holds: (settings) => settings.useRemoteIndexer,
  },
  {
    code: 'mooncake-store-kv-events',
    text: 'shared_cache_type=mooncake-store requires use_kv_events=true',
    name: 'useKvEvents',
    holds: (settings) => !settings.useKvEvents,
  },
  {
    code: 'mooncake-store-overlap-score-credit',
    text: 'shared_cache_type=mooncake-store requires overlap_score_credit > 0',
    name: 'overlapScoreCredit',
    holds: (settings) => settings.overlapScoreCredit === 0,
  },
  {
    code: 'mooncake-store-load-aware',
    text: '--shared-cache-type=mooncake-store is incompatible with --load-aware',
    name: 'loadAware',
    holds: (settings) => settings.loadAware,
  },
  {
    code: 'mooncake-store-endpoint',
    text: 'mooncake-store requires DYN_MOONCAKE_KV_EVENTS_ENDPOINT',
    name: 'mooncakeKvEventsEndpoint',
    holds: (settings) => settings.mooncakeKvEventsEndpoint?.trim() === '',
  },
];

/**
 * The settings with every default filled in, frozen.
 * @throws ConfigError, of several faults the first in this order: `malformed-settings`, `hicache-not-supported` or
 *   `unknown-shared-cache-type`, a setting's name in kebab-case where its value is out of range, `unknown-setting`, and the
 *   contradictions `mooncake-store-…` in the order of 7.3.
 */
export function validateSettings(given: RouterSettingsInput = {}): RouterSettings {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new ConfigError(
      'malformed-settings',
      `router settings must be an object of named values: got ${shown(given)}`,
    );
  }
  const sharedCacheType = sharedCacheTypeOf(given.sharedCacheType);
  const multiplier = sharedCacheType === 'none' ? MULTIPLIER_WITHOUT : MULTIPLIER_WITH_CACHE;
  const settings: RouterSettings = {
    overlapScoreCredit: numberOf(given, 'overlapScoreCredit', 1, NOT_NEGATIVE),
    overlapScoreCreditDecay: numberOf(given, 'overlapScoreCreditDecay', 0, NOT_NEGATIVE),
    prefillLoadScale: numberOf(given, 'prefillLoadScale', 1, NOT_NEGATIVE),
    decodeActiveRequestWeight: numberOf(given, 'decodeActiveRequestWeight', 0, NOT_NEGATIVE),
    hostCacheHitWeight: numberOf(given, 'hostCacheHitWeight', 0.75, UNIT),
    diskCacheHitWeight: numberOf(given, 'diskCacheHitWeight', 0.25, UNIT),
    sharedCacheMultiplier: numberOf(given, 'sharedCacheMultiplier', multiplier, UNIT),
    sharedCacheType,
    mooncakeKvEventsEndpoint: endpointOf(given),
    useKvEvents: flagOf(given, 'useKvEvents', true),
    useRemoteIndexer: flagOf(given, 'useRemoteIndexer', false),
    loadAware: flagOf(given, 'loadAware', false),
    routerTtlSecs: numberOf(given, 'routerTtlSecs', 120, NOT_NEGATIVE),
    temperature: numberOf(given, 'temperature', 0, NOT_NEGATIVE),
    seed: numberOf(given, 'seed', 0, SEED),
  };
  refuseUnknown(given, settings);
  if (sharedCacheType === 'mooncake-store') refuseConflicts(settings);
  return Object.freeze(settings);
}

/**
 * The multiplier of one request: its own where it has one, else that of the settings.
 * @throws ConfigError `shared-cache-multiplier`.
 */
export function multiplierFor(settings: RouterSettings, override?: number): number {
  return numberOf({ sharedCacheMultiplier: override }, 'sharedCacheMultiplier', settings.sharedCacheMultiplier, UNIT);
}

function numberOf(
  given: RouterSettingsInput,
  name: keyof RouterSettings,
  fallback: number,
  range: NumberRange,
): number {
  const value: unknown = given[name];
  if (value === undefined) return fallback;
  if (typeof value !== 'number' || !range.holds(value)) throw wrong(name, range.words, value);
  return value;
}

function flagOf(given: RouterSettingsInput, name: keyof RouterSettings, fallback: boolean): boolean {
  const value: unknown = given[name];
  if (value === undefined) return fallback;
  if (typeof value !== 'boolean') throw wrong(name, 'true or false', value);
  return value;
}

function endpointOf(given: RouterSettingsInput): string | null {
  const value: unknown = given.mooncakeKvEventsEndpoint;
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw wrong('mooncakeKvEventsEndpoint', 'a text', value);
  return value;
}

function sharedCacheTypeOf(value: unknown): SharedCacheType {
  if (value === undefined) return 'none';
  const type = TYPES.find((known) => known === value);
  if (type !== undefined) return type;
  const instead = `use ${TYPES.join(' or ')}`;
  if (value === 'hicache') {
    throw new ConfigError('hicache-not-supported', `shared_cache_type=hicache is not supported: ${instead}`);
  }
  throw new ConfigError('unknown-shared-cache-type', `unknown shared_cache_type: ${shown(value)}; ${instead}`);
}

function refuseUnknown(given: object, settings: RouterSettings): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(settings, name));
  if (unknown === undefined) return;
  const known = Object.keys(settings).join(', ');
  throw new ConfigError('unknown-setting', `unknown router setting ${shown(unknown)}; the settings are ${known}`);
}

function refuseConflicts(settings: RouterSettings): void {
  const conflict = MOONCAKE_CONFLICTS.find(({ holds }) => holds(settings));
  if (conflict === undefined) return;
  const { code, text, name } = conflict;
  throw new ConfigError(code, `${text}: ${name} is ${shown(settings[name])}`);
}

function wrong(name: keyof RouterSettings, words: string, value: unknown): ConfigError {
  return new ConfigError(spelt(name, '-'), `${spelt(name, '_')} must be ${words}: ${name} is ${shown(value)}`);
}

/** A setting's name in lower-case words, as the command line and error codes spell it. */
function spelt(name: string, between: '-' | '_'): string {
  return name.replace(/[A-Z]/g, (letter) => between + letter.toLowerCase());
}
