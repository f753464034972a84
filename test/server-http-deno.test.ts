// The HTTP app in Deno, behind Deno's own server: the same answers, streams, refusals and ends as in Node, over simulated workers in this process.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Fleet } from '../src/fleet/fleet.js';
import { post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { MODEL, workersOf } from './support/server-pool.js';

interface Said {
  readonly outcome: string;
  readonly status: number;
  readonly cachedTokens: number | null;
  readonly generatedTokens: number;
  readonly worker: string;
  readonly open: number;
}

if (zeromq !== null) {
  test('Deno: whole answers, streams, usage, retries, broken streams, clients that go, refusals', async () => {
    const fleet = await Fleet.start({ workers: 2, worker: { latency: { timeScale: 0.2 } } });
    const config = {
      ...{ listen: { port: 0 }, workers: workersOf(fleet) },
      limits: { bodyBytes: 100_000, bodyTime: 300 },
    };
    const deno = spawn('node_modules/.bin/deno', [
      ...['run', '--no-lock', '--no-remote', '--allow-read', '--allow-env', '--allow-sys', '--allow-net=127.0.0.1'],
      ...['test/runtimes/deno-served.js', JSON.stringify(config)],
    ]);
    try {
      let url = '';
      let errors = '';
      const ended: Said[] = [];
      createInterface({ input: deno.stdout }).on('line', (line) => {
        const said = JSON.parse(line) as Said & { url?: string };
        if (said.url !== undefined) url = said.url;
        else ended.push(said);
      });
      deno.stderr.on('data', (text) => {
        errors += text;
      });
      await until('Deno to listen', () => {
        assert.is(deno.exitCode, null, errors);
        return url !== '';
      }).catch((error) => assert.unreachable(`${error} ${errors}`));
      const ask = (fields: object, init: RequestInit = {}) =>
        post(`${url}/v1/completions`, { model: MODEL, prompt: tokensOf(1, 50), max_tokens: 4, ...fields }, init);
      const next = async (count: number): Promise<Said> => {
        await until(`${count} ends; ${errors}`, () => ended.length >= count);
        assert.is(ended.length, count);
        assert.is(ended.at(-1)!.open, 0);
        return ended.at(-1)!;
      };

      const whole = await ask({});
      assert.is(whole.status, 200);
      const answered = (await whole.json()) as { moonroute: { worker: string } };
      assert.is(answered.moonroute.worker, whole.headers.get('x-moonroute-worker'));
      assert.equal(await next(1), {
        ...{ outcome: 'completed', status: 200, cachedTokens: 0, generatedTokens: 4 },
        ...{ worker: answered.moonroute.worker, open: 0 },
      });

      const streamed = await (await ask({ stream: true, stream_options: { include_usage: true } })).text();
      assert.match(streamed, /data: \[DONE\]\n\n$/);
      const { generatedTokens, cachedTokens } = await next(2);
      assert.is(generatedTokens, 4);
      assert.type(cachedTokens, 'number');

      for (const worker of fleet.workers) worker.failNext({ kind: 'mid-stream' });
      const broken = await ask({ stream: true });
      const read = await broken.text().then(
        () => 'whole',
        () => 'broken',
      );
      assert.is(read, 'broken');
      assert.is((await next(3)).outcome, 'failed');
      for (const worker of fleet.workers) worker.heal();

      for (const worker of fleet.workers) worker.failNext({ kind: 'unavailable' });
      assert.is((await ask({ prompt: tokensOf(5, 20) })).status, 503);
      await next(4);
      for (const worker of fleet.workers) worker.heal();

      const leaving = new AbortController();
      const left = await ask({ stream: true, max_tokens: 4000, ignore_eos: true }, { signal: leaving.signal });
      await left.body!.getReader().read();
      leaving.abort();
      assert.is((await next(5)).outcome, 'cancelled');
      const running = () =>
        fleet.workers.flatMap((worker) => worker.status().ranks).reduce((sum, rank) => sum + rank.running, 0);
      await until('the worker to hear of it', () => running() === 0);

      assert.is((await ask({ prompt: 'x'.repeat(200_000) })).status, 413);
      assert.is((await ask({ model: 'nobody' })).status, 404);
      const slow = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{')) });
      const headers = { 'content-type': 'application/json' };
      const late = await fetch(`${url}/v1/completions`, {
        ...{ method: 'POST', body: slow, headers, duplex: 'half' },
      } as RequestInit);
      assert.is(late.status, 408);
      assert.is((await fetch(`${url}/status`)).status, 200);
      // Deno's server itself says that a stream broke; once, for the one that did.
      assert.is(errors.match(/Error: /g)?.length ?? 0, 1, errors);
      assert.match(errors, /the worker failed in the middle of its answer/);
    } finally {
      deno.kill('SIGKILL');
      await fleet.close();
    }
  });
}

test.run();
