// Who may ask: bearer keys, kept as digests and compared in constant time against every key, so that neither a key's bytes nor which of them came
// close can be learned from the time that a refusal takes. Clients' keys and administrators' open different doors.
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { ConfigError } from '../../errors.js';
import type { ServerConfig } from '../config.js';
import { ApiError } from './errors.js';

/** Which door a request wants to go through. `either` opens with both kinds of keys. */
export type Door = 'client' | 'admin' | 'either';

/** Who was let in. */
export interface Caller {
  /** The same for the same key, and not the key; empty for whoever needs none and has none. */
  readonly id: string;
  readonly isAdmin: boolean;
}

/** Longest key that is looked at: longer ones are hashed no more than anybody else's. */
const MAX_KEY_CHARACTERS = 1024;

/** The doors with their keys. */
export class Keys {
  readonly #client: readonly Buffer[];
  readonly #admin: readonly Buffer[];

  constructor({ clientKeys, adminKeys }: ServerConfig['auth']) {
    this.#client = clientKeys.map(digest);
    this.#admin = adminKeys.map(digest);
  }

  /** Whether anybody who can connect may do everything. Only a loopback address is served so (`refuseOpen`). */
  get open(): boolean {
    return this.#client.length === 0 && this.#admin.length === 0;
  }

  /**
   * Says who asks, and refuses who has no key for the door.
   * @param authorization the header; null for none
   * @param host the `host` header. Where everybody may do everything, a browser that was led here by a name must not: names of others can point to
   *   this machine, its own addresses can not be taken by them.
   * @throws ApiError 401, 403
   */
  check(door: Door, authorization: string | null, host: string | null): Caller {
    if (this.open) {
      if (isOwnName(host)) return { id: '', isAdmin: true };
      throw new ApiError(
        403,
        'host-not-allowed',
        'without keys, only requests to addresses and localhost are served. Ask by address, or configure auth.clientKeys and auth.adminKeys.',
      );
    }
    const given = bearerOf(authorization);
    const hashed = digest(given ?? '');
    const isClient = given !== null && matches(hashed, this.#client);
    const isAdmin = given !== null && matches(hashed, this.#admin);
    const caller = { id: isClient || isAdmin ? hashed.toString('hex') : '', isAdmin };
    const opens = { client: isClient, admin: isAdmin, either: isClient || isAdmin };
    if (opens[door] || (door !== 'admin' && this.#client.length === 0)) return caller;
    if (given === null) throw unauthorised('no bearer key was given. Send `authorization: Bearer KEY`.');
    if (isClient || isAdmin) {
      throw new ApiError(403, 'wrong-kind-of-key', `this needs a key for ${door === 'client' ? 'clients' : 'admins'}.`);
    }
    throw unauthorised('the bearer key is not known here.');
  }
}

/**
 * Refuses to serve everybody on an address that others can reach.
 * @throws ConfigError `open-to-all`
 */
export function refuseOpen({ listen, auth }: Pick<ServerConfig, 'listen' | 'auth'>): void {
  if (auth.clientKeys.length > 0 || isLoopback(listen.host)) return;
  throw new ConfigError(
    'open-to-all',
    `listen.host is '${listen.host}' and auth.clientKeys is empty: everybody who reaches it could use it. Give auth.clientKeys, or listen on 127.0.0.1.`,
  );
}

/** Whether only this machine reaches the address. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}

/** Whether a `host` header names an address, or localhost. */
function isOwnName(host: string | null): boolean {
  if (host === null) return false;
  const name = host.replace(/:\d*$/, '').toLowerCase();
  return name === 'localhost' || name.startsWith('[') || isIPv4(name);
}

function bearerOf(authorization: string | null): string | null {
  const [, key] = /^bearer +([!-~]+) *$/i.exec(authorization ?? '') ?? [];
  return key === undefined || key.length > MAX_KEY_CHARACTERS ? null : key;
}

/** Looks at all of them, whichever fits. */
function matches(hashed: Buffer, keys: readonly Buffer[]): boolean {
  let found = false;
  for (const key of keys) found = timingSafeEqual(hashed, key) || found;
  return found;
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

function unauthorised(text: string): ApiError {
  return new ApiError(401, 'invalid_api_key', text, { headers: { 'www-authenticate': 'Bearer realm="moonroute"' } });
}
