// Where a client connects to, as ZeroMQ writes it.
import { isIPv6 } from 'node:net';
import { ConfigError } from '../../errors.js';

export type Endpoint =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'ipc'; readonly path: string };

const TCP = /^tcp:\/\/(?:\[([^\]]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/;
const IPC = /^ipc:\/\/(\/[^\0]+)$/;
const MAX_PORT = 65_535;
/** Linux keeps 108 bytes for the path of a socket, with the zero behind it. A longer one would be cut, and lead elsewhere. */
const MAX_PATH_BYTES = 107;

/**
 * Reads `tcp://HOST:PORT`, an IPv6 address in brackets, or `ipc:///path`.
 * @throws {ConfigError} `endpoint` for anything else, as addresses with `*`, which are to bind.
 */
export function parseEndpoint(endpoint: string): Endpoint {
  const [, v6, name, digits] = TCP.exec(endpoint) ?? [];
  const port = Number(digits);
  if (port >= 1 && port <= MAX_PORT) {
    if (name !== undefined) return { kind: 'tcp', host: name, port };
    if (v6 !== undefined && isIPv6(v6)) return { kind: 'tcp', host: v6, port };
  }
  const path = IPC.exec(endpoint)?.[1];
  if (path !== undefined && new TextEncoder().encode(path).length <= MAX_PATH_BYTES) return { kind: 'ipc', path };
  throw new ConfigError(
    'endpoint',
    `the endpoint is ${JSON.stringify(endpoint)}, expected tcp://HOST:PORT (port 1 to ${MAX_PORT}, an IPv6 address in brackets) ` +
      `or ipc:///path (at most ${MAX_PATH_BYTES} bytes)`,
  );
}
