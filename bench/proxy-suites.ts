// What the proxy adds to a request's time: prompts given as ids, the workers in one process, the router in another, and the same requests sent to a
// worker and through the router in short turns, at an even rate whether answers come or not. Reported is the difference of the two distributions: a slow
// moment of the machine hits both.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Sample } from './method/sample.js';
import type { Row } from './row.js';

/** As docs/serve.md recommends: fewer collections of what is young, so that fewer requests wait for one. */
const NODE_FLAGS = ['--max-semi-space-size=64'];

/** Requests a second. */
const RATE = 200;
/** Seconds of each of the two, and requests of a turn. */
const SECONDS = 20;
const TURN = 50;
const WARM_UP_SECONDS = 4;
const PROMPT_TOKENS = 1024;
const MOST_P50_MS = 1;
const MOST_P99_MS = 8;
/** Prompts that there are: repeated ones are held by workers, as in use. */
const PROMPTS = 64;

interface Process<T> {
  readonly child: ChildProcess;
  readonly said: T;
}

async function start<T>(file: string, ...args: string[]): Promise<Process<T>> {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [...NODE_FLAGS, script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, said: JSON.parse(line) as T };
}

const bodies = Array.from({ length: PROMPTS }, (_, name) => {
  const prompt = Array.from({ length: PROMPT_TOKENS }, (_, i) => (name * 7919 + i) % 50_000);
  return [true, false].map((stream) => Buffer.from(JSON.stringify({ prompt, max_tokens: 1, stream })));
});

/** What one request took: to its first byte, and to its last. */
interface Times {
  readonly first: number;
  readonly last: number;
}

function send(url: string, agent: Agent, body: Buffer): Promise<Times> {
  const { hostname, port } = new URL(url);
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        ...{ agent, host: hostname, port, path: '/v1/completions', method: 'POST' },
        headers: { 'content-type': 'application/json', 'content-length': body.length },
      },
      (response) => {
        let first = 0;
        response.on('data', () => {
          if (first === 0) first = performance.now() - started;
        });
        response.on('end', () => {
          if (response.statusCode === 200) resolve({ first, last: performance.now() - started });
          else reject(new Error(`status ${response.statusCode}`));
        });
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Sends to all of them, a turn each, evenly, and measures each request. */
async function measure(urls: readonly string[], seconds: number): Promise<Times[][]> {
  // Less than the 5 s after which the workers' servers close idle connections.
  const agent = new Agent({ keepAlive: true, timeout: 4000 });
  const times = urls.map((): Promise<Times>[] => []);
  const started = performance.now();
  for (let i = 0; i < urls.length * seconds * RATE; i++) {
    const at = Math.floor(i / TURN) % urls.length;
    const pause = started + (i * 1000) / RATE - performance.now();
    if (pause > 0) await wait(pause);
    const sent = times[at]!;
    sent.push(send(urls[at]!, agent, bodies[sent.length % PROMPTS]![sent.length % 2]!));
  }
  const all = await Promise.all(times.map((of) => Promise.all(of)));
  agent.destroy();
  return all;
}

/** The suite. */
export async function proxySuite(seconds = SECONDS): Promise<Row[]> {
  const fleet = await start<{ url: string }[]>('./proxy-fleet.js');
  const config = { listen: { port: 0 }, workers: fleet.said };
  const router = await start<{ url: string }>('./proxy-router.js', JSON.stringify(config));
  try {
    const urls = [fleet.said[0]!.url, router.said.url];
    await measure(urls, WARM_UP_SECONDS);
    const [direct, proxied] = (await measure(urls, seconds)) as [Times[], Times[]];
    return (['first', 'last'] as const).map((which) => {
      const a = new Sample(direct.map((times) => times[which]));
      const b = new Sample(proxied.map((times) => times[which]));
      const p50 = b.median - a.median;
      const p99 = b.at(0.99) - a.at(0.99);
      return {
        suite: `added by the proxy to the ${which} byte, ${RATE} requests/s of ${PROMPT_TOKENS} ids`,
        core: b,
        aim: `p50 ≤ ${MOST_P50_MS} ms, p99 ≤ ${MOST_P99_MS} ms`,
        met: p50 <= MOST_P50_MS && p99 <= MOST_P99_MS,
        note: `p50 ${p50 < 0 ? '' : '+'}${p50.toFixed(2)} ms (${a.median.toFixed(2)} → ${b.median.toFixed(2)}), p99 ${p99 < 0 ? '' : '+'}${p99.toFixed(2)} ms (${a.at(0.99).toFixed(2)} → ${b.at(0.99).toFixed(2)})`,
      };
    });
  } finally {
    router.child.kill();
    fleet.child.kill();
  }
}
