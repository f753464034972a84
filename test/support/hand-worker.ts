// A worker's HTTP made by hand, for tests of what meets bad ones: each path answers what the test says, and every request is kept.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Handler = (response: ServerResponse, body: string, request: IncomingMessage) => void;

/** A handler that answers with a JSON value. */
export function json(value: unknown, status = 200): Handler {
  return (response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** One that never answers. */
export const silent: Handler = () => undefined;

export class HandWorker {
  /** By path; others are answered 404. */
  readonly routes: Record<string, Handler> = {
    '/health': json({}),
    '/v1/models': json({ data: [{ id: 'hand', parent: null, root: 'hand' }] }),
  };
  readonly seen: { readonly path: string; readonly body: string }[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      let body = '';
      request.on('data', (part) => {
        body += part;
      });
      request.on('end', () => {
        const path = request.url ?? '';
        this.seen.push({ path, body });
        response.on('error', () => undefined);
        (this.routes[path] ?? json({}, 404))(response, body, request);
      });
    });
  }

  static async open(routes: Readonly<Record<string, Handler>> = {}, host = '127.0.0.1'): Promise<HandWorker> {
    const worker = new HandWorker();
    Object.assign(worker.routes, routes);
    await new Promise<void>((resolve) => worker.#server.listen(0, host, resolve));
    return worker;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Requests for a path. */
  count(path: string): number {
    return this.seen.filter((each) => each.path === path).length;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
