// The HTTP app: every path, and who may go there. It runs behind Node's server (`listen`) and Deno's alike; what a path does is in http/.
import { type Context, Hono } from 'hono';
import { AdminApi } from './http/admin-api.js';
import { ApiError, apiErrorOf, ClientGone, clientGoneResponse } from './http/errors.js';
import { type Exchange, exchangeOf } from './http/exchange.js';
import { httpPartsOf } from './http/parts.js';
import { proxy } from './http/proxy.js';
import { json, RouteApi } from './http/route-api.js';
import type { Service } from './types.js';

export { refuseOpen } from './http/auth.js';
export { type Listening, listen } from './http/listen.js';

/** What others show through the app. */
export interface AppParts {
  readonly metrics?: { text(): Promise<string>; readonly contentType: string } | null;
  readonly console?: ConsoleParts | null;
}

/** The console: its page, its data, and the files that the page asks for below `/console/`. */
export interface ConsoleParts {
  page(): { readonly body: string | Uint8Array; readonly type: string };
  /** @param after the number of the last request that the page knows */
  json(after?: number): object;
  asset?(name: string): { readonly body: string | Uint8Array; readonly type: string } | null;
}

/** Pages show what is served here, and nothing else. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

/** Makes the app. Requests are counted in `service.activity`. */
export function createApp(service: Service, { metrics = null, console = null }: AppParts = {}): Hono {
  const parts = httpPartsOf(service);
  const admin = new AdminApi(parts);
  const routes = new RouteApi(parts);
  const app = new Hono();
  const exchange = (context: Context): Exchange => exchangeOf(context.req.raw, context.env);
  const guarded = (handler: (context: Context) => Response | Promise<Response>) => async (context: Context) => {
    parts.keys.check('admin', context.req.header('authorization') ?? null, context.req.header('host') ?? null);
    return handler(context);
  };

  app.post('/v1/chat/completions', (context) => proxy('chat', exchange(context), parts));
  app.post('/v1/completions', (context) => proxy('completions', exchange(context), parts));
  app.get('/v1/models', (context) => {
    parts.keys.check('client', context.req.header('authorization') ?? null, context.req.header('host') ?? null);
    return admin.models();
  });
  app.get('/v1/models/:id{.+}', (context) => {
    parts.keys.check('client', context.req.header('authorization') ?? null, context.req.header('host') ?? null);
    return admin.model(context.req.param('id'));
  });

  app.post('/route', (context) => routes.route(exchange(context)));
  app.post('/route/:id/:report', (context) =>
    routes.report(exchange(context), context.req.param('id'), context.req.param('report')),
  );
  app.post('/explain', (context) => routes.explain(exchange(context)));

  app.get(
    '/workers',
    guarded(() => admin.workers()),
  );
  app.post(
    '/workers',
    guarded((context) => admin.addWorker(exchange(context))),
  );
  app.delete(
    '/workers/:id',
    guarded((context) => admin.removeWorker(context.req.param('id')!)),
  );
  app.post(
    '/workers/:id/drain',
    guarded((context) => admin.drainWorker(context.req.param('id')!, true)),
  );
  app.delete(
    '/workers/:id/drain',
    guarded((context) => admin.drainWorker(context.req.param('id')!, false)),
  );

  app.get('/healthz', (context) => context.json({ alive: true }));
  app.get('/readyz', () => admin.ready());
  app.get(
    '/status',
    guarded(() => admin.status(routes.open)),
  );
  if (metrics !== null) {
    app.get(
      '/metrics',
      guarded(async () => new Response(await metrics.text(), { headers: { 'content-type': metrics.contentType } })),
    );
  }
  if (console !== null) {
    app.get('/', () => file(console.page()));
    app.get(
      '/console/data.json',
      guarded((context) =>
        json(200, console.json(Number(context.req.query('after')) || 0), { 'cache-control': 'no-store' }),
      ),
    );
    app.get('/console/:name', (context) => {
      const found = console.asset?.(context.req.param('name')) ?? null;
      return found === null ? context.notFound() : file(found);
    });
  }

  app.notFound(() => new ApiError(404, 'not-found', 'there is nothing here.').response());
  app.onError((error) => {
    if (error instanceof ClientGone) return clientGoneResponse();
    const refusal = apiErrorOf(error);
    parts.observers.fault(refusal.code);
    if (refusal.code === 'internal-error')
      service.log.error({ error: error.stack ?? String(error) }, 'a request failed');
    return refusal.response();
  });
  return app;
}

function file({ body, type }: { readonly body: string | Uint8Array; readonly type: string }): Response {
  return new Response(body as BodyInit, { headers: { 'content-type': type, ...PAGE_HEADERS } });
}
