// Where a plane is: `nats://` and `tls://` for a NATS server with JetStream, `tcp://` for ZMQ.
import { ConfigError } from '../../../errors.js';

/** A NATS server's, or a cluster's, several servers of it. */
export interface NatsAddress {
  readonly kind: 'nats';
  readonly servers: readonly string[];
  readonly user: string | null;
  readonly password: string | null;
  readonly token: string | null;
  readonly tls: boolean;
  /** Without credentials. */
  readonly shown: string;
}

/** Sockets of one publisher: PUB, and ROUTER for recovery. */
export interface ZmqAddress {
  readonly kind: 'zmq';
  /** Without brackets. */
  readonly host: string;
  /** 0, to bind, leaves the choice to the system. */
  readonly port: number;
  readonly recoverPort: number;
}

export type PlaneAddress = NatsAddress | ZmqAddress;

const NATS_PORT = 4222;
const ZMQ = /^tcp:\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._*-]+)):(\d{1,5})(?:\?recover=(\d{1,5}))?$/;

/**
 * Reads one address, or several servers of one cluster (`nats://a,nats://b` too).
 * @throws ConfigError `plane-url`
 */
export function readAddress(url: string): PlaneAddress {
  if (/^tcp:/i.test(url)) return readZmq(url);
  if (/^(nats|tls):\/\//i.test(url)) return readNats(url.split(','));
  throw refused(url, 'nats://[USER:PASSWORD@]HOST[:PORT], tls://… or tcp://HOST:PORT');
}

/**
 * Reads what a subscriber is given: one cluster of NATS, or any number of ZMQ's publishers.
 * @throws ConfigError `plane-url`
 */
export function readAddresses(urls: string | readonly string[]): NatsAddress | readonly ZmqAddress[] {
  const list = typeof urls === 'string' ? [urls] : urls;
  if (list.length === 0)
    throw new ConfigError('plane-url', 'the plane has no URL; give nats://HOST:PORT or tcp://HOST:PORT');
  if (list.every((url) => /^tcp:/i.test(url))) return list.map(readZmq);
  if (list.some((url) => /^tcp:/i.test(url))) {
    throw new ConfigError('plane-url', 'the plane has URLs of NATS and of ZMQ; use one kind');
  }
  return readNats(list.flatMap((url) => url.split(',')));
}

/** As it stands in an endpoint. */
export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function readZmq(url: string): ZmqAddress {
  const [, v6, name, port, recover] = ZMQ.exec(url) ?? [];
  const host = v6 ?? name;
  const [first, second] = [Number(port), recover === undefined ? null : Number(recover)];
  if (host === undefined || first > 65_535 || (second ?? 0) > 65_535)
    throw refused(url, 'tcp://HOST:PORT[?recover=PORT]');
  // Next to it, unless it is said; where the system chooses one, it chooses both.
  const recoverPort = second ?? (first === 0 ? 0 : first + 1);
  if (recoverPort > 65_535) throw refused(url, 'a port below 65535, or ?recover=PORT');
  return { kind: 'zmq', host, port: first, recoverPort };
}

function readNats(urls: readonly string[]): NatsAddress {
  const parsed = urls.map(parseNats);
  const { username, password, protocol } = parsed[0]!;
  for (const one of parsed) {
    if (one.username !== username || one.password !== password || one.protocol !== protocol) {
      throw new ConfigError(
        'plane-url',
        'the servers of one plane have different credentials or schemes in their URLs',
      );
    }
  }
  const servers = parsed.map(({ hostname, port }) => `${hostname}:${port === '' ? NATS_PORT : port}`);
  const hasUser = password !== '';
  return {
    kind: 'nats',
    servers,
    user: hasUser ? decodeURIComponent(username) : null,
    password: hasUser ? decodeURIComponent(password) : null,
    token: hasUser || username === '' ? null : decodeURIComponent(username),
    tls: protocol === 'tls:',
    shown: servers.map((server) => `${protocol}//${server}`).join(','),
  };
}

function parseNats(url: string): URL {
  const shape = 'nats://[USER:PASSWORD@ or TOKEN@]HOST[:PORT], or tls://…';
  let parsed: URL;
  try {
    parsed = new URL(url.trim());
    decodeURIComponent(parsed.username + parsed.password);
  } catch {
    throw refused(url, shape);
  }
  const bare = /^\/?$/.test(parsed.pathname) && parsed.search === '' && parsed.hash === '';
  if (!/^(nats|tls):$/.test(parsed.protocol) || parsed.hostname === '' || !bare) throw refused(url, shape);
  return parsed;
}

/** Credentials don't belong into messages. */
function refused(url: string, expected: string): ConfigError {
  return new ConfigError(
    'plane-url',
    `the plane's URL is ${JSON.stringify(url.replace(/\/\/[^/]*@/, '//…@'))}, expected ${expected}`,
  );
}
