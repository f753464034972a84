// Store messages the plain way: one Decoder, kept, and each event judged by name (assembly/README.md, "Store messages").
import { Decoder } from '@msgpack/msgpack';
import type { StoreTarget } from './rival.js';

const MAX_EVENTS = 4_096;
const CPU = 1;
const DISK = 2;
const UNKNOWN = 4;
const EVERY_MEDIUM = 7;
const DIGEST = /^[0-9a-f]{64}$/;

const decoder = new Decoder({ useBigInt64: true, mapKeyConverter: (key) => (typeof key === 'string' ? key : '') });

interface StoreEvent {
  readonly tenant_id?: unknown;
  readonly event_type?: unknown;
  readonly type?: unknown;
  readonly object_key?: unknown;
  readonly medium?: unknown;
  readonly dp_rank?: unknown;
}

function kindOf(name: unknown): 'stored' | 'removed' | 'cleared' | 'unknown' | 'unsaid' {
  switch (name) {
    case 'stored':
    case 'BlockStored':
      return 'stored';
    case 'removed':
    case 'BlockRemoved':
      return 'removed';
    case 'cleared':
    case 'AllBlocksCleared':
      return 'cleared';
    case null:
    case undefined:
      return 'unsaid';
    default:
      return 'unknown';
  }
}

/** Applies one payload; `prefixes` gives the id of every required prefix. */
export function applyStoreMessage(
  payload: Uint8Array,
  prefixes: ReadonlyMap<string, number>,
  target: StoreTarget,
): void {
  let events: unknown;
  try {
    const batch = decoder.decode(payload);
    events = Array.isArray(batch) ? batch[1] : undefined;
  } catch {
    events = undefined;
  }
  if (!Array.isArray(events) || events.length > MAX_EVENTS) {
    target.clearResidency();
    return;
  }
  for (const event of events) {
    if (!applyEvent(event, prefixes, target)) {
      target.clearResidency();
      return;
    }
  }
}

/** False when the event is malformed. */
function applyEvent(event: StoreEvent | null, prefixes: ReadonlyMap<string, number>, target: StoreTarget): boolean {
  if (typeof event !== 'object' || event === null || Array.isArray(event)) return false;
  const tenant = event.tenant_id ?? '';
  if (typeof tenant !== 'string') return false;
  if (tenant !== '' && tenant !== 'default') return true;
  const first = kindOf(event.event_type);
  const second = kindOf(event.type);
  const kind = first === 'unsaid' || first === second ? second : second === 'unsaid' ? first : 'unknown';
  if (kind === 'cleared') target.clearResidency();
  if (first === 'cleared' || second === 'cleared') return kind === 'cleared';
  const key = event.object_key;
  if (typeof key !== 'string' || prefixes.has(key)) return false;
  const at = key.lastIndexOf('@');
  const prefix = at < 0 ? undefined : prefixes.get(key.slice(0, at));
  if (prefix === undefined) return true;
  const digest = key.slice(at + 1);
  if (!DIGEST.test(digest)) return false;
  const medium = event.medium === 'cpu' ? CPU : event.medium === 'disk' ? DISK : 0;
  if (medium === 0) return false;
  if (kind === 'stored') target.stored(digest, prefix, medium);
  else if (kind === 'removed') {
    const rank = event.dp_rank;
    const perMedium = typeof rank === 'bigint' || Number.isInteger(rank);
    target.removed(digest, prefix, perMedium ? medium | UNKNOWN : EVERY_MEDIUM);
  } else return false;
  return true;
}
