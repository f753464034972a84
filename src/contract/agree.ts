// One contract from the replies of all ranks of a worker (spec/kv-events.md 6.3). Each rank publishes the prefixes of *all*
// ranks, so agreement is equality of their texts, never a union: one rank that saw another geometry means no hints.
// Each check runs over all replies before the next one does, so the first one broken is reported whatever the reply order.
import { ContractError } from '../errors.js';
import { type Contract, canonicalJson, DESCRIPTOR_FIELDS, SCHEMA_VERSION, shown, utf8Bytes } from './descriptor.js';
import { defaultRevisions, findRevision, type RevisionSet } from './revisions.js';
import { type ValidateOptions, validateContract } from './validate.js';

/** Most ranks of one worker (6.3). */
export const MAX_WORLD_SIZE = 1024;
/** Longest descriptor, in bytes of its canonical JSON (6.3). */
export const MAX_DESCRIPTOR_BYTES = 262_144;
/** Longest part of a rank's own reason that is repeated, in characters (6.3). */
export const MAX_REASON_CHARS = 200;

/** What the replies are held against. */
export interface AgreementOptions extends ValidateOptions {
  /** Number of ranks that must have replied, 1 to 1024. */
  readonly worldSize: number;
  /** The data-parallel rank that every reply must carry; default 0. */
  readonly dpRank?: number | undefined;
  /** Data-parallel engines behind this one endpoint; only 1 (the default) can be asked as a whole. */
  readonly dpSize?: number | undefined;
  /** The block size in tokens that the worker registered for its GPU events, if known. */
  readonly registeredBlockSize?: number | undefined;
}

/** The keys of a rank's reply. */
const REPLY_FIELDS: readonly string[] = ['rank', 'dp_rank', 'descriptor'];

type Fields = Readonly<Record<string, unknown>>;

/** A rank's descriptor: its fields, and the one text that stands for it. */
interface Published {
  readonly rank: number;
  readonly descriptor: unknown;
  readonly canonical: string;
}

/**
 * The contract that all ranks of a worker agree on.
 * @param replies one reply a rank, in any order: `{rank, dp_rank, descriptor}`, the descriptor as canonical JSON text or as a
 *   parsed value, or `{unsupported: reason}`
 * @throws ContractError when replies are missing, malformed, unsupported or unequal, or when `validateContract` refuses the
 *   contract that they agree on
 */
export function agreeOnContract(replies: readonly unknown[], options: AgreementOptions): Contract {
  const { worldSize, dpRank = 0, dpSize = 1, registeredBlockSize, revisions = defaultRevisions } = options;
  if (dpSize !== 1) {
    throw refusal(
      'unsupported-dp-range',
      'collective_rpc does not return all internal DP engines',
      `this worker runs ${shown(dpSize)} of them`,
      'Give every data-parallel engine its own worker',
    );
  }
  if (!Number.isSafeInteger(worldSize) || worldSize < 1 || worldSize > MAX_WORLD_SIZE) {
    throw refusal(
      'unsupported-world-size',
      'worker RPC rank limit',
      `the world size is ${shown(worldSize)}`,
      `It must be 1 to ${MAX_WORLD_SIZE}`,
    );
  }
  if (!Array.isArray(replies) || replies.length !== worldSize) {
    throw refusal(
      'missing-replies',
      'missing worker RPC replies',
      `saw ${shown(replies)}, expected ${worldSize}`,
      'Ask every rank again',
    );
  }
  const envelopes = readEnvelopes(replies);
  checkRanks(envelopes, worldSize, dpRank);
  const published = envelopes.map(publishedBy);
  for (const { rank, descriptor } of published) {
    const seen = metadataFault(descriptor, revisions, registeredBlockSize);
    if (seen !== undefined) {
      throw refusal(
        'metadata-disagrees',
        'worker metadata disagrees with registered main-event span or schema',
        `rank ${rank} has ${seen}`,
        'Register the worker with the block size and the vLLM revision that it runs',
      );
    }
  }
  const first = published[0]!;
  const other = published.find(({ canonical }) => canonical !== first.canonical);
  if (other !== undefined) {
    throw refusal(
      'ranks-disagree',
      'workers disagree on the resolved store contract',
      `rank ${other.rank} published another descriptor than rank ${first.rank}`,
      'Start all ranks with the same vLLM build and configuration',
    );
  }
  return validateContract(first.descriptor, options);
}

/** The replies as `{rank, dp_rank, descriptor}`, none of them unsupported. */
function readEnvelopes(replies: readonly unknown[]): Fields[] {
  const envelopes = replies.map((reply, i) => {
    if (isFields(reply)) return reply;
    throw refusal(
      'invalid-reply',
      'invalid worker RPC reply',
      `reply ${i} is ${shown(reply)}`,
      'Send a JSON object a rank',
    );
  });
  const refused = envelopes.find((reply) => Object.hasOwn(reply, 'unsupported'));
  if (refused !== undefined) {
    throw refusal(
      'unsupported-worker',
      'a worker did not validate the pinned contract',
      `its reason is ${reasonOf(refused['unsupported'])}`,
      'Run every rank on an accepted, unmodified vLLM revision',
    );
  }
  for (const [i, reply] of envelopes.entries()) {
    if (!hasExactly(reply, REPLY_FIELDS)) {
      throw refusal(
        'invalid-reply',
        'invalid worker RPC envelope',
        `reply ${i} has the keys ${shown(Object.keys(reply).join(', '))}`,
        `Send exactly ${REPLY_FIELDS.join(', ')}`,
      );
    }
  }
  return envelopes;
}

function checkRanks(envelopes: readonly Fields[], worldSize: number, dpRank: number): void {
  const seen = new Set<unknown>();
  for (const { rank, dp_rank } of envelopes) {
    const inRange = typeof rank === 'number' && Number.isSafeInteger(rank) && rank >= 0 && rank < worldSize;
    if (!inRange || seen.has(rank) || dp_rank !== dpRank) {
      throw refusal(
        'unexpected-rank',
        'duplicate or unexpected worker rank',
        `rank ${shown(rank)} with dp_rank ${shown(dp_rank)} ${seen.has(rank) ? 'replied already' : `of world size ${worldSize}, dp_rank ${dpRank}`}`,
        'Ask each rank of this data-parallel engine once',
      );
    }
    seen.add(rank);
  }
}

/** Text must be canonical already: otherwise two texts could differ, or repeat a key, and still parse to the same value. */
function publishedBy(envelope: Fields): Published {
  const rank = envelope['rank'] as number;
  const published = envelope['descriptor'];
  if (typeof published !== 'string') {
    return { rank, descriptor: published, canonical: canonicalJson(published, MAX_DESCRIPTOR_BYTES) };
  }
  // A text is never shorter in bytes than in characters, so an endless one is not encoded.
  if (published.length > MAX_DESCRIPTOR_BYTES || utf8Bytes(published) > MAX_DESCRIPTOR_BYTES) {
    throw refusal(
      'descriptor-too-large',
      'descriptor size limit',
      `rank ${rank} sent more than ${MAX_DESCRIPTOR_BYTES} bytes`,
      'Publish fewer or shorter key prefixes',
    );
  }
  const descriptor = parse(published, rank);
  const canonical = canonicalJson(descriptor, MAX_DESCRIPTOR_BYTES);
  if (published !== canonical && published !== escapeLikePython(canonical)) {
    throw notCanonical(rank, published);
  }
  return { rank, descriptor, canonical };
}

function parse(json: string, rank: number): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw notCanonical(rank, json);
  }
}

/** What `json.dumps` writes by default for what JavaScript leaves as it is: everything but printable ASCII as `\uXXXX`. */
function escapeLikePython(canonical: string): string {
  return canonical.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function metadataFault(
  descriptor: unknown,
  revisions: RevisionSet,
  registeredBlockSize: number | undefined,
): string | undefined {
  if (!isFields(descriptor)) return `a descriptor that is ${shown(descriptor)}`;
  if (!hasExactly(descriptor, DESCRIPTOR_FIELDS)) return `the keys ${shown(Object.keys(descriptor).sort().join(', '))}`;
  const { schema_version, adapter, vllm_revision, main_event_block_size } = descriptor;
  if (schema_version !== SCHEMA_VERSION) return `schema_version ${shown(schema_version)}`;
  const known = typeof vllm_revision === 'string' ? findRevision(revisions, vllm_revision) : undefined;
  if (known === undefined || known.adapter !== adapter) {
    return `vllm_revision ${shown(vllm_revision)} with adapter ${shown(adapter)}`;
  }
  if (registeredBlockSize !== undefined && main_event_block_size !== registeredBlockSize) {
    return `main_event_block_size ${shown(main_event_block_size)}, registered is ${registeredBlockSize}`;
  }
  return undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasExactly(value: Fields, names: readonly string[]): boolean {
  return Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

function reasonOf(reason: unknown): string {
  if (typeof reason !== 'string') return shown(reason);
  // Characters are code points here, two units at most.
  return JSON.stringify([...reason.slice(0, 2 * MAX_REASON_CHARS)].slice(0, MAX_REASON_CHARS).join(''));
}

function notCanonical(rank: number, json: string): ContractError {
  return refusal(
    'descriptor-not-canonical',
    'descriptor is not canonical JSON',
    `rank ${rank} sent ${shown(json)}`,
    'Send it with sorted keys and without spaces',
  );
}

function refusal(code: string, message: string, seen: string, advice: string): ContractError {
  return new ContractError(code, `${message}: ${seen}. ${advice}.`);
}
