// What a worker is asked to tokenise is what its engine gets, to the byte: over real sockets through the whole server, and by the reader alone where a
// body's text is not at hand.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { checkConfig } from '../src/server/config.js';
import { type RunningService, startService } from '../src/server/service.js';
import type { PromptKind, RawFields, ServerLog } from '../src/server/types.js';
import { until } from './support/fleet-worker.js';
import { type Handler, HandWorker, json } from './support/hand-worker.js';
import { PromptBench } from './support/prompt-bench.js';

const silent: ServerLog = { debug() {}, info() {}, warn() {}, error() {} };

/** What stands in a chat's body besides model and messages, each a text that JavaScript's JSON would write otherwise. */
const WRITTEN: readonly (readonly [string, string])[] = [
  ['fractions', '"tools":[{"maximum":1.0,"minimum":0.10}]'],
  ['exponents', '"tools":[{"const":1e3}]'],
  ['long whole numbers', '"chat_template_kwargs":{"n":9007199254740993}'],
  ['a negative zero', '"chat_template_kwargs":{"n":-0}'],
  ['names that look like numbers', '"tools":[{"properties":{"b":true,"10":null,"2":[]}}]'],
  ['spaces', '"tools" : [ {"a" :1} ] , "chat_template_kwargs": {"b": {} }'],
  ['escapes', '"chat_template_kwargs":{"\\u0061":"\\u00e9\\/"}'],
];

/** Counts a template that shows tools and arguments as they were written. */
function shownIn(body: string): number {
  const { messages, model, ...rest } = JSON.parse(body) as Record<string, unknown>;
  const names = Object.keys(rest).filter((name) => name === 'tools' || name === 'chat_template_kwargs');
  const from = Math.min(...names.map((name) => body.indexOf(`"${name}"`)));
  return JSON.stringify(messages).length + (names.length === 0 ? 0 : body.slice(from).replace(/\s/g, '').length - 1);
}

const tokenize: Handler = (response, body) => {
  const count = shownIn(body);
  response.end(JSON.stringify({ count, tokens: Array.from({ length: count }, (_, i) => i) }));
};

const complete: Handler = (response, body) => {
  const usage = { prompt_tokens: shownIn(body), completion_tokens: 1 };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices: [], usage }));
};

function post(url: string, body: string): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
}

async function withService(work: (running: RunningService, worker: HandWorker) => Promise<void>): Promise<void> {
  const worker = await HandWorker.open({ '/tokenize': tokenize, '/v1/chat/completions': complete });
  const workers = [{ id: 'w', url: worker.url, contract: null }];
  const config = checkConfig({ listen: { port: 0 }, workers, limits: { drainTime: 100 } });
  const running = await startService(config, { log: silent });
  try {
    await until('the worker', () => running.service.registry.list().every(({ healthy }) => healthy));
    await work(running, worker);
  } finally {
    await running.close();
    await worker.close();
  }
}

test('workers are asked for the very text that engines get', async () => {
  await withService(async ({ url }, worker) => {
    for (const [what, written] of WRITTEN) {
      const body = `{"messages":[{"role":"user","content":"hi"}],${written}}`;
      await (await post(`${url}/v1/chat/completions`, body)).text();
      const asked = worker.seen.filter(({ path }) => path === '/tokenize').at(-1)!.body;
      for (const part of written.split(/(?<=[\]}]) ?, ?(?="chat)/)) {
        const value = part.slice(part.indexOf(':') + 1).trim();
        assert.ok(asked.includes(value), `${what}: ${value} is not in ${asked}`);
      }
      assert.equal(JSON.parse(asked), JSON.parse(body));
      // Decisions without a proxy ask the same.
      const routed = await post(`${url}/route`, `{"chat": {"model":null, ${body.slice(1)} }`);
      assert.is(routed.status, 200);
      await routed.text();
      assert.is(worker.seen.filter(({ path }) => path === '/tokenize').at(-1)!.body, asked);
    }
  });
});

test("one client's numbers take nobody's proof", async () => {
  await withService(async ({ url, service }) => {
    const ask = async (content: string, more = '') => {
      const body = `{"messages":[{"role":"user","content":"${content}"}]${more}}`;
      await (await post(`${url}/v1/chat/completions`, body)).text();
    };
    await ask('honest');
    for (let i = 0; i < 6; i++) await ask(`${i}`, ',"chat_template_kwargs":{"n":1.0}');
    const read = (body: object) => {
      const messages = [{ role: 'user', content: 'honest' }];
      return service.prompts.read('chat', { messages, ...body }, new AbortController().signal);
    };
    assert.is((await read({})).textOnly, true);
    assert.is((await read({ chat_template_kwargs: { a: true } })).textOnly, true);
    assert.is(service.prompts.stats().cache.hits, 1, 'and nothing that is known is asked for again');
  });
});

// ---- where the text is not at hand ----

/** Fields of a chat, and whether JSON can write them in one way only. */
const READ: readonly (readonly [string, object, boolean])[] = [
  ['texts, lists and flags', { chat_template_kwargs: { a: ['b', { c: null }], d: true } }, true],
  ['a number', { chat_template_kwargs: { a: 1 } }, false],
  ['a number far inside', { chat_template_kwargs: { a: [{ b: [[0.5]] }] } }, false],
  ['a name that looks like a number', { chat_template_kwargs: { a: { 10: 'x' } } }, false],
  ['a number in a message', { messages: [{ role: 'user', content: 'a', tool_calls: [{ index: 0 }] }] }, false],
  ['a number that is no part of the prompt', { temperature: 1 }, true],
];

for (const [what, fields, exact] of READ) {
  test(`without the text: ${what}`, async () => {
    const worker = await HandWorker.open({ '/tokenize': json({ count: 1, tokens: [1] }) });
    try {
      const bench = new PromptBench({ workers: [{ url: worker.url }] });
      const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], ...fields };
      const raw: RawFields = (name) => JSON.stringify(body[name as 'messages']) ?? null;
      const read = async (text: RawFields | null) => {
        const prompt = await bench.reader.read('chat', body, new AbortController().signal, text);
        return prompt.reason?.code ?? null;
      };
      assert.is(await read(null), exact ? null : 'prompt-changed');
      assert.is(await read(raw), null);
      assert.is(worker.count('/tokenize'), 1);
    } finally {
      await worker.close();
    }
  });
}

test('a prompt in a list is asked for as a text, whatever its own text', async () => {
  const worker = await HandWorker.open({ '/tokenize': json({ count: 1, tokens: [1] }) });
  try {
    const bench = new PromptBench({ workers: [{ url: worker.url }] });
    const kind: PromptKind = 'completions';
    const raw: RawFields = (name) => (name === 'prompt' ? '[ "a" ]' : null);
    await bench.reader.read(kind, { prompt: ['a'] }, new AbortController().signal, raw);
    assert.is(worker.seen[0]!.body, '{"prompt":"a"}');
  } finally {
    await worker.close();
  }
});

test.run();
