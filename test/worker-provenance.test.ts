// Planted look-alikes: events that resemble an eligible one and are none. Every object of every prompt is in the store, so nothing but an
// event's provenance can withhold a hint, and a hint from a look-alike would be a wrong one. Each kind goes through the reader as bytes, in
// both encodings and with both kinds of hash; its eligible twin must give the full hit under its own LoRA name and namespace and under no
// other. Then a storm of both, in random order. Rules: spec/kv-events.md 1.8–1.13 and 3.1. MOONROUTE_SEED=n repeats a storm,
// MOONROUTE_FUZZ=n lengthens it.
import { Encoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Learned } from '../src/cache/types.js';
import type { EligibilityReason } from '../src/events/eligibility.js';
import type { DropReason, NormalisedEvent } from '../src/events/normaliser.js';
import { judgeRequest, proveTextOnly } from '../src/events/request.js';
import { routerBlocks } from '../src/events/router-blocks.js';
import { type Source, WorkerEvents, type WorkerMessage } from '../src/events/worker-events.js';
import { framesOf, Pool, type Prompt, stored } from './support/messages.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const STORM = Number(process.env['MOONROUTE_FUZZ'] ?? 300_000) / 15;
const BLOCKS = 2;
const BLOCK_SIZE = 16;
/** The first two blocks of a prompt, and the two behind them. */
const FIRST: Part = [0, BLOCKS];
const SECOND: Part = [BLOCKS, 2 * BLOCKS];
type Part = readonly [first: number, end: number];

const joined = (...parts: readonly ArrayLike<number>[]): Uint8Array =>
  Buffer.concat(parts.map((part) => Uint8Array.from(part)));

// ---- what an event says ----

const A = 'adapter-a';
const TENANT = 'tenant-a';
const S = 'dynamo-cache-salt:tenant-a';
const S_B = 'dynamo-cache-salt:tenant-b';
const HEX = '0123456789abcdef'.repeat(4);
const bin = (text: string) => new TextEncoder().encode(text);
const EMBEDS = Uint8Array.from({ length: 32 }, (_, i) => 0x80 + ((i * 37) % 0x80));
/** So long that some decoders read it another way than a short text. */
const LONG = 'adapter-'.repeat(30);
const MARK = '\uFEFF';
/** A with its first letter in two bytes. */
const OVERLONG_A = Uint8Array.of(0xaa, 0xc1, 0xa1, ...bin(A.slice(1)));
const MM_INFO = { mm_objects: [{ mm_hash: 5, offsets: [[0, 3]] }] };

/** Fields by the names on the wire; what is absent is as in a plain event. */
type Fields = Readonly<Record<string, unknown>>;

/** A value that is encoded already. */
class Encoded {
  constructor(readonly bytes: Uint8Array) {}
}
const FLOAT_7 = new Encoded(Uint8Array.of(0xcb, 0x40, 0x1c, 0, 0, 0, 0, 0, 0));
const TOO_DEEP = new Encoded(Uint8Array.from([...new Array<number>(40).fill(0x91), 0xc0]));

interface Scope {
  readonly loraName?: string;
  readonly cacheSalt?: string;
}

/** An eligible event, and the only scope in which it gives hints. */
interface Twin {
  readonly says: Fields;
  readonly scope: Scope;
}
const PLAIN: Twin = { says: {}, scope: {} };
const OF_TENANT: Twin = { says: { extra_keys: [[S], null] }, scope: { cacheSalt: TENANT } };
const OF_ADAPTER: Twin = { says: { lora_id: 7, lora_name: A, extra_keys: [[A], [A]] }, scope: { loraName: A } };
const OF_BOTH: Twin = {
  says: { lora_name: A, extra_keys: [[A, S], [A]] },
  scope: { loraName: A, cacheSalt: TENANT },
};
const like = (twin: Twin, says: Fields): Twin => ({ says: { ...twin.says, ...says }, scope: twin.scope });
const adapterCalled = (loraName: string): Twin => ({
  says: { lora_name: loraName, extra_keys: [[loraName], [loraName]] },
  scope: { loraName },
});

/** What becomes of a look-alike. */
interface Fate {
  /** How it is read: one of these. */
  readonly read: readonly string[];
  /** Why the cache does not learn what is eligible; null where it is not asked, or learns nothing. */
  readonly refused: Learned['refused'];
}
const ineligible = (...reasons: EligibilityReason[]): Fate => ({
  read: reasons.map((reason) => `ineligible: ${reason}`),
  refused: null,
});
const refused = (reason: NonNullable<Learned['refused']>): Fate => ({ read: ['stored'], refused: reason });
const untaught: Fate = { read: ['stored'], refused: null };
const dropped = (...reasons: DropReason[]): Fate => ({
  read: reasons.map((reason) => `dropped: ${reason}`),
  refused: null,
});
const rejected: Fate = { read: ['rejected'], refused: null };

/** The lists of a plain event, for look-alikes that change them. */
interface Lists {
  readonly hashes: readonly unknown[];
  /** Hashes that are none of the prompt's. */
  readonly foreign: readonly unknown[];
  readonly tokens: readonly number[];
}

interface LookAlike {
  readonly says: Fields | ((lists: Lists) => Fields);
  readonly fate: Fate;
  /** The fate in array form, where that types a field more strictly. */
  readonly positional?: Fate;
  readonly twin: Twin;
  /** What its publisher says first. */
  readonly before?: Fields;
  /** Its publisher is not admitted. */
  readonly stranger?: true;
}

type More = Pick<LookAlike, 'positional' | 'before' | 'stranger'>;
const look = (says: LookAlike['says'], fate: Fate, twin: Twin = PLAIN, more: More = {}): LookAlike => ({
  ...{ says, fate, twin },
  ...more,
});

// biome-ignore format: one line for each
const LOOK_ALIKES: Readonly<Record<string, LookAlike>> = {
  // Salts and LoRA names that read like each other.
  'a raw salt that reads like an adapter’s name': look({ extra_keys: [[A], null] }, ineligible('extra-key-unknown'), OF_ADAPTER),
  'a raw salt that reads like the event’s own adapter': look({ lora_name: A, extra_keys: [[A, A], [A]] }, ineligible('extra-key-repeated'), OF_ADAPTER),
  'the LoRA name in a block of its own twice': look({ lora_name: A, extra_keys: [[A], [A, A]] }, ineligible('extra-key-repeated'), OF_ADAPTER),
  'another adapter’s name among the keys': look({ lora_name: A, extra_keys: [['adapter-b'], ['adapter-b']] }, ineligible('extra-key-unknown'), OF_ADAPTER),
  'an adapter named like the tagged salt, not named by the event': look({ extra_keys: [[S], [S]] }, ineligible('namespace-misplaced'), adapterCalled(S)),
  'an adapter named like the tagged salt, the tag twice besides': look(
    { lora_name: S, extra_keys: [[S, S, S], [S]] },
    ineligible('extra-key-repeated'),
    { says: { lora_name: S, extra_keys: [[S, S], [S]] }, scope: { loraName: S, cacheSalt: TENANT } },
  ),
  'an adapter named like the raw salt, the salt besides': look(
    { lora_name: TENANT, extra_keys: [[TENANT, TENANT], [TENANT]] },
    ineligible('extra-key-repeated'),
    adapterCalled(TENANT),
  ),
  // The tagged salt.
  'the tag as binary': look({ extra_keys: [[bin(S)], null] }, ineligible('extra-key-not-text'), OF_TENANT),
  'the tag as binary beside the LoRA name': look({ lora_name: A, extra_keys: [[A, bin(S)], [A]] }, ineligible('extra-key-not-text'), OF_BOTH),
  'the tag in the second block': look({ extra_keys: [null, [S]] }, ineligible('namespace-misplaced'), OF_TENANT),
  'the tag in both blocks': look({ extra_keys: [[S], [S]] }, ineligible('namespace-misplaced'), OF_TENANT),
  'an untagged salt': look({ extra_keys: [[TENANT], null] }, ineligible('extra-key-unknown'), OF_TENANT),
  'the tag twice': look({ extra_keys: [[S, S], null] }, ineligible('extra-key-repeated'), OF_TENANT),
  'two tags': look({ extra_keys: [[S, S_B], null] }, ineligible('namespace-mismatch'), OF_TENANT),
  'a tag without a salt': look({ extra_keys: [['dynamo-cache-salt:'], null] }, ineligible('namespace-mismatch'), OF_TENANT),
  'the tag of another tenant than the salt': look(
    { cache_salt: TENANT, extra_keys: [[S_B], null] },
    ineligible('namespace-mismatch'),
    like(OF_TENANT, { cache_salt: TENANT }),
  ),
  'the tag of a salt that is said to be none': look(
    { cache_salt: '', extra_keys: [[S], null] },
    ineligible('namespace-mismatch'),
    like(PLAIN, { cache_salt: '' }),
  ),
  'the tag in capitals': look({ extra_keys: [['Dynamo-Cache-Salt:tenant-a'], null] }, ineligible('extra-key-unknown'), OF_TENANT),
  'the tag with a space behind it, the salt without': look(
    { cache_salt: TENANT, extra_keys: [[`${S} `], null] },
    ineligible('namespace-mismatch'),
    { says: { cache_salt: TENANT }, scope: { cacheSalt: TENANT } },
  ),
  // Texts that a careless decoder takes for others.
  'a salt that is an adapter’s long name behind a byte order mark': look(
    { lora_name: LONG, extra_keys: [[MARK + LONG], [MARK + LONG]] },
    ineligible('extra-key-unknown', 'extra-keys-shape'),
    adapterCalled(LONG),
  ),
  'a long tag behind a byte order mark': look(
    { extra_keys: [[`${MARK}dynamo-cache-salt:${LONG}`], null] },
    ineligible('extra-key-unknown', 'extra-keys-shape'),
    { says: { extra_keys: [[`dynamo-cache-salt:${LONG}`], null] }, scope: { cacheSalt: LONG } },
  ),
  'an adapter’s name in an overlong spelling, which is no UTF-8': look(
    { lora_name: A, extra_keys: new Encoded(joined([0x92, 0x91], OVERLONG_A, [0x91], OVERLONG_A)) },
    ineligible('extra-key-not-text', 'extra-keys-shape'),
    OF_ADAPTER,
  ),
  // Other inputs of the hash.
  'an image’s hash': look({ extra_keys: [[HEX], null] }, ineligible('extra-key-unknown'), adapterCalled(HEX)),
  'an image’s hash beside the LoRA name': look({ lora_name: A, extra_keys: [[A, HEX], [A]] }, ineligible('extra-key-unknown'), OF_ADAPTER),
  'an identifier with its offset': look({ extra_keys: [[['image', 3]], null] }, ineligible('extra-key-not-text')),
  'an identifier that reads like the LoRA name': look({ lora_name: A, extra_keys: [[[A, 0]], [A]] }, ineligible('extra-key-not-text'), OF_ADAPTER),
  'prompt embeddings': look({ extra_keys: [[EMBEDS], null] }, ineligible('extra-key-not-text')),
  'the LoRA name as binary': look({ lora_name: A, extra_keys: [[bin(A)], [bin(A)]] }, ineligible('extra-key-not-text'), OF_ADAPTER),
  'a number among the keys': look({ extra_keys: [null, [7]] }, ineligible('extra-key-not-text')),
  'a float among the keys': look({ extra_keys: [[1.5], null] }, ineligible('extra-key-not-text')),
  'a boolean among the keys': look({ extra_keys: [[true], null] }, ineligible('extra-key-not-text')),
  'nil among the keys': look({ extra_keys: [[null], null] }, ineligible('extra-key-not-text')),
  'an empty text among the keys': look({ extra_keys: [[''], null] }, ineligible('extra-key-unknown')),
  'extra keys that are a text': look({ extra_keys: S }, ineligible('extra-keys-shape'), OF_TENANT),
  'extra keys that are texts': look({ extra_keys: [S, null] }, ineligible('extra-keys-shape'), OF_TENANT),
  'extra keys that are maps': look({ extra_keys: [{ 0: S }, null] }, ineligible('extra-keys-shape'), OF_TENANT),
  'extra keys too deep to be read': look({ extra_keys: TOO_DEEP }, ineligible('extra-keys-shape')),
  'extra keys of fewer blocks': look({ extra_keys: [null] }, refused('extra-keys-count')),
  'extra keys of more blocks': look({ extra_keys: [[A], [A], [A]], lora_name: A }, refused('extra-keys-count'), OF_ADAPTER),
  'extra keys of no block': look({ extra_keys: [] }, refused('extra-keys-count')),
  // Adapters by number.
  'an adapter by its number alone': look({ lora_id: 7 }, ineligible('lora-name-missing'), OF_ADAPTER),
  'an adapter with an empty name': look({ lora_id: 7, lora_name: '' }, ineligible('lora-name-missing')),
  'an adapter by a number of 64 bits': look({ lora_id: 2n ** 64n - 1n }, ineligible('lora-name-missing')),
  ...Object.fromEntries(
    [
      ['a text', '7'],
      ['a float', FLOAT_7],
      ['a boolean', true],
      ['below zero', -1],
      ['far below zero', -(2n ** 40n)],
    ].map(([what, id]): [string, LookAlike] => [
      `an adapter’s number that is ${what}`,
      {
        says: { ...OF_ADAPTER.says, lora_id: id },
        fate: ineligible('lora-id-type'),
        positional: rejected,
        twin: OF_ADAPTER,
      },
    ]),
  ),
  // Flags.
  speculative: look({ is_eagle: true }, ineligible('speculative'), like(PLAIN, { is_eagle: false })),
  'speculative, as a number': look({ is_eagle: 1 }, ineligible('speculative')),
  'speculative, too deep to be read': look({ is_eagle: TOO_DEEP }, ineligible('speculative')),
  'token pairs': look(({ tokens }) => ({ token_ids: tokens.slice(1).map((token, i) => [tokens[i], token]) }), ineligible('token-pairs')),
  'flagged ineligible': look({ shared_cache_eligible: false }, ineligible('flagged-ineligible'), like(PLAIN, { shared_cache_eligible: true })),
  'flagged with a text': look({ shared_cache_eligible: 'yes' }, ineligible('flagged-ineligible')),
  'flagged with a number': look({ shared_cache_eligible: 1 }, ineligible('flagged-ineligible')),
  'flagged eligible, but salted': look({ shared_cache_eligible: true, extra_keys: [['x'], null] }, ineligible('extra-key-unknown')),
  // Images.
  'an image in a block': look({ block_mm_infos: [null, MM_INFO] }, ineligible('multimodal'), like(PLAIN, { block_mm_infos: [null, null] })),
  'image information that is empty': look({ block_mm_infos: [{}] }, ineligible('multimodal')),
  'image information that is no list': look({ block_mm_infos: {} }, ineligible('multimodal')),
  // Groups.
  'a sliding-window group nobody has named, sparse': look(
    ({ hashes }) => ({ group_idx: 5, block_hashes: hashes.slice(1) }),
    dropped('unlearned_group_idx'),
    like(PLAIN, { group_idx: 0 }),
  ),
  'a sliding-window group nobody has named, dense': look({ group_idx: 5 }, dropped('unlearned_group_idx')),
  'a sliding-window event without group and kind, sparse': look(({ hashes }) => ({ block_hashes: hashes.slice(1) }), refused('sparse')),
  'a group that was named a sliding window': look(
    { group_idx: 2 },
    dropped('non_main_attention_group', 'unlearned_group_idx'),
    like(PLAIN, { group_idx: 0, kv_cache_spec_kind: 'full_attention' }),
    { before: { group_idx: 2, kv_cache_spec_kind: 'sliding_window', kv_cache_spec_sliding_window: 128 } },
  ),
  'a sliding window in group 0': look(
    { group_idx: 0, kv_cache_spec_kind: 'sliding_window', kv_cache_spec_sliding_window: 128 },
    dropped('non_main_attention_kind'),
    PLAIN,
    { stranger: true },
  ),
  mamba: look({ group_idx: 3, kv_cache_spec_kind: 'mamba' }, dropped('non_main_attention_kind')),
  'an unknown kind': look({ kv_cache_spec_kind: 'Full_Attention' }, dropped('unknown_kind')),
  'an empty kind': look({ kv_cache_spec_kind: '' }, dropped('unknown_kind')),
  'main attention of another group': look(
    { group_idx: 1, kv_cache_spec_kind: 'full_attention' },
    refused('not-main-group'),
    like(OF_TENANT, { group_idx: 0, kv_cache_spec_kind: 'mla_attention' }),
  ),
  // Sizes.
  'blocks of half the size': look(
    ({ hashes, foreign }) => ({
      block_size: BLOCK_SIZE / 2,
      block_hashes: [foreign[0], hashes[0], foreign[1], hashes[1]],
    }),
    refused('other-block-size'),
  ),
  'half the size, as many blocks': look({ block_size: BLOCK_SIZE / 2 }, refused('other-block-size')),
  'blocks of double the size': look(({ hashes }) => ({ block_size: BLOCK_SIZE * 2, block_hashes: hashes.slice(1) }), refused('other-block-size')),
  'double the size, as many blocks': look({ block_size: BLOCK_SIZE * 2 }, refused('other-block-size')),
  'blocks of no size': look({ block_size: 0 }, refused('other-block-size')),
  'a partial block': look(
    ({ hashes, tokens }) => ({ block_size: 8, block_hashes: hashes.slice(0, 1), token_ids: tokens.slice(0, 8) }),
    refused('other-block-size'),
  ),
  'a token too few': look(({ tokens }) => ({ token_ids: tokens.slice(1) }), refused('sparse')),
  'a block’s tokens too few': look(({ tokens }) => ({ token_ids: tokens.slice(0, BLOCK_SIZE) }), refused('sparse')),
  'no tokens': look({ token_ids: [] }, refused('sparse')),
  'a token too many': look(({ tokens }) => ({ token_ids: [...tokens, 1] }), refused('sparse')),
  'a block’s tokens too many': look(({ tokens }) => ({ token_ids: [...tokens, ...tokens.slice(0, BLOCK_SIZE)] }), refused('sparse')),
  'a hash too many': look(({ hashes, foreign }) => ({ block_hashes: [...hashes, foreign[0]] }), refused('sparse')),
  'no hashes': look({ block_hashes: [] }, refused('no-blocks')),
  'a hash that repeats': look(({ hashes }) => ({ block_hashes: [hashes[0], hashes[0]] }), untaught),
  'a block that is its own parent': look(({ hashes }) => ({ parent_block_hash: hashes[1] }), untaught),
  // Places.
  'in host memory': look({ medium: 'CPU' }, refused('not-device-tier'), like(PLAIN, { medium: 'DEVICE' })),
  'the store connector’s own medium': look({ medium: 'cpu' }, dropped('unknown_medium')),
  'in storage': look({ medium: 'STORAGE' }, refused('not-device-tier'), like(PLAIN, { medium: '' })),
  'in storage, the placeholder': look({ medium: 'STORAGE', block_size: 0, token_ids: [] }, refused('not-device-tier')),
  'in an external tier': look({ medium: 'SHARED' }, refused('not-device-tier')),
  'a remote locality': look({ locality: 'REMOTE' }, dropped('non_local_locality'), like(OF_ADAPTER, { locality: 'LOCAL' })),
  'a locality in small letters': look({ locality: 'local' }, dropped('non_local_locality')),
  'owned by another framework': look({ ownership: 'kvcr' }, dropped('unsupported_ownership')),
  'owned by somebody unknown': look({ ownership: '' }, dropped('unknown_ownership')),
  'from a source that is not admitted': look({}, refused('source-not-admitted'), PLAIN, { stranger: true }),
  'a name that no engine serves': look({ lora_name: 'x'.repeat(5000) }, ineligible('bad-scope')),
};

// ---- how it is written ----

type Form = 'map' | 'positional';
type Hashes = 'u64' | 'binary';
type Way = readonly [Form, Hashes];
const WAYS: readonly Way[] = [
  ['map', 'u64'],
  ['map', 'binary'],
  ['positional', 'u64'],
  ['positional', 'binary'],
];

const encoder = new Encoder({ useBigInt64: true });
const encoded = (value: unknown) => (value instanceof Encoded ? value.bytes : encoder.encode(value));

function hashOf(hex: string, hashes: Hashes): unknown {
  const digest = Buffer.from(hex, 'hex');
  return hashes === 'binary' ? new Uint8Array(digest) : digest.readBigUInt64BE(24);
}

/** A plain event's fields about a part of a prompt. */
function plainFields(prompt: Prompt, hashes: Hashes, [first, end]: Part = FIRST): Fields & { token_ids: number[] } {
  const hash = (block: number) => hashOf(prompt.digest(block), hashes);
  return {
    type: 'BlockStored',
    block_hashes: Array.from({ length: end - first }, (_, i) => hash(first + i)),
    parent_block_hash: first === 0 ? null : hash(first - 1),
    token_ids: Array.from(prompt.tokens.subarray(first * BLOCK_SIZE, end * BLOCK_SIZE)),
    block_size: BLOCK_SIZE,
    lora_id: null,
    medium: 'GPU',
    lora_name: null,
  };
}

/** Encodes what an event says of a part of a prompt; null when the form can't say it. */
function written(prompt: Prompt, says: LookAlike['says'], [form, hashes]: Way, part?: Part): Uint8Array | null {
  const plain = plainFields(prompt, hashes, part);
  const lists: Lists = {
    hashes: plain['block_hashes'] as readonly unknown[],
    foreign: ['ab', 'cd'].map((byte) => hashOf(byte + prompt.digest(0).slice(2, -2) + byte, hashes)),
    tokens: plain.token_ids,
  };
  const fields: Fields = { ...plain, ...(typeof says === 'function' ? says(lists) : says) };
  if (form === 'positional') return writtenAsList(fields);
  const pairs = Object.entries(fields).flatMap(([key, value]) => [encoded(key), encoded(value)]);
  return joined(Uint8Array.of(0x80 + pairs.length / 2), ...pairs);
}

const MAP_ONLY = ['is_eagle', 'shared_cache_eligible'];
const REQUIRED_SLOTS = 5;

/** The array form, without the nils at its end. The salt stands where SGLang puts it. */
function writtenAsList(fields: Fields): Uint8Array | null {
  if (MAP_ONLY.some((name) => name in fields)) return null;
  const f = (name: string) => fields[name] ?? null;
  const salted = 'cache_salt' in fields;
  const infos = f('block_mm_infos');
  if ((salted && f('lora_name') !== null) || (infos !== null && !Array.isArray(infos))) return null;
  const slots = [
    ...[f('type'), f('block_hashes'), f('parent_block_hash'), f('token_ids'), f('block_size'), f('lora_id')],
    ...[f('medium'), salted ? { cache_salt: f('cache_salt') } : f('lora_name'), f('extra_keys')],
    ...(infos === null ? [] : [infos]),
    ...[f('group_idx'), f('kv_cache_spec_kind'), f('kv_cache_spec_sliding_window'), f('locality'), f('ownership')],
  ];
  while (slots.length > REQUIRED_SLOTS && slots.at(-1) === null) slots.pop();
  return joined(Uint8Array.of(0x90 + slots.length), ...slots.map(encoded));
}

// ---- who hears it ----

const STRANGER: Source = { workerId: 'stranger', dpRank: 0 };
const SOURCES: readonly Source[] = [0, 1, 2].flatMap((worker) =>
  [0, 7].map((dpRank) => ({ workerId: `w${worker}`, dpRank })),
);

const LORA_NAMES = [null, '', A, 'adapter-b', TENANT, S, HEX, 'image', LONG];
const SALTS = [null, '', TENANT, 'tenant-b', S, A, HEX, 'dynamo-cache-salt:', LONG];

const request = {};
proveTextOnly(request);
const { eligible } = judgeRequest(request);

/** What became of one event that was heard. */
interface Heard {
  readonly read: string;
  readonly namespace: string | null;
  readonly learned: Learned | null;
  /** Blocks that the GPU index takes; null where the event is none of stored blocks. */
  readonly indexed: number | null;
}

/** A store that holds everything, and what the workers say. */
class Listener {
  readonly workers = new WorkerEvents();
  #prompts = 0;
  #sequence = 0;

  private constructor(readonly pool: Pool) {
    pool.cache.updateContract(pool.contract, SOURCES);
  }

  static async open(): Promise<Listener> {
    return new Listener(await Pool.open());
  }

  /** A prompt of which every object is in the store. */
  prompt(blocks = BLOCKS): Prompt {
    const prompt = this.pool.prompt(this.#prompts++, blocks);
    this.pool.send(prompt.keys(this.pool.contract).map((key) => stored(key)));
    return prompt;
  }

  read({ workerId, dpRank }: Source, events: readonly Uint8Array[]): WorkerMessage {
    const payload = joined(Uint8Array.of(0x93, 0x01, 0x90 + events.length), ...events, encoded(dpRank));
    return this.workers.read(workerId, framesOf(this.#sequence++, payload));
  }

  /** Reads a message of one event and lets the cache learn it. */
  hear(source: Source, event: Uint8Array): Heard {
    const message = this.read(source, [event]);
    const only = message.events[0];
    if (only?.kind !== 'stored') return { read: readAs(only), namespace: null, learned: null, indexed: null };
    const learned = this.pool.cache.observeStored(message.source, only);
    const indexed = routerBlocks(only, { blockSize: BLOCK_SIZE }).count;
    return { read: readAs(only), namespace: only.namespace, learned, indexed };
  }

  /** The scopes in which an eligible request for the prompt is given a hint, with the blocks of each. */
  hints(prompt: Prompt): string[] {
    return LORA_NAMES.flatMap((loraName) =>
      SALTS.flatMap((cacheSalt) => {
        const { blocks } = this.pool.cache.lookup({ ...prompt.query(), loraName, cacheSalt, eligible });
        return blocks === 0 ? [] : [shownScope(loraName, cacheSalt, blocks)];
      }),
    );
  }
}

function readAs(event: NormalisedEvent | undefined): string {
  if (event === undefined) return 'rejected';
  if (event.kind === 'dropped') return `dropped: ${event.reason}`;
  return event.kind === 'stored' && event.ineligible !== null ? `ineligible: ${event.ineligible}` : event.kind;
}

const shownScope = (loraName: string | null, cacheSalt: string | null, blocks: number) =>
  `LoRA ${JSON.stringify(loraName)}, salt ${JSON.stringify(cacheSalt)}: ${blocks}`;

/** The full hit in one scope, as `hints` shows it: nil and empty mean the same. */
function hintsIn({ loraName = '', cacheSalt = '' }: Scope, blocks = BLOCKS): string[] {
  const spelled = (names: readonly (string | null)[], name: string) => names.filter((other) => (other ?? '') === name);
  return spelled(LORA_NAMES, loraName).flatMap((lora) =>
    spelled(SALTS, cacheSalt).map((salt) => shownScope(lora, salt, blocks)),
  );
}

/** Counts by code, as the product's counters show them. */
class Tally {
  readonly counts: Record<string, number> = {};

  add(code: string | null | undefined): void {
    if (code) this.counts[code] = (this.counts[code] ?? 0) + 1;
  }
}

// ---- each kind by itself ----

const listener = await Listener.open();
const expected = { ineligible: new Tally(), dropped: new Tally(), refused: new Tally() };

/** Has an event heard whose fate is known. */
function plant(source: Source, event: Uint8Array, fate: Fate, where: string): Heard {
  const edges = listener.pool.cache.stats().core!.edges;
  const heard = listener.hear(source, event);
  assert.ok(fate.read.includes(heard.read), `${where}: ${heard.read}, not ${fate.read}`);
  const [what, reason] = heard.read.split(': ');
  assert.is(heard.learned?.refused ?? null, what === 'ineligible' ? reason : fate.refused, where);
  // The GPU index takes its blocks all the same.
  if (what === 'ineligible') assert.ok(heard.indexed! > 0, where);
  assert.is(heard.learned?.blocks ?? 0, 0, where);
  assert.is(listener.pool.cache.stats().core!.edges, edges, where);
  count(heard);
  return heard;
}

function count({ read, learned }: Heard): void {
  const [what, reason] = read.split(': ');
  if (what === 'ineligible') expected.ineligible.add(reason);
  if (what === 'dropped') expected.dropped.add(reason);
  expected.refused.add(learned?.refused);
}

function tell(event: Uint8Array, where: string): void {
  const heard = listener.hear(SOURCES[0]!, event);
  count(heard);
  assert.is(heard.read, 'stored', where);
  assert.equal(heard.learned, { blocks: BLOCKS, refused: null }, where);
}

const planted = Object.entries(LOOK_ALIKES);

for (const [name, lookAlike] of planted) {
  test(`${name}: no hint, and its twin the full one`, () => {
    for (const way of WAYS) {
      const where = `${name}, ${way}`;
      const look = new Look(lookAlike, way, where);
      if (way[0] === 'map') assert.ok(look.says(listener.prompt()) && look.twinSays(listener.prompt()), where);
      look.testAlone();
      look.testBehindTwin();
      look.testAsChild();
    }
  });
}

/** A look-alike in one way to write it. Where the form can't say it, or its twin, that part of a test is left out. */
class Look {
  readonly #lookAlike: LookAlike;
  readonly #way: Way;
  readonly #where: string;
  readonly #source: Source;
  readonly #fate: Fate;
  /** Hints of its twin, by blocks. */
  readonly #full: (blocks?: number) => string[];

  constructor(lookAlike: LookAlike, way: Way, where: string) {
    this.#lookAlike = lookAlike;
    this.#way = way;
    this.#where = where;
    this.#source = lookAlike.stranger ? STRANGER : SOURCES[0]!;
    this.#fate = fateIn(lookAlike, way);
    this.#full = (blocks) => hintsIn(lookAlike.twin.scope, blocks);
  }

  says(prompt: Prompt, part?: Part): Uint8Array | null {
    return written(prompt, this.#lookAlike.says, this.#way, part);
  }

  twinSays(prompt: Prompt, part?: Part): Uint8Array | null {
    return written(prompt, this.#lookAlike.twin.says, this.#way, part);
  }

  /** No hint, and the full one once its twin has spoken about the same blocks. */
  testAlone(): void {
    const { before } = this.#lookAlike;
    const prompt = listener.prompt();
    const look = this.says(prompt);
    if (!look) return;
    if (before) count(listener.hear(this.#source, written(prompt, before, this.#way)!));
    const { namespace } = plant(this.#source, look, this.#fate, this.#where);
    assert.equal(listener.hints(prompt), [], this.#where);
    const twin = this.twinSays(prompt);
    if (!twin || this.#clash(namespace, this.#twinNamespace)) return;
    tell(twin, this.#where);
    assert.equal(listener.hints(prompt), this.#full(), `${this.#where}, before its twin`);
  }

  /** Its twin's full hint stays, unless they contradict each other. */
  testBehindTwin(): void {
    const prompt = listener.prompt();
    const twin = this.twinSays(prompt);
    if (!twin) return;
    tell(twin, this.#where);
    assert.equal(listener.hints(prompt), this.#full(), this.#where);
    const look = this.says(prompt);
    if (!look) return;
    const heard = listener.hear(this.#source, look);
    count(heard);
    const lost = !this.#lookAlike.stranger && this.#clash(this.#twinNamespace, heard.namespace);
    assert.equal(listener.hints(prompt), lost ? [] : this.#full(), `${this.#where}, behind its twin`);
  }

  /** Behind its twin's blocks it adds nothing to their hint; the twin does. */
  testAsChild(): void {
    const where = `${this.#where}, as a child`;
    const prompt = listener.prompt(2 * BLOCKS);
    const root = this.twinSays(prompt);
    const look = this.says(prompt, SECOND);
    if (!root || !look) return;
    tell(root, where);
    const { namespace } = plant(this.#source, look, this.#fate, where);
    assert.equal(listener.hints(prompt), this.#full(), where);
    if (this.#clash(namespace, this.#twinNamespace)) return;
    tell(this.twinSays(prompt, SECOND)!, where);
    assert.equal(listener.hints(prompt), this.#full(2 * BLOCKS), `${where}, before its twin`);
  }

  get #twinNamespace(): string | null {
    return this.#lookAlike.twin.scope.cacheSalt ?? null;
  }

  /** What is said of one block under two namespaces is believed of neither; that a block has none is not remembered (1.11). */
  #clash(first: string | null, then: string | null): boolean {
    const { read, refused } = this.#fate;
    const onDevice = !/dropped|rejected/.test(read[0]!) && refused !== 'not-device-tier';
    return onDevice && first !== null && then !== first;
  }
}

function fateIn({ fate, positional = fate }: LookAlike, [form]: Way): Fate {
  return form === 'map' ? fate : positional;
}

test('every look-alike was counted under its reason', () => {
  const { ineligible, dropped, rejected } = listener.workers.stats();
  assert.equal(ineligible, expected.ineligible.counts);
  assert.equal(dropped, expected.dropped.counts);
  assert.equal(Object.keys(rejected), ['field-type']);
  assert.equal(listener.pool.cache.stats().refusals, expected.refused.counts);
});

// ---- events that contradict each other ----

const OF_TENANT_B: Twin = { says: { extra_keys: [[S_B], null] }, scope: { cacheSalt: 'tenant-b' } };

/** Two eligible events that can't both be true of the same blocks. */
const CONTRADICTIONS: Readonly<Record<string, readonly [Twin, Twin]>> = {
  'two tenants': [OF_TENANT, OF_TENANT_B],
  'a tenant, then nobody': [OF_TENANT, PLAIN],
  'nobody, then a tenant': [PLAIN, OF_TENANT],
  'an adapter and none': [OF_ADAPTER, PLAIN],
  'two adapters': [OF_ADAPTER, adapterCalled('adapter-b')],
  'an adapter, then for a tenant too': [OF_ADAPTER, OF_BOTH],
  'a tenant and an adapter named like the tag': [OF_TENANT, adapterCalled(S)],
};

for (const [name, [first, then]] of Object.entries(CONTRADICTIONS)) {
  test(`one block under ${name}: no hint for either, whoever says so`, () => {
    for (const way of WAYS) {
      for (const source of [SOURCES[0]!, SOURCES[1]!, SOURCES[2]!]) {
        const where = `${name}, ${way}, ${JSON.stringify(source)}`;
        const prompt = listener.prompt();
        tell(written(prompt, first.says, way)!, where);
        assert.equal(listener.hints(prompt), hintsIn(first.scope), where);
        for (const { says } of [then, first, then]) {
          listener.hear(source, written(prompt, says, way)!);
          assert.equal(listener.hints(prompt), [], where);
        }
      }
    }
  });
}

test('the same hashes for two prompts: no hint for either', () => {
  for (const way of WAYS) {
    const [one, two] = [listener.prompt(), listener.prompt()];
    tell(written(one, {}, way)!, `${way}`);
    const { block_hashes } = plainFields(one, way[1]);
    listener.hear(SOURCES[1]!, written(two, { block_hashes }, way)!);
    assert.equal([...listener.hints(one), ...listener.hints(two)], [], `${way}`);
  }
});

test('a child of blocks with two namespaces: dropped when it names none, ineligible when it does', () => {
  for (const way of WAYS) {
    const prompt = listener.prompt(2 * BLOCKS);
    for (const { says } of [OF_TENANT, OF_TENANT_B]) listener.hear(SOURCES[0]!, written(prompt, says, way)!);
    const child = (says: Fields) => listener.hear(SOURCES[0]!, written(prompt, says, way, SECOND)!);
    assert.is(child({}).read, 'dropped: ambiguous_cache_namespace', `${way}`);
    assert.is(child(OF_TENANT.says).read, 'ineligible: ambiguous-namespace', `${way}`);
    assert.equal(listener.hints(prompt), [], `${way}`);
  }
});

test('a child inherits its parent’s tenant, contradicts it by naming another, and needs its adapter', () => {
  for (const way of WAYS) {
    const [kept, lost, adapted] = [listener.prompt(4), listener.prompt(4), listener.prompt(4)];
    const child = (prompt: Prompt, says: Fields) => listener.hear(SOURCES[0]!, written(prompt, says, way, SECOND)!);
    for (const prompt of [kept, lost]) tell(written(prompt, OF_TENANT.says, way)!, `${way}`);
    tell(written(adapted, OF_ADAPTER.says, way)!, `${way}`);
    assert.equal([child(kept, {}).read, child(kept, {}).namespace], ['stored', TENANT], `${way}`);
    assert.equal(listener.hints(kept), hintsIn(OF_TENANT.scope, 4), `${way}`);
    assert.is(child(lost, OF_TENANT_B.says).read, 'ineligible: ambiguous-namespace', `${way}`);
    assert.equal(listener.hints(lost), hintsIn(OF_TENANT.scope), `${way}`);
    child(adapted, {});
    assert.equal(listener.hints(adapted), hintsIn(OF_ADAPTER.scope), `${way}`);
  }
});

// ---- the storm ----

/** An event in all ways in which it can be written, and its fate where that does not depend on others. */
interface Planted {
  readonly ways: readonly { readonly bytes: Uint8Array; readonly fate: Fate | null }[];
  readonly stranger: boolean;
}

/** Events about one prompt, and the hints that stand when all of them have been told. */
interface Plot {
  readonly name: string;
  readonly prompts: readonly Prompt[];
  readonly events: readonly Planted[];
  readonly hints: readonly string[];
}

type Said = readonly [prompt: Prompt, says: LookAlike['says'], part?: Part];

function plantedOf([prompt, says, part]: Said, lookAlike: LookAlike | null = null): Planted {
  const ways = WAYS.flatMap((way) => {
    const bytes = written(prompt, says, way, part);
    return bytes === null ? [] : [{ bytes, fate: lookAlike && fateIn(lookAlike, way) }];
  });
  return { ways, stranger: lookAlike?.stranger === true };
}

/** A look-alike, its twin, and the look-alike as the child of its twin, each of a prompt of its own. */
function plotsOf(at: Listener, name: string, lookAlike: LookAlike): Plot[] {
  const { says, before, twin } = lookAlike;
  const [look, right, family] = [at.prompt(), at.prompt(), at.prompt(2 * BLOCKS)];
  const first = before === undefined ? [] : [plantedOf([look, before])];
  const root = plantedOf([family, twin.says]);
  const child = plantedOf([family, says, SECOND], lookAlike);
  return [
    { name, prompts: [look], events: [...first, plantedOf([look, says], lookAlike)], hints: [] },
    { name: `${name}: twin`, prompts: [right], events: [plantedOf([right, twin.says])], hints: hintsIn(twin.scope) },
    { name: `${name}: child`, prompts: [family], events: [root, child], hints: hintsIn(twin.scope) },
  ];
}

function contradictions(at: Listener): Plot[] {
  const plots = Object.entries(CONTRADICTIONS).map(([name, twins]): Plot => {
    const prompt = at.prompt();
    return { name, prompts: [prompt], events: twins.map(({ says }) => plantedOf([prompt, says])), hints: [] };
  });
  const [one, two, child, chain] = [at.prompt(), at.prompt(), at.prompt(4), at.prompt(4)];
  const hashesOfOne = (way: Way) => ({ block_hashes: plainFields(one, way[1])['block_hashes'] });
  const stolen = WAYS.map((way) => ({ bytes: written(two, hashesOfOne(way), way)!, fate: null }));
  const tenants = [OF_TENANT, OF_TENANT_B].map(({ says }) => plantedOf([child, says]));
  const heir = (prompt: Prompt) => plantedOf([prompt, {}, SECOND]);
  return [
    ...plots,
    {
      name: 'stolen hashes',
      prompts: [one, two],
      events: [plantedOf([one, {}]), { ways: stolen, stranger: false }],
      hints: [],
    },
    { name: 'a child of two tenants', prompts: [child], events: [...tenants, heir(child)], hints: [] },
    {
      name: 'a tenant’s child',
      prompts: [chain],
      events: [plantedOf([chain, OF_TENANT.says]), heir(chain)],
      hints: hintsIn(OF_TENANT.scope, 4),
    },
  ];
}

const COPIES = 2;

test(`a storm of ${STORM} messages: full hits for every twin, none for any look-alike`, async () => {
  const random = new Random(seed);
  const at = await Listener.open();
  const plots: Plot[] = [];
  for (let copy = 0; copy < COPIES; copy++) {
    for (const [name, lookAlike] of planted) plots.push(...plotsOf(at, name, lookAlike));
    plots.push(...contradictions(at));
  }
  const storm = new Storm(random, at, plots);
  for (let i = 0; i < STORM; i++) {
    storm.message();
    if (i % 500 === 0) storm.checkLookAlikes(plots, `seed ${seed}, message ${i}`);
  }
  assert.ok(storm.rounds > 1, `${storm.rounds} rounds of all events`);
  for (const { name, prompts, hints } of plots) {
    const given = prompts.flatMap((prompt) => at.hints(prompt));
    assert.equal(given, hints, `seed ${seed}: ${name}`);
  }
  const { ineligible, dropped } = at.workers.stats();
  assert.equal(ineligible, storm.seen.ineligible.counts);
  assert.equal(dropped, storm.seen.dropped.counts);
  assert.equal(at.pool.cache.stats().refusals, storm.seen.refused.counts);
  console.log(`  seed ${seed}: ${plots.length} plots, ${storm.events} events, all of them ${storm.rounds} times`);
});

/** Deals all events again and again, each time in another order, in messages of up to four from a source chosen at random. */
class Storm {
  readonly seen = { ineligible: new Tally(), dropped: new Tally(), refused: new Tally() };
  rounds = 0;
  events = 0;
  readonly #random: Random;
  readonly #listener: Listener;
  readonly #events: readonly Planted[];
  #deck: Planted[] = [];

  constructor(random: Random, at: Listener, plots: readonly Plot[]) {
    this.#random = random;
    this.#listener = at;
    this.#events = plots.flatMap(({ events }) => events);
  }

  message(): void {
    const random = this.#random;
    const events = Array.from({ length: random.between(1, 4) }, () => this.#deal());
    const strangers = events.filter(({ stranger }) => stranger);
    const others = events.filter(({ stranger }) => !stranger);
    if (strangers.length > 0) this.#tell(STRANGER, strangers);
    if (others.length > 0) this.#tell(random.pick(SOURCES), others);
    // A stranger repeats what others said; that changes nothing.
    if (random.chance(0.05)) this.#tell(STRANGER, events);
  }

  #deal(): Planted {
    if (this.#deck.length === 0) {
      this.#deck = this.#random.shuffle([...this.#events]);
      this.rounds++;
    }
    return this.#deck.pop()!;
  }

  #tell(source: Source, planted: readonly Planted[]): void {
    const told = planted.map(({ ways }) => this.#random.pick(ways));
    const at = this.#listener;
    const bytes = told.map((way) => way.bytes);
    const message = at.read(source, bytes);
    const { cache } = at.pool;
    if (this.#random.chance(0.5)) cache.observeMessage(message);
    else for (const event of message.events) if (event.kind === 'stored') cache.observeStored(message.source, event);
    this.events += told.length;
    const lost = new Set(message.rejected.map(({ index }) => index));
    let good = 0;
    told.forEach(({ fate }, index) => {
      this.#check(lost.has(index) ? undefined : message.events[good++], source === STRANGER, fate);
    });
  }

  #check(event: NormalisedEvent | undefined, isStranger: boolean, fate: Fate | null): void {
    const read = readAs(event);
    if (fate !== null && !isStranger) assert.ok(fate.read.includes(read), `${read}, not ${fate.read}`);
    if (event?.kind === 'dropped') this.seen.dropped.add(event.reason);
    if (event?.kind !== 'stored') return;
    this.seen.ineligible.add(event.ineligible);
    this.seen.refused.add(isStranger ? 'source-not-admitted' : (event.ineligible ?? fate?.refused));
  }

  /** That some of the plots without any eligible event give no hint at any time. */
  checkLookAlikes(plots: readonly Plot[], where: string): void {
    for (let i = 0; i < 8; i++) {
      const { name, prompts } = this.#random.pick(plots.filter(({ name }) => name in LOOK_ALIKES));
      assert.equal(this.#listener.hints(prompts[0]!), [], `${where}: ${name}`);
    }
  }
}

test.run();
