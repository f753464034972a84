// A simulated worker over real HTTP: what OpenAI's and vLLM's servers answer, streams, clients that go away, and every fault that can be ordered.
import { request as httpRequest } from 'node:http';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { validateContract } from '../src/contract/validate.js';
import { SimulatedWorker, type WorkerOptions } from '../src/fleet/worker.js';
import { complete, post, tokensOf, until, zeromq } from './support/fleet-worker.js';

const BLOCK = 16;
const FAST = { timeScale: 0 };

async function withWorker(
  options: WorkerOptions,
  work: (worker: SimulatedWorker, url: string) => Promise<void>,
): Promise<void> {
  const worker = await SimulatedWorker.start({ latency: FAST, ...options });
  try {
    await work(worker, worker.httpUrl);
  } finally {
    await worker.close();
  }
}

const getJson = async <T>(url: string) => (await (await fetch(url)).json()) as T;

/** The data of a server-sent stream, parsed, its end as text. */
function chunksOf(text: string): readonly Record<string, never>[] {
  return text
    .split('\n\n')
    .filter((part) => part.startsWith('data: ') && part !== 'data: [DONE]')
    .map((part) => JSON.parse(part.slice('data: '.length)));
}

if (zeromq !== null) {
  test('health, models with adapters, version, descriptor, tokenizer, metrics, status; anything else is 404', () =>
    withWorker({ adapters: ['adapter-a'], tp: 2 }, async (_, url) => {
      assert.is((await fetch(`${url}/health`)).status, 200);
      const { data } = await getJson<{ data: { id: string; max_model_len: number }[] }>(`${url}/v1/models`);
      assert.equal(
        data.map(({ id }) => id),
        ['moonroute/simulated-70b', 'adapter-a'],
      );
      assert.is(data[0]!.max_model_len, 32_768);
      assert.match(JSON.stringify(data), /simulated/);
      assert.is(validateContract(await getJson(`${url}/moonroute/descriptor`)).groups[0]!.keyPrefixes.length, 2);
      assert.match(JSON.stringify(await getJson(`${url}/tokenizer_info`)), /simulated/);
      await complete(url, tokensOf(1, 40));
      const metrics = await (await fetch(`${url}/metrics`)).text();
      assert.match(metrics, /vllm:prompt_tokens_total\{model_name="moonroute\/simulated-70b",engine="0"\} 40\n/);
      const { ranks } = await getJson<{ ranks: { finished: number }[] }>(`${url}/moonroute/status`);
      assert.is(ranks[0]!.finished, 1);
      assert.is((await fetch(`${url}/v1/embeddings`)).status, 404);
      assert.is((await fetch(`${url}/v1/completions`)).status, 404); // no POST
    }));

  test('tokenize in both forms, detokenize', () =>
    withWorker({}, async (_, url) => {
      const text = (await (await post(`${url}/tokenize`, { prompt: 'abc' })).json()) as object;
      assert.equal(text, { count: 4, max_model_len: 32_768, tokens: [256, 97, 98, 99], token_strs: null });
      const messages = [{ role: 'user', content: 'hello' }];
      const chat = (await (await post(`${url}/tokenize`, { messages })).json()) as { count: number; tokens: number[] };
      const answer = (await (await post(`${url}/v1/chat/completions`, { messages, max_tokens: 1 })).json()) as {
        usage: { prompt_tokens: number };
      };
      assert.is(answer.usage.prompt_tokens, chat.count);
      assert.equal(await (await post(`${url}/detokenize`, chat)).json(), { prompt: 'hello' });
    }));

  test('a request repeated is reported cached; evicted or cleared, it is not', () =>
    withWorker({}, async (worker, url) => {
      const prompt = tokensOf(1, 4 * BLOCK);
      const cached = async () => (await complete(url, prompt)).usage.prompt_tokens_details.cached_tokens;
      assert.equal([await cached(), await cached()], [0, 3 * BLOCK]);
      worker.evict(1000);
      assert.equal([await cached(), await cached()], [0, 3 * BLOCK]);
      assert.equal(await (await post(`${url}/reset_prefix_cache`, {})).json(), { cleared: true });
      assert.is(await cached(), 0);
    }));

  test('adapters and salts share nothing with each other', () =>
    withWorker({ adapters: ['adapter-a'] }, async (_, url) => {
      const prompt = tokensOf(1, 4 * BLOCK);
      const scopes = [{}, { model: 'adapter-a' }, { cache_salt: 'a' }, { cache_salt: 'b' }];
      for (const expected of [0, 3 * BLOCK])
        for (const scope of scopes)
          assert.is((await complete(url, prompt, scope)).usage.prompt_tokens_details.cached_tokens, expected);
    }));

  test('streams bring a token a chunk, the usage when asked for, and the same text as without', () =>
    withWorker({}, async (_, url) => {
      const body = { messages: [{ role: 'user', content: 'tell me' }], stream: true };
      const whole = (await (await post(`${url}/v1/chat/completions`, { ...body, stream: false })).json()) as {
        choices: { message: { content: string }; finish_reason: string }[];
        usage: object;
      };
      const plain = await post(`${url}/v1/chat/completions`, body);
      assert.match(plain.headers.get('content-type')!, /text\/event-stream/);
      const text = await plain.text();
      assert.match(text, /data: \[DONE\]\n\n$/);
      type Chunk = {
        usage?: { prompt_tokens_details: { cached_tokens: number }; completion_tokens: number };
        choices: { delta: { role?: string; content: string }; finish_reason: string | null }[];
      };
      const chunks = chunksOf(text) as unknown as Chunk[];
      assert.is(chunks.map(({ choices }) => choices[0]!.delta.content).join(''), whole.choices[0]!.message.content);
      assert.is(chunks[0]!.choices[0]!.delta.role, 'assistant');
      assert.equal(
        chunks.map(({ choices }) => choices[0]!.finish_reason).filter((reason) => reason !== null),
        ['stop'],
      );
      assert.is(
        chunks.some(({ usage }) => usage !== undefined),
        false,
      );
      const asked = await post(`${url}/v1/chat/completions`, { ...body, stream_options: { include_usage: true } });
      const last = (chunksOf(await asked.text()) as unknown as Chunk[]).at(-1)!;
      assert.equal(last.choices, []);
      assert.is(last.usage!.completion_tokens, chunks.length);
    }));

  test('bad requests say what is wrong, in OpenAI’s form', () =>
    withWorker({ gpuBlocks: 8 }, async (_, url) => {
      for (const [path, body, status, text] of [
        ['completions', {}, 400, /prompt/],
        ['completions', { prompt: 'x', model: 'other' }, 404, /does not exist/],
        ['completions', { prompt: tokensOf(1, 500) }, 400, /needs? \d+ blocks/],
        ['chat/completions', { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 400, /text only/],
      ] as const) {
        const response = await post(`${url}/v1/${path}`, body);
        assert.is(response.status, status);
        const { error } = (await response.json()) as { error: { message: string; code: number } };
        assert.match(error.message, text);
        assert.is(error.code, status);
      }
      assert.is((await fetch(`${url}/v1/completions`, { method: 'POST', body: '{' })).status, 400);
      assert.is(
        (await post(`${url}/v1/completions`, { prompt: 'x' }, { headers: { 'x-data-parallel-rank': '7' } })).status,
        400,
      );
    }));

  test('a client that goes away stops the work, before the first token and in a stream', () =>
    withWorker({ latency: { timeScale: 1, decodeMs: 5, prefillRate: 1e6 }, maxRunning: 1 }, async (worker, url) => {
      const [rank] = worker.status().ranks;
      assert.is(rank!.running, 0);
      const body = { prompt: tokensOf(1, 40), max_tokens: 10_000, ignore_eos: true, stream: true };
      const leaving = new AbortController();
      const response = await post(`${url}/v1/completions`, body, { signal: leaving.signal });
      const reader = response.body!.getReader();
      await reader.read();
      const waiting = new AbortController();
      const second = post(`${url}/v1/completions`, body, { signal: waiting.signal }).catch(() => null);
      await until('the second to wait', () => worker.status().ranks[0]!.waiting === 1);
      waiting.abort();
      await until('the second to be gone', () => worker.status().ranks[0]!.waiting === 0);
      leaving.abort();
      await until('the first to be gone', () => worker.status().ranks[0]!.running === 0);
      await second;
      await reader.read().catch(() => undefined);
      const { aborted, finished, generatedTokens } = worker.status().ranks[0]!;
      assert.equal([aborted, finished], [2, 0]);
      assert.ok(generatedTokens < 2_000, `${generatedTokens} tokens`);
    }));

  test('requests go to the rank that they name, or to the idlest', () =>
    withWorker({ dp: 2 }, async (worker, url) => {
      const prompt = tokensOf(1, 4 * BLOCK);
      const ask = async (rank: number) => {
        const response = await post(
          `${url}/v1/completions`,
          { prompt, max_tokens: 1 },
          { headers: { 'x-data-parallel-rank': String(rank) } },
        );
        const { usage, moonroute } = (await response.json()) as Awaited<ReturnType<typeof complete>>;
        return [moonroute.dp_rank, usage.prompt_tokens_details.cached_tokens];
      };
      assert.equal(
        [await ask(1), await ask(0), await ask(1)],
        [
          [1, 0],
          [0, 0],
          [1, 3 * BLOCK],
        ],
      );
      const { ranks } = worker.status();
      assert.equal(
        ranks.map(({ finished }) => finished),
        [1, 2],
      );
    }));

  // ---- faults ----

  test('503, no first byte, wrong usage: ordered for so many requests', () =>
    withWorker({}, async (worker, url) => {
      const prompt = tokensOf(1, 2 * BLOCK);
      worker.failNext({ kind: 'unavailable' }, 2);
      for (let i = 0; i < 2; i++) assert.is((await post(`${url}/v1/completions`, { prompt })).status, 503);
      worker.failNext({ kind: 'no-first-byte' });
      assert.is(await post(`${url}/v1/completions`, { prompt }).catch(() => null), null);
      await post(`${url}/moonroute/fault`, { kind: 'wrong-usage', cached_tokens: 7 });
      assert.is((await complete(url, prompt)).usage.prompt_tokens_details.cached_tokens, 7);
      assert.is((await complete(url, prompt)).usage.prompt_tokens_details.cached_tokens, BLOCK);
      worker.failNext({ kind: 'unavailable' }, 100);
      worker.heal();
      await complete(url, prompt);
    }));

  test('a stream that breaks off behind its first token; a whole answer that breaks off', () =>
    withWorker({}, async (worker, url) => {
      for (const stream of [true, false]) {
        worker.failNext({ kind: 'mid-stream' });
        const response = await post(`${url}/v1/completions`, { prompt: 'x', max_tokens: 50, stream });
        let text = '';
        const decoder = new TextDecoder();
        const failure = await (async () => {
          for await (const part of response.body!) text += decoder.decode(part);
        })().catch(() => 'broken');
        assert.is(failure, 'broken');
        assert.is(chunksOf(text).length, stream ? 1 : 0);
      }
      await until('both to be gone', () => worker.status().ranks[0]!.running === 0);
      assert.is(worker.status().ranks[0]!.aborted, 2);
    }));

  test('a hang says nothing and works at nothing, until the client goes or the worker ends', () =>
    withWorker({}, async (worker, url) => {
      worker.failNext({ kind: 'hang' }, 2);
      const impatient = post(`${url}/v1/completions`, { prompt: 'x' }, { signal: AbortSignal.timeout(50) });
      assert.is(await impatient.catch((error: Error) => error.name), 'TimeoutError');
      const patient = post(`${url}/v1/completions`, { prompt: 'x' }).catch(() => 'ended');
      assert.equal([worker.status().ranks[0]!.promptTokens, (await fetch(`${url}/health`)).status], [0, 200]);
      await worker.close();
      assert.is(await patient, 'ended');
    }));

  test('a body without end is cut off', () =>
    withWorker({}, async (_, url) => {
      const { hostname, port } = new URL(url);
      const outcome = await new Promise<number | string>((resolve) => {
        const sending = httpRequest({ hostname, port, path: '/v1/completions', method: 'POST' }, (response) => {
          resolve(response.statusCode!);
          sending.destroy();
        });
        sending.on('error', (error: NodeJS.ErrnoException) => resolve(error.code!));
        const part = Buffer.alloc(1 << 20, 0x20);
        let sent = 0;
        const more = () => {
          while (sent < 40 && sending.write(part)) sent++;
          if (sent++ < 40) sending.once('drain', more);
        };
        more();
      });
      assert.ok(outcome === 400 || outcome === 'ECONNRESET' || outcome === 'EPIPE', String(outcome));
    }));
}

test.run();
