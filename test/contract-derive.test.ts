// Contracts derived from public configurations: which groups, windows and prefixes follow for models of each shape that is read, what is refused and how, and
// the command.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  agreeOnContract,
  type DeriveOptions,
  deriveDescriptor,
  MODEL_TYPES,
  PINNED_REVISION,
  unlearnedRule,
  validateContract,
} from '../src/contract/index.js';
import { refusalOf, smallDescriptor } from './support/descriptor.js';

type Config = Readonly<Record<string, unknown>>;

/** So many layers, each named by what `wordOf` says. */
const layers = (count: number, wordOf: (layer: number) => string) => Array.from({ length: count }, (_, i) => wordOf(i));
const attention = (heads: number, kvHeads: number) => ({ num_attention_heads: heads, num_key_value_heads: kvHeads });

// Fields of published configurations, as far as layers and heads are concerned.
const LLAMA: Config = { model_type: 'llama', num_hidden_layers: 80, ...attention(64, 8) };
const QWEN2: Config = {
  model_type: 'qwen2',
  num_hidden_layers: 64,
  ...attention(40, 8),
  sliding_window: 131_072,
  use_sliding_window: false,
  max_window_layers: 64,
};
const QWEN3: Config = { ...QWEN2, model_type: 'qwen3', sliding_window: null };
const QWEN3_MOE: Config = { ...QWEN3, model_type: 'qwen3_moe', num_hidden_layers: 48, ...attention(32, 4) };
const MISTRAL: Config = { model_type: 'mistral', num_hidden_layers: 32, ...attention(32, 8), sliding_window: 4096 };
const MIXTRAL: Config = { ...MISTRAL, model_type: 'mixtral', sliding_window: null };
const GEMMA2: Config = { model_type: 'gemma2', num_hidden_layers: 42, ...attention(16, 8), sliding_window: 4096 };
const GEMMA3: Config = {
  model_type: 'gemma3_text',
  num_hidden_layers: 26,
  ...attention(4, 1),
  sliding_window: 512,
  sliding_window_pattern: 6,
};
/** Of the size of the largest one, with its layers listed. */
const GEMMA3_LARGE: Config = {
  ...GEMMA3,
  num_hidden_layers: 62,
  ...attention(32, 16),
  sliding_window: 1024,
  layer_types: layers(62, (i) => ((i + 1) % 6 === 0 ? 'full_attention' : 'sliding_attention')),
};
const COHERE2: Config = { model_type: 'cohere2', num_hidden_layers: 32, ...attention(32, 8), sliding_window: 4096 };
const GPT_OSS: Config = {
  model_type: 'gpt_oss',
  num_hidden_layers: 36,
  ...attention(64, 8),
  sliding_window: 128,
  layer_types: layers(36, (i) => (i % 2 === 0 ? 'sliding_attention' : 'full_attention')),
};
const QWEN3_NEXT: Config = {
  model_type: 'qwen3_next',
  num_hidden_layers: 48,
  ...attention(16, 2),
  full_attention_interval: 4,
};
const JAMBA: Config = {
  model_type: 'jamba',
  num_hidden_layers: 32,
  ...attention(32, 8),
  attn_layer_period: 8,
  attn_layer_offset: 4,
  sliding_window: null,
};
const BAMBA: Config = {
  model_type: 'bamba',
  num_hidden_layers: 32,
  ...attention(32, 8),
  attn_layer_indices: [9, 18, 27],
};
const GRANITE_HYBRID: Config = {
  model_type: 'granitemoehybrid',
  num_hidden_layers: 40,
  ...attention(32, 8),
  layer_types: layers(40, (i) => ([5, 15, 25, 35].includes(i) ? 'attention' : 'mamba')),
};
const NEMOTRON_H: Config = {
  model_type: 'nemotron_h',
  num_hidden_layers: 52,
  ...attention(32, 2),
  hybrid_override_pattern: 'MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME',
};

/** Groups as letters: f for full attention, w for windows, m for states; the window; prefixes of each group. */
interface Shape {
  readonly groups: string;
  readonly window?: number;
  readonly prefixes: readonly number[];
  readonly main?: number;
}
const times = (count: number, value: number) => new Array<number>(count).fill(value);

const SHAPES: readonly (readonly [name: string, config: Config, options: Partial<DeriveOptions>, shape: Shape])[] = [
  ['Llama', LLAMA, {}, { groups: 'f', prefixes: [1] }],
  ['Llama, 4 tensor ranks', LLAMA, { tp: 4 }, { groups: 'f', prefixes: [4] }],
  ['Llama, 8 tensor and 2 pipeline ranks', LLAMA, { tp: 8, pp: 2 }, { groups: 'f', prefixes: [16] }],
  ['Llama, more ranks than KV heads', LLAMA, { tp: 16 }, { groups: 'f', prefixes: [8] }],
  [
    'Llama without KV heads of its own',
    { ...LLAMA, num_key_value_heads: undefined },
    { tp: 16 },
    { groups: 'f', prefixes: [16] },
  ],
  ['Qwen 2.5 with a window that is not used', QWEN2, { tp: 2 }, { groups: 'f', prefixes: [2] }],
  ['Qwen 3', QWEN3, {}, { groups: 'f', prefixes: [1] }],
  ['Qwen 3 MoE', QWEN3_MOE, { tp: 8 }, { groups: 'f', prefixes: [4] }],
  [
    'Qwen 3 with its layers listed',
    { ...QWEN3, layer_types: layers(64, () => 'full_attention') },
    {},
    { groups: 'f', prefixes: [1] },
  ],
  ['Mistral with a window in every layer', MISTRAL, {}, { groups: 'w', window: 4096, prefixes: [1], main: -1 }],
  ['Mixtral', MIXTRAL, {}, { groups: 'f', prefixes: [1] }],
  ['Gemma 2, by turns', GEMMA2, { tp: 2 }, { groups: 'wf', window: 4096, prefixes: [2, 2], main: 1 }],
  ['Gemma 3, 22 windows to 4', GEMMA3, { tp: 2 }, { groups: 'wwwwwwf', window: 512, prefixes: times(7, 1), main: 6 }],
  [
    'Gemma 3, 52 windows to 10',
    GEMMA3_LARGE,
    { tp: 4 },
    { groups: 'wwwwwwf', window: 1024, prefixes: times(7, 4), main: 6 },
  ],
  ['Cohere 2, 24 windows to 8', COHERE2, {}, { groups: 'wwwf', window: 4096, prefixes: times(4, 1), main: 3 }],
  ['gpt-oss, by turns', GPT_OSS, { tp: 2 }, { groups: 'wf', window: 128, prefixes: [2, 2], main: 1 }],
  [
    'gpt-oss without its list',
    { ...GPT_OSS, layer_types: undefined },
    {},
    { groups: 'wf', window: 128, prefixes: [1, 1], main: 1 },
  ],
  [
    'Qwen3-Next, 36 states to 12',
    QWEN3_NEXT,
    { tp: 4, blockSize: 544 },
    { groups: 'mmmf', prefixes: [4, 4, 4, 2], main: 3 },
  ],
  ['Jamba, 28 states to 4', JAMBA, { blockSize: 16 }, { groups: 'mmmmmmmf', prefixes: times(8, 1), main: 7 }],
  ['Bamba, 29 states to 3', BAMBA, { blockSize: 400 }, { groups: 'mmmmmmmmmmf', prefixes: times(11, 1), main: 10 }],
  [
    'Granite hybrid, 36 states to 4',
    GRANITE_HYBRID,
    { tp: 2, pp: 2, blockSize: 400 },
    { groups: 'mmmmmmmmmf', prefixes: times(10, 4), main: 9 },
  ],
  [
    'Nemotron-H, 23 states to 6, and layers that keep nothing',
    NEMOTRON_H,
    { tp: 4, blockSize: 1056 },
    { groups: 'mmmmf', prefixes: [4, 4, 4, 4, 2], main: 4 },
  ],
  // 13 windows and 12 of full attention: nearly as many, so that groups are as large as the larger kind.
  [
    'nearly as many of both',
    {
      ...GPT_OSS,
      num_hidden_layers: 25,
      layer_types: layers(25, (i) => (i % 2 === 0 ? 'sliding_attention' : 'full_attention')),
    },
    {},
    { groups: 'wf', window: 128, prefixes: [1, 1], main: 1 },
  ],
  // 15 to 12 is a quarter more: groups are as large as the smaller kind.
  [
    'a quarter more of one',
    {
      ...GPT_OSS,
      num_hidden_layers: 27,
      layer_types: layers(27, (i) => (i < 15 ? 'sliding_attention' : 'full_attention')),
    },
    {},
    { groups: 'wwf', window: 128, prefixes: [1, 1, 1], main: 2 },
  ],
];

for (const [name, config, options, shape] of SHAPES) {
  test(`derived: ${name}`, () => {
    const descriptor = deriveDescriptor(config, { model: 'org/tiny', cachePrefix: 'pool', ...options });
    const contract = validateContract(JSON.parse(JSON.stringify(descriptor)), { hashing: 'derived' });
    assert.is(contract.verified, false);
    const letters = { full_attention: 'f', sliding_window: 'w', mamba: 'm' } as const;
    assert.is(contract.groups.map(({ kind }) => letters[kind]).join(''), shape.groups);
    assert.equal(
      contract.groups.map(({ keyPrefixes }) => keyPrefixes.length),
      shape.prefixes,
    );
    for (const { kind, slidingWindow } of contract.groups) {
      assert.is(slidingWindow, kind === 'sliding_window' ? shape.window! : null);
    }
    const main = shape.main ?? 0;
    assert.is(contract.mainEventGroup, main < 0 ? null : main);
    assert.is(contract.learnable, main >= 0);
    assert.is(unlearnedRule(contract)?.number ?? null, main < 0 ? 12 : null);
    assert.is(contract.mainEventBlockSize, options.blockSize ?? 16);
  });
}

test('every family that is read is in the table', () => {
  const types = new Set(SHAPES.map(([, { model_type }]) => model_type));
  assert.equal(
    MODEL_TYPES.filter((type) => !types.has(type)),
    ['gemma', 'granite', 'qwen2_moe'],
  );
  for (const model_type of ['gemma', 'granite', 'qwen2_moe']) {
    assert.is(deriveDescriptor({ ...LLAMA, model_type }, { model: 'm' }).groups.length, 1);
  }
});

test('prefixes: shards by pipeline stages, under the last part of the model and the cache prefix', () => {
  const prefixes = (options: DeriveOptions) => deriveDescriptor(LLAMA, options).groups[0]!.key_prefixes;
  assert.equal(prefixes({ model: '/models/tiny/', tp: 2, pp: 2, cachePrefix: 'a@b' }), [
    'a@b@tiny@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0',
    'a@b@tiny@tp_rank:0@pcp0@dcp0@pp_rank:1@group:0',
    'a@b@tiny@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0',
    'a@b@tiny@tp_rank:1@pcp0@dcp0@pp_rank:1@group:0',
  ]);
  assert.equal(prefixes({ model: 'tiny' }), ['tiny@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0']);
});

test('a hash block smaller than the blocks: hits may end inside one where the model keeps states', () => {
  const options = { model: 'm', blockSize: 64, hashBlockSize: 16 };
  const hybrid = validateContract(deriveDescriptor(JAMBA, options), { hashing: 'derived' });
  assert.equal([hybrid.partialHashHits, hybrid.hashBlockSize, hybrid.lcmBlockSize], [true, 16, 64]);
  assert.is(deriveDescriptor(GPT_OSS, options).coordinator.partial_hash_hits, false);
  assert.is(deriveDescriptor(JAMBA, { model: 'm', blockSize: 64 }).coordinator.partial_hash_hits, false);
});

test('the seed of hashes is said', () => {
  const seedOf = (options: Partial<DeriveOptions>) =>
    validateContract(deriveDescriptor(LLAMA, { model: 'm', ...options }), { hashing: 'derived' }).hashRule.seed;
  assert.equal([seedOf({}), seedOf({ hashSeed: '42' })], ['0', '42']);
});

/** What is refused, by code, and what the refusal says. */
const REFUSALS: readonly (readonly [
  name: string,
  config: unknown,
  options: Partial<DeriveOptions>,
  code: string,
  text: RegExp,
])[] = [
  ['no object', [LLAMA], {}, 'model-config', /an array of 1\. Give the checkpoint's config\.json/],
  ['null', null, {}, 'model-config', /it is null/],
  ['images', { ...GEMMA3, vision_config: {} }, {}, 'model-multimodal', /it has vision_config/],
  ['a text model inside another', { model_type: 'gemma3', text_config: GEMMA3 }, {}, 'model-multimodal', /text_config/],
  ['an encoder', { ...LLAMA, is_encoder_decoder: true }, {}, 'model-encoder', /is_encoder_decoder/],
  ['latent attention', { ...LLAMA, kv_lora_rank: 512 }, {}, 'model-latent', /kv_lora_rank is 512/],
  [
    'layers that share caches',
    { ...LLAMA, num_kv_shared_layers: 15 },
    {},
    'model-shared-layers',
    /is 15.*worker extension/,
  ],
  [
    'a family that is not read',
    { ...LLAMA, model_type: 'deepseek_v3' },
    {},
    'model-type',
    /"deepseek_v3", read are llama,.*worker extension/,
  ],
  [
    'a family by the name of something else',
    { ...LLAMA, model_type: 'constructor' },
    {},
    'model-type',
    /"constructor"/,
  ],
  ['no family', { ...LLAMA, model_type: undefined }, {}, 'model-type', /model_type is nothing/],
  ['no layers', { ...LLAMA, num_hidden_layers: 0 }, {}, 'model-field', /num_hidden_layers is 0/],
  ['more layers than any model has', { ...LLAMA, num_hidden_layers: 4097 }, {}, 'model-field', /at most 4096/],
  ['a count as text', { ...LLAMA, num_hidden_layers: '80' }, {}, 'model-field', /num_hidden_layers is "80"/],
  ['no heads', { ...LLAMA, num_attention_heads: undefined }, {}, 'model-field', /num_attention_heads is nothing/],
  ['half a KV head', { ...LLAMA, num_key_value_heads: 0.5 }, {}, 'model-field', /num_key_value_heads is 0\.5/],
  ['windows of no size', { ...GPT_OSS, sliding_window: null }, {}, 'model-field', /sliding_window is nothing/],
  ['windows of one token', { ...GPT_OSS, sliding_window: 1 }, {}, 'model-field', /sliding_window is 1/],
  [
    'layers in chunks',
    { ...QWEN3, layer_types: layers(64, () => 'chunked_attention') },
    {},
    'model-layers',
    /layer_types\[0\] is "chunked_attention"/,
  ],
  [
    'a list that is too short',
    { ...QWEN3, layer_types: ['full_attention'] },
    {},
    'model-layers',
    /an array of 1\. It must name each of 64 layers/,
  ],
  [
    'a list that is none',
    { ...QWEN3, layer_types: 'full_attention' },
    {},
    'model-layers',
    /layer_types is "full_attention"/,
  ],
  [
    'a window in some layers, nobody says which',
    { ...QWEN2, use_sliding_window: true },
    {},
    'model-layers',
    /layer_types is missing in a qwen2/,
  ],
  [
    'a window in a family without',
    { ...LLAMA, sliding_window: 4096 },
    {},
    'model-layers',
    /layer_types is missing in a llama/,
  ],
  [
    'a hybrid that does not say its layers',
    { ...GRANITE_HYBRID, layer_types: null },
    {},
    'model-layers',
    /granitemoehybrid/,
  ],
  ['an index past the layers', { ...BAMBA, attn_layer_indices: [32] }, {}, 'model-layers', /attn_layer_indices/],
  ['no period', { ...JAMBA, attn_layer_period: undefined }, {}, 'model-field', /attn_layer_period is nothing/],
  [
    'a letter that nobody knows',
    { ...NEMOTRON_H, num_hidden_layers: 2, hybrid_override_pattern: 'MX' },
    {},
    'model-layers',
    /hybrid_override_pattern\[1\] is "X"/,
  ],
  [
    'a pattern of another length',
    { ...NEMOTRON_H, num_hidden_layers: 3 },
    {},
    'model-layers',
    /a letter for each of 3 layers/,
  ],
  [
    'layers that keep nothing',
    { ...NEMOTRON_H, num_hidden_layers: 2, hybrid_override_pattern: '-E' },
    {},
    'model-layers',
    /no layer keeps anything/,
  ],
  ['states without a block size', JAMBA, {}, 'derive-block-size', /Give the block size that the engine logs/],
  [
    'a hash block in a model of one group',
    LLAMA,
    { hashBlockSize: 8 },
    'derive-block-size',
    /hash blocks have 8 tokens and blocks 16/,
  ],
  ['heads that do not go into the ranks', LLAMA, { tp: 3 }, 'derive-heads', /8 KV heads do not go into 3/],
  ['no tensor rank', LLAMA, { tp: 0 }, 'derive-option', /tp is 0/],
  ['too many pipeline ranks', LLAMA, { pp: 1025 }, 'derive-option', /pp is 1025/],
  ['half a block', LLAMA, { blockSize: 1.5 }, 'derive-option', /blockSize is 1\.5/],
  ['no hash block', GPT_OSS, { hashBlockSize: 0 }, 'derive-option', /hashBlockSize is 0/],
  ['no model', LLAMA, { model: '/' }, 'derive-option', /model is "\/"/],
  [
    'hash blocks that do not fill blocks',
    GPT_OSS,
    { hashBlockSize: 12 },
    'invalid-spans',
    /block_size 16 is no multiple of hash_block_size 12/,
  ],
  ['more prefixes than fit', LLAMA, { tp: 8, pp: 1024 }, 'too-many-prefixes', /more than 1024/],
  [
    'more groups than fit',
    { ...BAMBA, num_hidden_layers: 128, attn_layer_indices: [9] },
    { blockSize: 16 },
    'unsupported-group-count',
    /more than 64/,
  ],
  ['a cache prefix past its size', LLAMA, { cachePrefix: 'x'.repeat(4097) }, 'invalid-prefix', /key_prefixes\[0\]/],
  ['a seed that no variable has', LLAMA, { hashSeed: '' }, 'unsupported-hash-contract', /seed_policy/],
];

for (const [name, config, options, code, text] of REFUSALS) {
  test(`refused: ${name}`, () => {
    const error = refusalOf(() => deriveDescriptor(config, { model: 'm', ...options }));
    assert.is(error.code, code, error.message);
    assert.match(error.message, text);
  });
}

test('the mark is the adapter: no rank may answer with it, and other texts are none', () => {
  const derived = deriveDescriptor(LLAMA, { model: 'm' });
  assert.is(derived.adapter, `derived-${PINNED_REVISION.slice(0, 8)}`);
  assert.is(validateContract(derived).verified, false);
  assert.is(validateContract(smallDescriptor()).verified, true);
  const reply = { rank: 0, dp_rank: 0, descriptor: derived };
  assert.is(refusalOf(() => agreeOnContract([reply], { worldSize: 1 })).code, 'metadata-disagrees');
  for (const adapter of ['derived-d56bbf39', 'derived', 'vllm-1085b644-derived']) {
    assert.is(refusalOf(() => validateContract({ ...derived, adapter })).code, 'unsupported-adapter');
  }
  const verified = { ...derived, adapter: 'vllm-1085b644' };
  assert.is.not(validateContract(verified).fingerprint, validateContract(derived).fingerprint);
});

// ---- the command ----

const run = promisify(execFile);
async function moonroute(...options: readonly string[]) {
  return command('contract', ...options);
}
async function command(...options: readonly string[]) {
  const ended = await run(process.execPath, ['build/js/src/cli/main.js', ...options]).catch((error) => error);
  return { code: ended.code ?? 0, out: ended.stdout as string, err: ended.stderr as string };
}

test('the command prints a descriptor that check takes, says that it is unverified, and refuses by code', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'moonroute-derive-'));
  const file = join(folder, 'config.json');
  const contract = join(folder, 'contract.json');
  try {
    writeFileSync(file, JSON.stringify(QWEN3_NEXT));
    const options = ['--model', 'Qwen/tiny', '--cache-prefix', 'pool', '--tp', '4', '--pp', '2'];
    const refused = await moonroute('derive', file, ...options);
    assert.equal([refused.code, refused.out], [1, '']);
    assert.match(refused.err, /config\.json: refused \(derive-block-size\)\n.*keeps states/);
    const inJson = await moonroute('derive', file, ...options, '--json');
    assert.equal([inJson.code, JSON.parse(inJson.out).code], [1, 'derive-block-size']);

    const sizes = ['--block-size', '544', '--hash-block-size', '16', '--hash-seed', '7'];
    const derived = await moonroute('derive', file, ...options, ...sizes);
    assert.is(derived.code, 0, derived.err);
    assert.match(derived.err, /no engine has vouched for it.*allowUnverifiedContract/);
    const same = deriveDescriptor(QWEN3_NEXT, {
      model: 'tiny',
      cachePrefix: 'pool',
      tp: 4,
      pp: 2,
      blockSize: 544,
      hashBlockSize: 16,
      hashSeed: '7',
    });
    assert.equal(JSON.parse(derived.out), JSON.parse(JSON.stringify(same)));
    assert.is((await moonroute('derive', file, ...options, ...sizes, '--json')).err, '');

    writeFileSync(contract, derived.out);
    const checked = await moonroute('check', contract, '--hashing', 'derived');
    assert.is(checked.code, 0, checked.err);
    assert.match(checked.out, /valid \(derived-1085b644\), unverified: derived, and no engine has vouched for it/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a recording may be replayed under a derived contract', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'moonroute-derive-'));
  const derived = join(folder, 'contract.json');
  try {
    const verified = JSON.parse(readFileSync('examples/contract.json', 'utf8'));
    writeFileSync(derived, JSON.stringify({ ...verified, adapter: 'derived-1085b644' }));
    const outputs: string[] = [];
    for (const contract of ['examples/contract.json', derived]) {
      const { code, out, err } = await command('replay', 'examples/worker.jsonl', '--contract', contract);
      assert.is(code, 0, err);
      outputs.push(out);
    }
    assert.match(outputs[0]!, /learned: [1-9]\d* hash edges/);
    assert.is(outputs[1], outputs[0]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the command: options that are wrong, and help with an example', async () => {
  for (const [options, words] of [
    [['derive', 'config.json'], /--model <name>' not specified/],
    [['derive', 'config.json', '--model', 'm', '--tp', '0'], /whole number, 1 or more/],
    [['derive', 'config.json', '--model', 'm', '--block-size', '1.5'], /whole number, 1 or more/],
    [['derive', '/not/there.json', '--model', 'm'], /cannot read \/not\/there\.json/],
  ] as const) {
    const { code, err } = await moonroute(...options);
    assert.is.not(code, 0);
    assert.match(err, words);
  }
  const help = await moonroute('derive', '--help');
  assert.match(help.out, /Example:\n {2}moonroute contract derive config\.json --model/);
  assert.match(help.out, /allowUnverifiedContract/);
});

test.run();
