// An event on its way to the plane, before it has its number: numbers are given last, so that what de-duplication drops and coalescing merges leaves
// no gap. Pieces of events chain, so that any cut gives events that mean the same.
import type { EventData, RouterEvent, StoredData } from '../../../wire/envelope/types.js';

/** An event without its number. */
export type Draft = Omit<RouterEvent, 'eventId'>;

/** The draft with its number. Field by field: nearly every block has one, and copied with `...` it would cost a tenth more of all that publishing does. */
export function numbered(draft: Draft, eventId: bigint): RouterEvent {
  const { workerId, dpRank, tier, domain, data, eligible, contradicts, sessionId, stateSource } = draft;
  return { workerId, dpRank, tier, domain, eventId, data, eligible, contradicts, sessionId, stateSource };
}

/** Blocks that an event tells of. */
export function blocksOf(data: EventData): number {
  return data.kind === 'cleared' ? 0 : data.hashes.length;
}

/** Some of a stored event's blocks, chained to those before. */
export function storedPiece(data: StoredData, from: number, to: number): StoredData {
  return {
    kind: 'stored',
    parent: from === 0 ? data.parent : data.hashes[from - 1]!,
    startPosition: data.startPosition === null ? null : data.startPosition + from,
    hashes: data.hashes.subarray(from, to),
    locals: data.locals.subarray(from, to),
    mm: data.mm?.slice(from, to) ?? null,
  };
}

/** Says of blocks that their worker contradicts itself about them, and nothing else: as an owner of a cache, of whose blocks no reader makes a worker's. */
export function contradiction(rank: Pick<Draft, 'workerId' | 'dpRank'>, hashes: BigUint64Array): Draft {
  const { workerId, dpRank } = rank;
  const flags = { eligible: false, contradicts: true, sessionId: null, stateSource: null };
  return { workerId, dpRank, tier: 'external', domain: 'cache_owner', data: { kind: 'removed', hashes }, ...flags };
}

// Upper bounds, by the envelope's named MessagePack: what a text or a number of a name takes at most, and the names themselves.
const ENVELOPE_BYTES = 320;
const BLOCK_BYTES = 64;
const HASH_BYTES = 9;
const HEADER_BYTES = 9;
/** UTF-8 of a UTF-16 unit. */
const UNIT_BYTES = 3;

/** Bytes that an event takes at most on the wire; for caps, which are far above what events without multimodal information take. */
export function bytesAtMost({ data, sessionId, stateSource }: Draft): number {
  const blocks = blocksOf(data) * (data.kind === 'stored' ? BLOCK_BYTES : HASH_BYTES);
  const mm = data.kind === 'stored' && data.mm !== null ? valueBytes(data.mm) : 0;
  return ENVELOPE_BYTES + blocks + mm + (sessionId?.length ?? 0) * UNIT_BYTES + valueBytes(stateSource);
}

/** Of a plain value. */
function valueBytes(value: unknown): number {
  if (typeof value === 'string') return HEADER_BYTES + value.length * UNIT_BYTES;
  if (value instanceof Uint8Array) return HEADER_BYTES + value.length;
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + valueBytes(item), HEADER_BYTES);
  if (typeof value !== 'object' || value === null) return HEADER_BYTES;
  return Object.entries(value).reduce((sum, [key, item]) => sum + valueBytes(key) + valueBytes(item), HEADER_BYTES);
}
