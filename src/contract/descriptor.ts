// The contract descriptor: what a worker publishes about its Mooncake store geometry (its JSON type and a strict reader), and
// the validated `Contract` that the rest of moonroute uses. Schema and limits: spec/kv-events.md 6.1. Nothing here judges a
// value; that is validate.ts. The reader copies what it reads, so a rule never sees a field change under it.
import { ContractError } from '../errors.js';

/** Most store groups, and most GPU groups, of one model (6.1). */
export const MAX_GROUPS = 64;
/** Most object-key prefixes of all groups together (6.1). */
export const MAX_PREFIXES = 1024;
/** Longest object-key prefix, in UTF-8 bytes (6.1). */
export const MAX_PREFIX_BYTES = 4096;

/** What a KV-cache group holds; it decides which of its objects an endpoint needs. */
export type GroupKind = 'full_attention' | 'sliding_window' | 'mamba';

/** One store group as published. Spans are in tokens. */
export interface GroupDescriptor {
  readonly group_id: number;
  readonly kind: GroupKind;
  readonly spec: string;
  readonly manager: string;
  readonly block_size: number;
  readonly hash_block_size: number;
  readonly key_prefixes: readonly string[];
  readonly sliding_window?: number | null;
  readonly mamba_cache_mode?: string | null;
}

/** The descriptor as published under the runtime-config key `vllm_mooncake_store`, field for field. Spans are in tokens. */
export interface Descriptor {
  readonly schema_version: number;
  readonly adapter: string;
  readonly vllm_revision: string;
  readonly hash: {
    readonly algorithm: string;
    readonly digest_encoding: string;
    readonly gpu_event_hash: string;
    readonly seed_policy: string;
    readonly key_separator: string;
  };
  readonly input: {
    readonly text_only: boolean;
    readonly normalized_namespaces: boolean;
    readonly lora: boolean;
  };
  /** Index of the GPU group (not the store group) whose events teach hash edges. */
  readonly main_event_group: number;
  readonly main_event_block_size: number;
  /** For each GPU group its store group, or null where the store doesn't hold that group. */
  readonly gpu_to_store_group: readonly (number | null)[];
  readonly coordinator: {
    readonly lcm_block_size: number;
    readonly speculative: boolean;
    readonly drop_blocks: boolean;
    readonly partial_hash_hits: boolean;
  };
  readonly groups: readonly GroupDescriptor[];
}

/** The only schema so far. */
export const SCHEMA_VERSION = 1;

/** The hash contract that learned edges ask for, and the only one that adapters have published so far. */
export const HASH_CONTRACT: Descriptor['hash'] = Object.freeze({
  algorithm: 'sha256',
  digest_encoding: 'hex',
  gpu_event_hash: 'low64',
  seed_policy: 'pythonhashseed-0',
  key_separator: '@',
});

/** Where the digests of a prompt come from: workers' events teach them, the core computes them, or both. */
export const HASHINGS = ['learned', 'derived', 'both'] as const;
/** Where the engine hashes of a prompt come from: `learned` from workers' events, `derived` from its tokens, `both` derived where that is proven. */
export type Hashing = (typeof HASHINGS)[number];

/** How the engine makes digests: enough to make them again. */
export interface HashRule {
  readonly algorithm: 'sha256' | 'sha256_cbor';
  /** The text whose hash is every chain's root: the value of PYTHONHASHSEED, or `vllm-none-hash` where that is not set. */
  readonly seed: string;
}

/** The fields that say which rules the other fields follow. */
export type DescriptorIdentity = Pick<Descriptor, 'schema_version' | 'adapter' | 'vllm_revision'>;

/** One validated store group. `blockSize` and `slidingWindow` in tokens; prefixes sorted, without the final `@`. */
export interface ContractGroup {
  readonly groupId: number;
  readonly kind: GroupKind;
  readonly blockSize: number;
  /** The window, the query token included; null unless `kind` is `sliding_window`. */
  readonly slidingWindow: number | null;
  /** Every prefix under which an object must be resident for a digest of this group to be complete. */
  readonly keyPrefixes: readonly string[];
}

/** A validated contract, deeply frozen. Made by `validateContract` only. Spans are in tokens. */
export interface Contract {
  readonly revision: string;
  readonly adapter: string;
  /** False where it was derived from what is public of the model (`deriveDescriptor`), and no running engine has vouched for it. */
  readonly verified: boolean;
  /** Span of one block of the main group's GPU events, and of one local hash. Without a main group it is what was published, and says nothing. */
  readonly mainEventBlockSize: number;
  /** Span of one digest; divides every block size. */
  readonly hashBlockSize: number;
  /** The coordinator's span; a multiple of every block size (rule 16), so endpoints align to it without partial hits. */
  readonly lcmBlockSize: number;
  /** True when vLLM also restores at hash-block boundaries that are no multiple of `lcmBlockSize`. */
  readonly partialHashHits: boolean;
  /** For each GPU group its store group, or null. */
  readonly gpuToStoreGroup: readonly (number | null)[];
  /**
   * Index of the main group among the GPU groups; its store group is `gpuToStoreGroup[mainEventGroup]`. Null where rules 11 to 13 do not hold:
   * no group's events are known to be dense.
   */
  readonly mainEventGroup: number | null;
  /** How digests are made. */
  readonly hashRule: HashRule;
  /** True where events teach edges that tell every endpoint: rules 11 to 14, 18 and 22 all hold. */
  readonly learnable: boolean;
  readonly groups: readonly ContractGroup[];
  /** Canonical JSON of the descriptor with sorted prefixes: two contracts are the same exactly when these texts are. */
  readonly fingerprint: string;
}

const GROUP_KINDS: readonly string[] = ['full_attention', 'sliding_window', 'mamba'] satisfies GroupKind[];

type Reader<T> = (value: unknown, where: string) => T;

const integer: Reader<number> = (value, where) => {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw malformed(where, 'a whole number from 0 to 2^53 - 1', value);
};

const text: Reader<string> = (value, where) => {
  if (typeof value === 'string') return value;
  throw malformed(where, 'a text', value);
};

const flag: Reader<boolean> = (value, where) => {
  if (typeof value === 'boolean') return value;
  throw malformed(where, 'true or false', value);
};

const groupKind: Reader<GroupKind> = (value, where) => {
  if (typeof value !== 'string') throw malformed(where, 'a text', value);
  if (GROUP_KINDS.includes(value)) return value as GroupKind;
  throw new ContractError(
    'unknown-group-kind',
    `unknown cache group kind: ${where} must be one of ${GROUP_KINDS.join(', ')}, saw ${shown(value)}. ` +
      'Serve this model without shared-store hints; no rule says what its objects restore.',
  );
};

/** Absent means null. */
const optional =
  <T>(read: Reader<T>): Reader<T | null> =>
  (value, where) =>
    value === undefined || value === null ? null : read(value, where);

/** Reads one item more than `limit` at most: enough for the rule that owns the limit to refuse it, however long the array. */
const listOf =
  <T>(read: Reader<T>, limit: number): Reader<T[]> =>
  (value, where) => {
    if (!Array.isArray(value)) throw malformed(where, 'an array', value);
    const items: T[] = [];
    for (let i = 0; i < value.length && i <= limit; i++) items.push(read(value[i], `${where}[${i}]`));
    return items;
  };

/** Reads own fields only and refuses any that `fields` does not name. */
const objectOf =
  <T>(fields: { readonly [K in keyof T]-?: Reader<Exclude<T[K], undefined>> }): Reader<T> =>
  (value, where) => {
    const source = ownFields(value, where);
    const stranger = Object.keys(source).find((name) => !Object.hasOwn(fields, name));
    if (stranger !== undefined) {
      throw new ContractError(
        'unknown-field',
        `unknown field in the contract descriptor: ${where || 'the descriptor'} has ${shown(stranger)}, which schema 1 does not define. ` +
          'Remove it, or publish with the adapter of an accepted vLLM revision.',
      );
    }
    const read = Object.entries<Reader<unknown>>(fields).map(([name, readField]) => [
      name,
      readField(field(source, name), where === '' ? name : `${where}.${name}`),
    ]);
    return Object.fromEntries(read) as T;
  };

const descriptorFields = {
  schema_version: integer,
  adapter: text,
  vllm_revision: text,
  hash: objectOf<Descriptor['hash']>({
    algorithm: text,
    digest_encoding: text,
    gpu_event_hash: text,
    seed_policy: text,
    key_separator: text,
  }),
  input: objectOf<Descriptor['input']>({ text_only: flag, normalized_namespaces: flag, lora: flag }),
  main_event_group: integer,
  main_event_block_size: integer,
  gpu_to_store_group: listOf(optional(integer), MAX_GROUPS),
  coordinator: objectOf<Descriptor['coordinator']>({
    lcm_block_size: integer,
    speculative: flag,
    drop_blocks: flag,
    partial_hash_hits: flag,
  }),
  groups: listOf(
    objectOf<GroupDescriptor>({
      group_id: integer,
      kind: groupKind,
      spec: text,
      manager: text,
      block_size: integer,
      hash_block_size: integer,
      key_prefixes: listOf(text, MAX_PREFIXES),
      sliding_window: optional(integer),
      mamba_cache_mode: optional(text),
    }),
    MAX_GROUPS,
  ),
};

/** The descriptor's top-level fields; all of them are required. */
export const DESCRIPTOR_FIELDS: readonly string[] = Object.keys(descriptorFields);

/**
 * Reads the whole descriptor from a parsed JSON value: types, required fields, no others.
 * @throws ContractError `malformed-descriptor`, `unknown-field` or `unknown-group-kind`.
 */
export function readDescriptor(json: unknown): Descriptor {
  return objectOf<Descriptor>(descriptorFields)(json, '');
}

/**
 * Reads the identity fields, each only when it is asked for: what another schema says elsewhere is not an error of shape.
 * @throws ContractError `malformed-descriptor`, at once when `json` is no object, else when a wrong field is read.
 */
export function readIdentity(json: unknown): DescriptorIdentity {
  const source = ownFields(json, '');
  return {
    get schema_version() {
      return integer(field(source, 'schema_version'), 'schema_version');
    },
    get adapter() {
      return text(field(source, 'adapter'), 'adapter');
    },
    get vllm_revision() {
      return text(field(source, 'vllm_revision'), 'vllm_revision');
    },
  };
}

/** Deepest nesting that canonical text may have; a descriptor has 4 levels. */
const MAX_JSON_DEPTH = 16;

/**
 * The one text of a JSON value: keys sorted, no spaces, no NaN (6.3). Stops early at a value larger than `maxBytes` (UTF-8).
 * @throws ContractError `descriptor-too-large`, or `malformed-descriptor` for what JSON can't say or nests too deeply.
 */
export function canonicalJson(json: unknown, maxBytes: number): string {
  const parts: string[] = [];
  let length = 0;
  const room = (more: number): void => {
    if (length + more > maxBytes) throw tooLarge(maxBytes);
  };
  const put = (part: string): void => {
    room(part.length);
    length += part.length;
    parts.push(part);
  };
  const putText = (value: string): void => {
    room(value.length);
    put(JSON.stringify(value));
  };
  const write = (value: unknown, depth: number): void => {
    if (depth > MAX_JSON_DEPTH) throw malformed('', `JSON of at most ${MAX_JSON_DEPTH} levels`, value);
    if (typeof value === 'string') putText(value);
    else if (value === null || typeof value === 'boolean' || Number.isFinite(value)) put(JSON.stringify(value));
    else if (Array.isArray(value)) {
      put('[');
      for (let i = 0; i < value.length; i++) {
        if (i > 0) put(',');
        write(value[i], depth + 1);
      }
      put(']');
    } else if (typeof value === 'object') {
      const source = value as Record<string, unknown>;
      put('{');
      for (const [i, name] of Object.keys(source).sort().entries()) {
        if (i > 0) put(',');
        putText(name);
        put(':');
        write(source[name], depth + 1);
      }
      put('}');
    } else throw malformed('', 'JSON throughout', value);
  };
  write(json, 1);
  const canonical = parts.join('');
  if (utf8Bytes(canonical) > maxBytes) throw tooLarge(maxBytes);
  return canonical;
}

/** Length of `value` in UTF-8 bytes. */
export function utf8Bytes(value: string): number {
  return new TextEncoder().encode(value).length;
}

/** Longest part of a foreign text that an error repeats, in characters. */
const SHOWN_CHARS = 80;

/** A foreign value as an error may show it: one line, short, and never a second error. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') {
    const cut = JSON.stringify(value.slice(0, SHOWN_CHARS));
    return value.length > SHOWN_CHARS ? `${cut}… (${value.length} characters)` : cut;
  }
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function malformed(where: string, expected: string, value: unknown): ContractError {
  return new ContractError(
    'malformed-descriptor',
    `malformed contract descriptor: ${where || 'the descriptor'} must be ${expected}, saw ${shown(value)}. ` +
      'Publish it as schema 1 says, and pass it as a parsed JSON value.',
  );
}

function tooLarge(maxBytes: number): ContractError {
  return new ContractError(
    'descriptor-too-large',
    `descriptor size limit: the descriptor's canonical JSON is longer than ${maxBytes} bytes. Publish fewer or shorter key prefixes.`,
  );
}

function ownFields(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw malformed(where, 'a JSON object', value);
}

function field(source: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(source, name) ? source[name] : undefined;
}
