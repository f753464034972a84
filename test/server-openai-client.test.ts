// OpenAI's official client for Node, unchanged, against the router: chat and completions, streaming and not, tools and other fields passing through,
// errors as its own classes.
import OpenAI from 'openai';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { EndedRequest } from '../src/server/types.js';
import { until, zeromq } from './support/fleet-worker.js';
import { FAST, MODEL, type Served, withServed } from './support/server-pool.js';

const clientOf = (served: Served, apiKey = 'none') =>
  new OpenAI({ baseURL: `${served.url}/v1`, apiKey, maxRetries: 0 });

const MESSAGES = [
  { role: 'system', content: 'You speak of tides.' },
  { role: 'user', content: [{ type: 'text', text: 'When is the next one?' }] },
] satisfies OpenAI.ChatCompletionMessageParam[];

const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'tide',
      description: 'Next tide',
      parameters: { type: 'object', properties: { place: { type: 'string' } } },
    },
  },
] satisfies OpenAI.ChatCompletionTool[];

if (zeromq !== null) {
  test('chat, whole', () =>
    withServed({}, async (served) => {
      const client = clientOf(served);
      const { data, response } = await client.chat.completions
        .create({
          model: MODEL,
          messages: MESSAGES,
          tools: TOOLS,
          tool_choice: 'auto',
          temperature: 0,
          seed: 7,
          max_tokens: 12,
        })
        .withResponse();
      assert.is(data.choices[0]!.finish_reason, 'length');
      assert.ok(data.choices[0]!.message.content!.length > 0);
      assert.is(data.usage!.completion_tokens, 12);
      assert.is(data.usage!.prompt_tokens_details!.cached_tokens, 0);
      assert.ok(response.headers.get('x-moonroute-worker'));
      const again = await client.chat.completions.create({ model: MODEL, messages: MESSAGES, max_tokens: 12 });
      assert.is(again.choices.length, 1);
      const ended = await served.settled(2);
      for (const { kind, outcome, source } of ended)
        assert.equal([kind, outcome, source], ['chat', 'completed', 'local']);
    }));

  test('chat, streamed, with usage', () =>
    withServed({}, async (served) => {
      const stream = await clientOf(served).chat.completions.create({
        ...{ model: MODEL, messages: MESSAGES, max_completion_tokens: 9 },
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = '';
      let usage: OpenAI.CompletionUsage | null | undefined = null;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? '';
        usage = chunk.usage ?? usage;
      }
      assert.ok(text.length > 0);
      assert.is(usage!.completion_tokens, 9);
      const [ended] = await served.settled(1);
      assert.is(ended!.generatedTokens, 9);
      assert.is(ended!.cachedTokens, 0);
    }));

  test('the same prompt again is answered where it is, and the engine agrees with what was credited', () =>
    withServed({}, async (served) => {
      const client = clientOf(served);
      const messages = [{ role: 'user' as const, content: 'moon '.repeat(40) }];
      const ask = () => client.chat.completions.create({ model: MODEL, messages, max_tokens: 2 });
      await ask();
      const [{ worker }] = (await served.settled(1)) as [EndedRequest];
      await until('the events', () => served.router.dump(worker.id).length > 0);
      const answer = await ask();
      const [, two] = await served.settled(2);
      assert.is(two!.worker.id, worker.id);
      assert.ok(two!.predictedTokens > 0);
      assert.is(two!.predictedTokens, answer.usage!.prompt_tokens_details!.cached_tokens);
    }));

  test('completions of a text, of ids, whole and streamed', () =>
    withServed({}, async (served) => {
      const client = clientOf(served);
      const whole = await client.completions.create({ model: MODEL, prompt: 'The moon', max_tokens: 5 });
      assert.ok(whole.choices[0]!.text.length > 0);
      const ids = await client.completions.create({ model: MODEL, prompt: [1, 2, 3], max_tokens: 5 });
      assert.is(ids.usage!.prompt_tokens, 3);
      const stream = await client.completions.create({ model: MODEL, prompt: [1, 2, 3], max_tokens: 5, stream: true });
      let text = '';
      for await (const chunk of stream) text += chunk.choices[0]?.text ?? '';
      assert.is(text, ids.choices[0]!.text);
      await served.settled(3);
    }));

  test('models, and an adapter among them', () =>
    withServed({ fleet: { workers: 2, worker: { latency: FAST, adapters: ['adapter-a'] } } }, async (served) => {
      const client = clientOf(served);
      const listed = [];
      for await (const { id } of client.models.list()) listed.push(id);
      assert.equal(listed, [MODEL, 'adapter-a']);
      assert.is((await client.models.retrieve(MODEL)).id, MODEL);
      const answer = await client.completions.create({ model: 'adapter-a', prompt: [1], max_tokens: 1 });
      assert.is(answer.model, 'adapter-a');
      const [ended] = await served.settled(1);
      assert.is(ended!.model, 'adapter-a');
    }));

  test('errors come as its own classes', () =>
    withServed({ config: { auth: { clientKeys: ['key-1'] } } }, async (served) => {
      const caught = async (work: Promise<unknown>): Promise<unknown> => {
        try {
          await work;
        } catch (error) {
          return error;
        }
        return null;
      };
      const ask = (apiKey: string, model: string, max_tokens = 1) =>
        caught(clientOf(served, apiKey).completions.create({ model, prompt: [1], max_tokens }));
      const unknown = await ask('key-1', 'gpt-0');
      assert.instance(unknown, OpenAI.NotFoundError);
      assert.is((unknown as InstanceType<typeof OpenAI.NotFoundError>).code, 'model_not_found');
      assert.is((unknown as InstanceType<typeof OpenAI.NotFoundError>).param, 'model');
      assert.instance(await ask('key-2', MODEL), OpenAI.AuthenticationError);
      assert.instance(await ask('key-1', MODEL, 10_000_000), OpenAI.BadRequestError); // the worker's own
      assert.is(await ask('key-1', MODEL), null);
    }));

  test('a stream that the client leaves', () =>
    withServed({ fleet: { workers: 1, worker: { latency: { timeScale: 1 } } } }, async (served) => {
      const stream = await clientOf(served).chat.completions.create({ model: MODEL, messages: MESSAGES, stream: true });
      for await (const _ of stream) break;
      const [ended] = await served.settled(1);
      assert.is(ended!.outcome, 'cancelled');
    }));

  test.run();
}
