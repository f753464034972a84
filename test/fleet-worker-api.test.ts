// What a simulated worker takes and gives, apart from HTTP: tokens of texts and chats, prompts in their forms, answers that repeat, times, faults.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import { answerTo } from '../src/fleet/worker/answer.js';
import { readChat, readCompletion, readDetokenize, readTokenize } from '../src/fleet/worker/api.js';
import { HttpFaults, readFault } from '../src/fleet/worker/faults.js';
import { checkedLatency, DEFAULT_LATENCY, stepMs } from '../src/fleet/worker/latency.js';
import { planWorker, type WorkerOptions } from '../src/fleet/worker/options.js';
import { chatTokens, textTokens, tokensText } from '../src/fleet/worker/tokenizer.js';

const TERMS = { model: 'base', adapters: ['adapter-a', 'adapter-b'], maxModelLength: 1000 };
const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof MoonrouteError || error instanceof ConfigError) return error.code;
    throw error;
  }
  return 'none';
};

test('text is a token a byte, and back', () => {
  assert.equal(textTokens('hé', true), [256, 0x68, 0xc3, 0xa9]);
  assert.equal(textTokens('hé', false), [0x68, 0xc3, 0xa9]);
  assert.is(tokensText(textTokens('hé, 世界', true)), 'hé, 世界');
});

test('a chat’s next turn begins with the tokens of the last and its answer', () => {
  const turn = [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: [{ type: 'text', text: 'hello' }] },
  ];
  const asked = chatTokens(turn, true, undefined);
  const answer = answerTo(asked, 10, false);
  const next = chatTokens(
    [...turn, { role: 'assistant', content: tokensText(answer.tokens) }, { role: 'user', content: 'and?' }],
    true,
    undefined,
  );
  assert.equal(next.slice(0, asked.length + 10), [...asked, ...answer.tokens]);
  assert.not.equal(chatTokens(turn, true, [{ type: 'function' }]), asked);
});

test('answers follow from the prompt alone, and end by themselves or by the bound', () => {
  const prompt = textTokens('once upon a time', true);
  const free = answerTo(prompt, null, false);
  assert.equal(answerTo([...prompt], null, false), free);
  assert.is(free.finishReason, 'stop');
  assert.ok(free.tokens.length >= 24 && free.tokens.length <= 96);
  assert.equal(answerTo(prompt, 5, false), { tokens: free.tokens.slice(0, 5), finishReason: 'length' });
  assert.is(answerTo(prompt, 500, true).tokens.length, 500);
  assert.not.equal(answerTo([...prompt, 1], null, false).tokens, free.tokens);
  assert.match(tokensText(free.tokens), /^[a-z ]+$/);
});

test('prompts: text, ids, one of a list; models, adapters, salts, streams', () => {
  assert.equal(readCompletion({ prompt: 'a' }, TERMS).prompt, [256, 97]);
  assert.equal(readCompletion({ prompt: ['a'] }, TERMS).prompt, [256, 97]);
  assert.equal(readCompletion({ prompt: [1, 2, 3] }, TERMS).prompt, [1, 2, 3]);
  assert.equal(readCompletion({ prompt: [[1, 2, 3]] }, TERMS).prompt, [1, 2, 3]);
  const asked = readChat(
    {
      model: 'adapter-b',
      messages: [{ role: 'user', content: 'x' }],
      cache_salt: 'dynamo-cache-salt:t',
      max_completion_tokens: 3,
      stream: true,
      stream_options: { include_usage: true },
    },
    TERMS,
  );
  assert.equal(asked.lora, { id: 2, name: 'adapter-b' });
  assert.equal([asked.cacheSalt, asked.stream, asked.includeUsage], ['dynamo-cache-salt:t', true, true]);
  assert.is(asked.answer.tokens.length, 3);
  assert.is(readCompletion({ prompt: 'a' }, TERMS).answer.tokens.length, 16);
});

for (const [code, read] of [
  ['bad-request', () => readCompletion(null, TERMS)],
  ['bad-request', () => readCompletion({}, TERMS)],
  ['bad-request', () => readCompletion({ prompt: [] }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: ['a', 'b'] }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: [1, -1] }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: [2 ** 31] }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: [1, 'x'] }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: 'a', max_tokens: 0 }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: 'a', max_tokens: 1000 }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: 'a'.repeat(1000) }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: 'a', n: 2 }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: 'a', cache_salt: '' }, TERMS)],
  ['bad-request', () => readCompletion({ prompt: 'a', cache_salt: 'x'.repeat(256) }, TERMS)],
  ['no-such-model', () => readCompletion({ prompt: 'a', model: 'other' }, TERMS)],
  ['bad-request', () => readChat({ messages: [] }, TERMS)],
  ['bad-request', () => readChat({ messages: [{ role: 'poet', content: 'x' }] }, TERMS)],
  ['bad-request', () => readChat({ messages: [null] }, TERMS)],
  ['bad-request', () => readChat({ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, TERMS)],
  ['bad-request', () => readTokenize({ prompt: 5 })],
  ['bad-request', () => readDetokenize({ tokens: 'abc' })],
  ['bad-request', () => readFault({ kind: 'fire' })],
  ['bad-request', () => readFault({ kind: 'hang', count: 0 })],
  ['bad-request', () => readFault({ kind: 'wrong-usage' })],
] as const) {
  test(`refused as ${code}: ${String(read).slice(6)}`, () => assert.is(codeOf(read), code));
}

test('a step takes what its prefill, its fetch and its decoding take', () => {
  const model = checkedLatency({ prefillRate: 1000, decodeMs: 20, fetchRate: 1e9 });
  const none = { prefillTokens: 0, decodeTokens: 0, restoredBytes: 0 };
  assert.is(stepMs(none, model), 0);
  assert.is(stepMs({ ...none, prefillTokens: 500 }, model), 500);
  assert.is(stepMs({ ...none, decodeTokens: 3 }, model), 20);
  assert.is(stepMs({ ...none, restoredBytes: 5e8 }, model), 500);
  assert.is(stepMs({ ...none, prefillTokens: 500 }, { ...model, timeScale: 0.1 }), 50);
  assert.is(
    codeOf(() => checkedLatency({ prefillRate: 0 })),
    'worker-latency',
  );
  assert.is(
    codeOf(() => checkedLatency({ timeScale: -1 })),
    'worker-latency',
  );
  assert.is(checkedLatency({}).decodeMs, DEFAULT_LATENCY.decodeMs);
});

test('faults come in the order in which they were asked for, so many times', () => {
  const faults = new HttpFaults();
  faults.order({ kind: 'unavailable' }, 2);
  faults.order({ kind: 'hang' });
  assert.equal(
    Array.from({ length: 4 }, () => faults.next()?.kind ?? null),
    ['unavailable', 'unavailable', 'hang', null],
  );
  faults.order({ kind: 'hang' });
  faults.clear();
  assert.is(faults.next(), null);
});

for (const [what, options] of [
  ['a negative port', { httpPort: -1 }],
  ['no ranks', { tp: 0 }],
  ['half a block', { gpuBlocks: 0.5 }],
  ['an adapter without a name', { adapters: [''] }],
  ['an adapter with the model’s name', { model: 'm', adapters: ['m'] }],
  [
    'two ranks that events do not name',
    { dp: 2, encoding: { form: 'map', hashes: 'u64', rank: false, batch: 'array' } },
  ],
] as const satisfies readonly (readonly [string, WorkerOptions])[]) {
  test(`${what}: refused`, () =>
    assert.is(
      codeOf(() => planWorker(options)),
      'worker-option',
    ));
}

test.run();
