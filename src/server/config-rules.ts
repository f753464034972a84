// What one setting demands of another, and what a pattern can't say: each a rule with its refusal. The first that speaks is thrown.
import { isIP, isIPv4 } from 'node:net';
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import { readAddresses } from '../live/plane/transport/address.js';
import { parseEndpoint } from '../live/zmtp/endpoint.js';
import type { ServerConfig } from './config.js';
import { withoutPassword } from './config-refusal.js';
import { MOST_RANKS } from './config-router.js';
import { refuseOpen } from './http/auth.js';
import { planeIdOf } from './plane.js';

const MAX_PORT = 65_535;
type Worker = ServerConfig['workers'][number];

/**
 * Holds the settings against each other.
 * @throws ConfigError `tenant-not-supported`, `masters-without-type`, `hashing-without-type`, `trust-seed-learned`, `unverified-without-type`, `master-http`, `endpoint`,
 *   `address`, `worker-id-twice`, `replay-without-events`, `endpoints-per-rank`, `too-many-ranks`,
 *   `plane-…` (`refusePlane`), `network`, `key-twice`, `open-to-all`
 */
export function refuseContradictions(config: ServerConfig): void {
  refuseStore(config);
  const ids = new Set<string>();
  for (const [at, worker] of config.workers.entries()) {
    if (ids.has(worker.id)) {
      throw new ConfigError(
        'worker-id-twice',
        `workers.${at}.id is ${shown(worker.id)}, which another worker has; give each its own.`,
      );
    }
    ids.add(worker.id);
    refuseWorker(worker, `workers.${at}`);
  }
  refusePlane(config);
  const ranks = config.workers.reduce((sum, { dpRanks }) => sum + dpRanks.size, 0);
  if (ranks > MOST_RANKS) {
    throw new ConfigError(
      'too-many-ranks',
      `workers have ${ranks} data-parallel ranks together, and one router knows ${MOST_RANKS}; share them out among several.`,
    );
  }
  for (const [at, network] of (config.registration.networks ?? []).entries()) {
    refuseNetwork(network, `registration.networks.${at}`);
  }
  const { clientKeys, adminKeys } = config.auth;
  const both = adminKeys.findIndex((key) => clientKeys.includes(key));
  if (both >= 0) {
    throw new ConfigError(
      'key-twice',
      `auth.adminKeys.${both} is a client's key too, so that clients could administer; give administrators a key of their own.`,
    );
  }
  refuseOpen(config);
}

function refuseStore({ sharedCache }: ServerConfig): void {
  const { type, tenant, masters, hashing, trustSeed, allowUnverifiedContract } = sharedCache;
  if (tenant !== 'default') {
    throw new ConfigError(
      'tenant-not-supported',
      `sharedCache.tenant is ${shown(tenant)}, and vLLM's connector stores under default alone; leave it out, or set it to default.`,
    );
  }
  if (type === 'none' && masters.length > 0) {
    throw new ConfigError(
      'masters-without-type',
      `sharedCache.masters names ${masters.length}, and sharedCache.type is "none"; set sharedCache.type to mooncake-store (--shared-cache-type), or leave the masters out.`,
    );
  }
  if (trustSeed && hashing === 'learned') {
    throw new ConfigError(
      'trust-seed-learned',
      'sharedCache.trustSeed is true, and sharedCache.hashing is "learned", which makes no hashes by a seed; set sharedCache.hashing to derived or both (--hashing), or leave trustSeed out.',
    );
  }
  if (type === 'none' && hashing !== 'learned') {
    throw new ConfigError(
      'hashing-without-type',
      `sharedCache.hashing is ${shown(hashing)}, and sharedCache.type is "none", where no hash is asked for; set sharedCache.type to mooncake-store (--shared-cache-type), or leave hashing out.`,
    );
  }
  if (type === 'none' && allowUnverifiedContract) {
    throw new ConfigError(
      'unverified-without-type',
      'sharedCache.allowUnverifiedContract is true, and sharedCache.type is "none", where no contract counts; set sharedCache.type to mooncake-store (--shared-cache-type), or leave it out.',
    );
  }
  for (const [at, { events, http }] of masters.entries()) {
    refuseEndpoint(events, `sharedCache.masters.${at}.events`);
    if (http !== null) refuseAddress(http, `sharedCache.masters.${at}.http`);
    else if (masters.length > 1) {
      throw new ConfigError(
        'master-http',
        `sharedCache.masters.${at}.http is null, and which of several masters serves is asked over HTTP; give http://HOST:PORT of its admin port.`,
      );
    }
  }
}

/**
 * @throws ConfigError `plane-without-model`, `plane-url`, `plane-load-times`, `plane-load-sockets`, `endpoint`, `plane-without-event-plane`,
 *   `plane-and-events`, `plane-worker-id`, `plane-worker-id-twice`
 */
function refusePlane({ eventPlane, workers, model }: ServerConfig): void {
  if (eventPlane !== null) refuseEventPlane(eventPlane, model);
  const ids = new Map<bigint, number>();
  for (const [at, worker] of workers.entries()) {
    if (worker.plane === null) continue;
    const path = `workers.${at}.plane`;
    if (eventPlane === null) {
      throw new ConfigError(
        'plane-without-event-plane',
        `${path} is given, and eventPlane is null; say in eventPlane.url where the plane is, or give the worker's events instead.`,
      );
    }
    if (worker.events !== null) {
      throw new ConfigError(
        'plane-and-events',
        `${path} is given, and workers.${at}.events is ${shown(worker.events)}: its events would be counted twice; give one of them.`,
      );
    }
    const id = planeIdOf(worker);
    if (id === null) {
      throw new ConfigError(
        'plane-worker-id',
        `${path}.workerId is ${shown(worker.plane.workerId)}, and the worker's id ${shown(worker.id)} is no number on a plane; give ${path}.workerId, as its publisher has it: a whole number from 0 to 2^64 - 1.`,
      );
    }
    const other = ids.get(id);
    if (other !== undefined) {
      throw new ConfigError(
        'plane-worker-id-twice',
        `${path}.workerId is ${id}, which workers.${other} has; give each the number under which its own publisher sends.`,
      );
    }
    ids.set(id, at);
  }
}

function refuseEventPlane({ url, load }: NonNullable<ServerConfig['eventPlane']>, model: string | null): void {
  if (model === null) {
    throw new ConfigError(
      'plane-without-model',
      'eventPlane is given, and model is null, by which the plane is named; set model as the publishers have it.',
    );
  }
  const { every, atLeast, goodFor, bind, peers } = load;
  if (every > atLeast || atLeast >= goodFor) {
    throw new ConfigError(
      'plane-load-times',
      `eventPlane.load has every ${every}, atLeast ${atLeast}, goodFor ${goodFor}; give them in rising order, goodFor above atLeast.`,
    );
  }
  let isZmq: boolean;
  try {
    isZmq = Array.isArray(readAddresses(url));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const seen = [url].flat().map(withoutPassword);
    throw new ConfigError(
      error.code,
      `eventPlane.url is ${shown(seen.length === 1 ? seen[0] : seen)}: ${withoutPassword(error.message)}`,
    );
  }
  if (!isZmq && (bind !== null || peers.length > 0)) {
    throw new ConfigError(
      'plane-load-sockets',
      `eventPlane.load.${bind === null ? 'peers' : 'bind'} is given, and the plane is NATS, which carries load itself; leave it out.`,
    );
  }
  if (bind !== null && parseBind(bind) === null) refuseEndpoint(bind, 'eventPlane.load.bind');
  for (const [at, peer] of peers.entries()) refuseEndpoint(peer, `eventPlane.load.peers.${at}`);
}

/** To bind, port 0 takes any. */
function parseBind(endpoint: string): string | null {
  return /^tcp:\/\/.+:0$/.test(endpoint) ? endpoint : null;
}

function refuseWorker({ url, events, replay, dpRanks }: Worker, path: string): void {
  refuseAddress(url, `${path}.url`);
  if (events === null && replay !== null) {
    throw new ConfigError(
      'replay-without-events',
      `${path}.replay is given, and ${path}.events is null; give the events' endpoint too, or leave replay out.`,
    );
  }
  for (const [name, given] of [['events', events] as const, ['replay', replay] as const]) {
    if (given !== null) refuseRankEndpoints(given, dpRanks, `${path}.${name}`);
  }
}

function refuseRankEndpoints(
  given: string | readonly string[],
  { start, size }: Worker['dpRanks'],
  path: string,
): void {
  if (typeof given !== 'string') {
    for (const [rank, endpoint] of given.entries()) refuseEndpoint(endpoint, `${path}.${rank}`);
    if (given.length === size) return;
    throw new ConfigError(
      'endpoints-per-rank',
      `${path} has ${given.length} endpoints for ${size} ranks (dpRanks.size); give one each, or rank 0's alone.`,
    );
  }
  const endpoint = refuseEndpoint(given, path);
  if (start === 0 && size === 1) return;
  if (endpoint.kind === 'tcp' && endpoint.port + start + size - 1 <= MAX_PORT) return;
  throw new ConfigError(
    'endpoints-per-rank',
    `${path} is ${shown(given)}, from which no ports of ranks ${start} to ${start + size - 1} follow (port + rank); give a list with one endpoint each.`,
  );
}

function refuseEndpoint(endpoint: string, path: string): ReturnType<typeof parseEndpoint> {
  try {
    return parseEndpoint(endpoint);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(
      error.code,
      `${path} is ${shown(endpoint)}; give tcp://HOST:PORT with a port from 1 to ${MAX_PORT}, or ipc:///path.`,
    );
  }
}

/** Patterns let pass what only a parser knows, such as ports past the last one. */
function refuseAddress(url: string, path: string): void {
  if (URL.canParse(url) && new URL(url).port !== '0') return;
  throw new ConfigError(
    'address',
    `${path} is ${shown(url)}; give http://HOST:PORT with a port from 1 to ${MAX_PORT}.`,
  );
}

function refuseNetwork(network: string, path: string): void {
  const [address, bits] = network.split('/') as [string, string];
  if (isIP(address) !== 0 && Number(bits) <= (isIPv4(address) ? 32 : 128)) return;
  throw new ConfigError('network', `${path} is ${shown(network)}; give a network like 10.0.0.0/8 or fd00::/8.`);
}
