// A worker as somebody registers it, checked field by field and filled up with defaults: what comes over HTTP is anything.
import { isIP } from 'node:net';
import { shown } from '../contract/descriptor.js';
import { MoonrouteError } from '../errors.js';
import { parseEndpoint } from '../live/zmtp/endpoint.js';
import { planeIdFrom } from '../router/worker-info.js';
import { isAbsent, isMap } from '../wire/values.js';
import type { WorkerSpec } from './types.js';

/** Longest name, and longest address. */
const MAX_ID = 256;
const MAX_ADDRESS = 1024;
const MAX_TOPIC = 1024;
/** Ranks that a worker can have, as the configuration bounds them. */
const MAX_RANKS = 1024;
const MAX_FILE_NAME = 4096;

const FIELDS = ['id', 'url', 'events', 'replay', 'topic', 'dpRanks', 'contract', 'plane'];

/**
 * Checks a worker. Only the configuration may name files and sockets of this machine.
 * @throws MoonrouteError `worker-spec` that names the field
 */
export function checkSpec(given: unknown, configured: boolean): WorkerSpec {
  if (!isMap(given)) throw wrong('a worker', given, 'give an object with id and url');
  const { id, url, topic, dpRanks, contract } = given;
  if (typeof id !== 'string' || !/^[!-~]+$/.test(id) || id.length > MAX_ID) {
    throw wrong('id', id, `give a name of 1 to ${MAX_ID} printable characters without spaces`);
  }
  const unknown = Object.keys(given).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) throw wrong('a field', unknown, `the fields are ${FIELDS.join(', ')}`, id);
  if (!(isAbsent(topic) || (typeof topic === 'string' && topic.length <= MAX_TOPIC))) {
    throw wrong('topic', topic, 'give a text', id);
  }
  const ranks = ranksOf(id, dpRanks);
  const events = endpointsOf(id, 'events', given['events'], ranks.size, configured);
  const replay = endpointsOf(id, 'replay', given['replay'], ranks.size, configured);
  if (events === null && replay !== null) throw wrong('replay', replay, 'give events as well', id);
  const plane = planeOf(id, given['plane']);
  if (plane !== null && events !== null) throw wrong('plane', given['plane'], 'give it or events, not both', id);
  return {
    id,
    url: urlOf(id, url),
    events,
    replay,
    topic: topic ?? '',
    dpRanks: ranks,
    contract: contractOf(id, contract, configured),
    ...(plane === null ? {} : { plane }),
  };
}

/** The host of an HTTP address or of an endpoint, without brackets. Null for sockets of this machine. */
export function hostOf(address: string): string | null {
  if (!address.startsWith('http:')) {
    const endpoint = parseEndpoint(address);
    return endpoint.kind === 'tcp' ? endpoint.host : null;
  }
  return new URL(address).hostname.replace(/^\[|\]$/g, '');
}

/** The same address with another host. */
export function withHost(address: string, host: string): string {
  const [, scheme, rest] = /^([a-z]+:\/\/)(?:\[[^\]]*\]|[^:/]*)(.*)$/.exec(address)!;
  return `${scheme}${isIP(host) === 6 ? `[${host}]` : host}${rest}`;
}

function urlOf(id: string, given: unknown): string {
  const words = 'give http://HOST:PORT, without a path, user or query';
  if (typeof given !== 'string' || given.length > MAX_ADDRESS || !URL.canParse(given)) {
    throw wrong('url', given, words, id);
  }
  const { protocol, username, password, pathname, search, hash, hostname, origin } = new URL(given);
  const rest = username + password + search + hash;
  if (protocol !== 'http:' || hostname === '' || pathname !== '/' || rest !== '' || /[?#@]/.test(given)) {
    // What stands before an @ is a secret.
    throw wrong('url', given.includes('@') ? 'a url with a user' : given, words, id);
  }
  return origin;
}

function endpointsOf(
  id: string,
  name: 'events' | 'replay',
  given: unknown,
  size: number,
  configured: boolean,
): WorkerSpec['events'] {
  if (isAbsent(given)) return null;
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (Array.isArray(given) && given.length !== size) {
    throw wrong(name, given, `give one endpoint, or one for each of the ${size} ranks`, id);
  }
  for (const endpoint of list) {
    const words = configured ? 'give tcp://HOST:PORT or ipc:///path' : 'give tcp://HOST:PORT';
    if (typeof endpoint !== 'string' || endpoint.length > MAX_ADDRESS || !isEndpoint(endpoint, configured)) {
      throw wrong(name, endpoint, words, id);
    }
  }
  return given as WorkerSpec['events'];
}

function isEndpoint(text: string, configured: boolean): boolean {
  try {
    return parseEndpoint(text).kind === 'tcp' || configured;
  } catch {
    return false;
  }
}

function ranksOf(id: string, given: unknown): WorkerSpec['dpRanks'] {
  if (isAbsent(given)) return { start: 0, size: 1 };
  const { start = 0, size = 1 } = (isMap(given) ? given : {}) as { readonly start?: unknown; readonly size?: unknown };
  const known = isMap(given) && Object.keys(given).every((key) => key === 'start' || key === 'size');
  if (known && isWhole(start, 0, MAX_RANKS - 1) && isWhole(size, 1, MAX_RANKS)) return { start, size };
  throw wrong('dpRanks', JSON.stringify(given), `give {start, size}, whole numbers, at most ${MAX_RANKS} ranks`, id);
}

function contractOf(id: string, given: unknown, configured: boolean): WorkerSpec['contract'] {
  if (given === undefined) return 'endpoint';
  if (given === null || given === 'endpoint') return given;
  const [key, ...others] = isMap(given) ? Object.keys(given) : [];
  if (isMap(given) && others.length === 0) {
    if (key === 'inline' && isMap(given[key])) return { inline: given[key] };
    const file = given['file'];
    if (key === 'file' && configured && typeof file === 'string' && file !== '' && file.length <= MAX_FILE_NAME) {
      return { file };
    }
  }
  const file = configured ? ', {"file": NAME}' : '';
  throw wrong('contract', given, `give "endpoint", {"inline": {…}}${file}, or null`, id);
}

function planeOf(id: string, given: unknown): NonNullable<WorkerSpec['plane']> | null {
  if (isAbsent(given)) return null;
  const isKnown = isMap(given) && Object.keys(given).every((key) => key === 'workerId');
  const workerId = isKnown ? (given['workerId'] ?? null) : null;
  if (isKnown && planeIdFrom(workerId ?? id) !== null) {
    return { workerId: workerId as string | number | null };
  }
  throw wrong('plane', given, 'give {workerId}, its number on the event plane: 0 to 2^64 - 1, in decimal', id);
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function wrong(field: string, value: unknown, fix: string, id?: string): MoonrouteError {
  const worker = id === undefined ? '' : `worker ${id}: `;
  return new MoonrouteError('worker-spec', `${worker}${field} is ${shown(value)}; ${fix}.`);
}
