// Workers that are asked to tokenise, good ones and bad: equal prompts cost one question, answers are kept within bounds, and whoever is slow, huge,
// elsewhere or lying costs a bounded time and no more.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MAX_CACHED_MS, TokenCache } from '../src/server/tokenizer-cache.js';
import { until } from './support/fleet-worker.js';
import { HandClock } from './support/hand-clock.js';
import { type Handler, HandWorker, json, silent } from './support/hand-worker.js';
import { PromptBench, type PromptBenchOptions } from './support/prompt-bench.js';

const TOKENS = [1, 2, 3];
const good = json({ count: 3, max_model_len: 10, tokens: TOKENS, token_strs: null });

function behaves(
  name: string,
  handlers: readonly Handler[],
  work: (bench: PromptBench, workers: readonly HandWorker[]) => Promise<void>,
  options: PromptBenchOptions = {},
): void {
  test(name, async () => {
    const workers = await Promise.all(handlers.map((handler) => HandWorker.open({ '/tokenize': handler })));
    try {
      await work(new PromptBench({ workers: workers.map(({ url }) => ({ url })), ...options }), workers);
    } finally {
      for (const worker of workers) await worker.close();
    }
  });
}

behaves("the question is vLLM's own", [good], async (bench, [worker]) => {
  const asked = () => JSON.parse(worker!.seen.at(-1)!.body) as unknown;
  await bench.text('a');
  assert.equal(asked(), { model: 'm', prompt: 'a' });
  await bench.text('a', { add_special_tokens: false, model: 'sql', temperature: 1 });
  assert.equal(asked(), { model: 'sql', prompt: 'a', add_special_tokens: false });
  await bench.text('b', { model: undefined, add_special_tokens: null });
  assert.equal(asked(), { prompt: 'b' });
  const messages = [{ role: 'user', content: 'a' }];
  await bench.chat('a');
  assert.equal(asked(), { model: 'm', messages });
  const more = {
    tools: [{ type: 'function' }],
    chat_template_kwargs: { thinking: true },
    add_generation_prompt: false,
    continue_final_message: true,
    add_special_tokens: true,
  };
  await bench.chat('a', { ...more, temperature: 1 });
  assert.equal(asked(), { model: 'm', messages, ...more });
});

behaves('answers are kept, by model and everything that makes the prompt', [good], async (bench, [worker]) => {
  for (const fields of [{}, { add_special_tokens: false }, { model: 'sql' }]) {
    await bench.text('a', fields);
    const again = await bench.text('a', { ...fields, temperature: 1 });
    assert.equal([[...again.tokens!], again.source, again.textOnly], [TOKENS, 'worker', true]);
  }
  await bench.text('b');
  assert.is(worker!.count('/tokenize'), 4);
  assert.equal(bench.reader.stats().cache, { entries: 4, hits: 3, misses: 4 });
});

const clock = new HandClock();
behaves(
  'kept for a while only',
  [good],
  async (bench, [worker]) => {
    await bench.text('a');
    clock.advance(MAX_CACHED_MS - 1);
    await bench.text('a');
    assert.is(worker!.count('/tokenize'), 1);
    clock.advance(1);
    await bench.text('a');
    assert.is(worker!.count('/tokenize'), 2);
  },
  { clock },
);

test('the cache keeps what was used last, within entries and tokens', () => {
  const cache = new TokenCache(3, 100);
  const tokens = (count: number) => new Uint32Array(count);
  for (const key of ['a', 'b', 'c']) cache.set(key, tokens(10), 0);
  cache.get('a', 0);
  cache.set('d', tokens(10), 0);
  assert.equal(
    ['a', 'b', 'c', 'd'].map((key) => cache.get(key, 0) !== null),
    [true, false, true, true],
  );
  cache.set('long', tokens(85), 0);
  assert.equal([cache.entries, cache.tokens], [2, 95]);
  cache.set('long', tokens(5), 0);
  assert.equal([cache.entries, cache.tokens], [2, 15]);
  cache.set('longer than all', tokens(101), 0);
  assert.equal([cache.entries, cache.tokens], [2, 15]);
  assert.is(cache.get('long', MAX_CACHED_MS), null);
  assert.equal([cache.entries, cache.tokens], [1, 10]);
  for (const key of ['x:1', 'x:2', 'y:1']) cache.set(key, tokens(20), 0);
  cache.deleteAll('x:');
  assert.equal([cache.entries, cache.tokens, cache.get('y:1', 0) !== null], [1, 20, true]);
  cache.delete('y:1');
  assert.equal([cache.entries, cache.tokens], [0, 0]);
  const none = new TokenCache(0);
  none.set('a', tokens(1), 0);
  assert.is(none.entries, 0);
});

// ---- questions that are shared ----

/** A handler that answers when it is told to. */
function held(): { readonly handler: Handler; release(): void; readonly waiting: number; readonly gone: number } {
  const responses: Parameters<Handler>[0][] = [];
  let gone = 0;
  return {
    handler: (response) => {
      responses.push(response);
      response.on('close', () => {
        if (!response.writableFinished) gone++;
      });
    },
    release: () => {
      for (const response of responses.splice(0)) good(response, '', undefined as never);
    },
    get waiting() {
      return responses.length;
    },
    get gone() {
      return gone;
    },
  };
}

const shared = held();
behaves(
  'equal prompts at the same time share one question; whoever leaves, leaves alone',
  [shared.handler],
  async (bench, [worker]) => {
    const leaving = new AbortController();
    const body = { model: 'm', prompt: 'a' };
    const first = bench.read('completions', body, leaving.signal);
    const others = Array.from({ length: 20 }, () => bench.read('completions', { ...body }));
    await until('the question', () => shared.waiting === 1);
    leaving.abort();
    assert.equal([(await first).source, (await first).reason!.code], ['none', 'tokenize-failed']);
    shared.release();
    for (const prompt of await Promise.all(others)) assert.equal([...prompt.tokens!], TOKENS);
    assert.is(worker!.count('/tokenize'), 1);
    assert.is(shared.gone, 0);
  },
);

const lonely = held();
behaves(
  'when nobody waits any more the question is taken back',
  [lonely.handler],
  async (bench) => {
    const leaving = [new AbortController(), new AbortController()];
    const reads = leaving.map(({ signal }) => bench.read('completions', { model: 'm', prompt: 'a' }, signal));
    await until('the question', () => lonely.waiting === 1);
    for (const controller of leaving) controller.abort();
    await Promise.all(reads);
    await until('the end of the connection', () => lonely.gone === 1);
    // The next one asks anew.
    const next = bench.text('a');
    await until('another question', () => lonely.waiting === 2);
    lonely.release();
    assert.is((await next).source, 'worker');
  },
  { clock: new HandClock() },
);

behaves('a client that has gone before costs no answer', [silent], async (bench) => {
  const prompt = await bench.read('completions', { model: 'm', prompt: 'a' }, AbortSignal.abort());
  assert.is(prompt.reason!.code, 'tokenize-failed');
});

const crowd = held();
behaves('only so many questions at once; the others are routed by load', [crowd.handler], async (bench) => {
  const reads = Array.from({ length: 300 }, (_, i) => bench.text(`prompt ${i}`));
  await until('the questions', () => crowd.waiting === 256);
  crowd.release();
  const prompts = await Promise.all(reads);
  assert.is(prompts.filter(({ source }) => source === 'worker').length, 256);
  assert.is(bench.reader.stats().notProven['tokenize-failed'], 44);
});

// ---- bad workers ----

const lies: Readonly<Record<string, readonly [Handler, RegExp]>> = {
  'no JSON': [(response) => response.end('<html>'), /no list of tokens/],
  'no tokens': [json({ count: 3 }), /no list of tokens/],
  'another count': [json({ count: 4, tokens: TOKENS }), /no list of tokens/],
  'a token that is none': [json({ count: 2, tokens: [1, -1] }), /no list of tokens/],
  'a token that is a text': [json({ count: 1, tokens: ['1'] }), /no list of tokens/],
  'a list': [json([1, 2]), /no list of tokens/],
  'nothing of the kind': [json({}, 404), /status 404/],
  'an error': [json({ count: 3, tokens: TOKENS }, 500), /status 500/],
  'a broken connection': [(response) => void response.destroy(), /tokenize: /],
  'a redirect': [(response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(), /redirects/],
  'a huge answer': [endless, /more than 125536 bytes/],
};

/** Writes as long as it is read. */
function endless(response: Parameters<Handler>[0]): void {
  const part = '0,'.repeat(65_536);
  const more = (): void => {
    while (!response.destroyed && response.write(part));
    if (!response.destroyed) response.once('drain', more);
  };
  response.writeHead(200, { 'content-type': 'application/json' }).write('{"tokens":[');
  more();
}

for (const [what, [handler, words]] of Object.entries(lies)) {
  behaves(
    `${what}: the prompt is routed by load, and says why`,
    [handler, handler],
    async (bench, workers) => {
      const prompt = await bench.text('x'.repeat(400));
      assert.equal([prompt.tokens, prompt.tokenCount, prompt.source, prompt.textOnly], [null, 100, 'none', false]);
      assert.is(prompt.reason!.code, 'tokenize-failed');
      assert.match(prompt.reason!.text, words);
      assert.not.match(prompt.reason!.text, /xxx/);
      assert.equal(
        workers.map((worker) => worker.count('/tokenize')),
        [1, 1],
        'two are tried, and no more',
      );
    },
    { promptTokens: 5000 },
  );

  behaves(`${what}: the next worker does it`, [handler, good], async (bench) => {
    for (let i = 0; i < 4; i++) assert.equal([...(await bench.text(`a${i}`)).tokens!], TOKENS);
  });
}

const slowClock = new HandClock();
behaves(
  'a slow one costs the time and no more',
  [silent],
  async (bench, [worker]) => {
    const reading = bench.text('a');
    await until('the question', () => worker!.count('/tokenize') === 1);
    slowClock.advance(2000);
    const prompt = await reading;
    assert.is(prompt.reason!.code, 'tokenize-failed');
    assert.match(prompt.reason!.text, /no whole answer after 2000 ms/);
  },
  { clock: slowClock },
);

const flaky = flakyHandler();
behaves(
  'a connection that ends as it is used costs a second try, of the same worker if there is no other',
  [flaky],
  async (bench) => {
    assert.equal([...(await bench.text('a')).tokens!], TOKENS);
  },
);

function flakyHandler(): Handler {
  let asked = 0;
  return (response, ...more) => (asked++ === 0 ? void response.destroy() : good(response, ...more));
}

behaves('what a worker refuses is not asked of another', [json({}, 400), json({}, 400)], async (bench, workers) => {
  assert.match((await bench.text('a')).reason!.text, /status 400/);
  assert.is(
    workers.reduce((sum, worker) => sum + worker.count('/tokenize'), 0),
    1,
  );
});

behaves(
  'workers take turns; those that are not healthy, or lack the adapter, are left out',
  [good, good, good],
  async (bench, workers) => {
    const counts = () => workers.map((worker) => worker.count('/tokenize'));
    for (let i = 0; i < 6; i++) await bench.text(`a${i}`);
    assert.equal(counts(), [2, 2, 2]);
    bench.workers[0] = { ...bench.workers[0]!, healthy: false };
    bench.workers[1] = { ...bench.workers[1]!, adapters: [] };
    for (let i = 0; i < 4; i++) await bench.text(`b${i}`);
    assert.equal(counts(), [2, 4, 4]);
    for (let i = 0; i < 4; i++) await bench.text(`c${i}`, { model: 'sql' });
    assert.equal(counts(), [2, 4, 8]);
    bench.workers[0] = { ...bench.workers[0]!, healthy: true };
    bench.listed['m'] = ['w1'];
    for (let i = 0; i < 3; i++) await bench.text(`e${i}`);
    assert.equal(counts(), [2, 7, 8], 'only those that list the name');
    bench.workers[0] = { ...bench.workers[0]!, healthy: false };
    bench.workers[2] = { ...bench.workers[2]!, healthy: false };
    const prompt = await bench.text('d', { model: 'sql' });
    assert.match(prompt.reason!.text, /no healthy worker serves the model/);
  },
);

behaves(
  'a prompt that turns out too long says so',
  [json({ count: 11, tokens: new Array(11).fill(1) })],
  async (bench) => {
    const prompt = await bench.text('a');
    assert.equal([prompt.tokens, prompt.tokenCount, prompt.reason!.code], [null, 11, 'prompt-too-long']);
  },
  { promptTokens: 10 },
);

// ---- engines that count otherwise ----

behaves(
  'a /tokenize that engines keep contradicting proves nothing, until they keep confirming it',
  [good],
  async (bench, [worker]) => {
    const { reader } = bench;
    const ask = async () => bench.chat('a');
    const report = async (counts: readonly number[]) => {
      for (const count of counts) reader.reported(await ask(), count);
      return (await ask()).textOnly;
    };
    assert.is(await report([4, 4, 3, 4, 4]), true, 'one or two in a row may be chance');
    assert.is(await report([4]), false);
    const before = worker!.count('/tokenize');
    reader.reported(await ask(), 4);
    await ask();
    assert.is(worker!.count('/tokenize'), before + 1, 'what was kept is asked for again');
    const distrusted = await ask();
    assert.is(distrusted.reason!.code, 'tokenize-unconfirmed');
    assert.equal([...distrusted.tokens!], TOKENS);
    assert.is((await bench.text('a')).textOnly, true, 'texts are another matter');
    assert.is(bench.lines.filter((line) => /contradict/.test(line)).length, 1);
    // What was not proven anyway says nothing about it.
    for (let i = 0; i < 5; i++) reader.reported(await bench.chat('a', { documents: [1] }), 3);
    assert.is(await report([3, 3, 4, 3, 3]), false);
    assert.is(await report([3]), true);
  },
);

behaves('a mismatch forgets its own prompt, lost trust those of its variant', [good], async (bench, [worker]) => {
  const asked = async (ask: () => Promise<unknown>) => {
    const before = worker!.count('/tokenize');
    await ask();
    return worker!.count('/tokenize') - before;
  };
  const withArguments = (name: string) => bench.chat(name, { chat_template_kwargs: { a: true } });
  const mistaken = async () => bench.reader.reported(await withArguments('a'), 4);
  await bench.chat('a');
  await withArguments('b');
  await mistaken();
  assert.is(await asked(() => withArguments('b')), 0);
  assert.is(await asked(() => withArguments('a')), 1);
  await mistaken();
  await mistaken();
  assert.is(await asked(() => withArguments('b')), 1);
  assert.is((await withArguments('b')).reason!.code, 'tokenize-unconfirmed');
  assert.is(await asked(() => bench.chat('a')), 0);
  assert.is((await bench.chat('a')).textOnly, true, 'arguments are a matter of their own');
});

/** Chats that a template may show more of than `/tokenize` is told, and whether they have to be confirmed. */
const tools = [{ type: 'function', function: { name: 'f' } }];
const VARIANTS: readonly (readonly [string, object, boolean])[] = [
  ['plain', {}, false],
  ['tools', { tools }, true],
  ['tools, auto', { tools, tool_choice: 'auto' }, true],
  ['tools, required', { tools, tool_choice: 'required' }, true],
  ['arguments', { chat_template_kwargs: { a: true } }, false],
  ['arguments and tools', { tools, chat_template_kwargs: { a: true } }, true],
  ['a choice without tools', { tool_choice: 'none' }, false],
  ['a format', { response_format: { type: 'json_object' } }, true],
];

for (const [what, fields, waits] of VARIANTS) {
  behaves(`engines confirm ${waits ? 'first' : 'nothing'}: ${what}`, [good], async (bench) => {
    const ask = async () => bench.chat('a', fields as Record<string, unknown>);
    assert.is((await ask()).reason?.code ?? null, waits ? 'tokenize-unconfirmed' : null);
    for (let i = 0; i < 3; i++) bench.reader.reported(await ask(), 3);
    assert.is((await ask()).textOnly, true);
  });
}

test.run();
