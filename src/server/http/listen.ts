// The app on a socket: Node's server with every bound of the configuration, or Deno's own where this runs in Deno.
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';
import { ConfigError } from '../../errors.js';
import type { ServerConfig } from '../config.js';
import type { ServerLog } from '../types.js';
import { refuseOpen } from './auth.js';
import { Connections } from './connections.js';

/** A server that listens. */
export interface Listening {
  readonly url: string;
  /**
   * Takes no more connections; those without a request end now, the others with their answer, but none later than a moment from now: whoever wants
   * to wait for requests under way does so before (`Activity.drain`). Resolves when all have ended.
   */
  close(): Promise<void>;
  /** Ends every connection now, whatever is under way. */
  destroy(): void;
}

type Limits = ServerConfig['limits'];

/** An idle connection is kept longer than load balancers keep theirs, so that they don't send into its closing. */
const KEEP_ALIVE_MS = 75_000;
/** How often is looked for connections whose headers or body are late. */
const LOOK_EVERY_MS = 500;

/** For last bytes on their way when the server closes. */
const LAST_BYTES_MS = 500;
/** A line of the log for refused connections, at most. */
const SAY_EVERY_MS = 1000;

/** What is said to a connection whose request never came to be one, by Node's code. */
const BROKEN: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Content Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** The part of Deno that is used. */
interface DenoServer {
  readonly addr: { readonly port: number };
  shutdown(): Promise<void>;
}
interface DenoRuntime {
  serve(
    options: { hostname: string; port: number; onListen(): void; signal: AbortSignal },
    handler: (request: Request, info: object) => Response | Promise<Response>,
  ): DenoServer;
}

/**
 * Listens.
 * @throws ConfigError `open-to-all`, `listen`
 */
export async function listen(
  app: Hono,
  config: Pick<ServerConfig, 'listen' | 'limits' | 'auth'>,
  log: ServerLog,
): Promise<Listening> {
  refuseOpen(config);
  const { Deno } = globalThis as { Deno?: DenoRuntime };
  return Deno === undefined ? listenInNode(app, config, log) : listenInDeno(Deno, app, config);
}

async function listenInNode(
  app: Hono,
  { listen: { host, port }, limits }: Pick<ServerConfig, 'listen' | 'limits'>,
  log: ServerLog,
): Promise<Listening> {
  const connections = new Connections();
  const server = createAdaptorServer({
    fetch: app.fetch,
    // The web's own classes stay as they are for whoever else is in this process.
    overrideGlobalObjects: false,
    createServer: ((options: ServerOptions, handle: RequestListener) =>
      createServer(options, connections.oneAtATime(handle))) as typeof createServer,
    serverOptions: serverOptionsOf(limits),
  }) as Server;
  server.maxConnections = limits.connections;
  connections.bound(server);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (connections.isAnswering(socket)) socket.destroy();
    else sayBroken(error, socket);
  });
  let saidAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    const now = performance.now();
    if (now - saidAt < SAY_EVERY_MS) return;
    saidAt = now;
    log.warn({ connections: limits.connections }, 'connections are refused: there are limits.connections');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(notListening(host, port, error)));
    server.listen(port, host, resolve);
  });
  return {
    url: urlOf(host, (server.address() as AddressInfo).port),
    close: () =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), LAST_BYTES_MS);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
    destroy: () => server.closeAllConnections(),
  };
}

function serverOptionsOf({ headerBytes, headerTime, bodyTime }: Limits) {
  return {
    maxHeaderSize: headerBytes,
    headersTimeout: headerTime,
    // The app's own bound of bodies answers better, and comes first.
    requestTimeout: headerTime + bodyTime + 2 * LOOK_EVERY_MS,
    connectionsCheckingInterval: Math.min(LOOK_EVERY_MS, headerTime),
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  };
}

function sayBroken(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const status = BROKEN[error.code ?? ''] ?? '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  // What it goes on sending is not read.
  socket.destroySoon();
}

async function listenInDeno(
  deno: DenoRuntime,
  app: Hono,
  { listen: { host, port } }: Pick<ServerConfig, 'listen'>,
): Promise<Listening> {
  const ending = new AbortController();
  try {
    const options = { hostname: host, port, onListen: () => undefined, signal: ending.signal };
    const server = deno.serve(options, (request, info) => app.fetch(request, info));
    const close = async () => {
      const cut = setTimeout(() => ending.abort(), LAST_BYTES_MS);
      await server.shutdown();
      clearTimeout(cut);
    };
    return { url: urlOf(host, server.addr.port), close, destroy: () => ending.abort() };
  } catch (error) {
    throw notListening(host, port, error as Error);
  }
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`;
}

function notListening(host: string, port: number, error: Error): ConfigError {
  return new ConfigError('listen', `can't listen on ${host}:${port} (listen): ${error.message}. Choose another.`);
}
