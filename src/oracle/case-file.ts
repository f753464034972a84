// Reads files of oracle cases: prompts, the objects that a store holds, and the hit that vLLM itself computed for them. Two
// formats exist, and both become the same case: the reference implementation's published file (token ids, digests and keys
// written out) and this project's own (tokens by a formula, objects by index; its schema stands at the top of the file).
// A file may come from anywhere, so its shape is checked field by field and no number is trusted.
import { low64OfHex } from '../wire/engine-hashes.js';
import { CaseField, CaseFileError, isRecord, show } from './case-field.js';

export { CaseFileError } from './case-field.js';

/** Most tokens of one case. */
export const MAX_CASE_TOKENS = 1_048_576;

/** One KV-cache group, in store order. */
export interface OracleGroup {
  readonly kind: 'full_attention' | 'sliding_window' | 'mamba';
  /** Tokens a block. */
  readonly blockSize: number;
  /** Sliding window in tokens, null for other kinds. */
  readonly window: number | null;
  /** Prefixes of the object keys that must all exist for a block to be complete. */
  readonly prefixes: readonly string[];
}

/** One case. */
export interface OracleCase {
  readonly name: string;
  /** Geometry family, `upstream` for the reference's cases. */
  readonly family: string;
  /** Tokens a digest. */
  readonly hashBlockSize: number;
  /** Tokens: the coordinator's LCM of block sizes. */
  readonly alignment: number;
  readonly partialHashHits: boolean;
  readonly groups: readonly OracleGroup[];
  /** All known tokens; the request is the first `requestTokenCount` of them. */
  readonly tokens: Uint32Array;
  readonly requestTokenCount: number;
  /** Digest i, as 64 lower-case hex digits, covers the tokens up to (i + 1) × `hashBlockSize`. */
  readonly digests: readonly string[];
  readonly loraName: string | null;
  readonly cacheSalt: string | null;
  /** What the store holds; `key` is the whole object key, prefix `@` digest. */
  readonly objects: readonly { readonly group: number; readonly key: string }[];
  /** Tokens that vLLM would restore: by its coordinator, and as its worker reports it (the same where the file has only one). */
  readonly expected: { readonly oracleHitTokens: number; readonly workerHitTokens: number };
  /** Block size of the first full-attention group in tokens, null when there is none. */
  readonly mainEventBlockSize: number | null;
}

/**
 * Reads the text of a case file in either format. `file` is its name, for errors.
 * @throws {CaseFileError} that names file, case and field.
 */
export function readCaseFile(text: string, file: string): OracleCase[] {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch (error) {
    throw new CaseFileError('case-file-json', `not JSON (${(error as Error).message})`, { file });
  }
  const cases = isRecord(root) ? root['cases'] : undefined;
  if (!Array.isArray(cases) || cases.length === 0) {
    const seen = isRecord(root) && 'cases' in root ? `"cases" is ${show(cases)}` : `the file holds ${show(root)}`;
    throw new CaseFileError('case-file-format', `expected {"cases": [a case, …]}, but ${seen}`, { file });
  }
  return cases.map((value, index) => readCase(value, file, index));
}

function readCase(value: unknown, file: string, index: number): OracleCase {
  const named = isRecord(value) && typeof value['name'] === 'string' ? value['name'] : null;
  const caseName = named ?? `case ${index}`;
  if (!isRecord(value)) {
    throw new CaseFileError('case-file-format', `expected a case, got ${show(value)}`, { file, caseName });
  }
  const node = new CaseField(value, { file, caseName }, '');
  if ('token_ids' in value && 'hashes' in value) return readUpstream(node);
  if ('tokens' in value && 'digests' in value) return readOwn(node);
  const seen = Object.keys(value).slice(0, 12).join(', ') || 'no fields';
  const message = `neither format: no "token_ids" and "hashes", no "tokens" and "digests"; it has ${seen}`;
  throw new CaseFileError('case-file-format', message, { file, caseName });
}

/** The reference's format. Its low64 numbers exceed 2^53 and reach us rounded, so they are only compared, rounded alike. */
function readUpstream(node: CaseField): OracleCase {
  const tokens = Uint32Array.from(node.list('token_ids', MAX_CASE_TOKENS).map((item) => item.integer(0, 0xffff_ffff)));
  const shape = readShape(node, tokens);
  const digests = node.list('hashes').map((item, i) => {
    const digest = item.at('digest').digest();
    const end = (i + 1) * shape.hashBlockSize;
    if (item.at('end_token').integer(0) !== end) throw item.at('end_token').fail(`expected ${end}`);
    if (item.at('low64').value !== Number(low64OfHex(digest))) throw item.at('low64').fail(`not that of ${digest}`);
    return digest;
  });
  checkDigestCount(node.at('hashes'), digests, tokens, shape.hashBlockSize);
  const objects = node.list('present').map((item) => {
    const [group, prefix, digest] = item.tuple(3);
    const index = group!.integer(0, shape.groups.length - 1);
    if (!shape.groups[index]!.prefixes.includes(prefix!.text())) throw prefix!.fail(`no prefix of group ${index}`);
    return { group: index, key: `${prefix!.text()}@${digest!.digest()}` };
  });
  const hit = node.at('oracle_hit_tokens').integer(0, shape.requestTokenCount);
  return {
    ...shape,
    family: 'upstream',
    tokens,
    digests,
    loraName: null,
    cacheSalt: null,
    objects,
    expected: { oracleHitTokens: hit, workerHitTokens: hit },
  };
}

/** This project's format. */
function readOwn(node: CaseField): OracleCase {
  const formula = node.at('tokens');
  const [start, step, mod, count] = [
    formula.at('start').integer(0, 0xffff_ffff),
    formula.at('step').integer(0, 0xffff_ffff),
    formula.at('mod').integer(1, 0x1_0000_0000),
    formula.at('count').integer(0, MAX_CASE_TOKENS),
  ] as const;
  // step × i stays below 2^53 by the bounds above.
  const tokens = Uint32Array.from({ length: count }, (_, i) => (start + step * i) % mod);
  const shape = readShape(node, tokens);
  const digests = node.list('digests').map((item) => item.digest());
  checkDigestCount(node.at('digests'), digests, tokens, shape.hashBlockSize);
  if (node.list('low64').length !== digests.length) throw node.at('low64').fail(`expected ${digests.length} items`);
  node.list('low64').forEach((item, i) => {
    const expected = low64OfHex(digests[i]!).toString();
    if (item.value !== expected) throw item.fail(`expected ${expected}, the last 8 bytes of the digest`);
  });
  const objects = node.list('present').map((item) => {
    const [group, prefix, digest] = item.tuple(3);
    const index = group!.integer(0, shape.groups.length - 1);
    const { prefixes } = shape.groups[index]!;
    const key = `${prefixes[prefix!.integer(0, prefixes.length - 1)]}@${digests[digest!.integer(0, digests.length - 1)]}`;
    return { group: index, key };
  });
  return {
    ...shape,
    family: node.at('family').text(),
    tokens,
    digests,
    loraName: node.at('lora_name').textOrNull(),
    cacheSalt: node.at('cache_salt').textOrNull(),
    objects,
    expected: {
      oracleHitTokens: node.at('oracle_hit_tokens').integer(0, shape.requestTokenCount),
      workerHitTokens: node.at('worker_hit_tokens').integer(0, shape.requestTokenCount),
    },
  };
}

/** What both formats spell alike. */
function readShape(node: CaseField, tokens: Uint32Array) {
  const hashBlockSize = node.at('hash_block_size').integer(1, MAX_CASE_TOKENS);
  if (node.list('groups').length === 0) throw node.at('groups').fail('a case has at least one group');
  const groups = node.list('groups').map((item, i): OracleGroup => {
    if (item.at('group_id').integer(0) !== i) throw item.at('group_id').fail(`expected ${i}, its place in the list`);
    const blockSize = item.at('block_size').integer(1, MAX_CASE_TOKENS);
    if (blockSize % hashBlockSize !== 0) {
      throw item.at('block_size').fail(`no multiple of hash_block_size ${hashBlockSize}`);
    }
    const kind = item.at('kind').oneOf(['full_attention', 'sliding_window', 'mamba'] as const);
    const window = kind === 'sliding_window' ? item.at('window').integer(1) : item.at('window').none();
    const prefixes = item.list('prefixes').map((prefix) => prefix.text());
    if (prefixes.length === 0) throw item.at('prefixes').fail('a group needs the objects of at least one prefix');
    return { kind, blockSize, window, prefixes };
  });
  const main = groups.find((group) => group.kind === 'full_attention')?.blockSize ?? null;
  const mainField = node.at('main_event_block_size');
  if (mainField.value !== main) throw mainField.fail(`expected ${main}, the first full-attention group's block size`);
  return {
    name: node.at('name').text(),
    hashBlockSize,
    alignment: node.at('coordinator_alignment').integer(1, Number.MAX_SAFE_INTEGER),
    partialHashHits: node.at('partial_hash_hits').oneOf([true, false]),
    groups,
    requestTokenCount: node.at('request_token_count').integer(0, tokens.length),
    mainEventBlockSize: main,
  };
}

function checkDigestCount(
  field: CaseField,
  digests: readonly string[],
  tokens: Uint32Array,
  hashBlockSize: number,
): void {
  const most = Math.floor(tokens.length / hashBlockSize);
  if (digests.length > most) throw field.fail(`${digests.length} digests for ${tokens.length} tokens, at most ${most}`);
}
