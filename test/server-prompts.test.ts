// What a request's prompt is and whether it is proven to be text alone: every field and form by itself, and end to end against a simulated worker.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { OPAQUE_FIELDS } from '../src/events/request.js';
import { SimulatedWorker } from '../src/fleet/worker.js';
import type { PromptKind } from '../src/server/types.js';
import { type complete, post, zeromq } from './support/fleet-worker.js';
import { HandWorker, json } from './support/hand-worker.js';
import { PromptBench } from './support/prompt-bench.js';

const IDS = [5, 6, 7];

// ---- forms of prompts ----

/** A body, and then: source, number of tokens, and the reason's code. */
const FORMS: readonly (readonly [string, PromptKind, object, string, number, string | null])[] = [
  ['ids', 'completions', { prompt: IDS }, 'ids', 3, null],
  ['one list of ids', 'completions', { prompt: [IDS] }, 'ids', 3, null],
  ['the largest id', 'completions', { prompt: [0, 0xffff_ffff] }, 'ids', 2, null],
  ['too large an id', 'completions', { prompt: [1, 2 ** 32] }, 'none', 2, 'bad-prompt'],
  ['a negative id', 'completions', { prompt: [1, -1] }, 'none', 2, 'bad-prompt'],
  ['half an id', 'completions', { prompt: [1, 0.5] }, 'none', 2, 'bad-prompt'],
  ['a text among ids', 'completions', { prompt: [1, 'a'] }, 'none', 2, 'bad-prompt'],
  ['several lists', 'completions', { prompt: [IDS, IDS] }, 'none', 6, 'several-prompts'],
  ['several texts', 'completions', { prompt: ['12345678', '1234'] }, 'none', 3, 'several-prompts'],
  ['no prompt', 'completions', {}, 'none', 0, 'bad-prompt'],
  ['an empty list', 'completions', { prompt: [] }, 'none', 0, 'bad-prompt'],
  ['an object', 'completions', { prompt: { a: 1 } }, 'none', 0, 'bad-prompt'],
  ['as many ids as allowed', 'completions', { prompt: new Array(50).fill(1) }, 'ids', 50, null],
  ['one more', 'completions', { prompt: new Array(51).fill(1) }, 'none', 51, 'prompt-too-long'],
  ['no messages', 'chat', {}, 'none', 0, 'bad-prompt'],
  ['an empty chat', 'chat', { messages: [] }, 'none', 0, 'bad-prompt'],
  ['a text, and nobody to tokenise it', 'completions', { prompt: '12345678' }, 'none', 2, 'tokenize-failed'],
];

for (const [what, kind, body, source, count, code] of FORMS) {
  test(`form: ${what}`, async () => {
    const bench = new PromptBench({ promptTokens: 50 });
    const prompt = await bench.read(kind, { model: 'm', ...body });
    assert.equal([prompt.source, prompt.tokenCount, prompt.reason?.code ?? null], [source, count, code]);
    assert.is(prompt.tokens?.length ?? null, source === 'none' ? null : count);
    assert.is(prompt.textOnly, code === null);
    assert.is(bench.reader.stats().bySource[source as 'ids'], 1);
    assert.equal(bench.reader.stats().notProven, code === null ? {} : { [code]: 1 });
  });
}

// ---- provenance ----

const text = (part: unknown) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, part] }] });

/** Fields on top of a good request, and the reason; null where it is proven. */
const COMPLETIONS: readonly (readonly [string, object, string | null])[] = [
  ['nothing more', {}, null],
  ['sampling', { temperature: 0, n: 2, logprobs: 3, stream: true, stream_options: {}, user: 'me', stop: ['a'] }, null],
  ['null is absent', { suffix: null, chat_template: null, prompt_embeds: null, whatever: null }, null],
  ...OPAQUE_FIELDS.map((field) => [field, { [field]: [] }, 'opaque-input'] as const),
  ['opaque before unknown', { whatever: 1, prompt_embeds: '' }, 'opaque-input'],
  ['suffix', { suffix: 'a' }, 'prompt-changed'],
  ['truncation', { truncate_prompt_tokens: 4 }, 'prompt-changed'],
  ['prompt logprobs', { prompt_logprobs: 1 }, 'prompt-changed'],
  ['echo', { echo: true }, null],
  ['echo with logprobs', { echo: true, logprobs: 1 }, 'prompt-changed'],
  ...[1, 'true', 'on', 0, 'false'].map(
    (echo) => [`echo as ${JSON.stringify(echo)}`, { echo, logprobs: 1 }, 'prompt-changed'] as const,
  ),
  ['no echo', { echo: false, logprobs: 1 }, null],
  ['special tokens as asked', { add_special_tokens: false }, null],
  ...['true', 'no', 1, 0, []].map(
    (flag) => [`a flag as ${JSON.stringify(flag)}`, { add_special_tokens: flag }, 'prompt-changed'] as const,
  ),
  ['an unknown field', { whatever: {} }, 'unknown-field'],
  ["the other kind's field", { messages: [] }, 'unknown-field'],
  ['an inherited name', { constructor: 1 }, 'unknown-field'],
  ['no model', { model: undefined }, null],
  ['an adapter', { model: 'sql' }, null],
  ['an unknown model', { model: 'x' }, 'unknown-model'],
  ['a model that is no name', { model: ['m'] }, 'unknown-model'],
  ['a salt', { cache_salt: 'tenant' }, null],
  ['a beam search', { use_beam_search: true }, null],
  ['a salt, which a beam search leaves out', { use_beam_search: 1, cache_salt: 'tenant' }, 'prompt-changed'],
  ['a salt without a beam search', { use_beam_search: false, cache_salt: 'tenant' }, null],
  ['an empty salt', { cache_salt: '' }, 'bad-salt'],
  ['a salt of another kind', { cache_salt: 7 }, 'bad-salt'],
  ['a long salt', { cache_salt: 'x'.repeat(4097) }, 'bad-salt'],
];

for (const [what, fields, code] of COMPLETIONS) {
  test(`provenance of completions: ${what}`, async () => {
    const prompt = await new PromptBench().read('completions', { model: 'm', prompt: IDS, ...fields });
    assert.is(prompt.reason?.code ?? null, code);
    assert.is(prompt.textOnly, code === null);
    assert.equal([...prompt.tokens!], IDS, 'it is routed by its tokens all the same');
  });
}

const CHATS: readonly (readonly [string, Record<string, unknown>, string | null])[] = [
  ['a text', {}, null],
  ['a part', { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }] }, null],
  ['a bare text among parts', { messages: [{ role: 'user', content: ['a'] }] }, null],
  ['no content', { messages: [{ role: 'assistant', content: null, tool_calls: [{ id: '1' }], refusal: null }] }, null],
  ['an image', text({ type: 'image_url', image_url: { url: 'data:' } }), 'multimodal'],
  ['audio', text({ type: 'input_audio', input_audio: {} }), 'multimodal'],
  ['a text part with more', text({ type: 'text', text: 'a', image_url: {} }), 'multimodal'],
  ['a part without a type', text({ text: 'a' }), 'multimodal'],
  ['no part', text([]), 'multimodal'],
  ['content that is an object', { messages: [{ role: 'user', content: { type: 'text', text: 'a' } }] }, 'multimodal'],
  [
    'an image in an earlier message',
    { messages: [text({ type: 'image' }).messages[0], { role: 'user', content: 'a' }] },
    'multimodal',
  ],
  [
    'an unknown field of a message',
    { messages: [{ role: 'user', content: 'a', audio: { id: 'x' } }] },
    'unknown-field',
  ],
  ['tools', { tools: [{ type: 'function' }], tool_choice: 'auto', parallel_tool_calls: true }, 'tokenize-unconfirmed'],
  ['tools that are not to be used', { tools: [{ type: 'function' }], tool_choice: 'none' }, 'prompt-changed'],
  ['template arguments', { chat_template_kwargs: { enable_thinking: false } }, null],
  ['another template', { chat_template: 'x' }, 'prompt-changed'],
  ['documents', { documents: [] }, 'prompt-changed'],
  ['echo', { echo: true }, 'prompt-changed'],
  ['echo as a text', { echo: '1' }, 'prompt-changed'],
  ['flags', { add_generation_prompt: false, continue_final_message: true, add_special_tokens: true }, null],
  ...['add_generation_prompt', 'continue_final_message', 'add_special_tokens'].flatMap((flag) =>
    ['false', 1].map((value) => [`${flag} as ${JSON.stringify(value)}`, { [flag]: value }, 'prompt-changed'] as const),
  ),
  ['reasoning effort', { reasoning_effort: 'low' }, 'prompt-changed'],
  ['an unknown field', { mm_whatever: 1 }, 'unknown-field'],
];

for (const [what, fields, code] of CHATS) {
  test(`provenance of chats: ${what}`, async () => {
    const worker = await HandWorker.open({ '/tokenize': json({ count: 3, tokens: IDS }) });
    try {
      const bench = new PromptBench({ workers: [{ url: worker.url }] });
      const prompt = await bench.chat('a', fields);
      assert.is(prompt.reason?.code ?? null, code);
      assert.is(prompt.textOnly, code === null);
      assert.is(prompt.source, 'worker');
    } finally {
      await worker.close();
    }
  });
}

test('reasons show names of fields, cut, and nothing that fields hold', async () => {
  const bench = new PromptBench();
  for (const fields of [
    { cache_salt: ['geheim'] },
    { ['y'.repeat(500)]: 'geheim' },
    { prompt_embeds: 'geheim' },
    { model: 'geheim' },
  ]) {
    const { reason } = await bench.text('geheim', { prompt: IDS, ...fields });
    assert.not.match(reason!.text, /geheim/);
    assert.ok(reason!.text.length < 200, reason!.text);
  }
});

test('adapter and salt are scopes of the prompt', async () => {
  const fields = { prompt: IDS, model: 'sql', cache_salt: 'tenant' };
  const prefixed = await new PromptBench().read('completions', fields);
  assert.equal([prefixed.loraName, prefixed.cacheSalt, prefixed.textOnly], ['sql', 'tenant', true]);
  const raw = await new PromptBench({ saltMode: 'raw' }).read('completions', fields);
  assert.equal([raw.loraName, raw.cacheSalt, raw.textOnly, raw.reason?.code], ['sql', null, false, 'raw-salt']);
  const plain = await new PromptBench({ saltMode: 'raw' }).read('completions', { prompt: IDS, model: 'm' });
  assert.equal([plain.loraName, plain.cacheSalt, plain.textOnly], [null, null, true]);
});

test('anything for a body ends in a prompt', async () => {
  const bench = new PromptBench();
  const values = [null, 0, '', 'a', [], [[]], [null], {}, [{}], true, [[[1]]], ['a', 1], { length: 3 }];
  for (const kind of ['chat', 'completions'] as const) {
    for (const value of values) {
      for (const field of ['prompt', 'messages', 'model', 'tools', 'cache_salt', 'chat_template_kwargs', 'echo']) {
        const prompt = await bench.read(kind, {
          model: 'm',
          prompt: [1],
          messages: [{ role: 'user', content: 'a' }],
          [field]: value,
        });
        assert.ok(prompt.tokenCount >= 0);
        assert.ok(prompt.tokens !== null || !prompt.textOnly);
      }
    }
  }
});

test('what nests too deeply to be written is no prompt', async () => {
  const deep = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`) as unknown;
  const prompt = await new PromptBench().chat('a', { tools: deep });
  assert.equal([prompt.source, prompt.reason!.code], ['none', 'bad-prompt']);
  assert.is((await new PromptBench().chat(deep)).textOnly, false);
});

// ---- end to end ----

if (zeromq !== null) {
  test('a simulated worker counts what was prepared, for texts and chats', async () => {
    const worker = await SimulatedWorker.start({ model: 'm', adapters: ['sql'] });
    try {
      const bench = new PromptBench({ workers: [{ url: worker.httpUrl }] });
      const bodies: readonly (readonly [PromptKind, Record<string, unknown>])[] = [
        ['completions', { prompt: 'Zürich 東京' }],
        ['completions', { prompt: ['one'] }],
        ['completions', { prompt: 'a', add_special_tokens: false }],
        ['completions', { prompt: IDS }],
        [
          'chat',
          {
            messages: [
              { role: 'system', content: 'be brief' },
              { role: 'user', content: 'hello' },
            ],
          },
        ],
        [
          'chat',
          { messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }], tools: [{ type: 'function' }] },
        ],
        ['chat', { messages: [{ role: 'user', content: 'hello' }], add_generation_prompt: false }],
      ];
      for (const [kind, fields] of bodies) {
        for (const model of ['m', 'sql']) {
          const body = { model, ...fields };
          const prompt = await bench.read(kind, body);
          assert.ok(prompt.textOnly || prompt.reason?.code === 'tokenize-unconfirmed', prompt.reason?.text);
          bench.reader.reported(prompt, prompt.tokenCount);
          const path = kind === 'chat' ? '/v1/chat/completions' : '/v1/completions';
          const answer = (await (await post(worker.httpUrl + path, { ...body, max_tokens: 1 })).json()) as Awaited<
            ReturnType<typeof complete>
          >;
          assert.is(prompt.tokenCount, answer.usage.prompt_tokens, JSON.stringify(body));
          assert.is(prompt.tokens!.length, prompt.tokenCount);
        }
      }
    } finally {
      await worker.close();
    }
  });
}

test.run();
