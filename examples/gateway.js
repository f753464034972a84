// What is a gateway's own, whatever serves it: a request for a completion comes in, moonroute says which worker it should go to, that worker's answer goes
// out. gateway-node.js and gateway-deno.js put a server before it. No retries, keys or limits: `moonroute serve` has them.
import { proveTextOnly, Router } from 'moonroute';
import { LiveStreams } from 'moonroute/live';

const json = { 'content-type': 'application/json' };
/** Fields that never reach the engine's hashes of a prompt. A request with others counts as more than text. */
const PLAIN = new Set(['model', 'prompt', 'max_tokens', 'temperature', 'top_p', 'stop', 'seed', 'stream']);

/** A gateway before `workers` (id, url, events, replay) and the store's `masters` (events, http). Gives a handler of requests, and `close`. */
export async function openGateway({ workers, masters }) {
  const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' }, blockSize: 16 });
  const log = (level, text) => console.error(level, text);
  const live = LiveStreams.open(router, { store: { masters }, log });
  for (const worker of workers) {
    const answer = await fetch(`${worker.url}/moonroute/descriptor`); // its contract; without one it gets no shared credit
    live.addWorker({ ...worker, descriptor: answer.ok ? await answer.json() : undefined });
  }
  const urls = new Map(workers.map(({ id, url }) => [id, url]));
  const ask = (url, body) => fetch(url, { method: 'POST', headers: json, body: JSON.stringify(body) });

  async function handle(request) {
    const body = await request.json();
    const { model, prompt } = body;
    const tokens = Array.isArray(prompt)
      ? prompt
      : (await (await ask(`${workers[0].url}/tokenize`, { model, prompt })).json()).tokens;
    const textOnly = Object.keys(body).every((name) => PLAIN.has(name));
    if (textOnly) proveTextOnly(body);
    const { worker, blocks, sharedReason, lease } = router.route({ tokens, textOnly, body, now: Date.now() });
    let answer;
    try {
      answer = await ask(`${urls.get(worker.id)}/v1/completions`, body);
    } catch {
      lease.fail(Date.now()); // three failures in a row, and the worker rests
      return Response.json({ error: { message: `${worker.id} does not answer` } }, { status: 502 });
    }
    lease.admitted(Date.now());
    let first = true;
    const passed = new TransformStream({
      transform(bytes, out) {
        if (first) lease.progress(1, Date.now());
        first = false;
        out.enqueue(bytes);
      },
      // Whoever reads the usage tells complete() its { cachedTokens }.
      flush: () => (answer.status < 500 ? lease.complete(Date.now()) : lease.fail(Date.now())),
      cancel: () => lease.cancel(Date.now()), // the client went away
    });
    const headers = { 'content-type': answer.headers.get('content-type'), 'x-worker': worker.id };
    headers['x-cached-blocks'] = `device=${blocks.device};shared=${blocks.shared}`;
    headers['x-reason'] = sharedReason?.code ?? 'none'; // why nothing of the store is counted on
    return new Response(answer.body.pipeThrough(passed), { status: answer.status, headers });
  }
  return { handle, close: () => live.close().then(() => router.dispose()) };
}
