// The local tokenizer: it has to agree with the workers before it is used, shape by shape, and is out with a prompt that it gets wrong until it has
// agreed on twice as many.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { ConfigError } from '../src/errors.js';
import { readTokenize } from '../src/fleet/worker/api.js';
import { LocalTokenizer, MAX_LOCAL_RUN, MAX_LOCAL_TEXT, MAX_LOCAL_WHOLE } from '../src/server/tokenizer-local.js';
import { COMPARED_PROMPTS, LocalTrust } from '../src/server/tokenizer-trust.js';
import type { PreparedPrompt } from '../src/server/types.js';
import { until } from './support/fleet-worker.js';
import { type Handler, HandWorker, json } from './support/hand-worker.js';
import { PromptBench } from './support/prompt-bench.js';
import { TokenizerFiles, tinyTokenizer } from './support/tiny-tokenizer.js';

/** Tokenises as a simulated worker does. */
const simulated: Handler = (response, body) => {
  const tokens = readTokenize(JSON.parse(body));
  response.end(JSON.stringify({ count: tokens.length, tokens }));
};

function behaves(
  name: string,
  work: (bench: PromptBench, worker: HandWorker) => Promise<void>,
  {
    files = () => new TokenizerFiles(),
    template = 'config',
    handler = simulated,
  }: {
    readonly files?: () => TokenizerFiles;
    readonly template?: 'config' | 'template' | null;
    readonly handler?: Handler;
  } = {},
): void {
  test(name, async () => {
    const worker = await HandWorker.open({ '/tokenize': handler });
    const on = files();
    const tokenizer = {
      file: on.file,
      chatTemplate: template === null ? null : on[template],
      timeout: 2000,
      cacheEntries: 100,
    };
    try {
      await work(new PromptBench({ workers: [{ url: worker.url }], tokenizer }), worker);
    } finally {
      on.remove();
      await worker.close();
    }
  });
}

const stateOf = ({ reader }: PromptBench) => reader.stats().local.state;

/** Reads as many prompts as are compared, and waits for the comparisons. */
async function verify(
  bench: PromptBench,
  read: (i: number) => Promise<PreparedPrompt>,
  prompts = COMPARED_PROMPTS,
): Promise<void> {
  const { bySource } = bench.reader.stats();
  for (let i = 0; i < prompts; i++) assert.is((await read(i)).source, 'worker');
  await new Promise((resolve) => setTimeout(resolve)); // comparisons are due before
  assert.is(bench.reader.stats().bySource.local, bySource.local);
}

behaves('texts: used after agreeing on so many distinct prompts, and right', async (bench, worker) => {
  assert.is(stateOf(bench), 'unverified');
  for (let i = 0; i < 20; i++) await bench.text('always the same');
  assert.is(stateOf(bench), 'unverified', 'one prompt is one prompt');
  await verify(bench, (i) => bench.text(`prompt ${i}, Zürich 東京 🙂`));
  await until('agreement', () => stateOf(bench) === 'agrees');
  const asked = worker.count('/tokenize');
  const prompt = await bench.text('and now\n\n  by ourselves: 東京');
  assert.equal([prompt.source, prompt.textOnly, prompt.reason], ['local', true, null]);
  assert.equal([...prompt.tokens!], readTokenize({ prompt: 'and now\n\n  by ourselves: 東京' }));
  assert.is(worker.count('/tokenize'), asked);
  assert.match(bench.lines.join('\n'), /agrees with the workers/);
});

for (const template of ['config', 'template'] as const) {
  behaves(
    `chats by a ${template}: a shape of its own`,
    async (bench) => {
      await verify(bench, (i) => bench.text(`prompt ${i}`));
      await until('agreement', () => stateOf(bench) === 'agrees');
      // Agreement on texts is none on chats, and agreement on one turn none on several.
      await verify(bench, (i) => bench.chat(`hello ${i}`));
      await until('agreement', async () => (await bench.chat('hello')).source === 'local');
      const turns = (i: number) => [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: `first ${i}` },
        { role: 'assistant', content: 'yes', refusal: null },
        { role: 'user', content: 'second' },
      ];
      await verify(bench, (i) => bench.read('chat', { model: 'm', messages: turns(i) }));
      await until(
        'agreement',
        async () => (await bench.read('chat', { model: 'm', messages: turns(99) })).source === 'local',
      );
      const prompt = await bench.read('chat', { model: 'm', messages: turns(100) });
      assert.equal([...prompt.tokens!], readTokenize({ messages: turns(100) }));
      assert.is(prompt.textOnly, true);
    },
    { template },
  );
}

/** What is white space to one of JavaScript, Python and Rust, and not to another. */
const DISPUTED = ['\ufeff', '\u001c', '\u001d', '\u001e', '\u001f', '\u0085'];
const words = (i: number, length: number) => `${i}`.padEnd(length, ' word');

behaves('what it does not model goes to a worker, always', async (bench) => {
  const bodies = (i: number): Record<string, unknown>[] => [
    { messages: [{ role: 'user', content: `${i}` }], tools: [{ type: 'function' }] },
    { messages: [{ role: 'user', content: [{ type: 'text', text: `${i}` }] }] },
    {
      messages: [
        { role: 'user', content: `${i}` },
        { role: 'assistant', content: null, tool_calls: [] },
      ],
    },
    { messages: [{ role: 'user', content: `${i}`, name: 'me' }] },
    { messages: [{ role: 'user', content: `${i}` }], response_format: { type: 'json_object' } },
    { messages: [{ role: 'user', content: `${i}` }], add_generation_prompt: 'no' },
    { messages: [{ role: 'user', content: `${i}` }], chat_template_kwargs: { messages: 'x' } },
    { messages: [{ role: 'user', content: `${i}` }], chat_template_kwargs: { list: [1] } },
    { messages: new Array(257).fill({ role: 'user', content: `${i}` }) },
    { messages: [{ role: 'user', content: `${i}` }], continue_final_message: true },
    { messages: [{ role: 'user', content: words(i, MAX_LOCAL_TEXT + 1) }] },
    { messages: [{ role: 'user', content: `${i}`.padEnd(MAX_LOCAL_RUN + 2) }] },
    {
      messages: new Array(4).fill({ role: 'user', content: `${i}`.padEnd(MAX_LOCAL_RUN / 4, 'a') }),
    },
    { messages: [{ role: 'user', content: `${i}` }], chat_template_kwargs: { name: '\ufeffme' } },
    ...DISPUTED.flatMap((space) => [
      { messages: [{ role: 'user', content: `${space}${i}` }] },
      { messages: [{ role: 'user', content: `${i} ${space} ` }] },
    ]),
  ];
  for (let i = 0; i < COMPARED_PROMPTS + 2; i++) {
    for (const body of bodies(i)) assert.is((await bench.read('chat', { model: 'm', ...body })).source, 'worker');
    assert.is((await bench.text(words(i, MAX_LOCAL_TEXT + 1))).source, 'worker');
    assert.is((await bench.text(`${i} ${'a'.repeat(MAX_LOCAL_RUN + 1)}`)).source, 'worker');
    for (const space of DISPUTED) assert.is((await bench.text(`${i}${space}a`)).source, 'worker');
  }
  assert.is(stateOf(bench), 'unverified');
});

behaves(
  'without a chat template chats go to a worker',
  async (bench) => {
    for (let i = 0; i < COMPARED_PROMPTS + 2; i++) assert.is((await bench.chat(`${i}`)).source, 'worker');
    await verify(bench, (i) => bench.text(`${i}`));
    await until('agreement', () => stateOf(bench) === 'agrees');
  },
  { template: null },
);

behaves(
  'another tokenizer than the workers’: found while comparing, said once, not used',
  async (bench) => {
    await bench.text('the only one');
    await until('disagreement', () => stateOf(bench) === 'disagrees');
    for (let i = 0; i < 20; i++) assert.is((await bench.text(`other ${i}`)).source, 'worker');
    await new Promise((resolve) => setTimeout(resolve));
    assert.is(stateOf(bench), 'disagrees');
    assert.match(bench.reader.stats().local.detail!, /^11 tokens here, 13 at a worker, from token 1 on/);
    assert.is(bench.lines.filter((line) => /disagrees/.test(line)).length, 1);
    assert.not.match(bench.lines.join('\n'), /only/);
  },
  {
    files: () =>
      new TokenizerFiles(
        tinyTokenizer([
          ['t', 'h'],
          ['th', 'e'],
        ]),
      ),
  },
);

behaves(
  'another chat template: likewise',
  async (bench) => {
    await bench.chat('hello');
    await until('disagreement', () => stateOf(bench) === 'disagrees');
  },
  {
    files: () =>
      new TokenizerFiles(tinyTokenizer(), '{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}'),
  },
);

behaves(
  'a template that only stops earlier: likewise',
  async (bench) => {
    await bench.chat('hello');
    await until('disagreement', () => stateOf(bench) === 'disagrees');
    assert.match(bench.reader.stats().local.detail!, /^8 tokens here, 9 at a worker, from token 8 on/);
  },
  {
    files: () =>
      new TokenizerFiles(
        tinyTokenizer(),
        '<begin>{% for m in messages %}<role:{{ m.role }}>{{ m.content }}<end>{% endfor %}',
      ),
  },
);

behaves(
  'a template that refuses what a worker takes: likewise',
  async (bench) => {
    await bench.chat('hello');
    await until('disagreement', () => /refuses/.test(bench.reader.stats().local.detail ?? ''));
  },
  { files: () => new TokenizerFiles(tinyTokenizer(), "{{ raise_exception('no') }}") },
);

behaves('an engine that counts otherwise: back to the workers, until twice as many prompts agree', async (bench) => {
  await verify(bench, (i) => bench.text(`prompt ${i}`));
  await until('agreement', () => stateOf(bench) === 'agrees');
  const prompt = await bench.text('local');
  assert.is(prompt.source, 'local');
  bench.reader.reported(prompt, prompt.tokenCount);
  assert.is(stateOf(bench), 'agrees');
  bench.reader.reported(prompt, prompt.tokenCount + 1);
  bench.reader.reported(prompt, prompt.tokenCount + 2);
  assert.is(stateOf(bench), 'disagrees');
  assert.match(bench.reader.stats().local.detail!, /6 tokens prepared, 7 counted by the engine/);
  assert.is(bench.lines.filter((line) => /disagrees/.test(line)).length, 1);
  // As many go by before one is looked at.
  const before = bench.reader.stats().local.detail;
  await verify(bench, (i) => bench.text(`passing ${i}`), 2 * COMPARED_PROMPTS);
  assert.is(bench.reader.stats().local.detail, before);
  await verify(bench, (i) => bench.text(`anew ${i}`), 2 * COMPARED_PROMPTS - 1);
  assert.match(bench.reader.stats().local.detail!, /since then 15 of 16 prompts of one shape agree/);
  await verify(bench, () => bench.text('the last one'), 1);
  assert.equal(bench.reader.stats().local, { state: 'agrees', detail: null });
  assert.is((await bench.text('local again')).source, 'local');
});

test('each disagreement asks for twice as many, within a bound', () => {
  const trust = new LocalTrust();
  const needed = Array.from({ length: 9 }, (_, i) => {
    assert.is(trust.disagree(`${i}`), i === 0);
    return trust.needed;
  });
  assert.equal(needed, [16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
  for (let i = 0; i < 1024; i++) {
    assert.is(trust.wants('a', `${i}`), false);
    trust.pass();
  }
  for (let i = 0; i < 1024; i++) {
    assert.is(trust.trusts('a'), false);
    assert.is(trust.wants('a', `${i}`), true);
    trust.agree('a', `${i}`);
  }
  assert.is(trust.trusts('a'), true);
  assert.is(trust.disagree('anew'), true);
  assert.is(trust.trusts('a'), false);
});

for (const pre_tokenizer of [null, { type: 'Metaspace', replacement: '_', prepend_scheme: 'first', split: false }]) {
  test(`a tokenizer that takes nothing apart gets short texts only: ${pre_tokenizer?.type ?? 'none'}`, () => {
    const files = new TokenizerFiles({ ...tinyTokenizer(), pre_tokenizer });
    const local = LocalTokenizer.load({ file: files.file, chatTemplate: files.config });
    files.remove();
    const long = words(0, MAX_LOCAL_WHOLE);
    assert.is.not(local.shapeOf({ prompt: long }), null);
    assert.is(local.shapeOf({ prompt: `${long}.` }), null);
    assert.is(local.shapeOf({ messages: [{ role: 'user', content: long }] }), null);
  });
}

test('prompts of no shape are found fast', () => {
  const files = new TokenizerFiles();
  const local = LocalTokenizer.load({ file: files.file, chatTemplate: files.config });
  files.remove();
  const shape = (prompt: string) => local.shapeOf({ prompt });
  const run = 'a'.repeat(MAX_LOCAL_RUN);
  assert.is.not(shape(`${run} ${run}`), null);
  assert.is(shape(`${run}a`), null);
  assert.is(shape(`a${' '.repeat(MAX_LOCAL_RUN + 1)}a`), null);
  const started = performance.now();
  for (let i = 0; i < 20; i++) shape(`${run} `.repeat(31));
  assert.ok(performance.now() - started < 500);
});

behaves('an engine that was told to count otherwise says nothing', async (bench) => {
  await verify(bench, (i) => bench.text(`prompt ${i}`));
  await until('agreement', () => stateOf(bench) === 'agrees');
  for (const fields of [{ truncate_prompt_tokens: 2 }, { whatever: 1 }]) {
    const prompt = await bench.text('local', fields);
    assert.is(prompt.source, 'local');
    bench.reader.reported(prompt, 2);
  }
  assert.is(stateOf(bench), 'agrees');
});

behaves(
  'workers that fail teach nothing',
  async (bench) => {
    for (let i = 0; i < 20; i++) assert.is((await bench.text(`${i}`)).source, 'none');
    assert.is(stateOf(bench), 'unverified');
  },
  { handler: json({}, 500) },
);

test('a text that names special tokens is not what a byte-level worker reads: the first comparison finds it', async () => {
  const files = new TokenizerFiles();
  const local = LocalTokenizer.load({ file: files.file, chatTemplate: null });
  files.remove();
  const tokens = local.tokenise({ prompt: 'a<end>', add_special_tokens: true })!;
  assert.equal([...tokens], [256, 97, 257]);
});

test('real merges, and special tokens as asked', () => {
  const files = new TokenizerFiles(
    tinyTokenizer([
      ['t', 'h'],
      ['th', 'e'],
      ['Ġ', 'the'],
    ]),
  );
  const local = LocalTokenizer.load({ file: files.file, chatTemplate: files.config });
  files.remove();
  const tokens = (prompt: string, add_special_tokens: boolean) => [...local.tokenise({ prompt, add_special_tokens })!];
  assert.equal(tokens('the the th', true), [256, 1001, 1002, 32, 1000]);
  assert.equal(tokens('the', false), [1001]);
  assert.equal(tokens('', true), [256]);
  const chat = local.tokenise({
    messages: [{ role: 'user', content: 'the' }],
    add_generation_prompt: true,
    continue_final_message: false,
    add_special_tokens: false,
  })!;
  assert.equal([...chat], [256, 259, 1001, 257, 260], 'the template writes the first token itself');
});

test('template arguments and special tokens reach the template', () => {
  const files = new TokenizerFiles(tinyTokenizer(), '{{ bos_token }}{{ x }}{{ messages[0].content }}');
  const local = LocalTokenizer.load({ file: files.file, chatTemplate: files.template });
  files.remove();
  const tokens = local.tokenise({
    messages: [{ role: 'user', content: 'a' }],
    add_generation_prompt: true,
    continue_final_message: false,
    add_special_tokens: false,
    chat_template_kwargs: { x: 'X' },
  })!;
  assert.equal([...tokens], [256, 88, 97]);
});

// ---- files ----

const BROKEN: readonly (readonly [string, (files: TokenizerFiles) => void, string, RegExp])[] = [
  ['no tokenizer', (files) => rmSync(files.file), 'tokenizer-file', /can't be read.*tokenizer\.file/],
  ['no JSON', (files) => writeFileSync(files.file, 'x'), 'tokenizer-file', /holds no JSON object/],
  ['no tokenizer in it', (files) => writeFileSync(files.file, '{}'), 'tokenizer-file', /can't be used/],
  ['no template', (files) => rmSync(files.config), 'tokenizer-chat-template', /can't be read/],
  [
    'no template in it',
    (files) => writeFileSync(files.config, '{}'),
    'tokenizer-chat-template',
    /has no chat_template/,
  ],
  [
    'no template that can be read',
    (files) => writeFileSync(files.config, JSON.stringify({ chat_template: '{% for %}' })),
    'tokenizer-chat-template',
    /can't be read/,
  ],
];

for (const [what, breakIt, code, words] of BROKEN) {
  test(`refused at the start: ${what}`, () => {
    const files = new TokenizerFiles();
    breakIt(files);
    try {
      LocalTokenizer.load({ file: files.file, chatTemplate: files.config });
      assert.unreachable();
    } catch (error) {
      assert.is((error as ConfigError).code, code, String(error));
      assert.match((error as ConfigError).message, words);
    } finally {
      files.remove();
    }
  });
}

test('of several named templates the default is taken', () => {
  const files = new TokenizerFiles();
  const named = [
    { name: 'tool_use', template: 'b' },
    { name: 'default', template: 'a' },
  ];
  writeFileSync(join(files.folder, 'tokenizer_config.json'), JSON.stringify({ chat_template: named }));
  const local = LocalTokenizer.load({ file: files.file, chatTemplate: files.config });
  files.remove();
  const tokens = local.tokenise({
    messages: [],
    add_generation_prompt: true,
    continue_final_message: false,
    add_special_tokens: false,
  });
  assert.equal([...tokens!], [97]);
});

test.run();
