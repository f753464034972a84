// The examples, run as a reader would run them: those that end say what they should; the gateways, in Node and in Deno, stand before a simulated pool; the
// page stands in a real browser. What needs zeromq, Deno or chromium is skipped, with a notice, where that is missing, and CI lets nothing be.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Fleet } from '../src/fleet/fleet.js';
import { type Answered, post, tokensOf, until, zeromq } from './support/fleet-worker.js';

const MOST_LINES = 60;
/** Those that end by themselves, and lines that they print. */
const ENDING: Readonly<Record<string, readonly string[]>> = {
  'router.js': ['worker-1: of 5 blocks 0 on its GPU, 4 in the store'],
  'explain.js': [
    '  nothing from the store: not-learned',
    'worker-0 restarted, the store holds it: worker-0, cost 7.0625; runner-up worker-1, cost 7.0625',
    '  blocks on the GPU 0, from the store 4, of 5',
  ],
  'shared-cache.js': [
    'nothing stored yet: 0 of 65 tokens',
    "after the store's messages: 64 of 65 tokens",
    'after the store was lost from sight: 0 of 65 tokens',
  ],
  'live.js': [
    'computed once: 10 blocks on the GPU, 0 in the store (held-locally)',
    'evicted from the GPU: 0 blocks on the GPU, 10 in the store',
    'removed from the store: 0 blocks on the GPU, 0 in the store (residency-empty)',
  ],
};
const NEEDS_SOCKETS = new Set(['live.js']);

for (const [file, lines] of Object.entries(ENDING)) {
  const run = NEEDS_SOCKETS.has(file) && zeromq === null ? test.skip : test;
  run(`${file} says what it should`, () => {
    const printed = execFileSync(process.execPath, [`examples/${file}`], { encoding: 'utf8' }).split('\n');
    for (const line of lines) assert.ok(printed.includes(line), `"${line}" is not in:\n${printed.join('\n')}`);
  });
}

test('every example is short, and none is left out here', () => {
  const gateways = ['gateway-node.js', 'gateway-deno.js'];
  const known = [...Object.keys(ENDING), ...gateways, 'gateway.js', 'recorded.js', 'simulated-pool.js', 'offline.html'];
  const found = readdirSync('examples').filter((file) => ['.js', '.html'].includes(extname(file)));
  assert.equal(found.sort(), known.sort());
  for (const file of found)
    assert.ok(readFileSync(`examples/${file}`, 'utf8').split('\n').length <= MOST_LINES + 1, file);
});

/** Waits for the first address that a process prints. */
async function addressOf(child: ChildProcess): Promise<string> {
  let printed = '';
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text) => (printed += text));
  await until('an address', () => {
    assert.is(child.exitCode, null, printed);
    return /http:\/\/127\.0\.0\.1:[1-9]\d*/.test(printed);
  });
  return /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(printed)![0];
}

const DENO = ['run', '--no-lock', '--no-remote', '--allow-read', '--allow-env', '--allow-net=127.0.0.1'];
const GATEWAYS: readonly [string, string, readonly string[]][] = [
  ['Node', process.execPath, ['examples/gateway-node.js']],
  ['Deno', 'node_modules/.bin/deno', [...DENO, 'examples/gateway-deno.js']],
];
const socketTest = zeromq === null ? test.skip : test;

for (const [name, command, args] of GATEWAYS) {
  socketTest(`the gateway in ${name}: passes on, and counts on the GPU, then on the store`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'moonroute-gateway-'));
    const fleet = await Fleet.start({ workers: 2, worker: { tp: 2, latency: { timeScale: 0 } } });
    let child: ChildProcess | null = null;
    try {
      const workers = fleet.workers.map(({ id, httpUrl, eventsEndpoints, replayEndpoints }) => ({
        ...{ id, url: httpUrl, events: eventsEndpoints, replay: replayEndpoints },
      }));
      const masters = fleet.masters.map(({ eventsEndpoint, httpUrl }) => ({ events: eventsEndpoint, http: httpUrl }));
      const pool = join(folder, 'pool.json');
      writeFileSync(pool, JSON.stringify({ workers, masters }));
      child = spawn(command, [...args, pool], { env: { ...process.env, PORT: '0' } });
      const url = await addressOf(child);
      const ask = async (fields: object = {}) => {
        const body = { prompt: tokensOf(7, 161), max_tokens: 1, ...fields };
        const response = await post(`${url}/v1/completions`, body);
        const { moonroute } = (await response.json()) as Answered;
        const [, device, shared] = /^device=(\d+);shared=(\d+)$/.exec(response.headers.get('x-cached-blocks') ?? '')!;
        const reason = response.headers.get('x-reason');
        return { status: response.status, reason, device: Number(device), shared: Number(shared), truth: moonroute };
      };
      assert.is((await ask()).status, 200);
      await until('the GPU to be known', async () => (await ask()).device === 10);
      // The gateway hears of an eviction a little later, and every request that it sends before fills a GPU again.
      const askEmpty = async (fields: object = {}) => {
        for (const worker of fleet.workers) worker.evict(10_000);
        await new Promise((resolve) => setTimeout(resolve, 50));
        return ask(fields);
      };
      await until('the store to be known and the GPUs to be empty', async () => {
        const { device, shared, truth } = await askEmpty();
        if (device === 0 && shared === 10) assert.is(truth.store_tokens, 160);
        return device === 0 && shared === 10;
      });
      await until('a request that may be more than text to get nothing of the store', async () => {
        const { device, shared, reason } = await askEmpty({ logit_bias: {} });
        return device === 0 && shared === 0 && reason === 'not-proven';
      });
      const text = await post(`${url}/v1/completions`, { prompt: 'two or three words', max_tokens: 1, stream: true });
      assert.match(await text.text(), /\[DONE\]/);
      assert.is((await fetch(url, { method: 'POST', body: 'no JSON' })).status, 400);
    } finally {
      if (child !== null && child.exitCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      await fleet.close();
      rmSync(folder, { recursive: true });
    }
  });
}

const BROWSER = process.env['MOONROUTE_CHROMIUM'] ?? '/usr/bin/chromium';
const noBrowser = !existsSync(BROWSER) && !process.env['CI'];
if (noBrowser) console.log(`skipped: the page of the examples (no ${BROWSER}; apt-get install chromium)`);
const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' };

(noBrowser ? test.skip : test)('the page shows what the store would give, and follows its field', async () => {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url!, 'http://localhost').pathname).slice(1);
    if (!/^(examples|build\/browser)\//.test(path) || !existsSync(path)) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(readFileSync(path));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let browser: Browser | undefined;
  try {
    browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu'] });
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/examples/offline.html`);
    const answer = page.locator('#answer');
    await until('the answer', async () => (await answer.textContent())!.includes('64 of 65 tokens'));
    await page.locator('#length').fill('33');
    assert.match((await answer.textContent())!, '0 of 33 tokens');
    assert.match((await answer.textContent())!, 'object-missing: block 1 (endpoint 32 tokens), group 1 (mamba)');
    await page.locator('#length').fill('80');
    assert.match((await answer.textContent())!, '64 of 80 tokens');
    assert.equal(faults, []);
  } finally {
    await browser?.close();
    server.close();
  }
});

test.run();
