// The router's part of the configuration: its options, and its own refusals under the paths of the configuration, with what to do.
import { ConfigError } from '../errors.js';
import { planRouter, type RouterOptions } from '../router/router-options.js';
import { type RouterSettingsInput, validateSettings } from '../router/settings.js';
import type { ServerConfig } from './config.js';

/** Ranks that the router has room for at least, and at most. */
const LEAST_RANKS = 64;
export const MOST_RANKS = 1024;

/** Where the router's settings stand in the configuration; all others stand under `router`. */
const PLACES: Readonly<Record<string, string>> = {
  sharedCacheType: 'sharedCache.type',
  sharedCacheMultiplier: 'sharedCache.multiplier',
  mooncakeKvEventsEndpoint: 'sharedCache.masters',
};

/** What to do about the router's contradictions, by its codes. Its other refusals say themselves what should stand there. */
const FIXES: Readonly<Record<string, string>> = {
  'mooncake-store-remote-indexer': 'Set router.useRemoteIndexer to false.',
  'mooncake-store-kv-events': 'Set router.useKvEvents to true, or sharedCache.type to none.',
  'mooncake-store-overlap-score-credit': 'Set router.overlapScoreCredit above 0, or sharedCache.type to none.',
  'mooncake-store-load-aware': 'Set router.loadAware to false, or sharedCache.type to none.',
  'mooncake-store-endpoint':
    "Set that variable to tcp://HOST:PORT of the master's event socket, or name the master in sharedCache.masters.",
};

/** How the router is made. */
export function routerOptionsOf(config: ServerConfig): RouterOptions {
  const { router, sharedCache, policy, role, blockSize, strictContracts, workers } = config;
  const shared = sharedCache.type !== 'none';
  const ranks = workers.reduce((sum, { dpRanks }) => sum + dpRanks.size, 0);
  return {
    settings: {
      ...router,
      sharedCacheType: sharedCache.type,
      sharedCacheMultiplier: shared ? sharedCache.multiplier : undefined,
      mooncakeKvEventsEndpoint: shared ? (sharedCache.masters[0]?.events ?? '') : null,
    },
    policy,
    role,
    blockSize,
    strictContracts,
    // Room for twice the configured ranks, since workers may be added later, and are there twice while a rollout goes on.
    index: { ranks: Math.min(MOST_RANKS, Math.max(LEAST_RANKS, 2 * ranks)) },
    cache: {
      hashing: sharedCache.hashing,
      trustSeed: sharedCache.trustSeed,
      allowUnverifiedContract: sharedCache.allowUnverifiedContract,
    },
  };
}

/** @throws ConfigError of `planRouter`, with paths of the configuration */
export function refuseRouterSettings(config: ServerConfig): void {
  try {
    planRouter(routerOptionsOf(config));
  } catch (error) {
    throw error instanceof ConfigError ? placed(error) : error;
  }
}

/** The router's own refusal of a wrong value; null when the value is not the router's, or it has nothing against it. */
export function routerRefusal(
  path: readonly PropertyKey[],
  given: object,
  origin: string | undefined,
): ConfigError | null {
  const [room, name] = path;
  if (room !== 'router' && !(room === 'sharedCache' && (name === 'type' || name === 'multiplier'))) return null;
  const { router, sharedCache } = given as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
  if (path.length !== 2) return null;
  const value = (room === 'router' ? router : sharedCache)?.[name as string];
  const setting = room === 'router' ? (name as string) : name === 'type' ? 'sharedCacheType' : 'sharedCacheMultiplier';
  try {
    validateSettings({ [setting]: value } as RouterSettingsInput);
    return null;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { code, message } = placed(error);
    return new ConfigError(code, `${message} (${path.join('.')}${origin === undefined ? '' : `, from ${origin}`})`);
  }
}

/** The error with paths of the configuration in place of the router's names, and the fix. */
function placed({ code, message }: ConfigError): ConfigError {
  const text = message.replace(
    /(?<=[:;.] )([a-z]+[A-Z][A-Za-z]*|temperature|seed)(?= is )/,
    (name) => PLACES[name] ?? `router.${name}`,
  );
  const fix = FIXES[code];
  const said = code === 'mooncake-store-endpoint' ? text.replace(/ is ""$/, ' names none') : text;
  return new ConfigError(code, fix === undefined ? said : `${said}. ${fix}`);
}
