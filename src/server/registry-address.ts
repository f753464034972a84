// Registration from outside must not make this server a way into networks that the caller can't reach (SSRF). Every host of a worker is resolved once,
// here; all its addresses must be in networks that are allowed; and from then on the address stands in place of the name, so that a name that leads
// elsewhere a moment later changes nothing.
import { lookup } from 'node:dns/promises';
import { MoonrouteError } from '../errors.js';
import { type Address, LOOPBACK, Networks, parseAddress } from './networks.js';
import { hostOf, withHost } from './registry-spec.js';
import type { WorkerSpec } from './types.js';

/** Finds the addresses of a host name. Throws where there are none. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** Longest time for one name. The system's own question can't be taken back, and ends by itself. */
const RESOLVE_MS = 3000;

/** The system's own. */
export const systemResolve: Resolve = async (host) => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer after ${RESOLVE_MS} ms`)), RESOLVE_MS);
  });
  try {
    return (await Promise.race([lookup(host, { all: true }), late])).map(({ address }) => address);
  } finally {
    clearTimeout(timer);
  }
};

/** Who may register. */
export interface AddressRules {
  /** Networks (CIDR); null for loopback and the hosts of configured workers. */
  readonly networks: readonly string[] | null;
  /** Addresses of the configured workers. */
  readonly configured: () => Iterable<WorkerSpec>;
  readonly resolve: Resolve;
}

/**
 * The worker with addresses in place of names.
 * @throws MoonrouteError `worker-address` for a host that may not be, or can't be resolved
 */
export async function pinned(spec: WorkerSpec, rules: AddressRules): Promise<WorkerSpec> {
  const networks = await networksOf(rules);
  const known = new Map<string, string>();
  const pin = async (what: string, address: string): Promise<string> => {
    const host = hostOf(address)!;
    let found = known.get(host);
    if (found === undefined) {
      found = await allowed(spec.id, what, host, networks, rules.resolve);
      known.set(host, found);
    }
    return withHost(address, found);
  };
  const pinAll = async (what: string, given: WorkerSpec['events']): Promise<WorkerSpec['events']> => {
    if (given === null) return null;
    if (typeof given === 'string') return pin(what, given);
    const list: string[] = [];
    for (const endpoint of given) list.push(await pin(what, endpoint));
    return list;
  };
  const url = await pin('url', spec.url);
  const events = await pinAll('events', spec.events);
  const replay = await pinAll('replay', spec.replay);
  return { ...spec, url, events, replay };
}

/** The address of a host; of several an IPv4 one, for servers that listen on both mostly listen there. */
async function allowed(id: string, what: string, host: string, networks: Networks, resolve: Resolve): Promise<string> {
  let addresses: Address[];
  try {
    addresses = await addressesOf(host, resolve);
  } catch (error) {
    throw refused(id, what, host, `its name can't be resolved (${codeOf(error)})`);
  }
  if (addresses.length === 0) throw refused(id, what, host, 'its name has no address');
  for (const address of addresses) {
    const why = networks.refusal(address);
    if (why !== null) {
      throw refused(id, what, host, `${why}. Name its network in registration.networks, or the worker in the config`);
    }
  }
  return (addresses.find(({ family }) => family === 4) ?? addresses[0]!).text;
}

async function addressesOf(host: string, resolve: Resolve): Promise<Address[]> {
  const literal = parseAddress(host);
  if (literal !== null) return [literal];
  return (await resolve(host)).map((text) => {
    const address = parseAddress(text);
    if (address === null) throw new Error(`address ${text}`);
    return address;
  });
}

async function networksOf({ networks, configured, resolve }: AddressRules): Promise<Networks> {
  if (networks !== null) return new Networks(networks);
  const hosts = new Set<string>();
  for (const { url, events, replay } of configured()) {
    for (const address of [url, events ?? [], replay ?? []].flat()) {
      const host = hostOf(address);
      if (host !== null) hosts.add(host);
    }
  }
  const found = [...hosts].map((host) => addressesOf(host, resolve).catch((): Address[] => [])); // a worker that is not there allows nothing
  const alone = (await Promise.all(found)).flat().map(({ text, family }) => `${text}/${family === 4 ? 32 : 128}`);
  return new Networks([...LOOPBACK, ...alone]);
}

function refused(id: string, what: string, host: string, why: string): MoonrouteError {
  return new MoonrouteError('worker-address', `worker ${id}: the host ${host} of ${what} is refused: ${why}.`);
}

function codeOf(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return String(code ?? message ?? error);
}
