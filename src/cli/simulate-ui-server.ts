// What serves the simulator's page: one page on loopback, and the trace that it was given. Nothing else is served, and nobody else is answered.
import { createReadStream, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { Hono } from 'hono';
import { ConfigError } from '../errors.js';
import { checkConfig } from '../server/config.js';
import { type Listening, listen } from '../server/http/listen.js';
import { createLog } from '../server/log.js';
import { escapeHtml } from '../sim/report-escape.js';

const HOST = '127.0.0.1';
/** From this module, where it is built, to the page. */
const PAGE = new URL('../../../simulator/index.html', import.meta.url);
const TRACE_PATH = 'trace';

/** A file that the page reads. */
export interface ServedTrace {
  readonly path: string;
  readonly name: string;
  /** Bytes. */
  readonly size: number;
}

/**
 * Serves the page, and the trace beside it.
 * @param port 0 for any that is free
 * @throws ConfigError `ui-missing`, `listen`
 */
export async function servePage(trace: ServedTrace | null, port: number): Promise<Listening> {
  const app = appOf(pageOf(trace), trace);
  return listen(app, checkConfig({ listen: { host: HOST, port } }), createLog('warn'));
}

/** The page as it is built; with a trace it may load that, from here, and nothing else. */
function pageOf(trace: ServedTrace | null): string {
  let page: string;
  try {
    page = readFileSync(PAGE, 'utf8');
  } catch (error) {
    throw new ConfigError('ui-missing', `the page is not built (node scripts/build.mjs): ${(error as Error).message}`);
  }
  if (trace === null) return page;
  const meta = `<meta name="moonroute-trace" data-path="${TRACE_PATH}" data-name="${escapeHtml(trace.name)}" />`;
  return page.replace("content=\"default-src 'none';", "content=\"default-src 'none'; connect-src 'self';").replace(
    '</title>',
    // Not a text of its own: `$` means something in one.
    () => `</title>${meta}`,
  );
}

function appOf(page: string, trace: ServedTrace | null): Hono {
  const app = new Hono();
  // Other sites' names that resolve to this machine must not read the trace.
  app.use(async (context, next) => {
    const host = (context.req.header('host') ?? '').replace(/:\d+$/, '');
    if (host !== HOST && host !== 'localhost') return context.text('This page is for this machine only.\n', 403);
    await next();
    context.header('x-content-type-options', 'nosniff');
    context.header('cache-control', 'no-store');
    return undefined;
  });
  app.get('/', (context) => context.html(page));
  if (trace !== null)
    app.get(`/${TRACE_PATH}`, () => {
      const body = Readable.toWeb(createReadStream(trace.path)) as ReadableStream<Uint8Array>;
      return new Response(body, {
        headers: { 'content-type': 'application/octet-stream', 'content-length': String(trace.size) },
      });
    });
  return app;
}
