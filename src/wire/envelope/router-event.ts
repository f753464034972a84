// RouterEvents as MessagePack with named fields (spec/kv-events.md 4.1), alone and in batches: a batch is a list of them.
// Eligibility stands as `sce` on the envelope: true in five bytes, false never written. Older publishers write it inside of what was stored; both are
// read, missing means false, and where the two differ, where it is no truth value, or where blocks hold more than text, it is false as well:
// when in doubt, no hint. `con`, a field of our own, is written likewise: true in five bytes, false never; what is no truth value is taken for true.
import { WireError } from '../../errors.js';
import type { Tier } from '../../events/tiers.js';
import {
  FLAG,
  type Flag,
  KvEventReader,
  mapOf,
  missing,
  readFlag,
  typeFault,
  unsigned64,
  writeKvEvent,
} from './kv-event.js';
import { MAX_READ_EVENTS, MAX_SESSION_BYTES } from './limits.js';
import { Names, UNKNOWN } from './names.js';
import { writePlain } from './plain.js';
import { Fault, type FaultCode, Reader, readWhole } from './reader.js';
import type { EventData, ResidencyDomain, RouterEvent } from './types.js';
import { Writer } from './writer.js';

/** The envelope's name for eligibility. */
export const SCE = 'sce';
/** And for blocks about which their worker contradicts itself. */
const CON = 'con';

const TIERS: readonly Tier[] = ['device', 'host_pinned', 'disk', 'external'];
const DOMAINS: readonly ResidencyDomain[] = ['worker', 'cache_owner'];
const TIER = new Names(TIERS);
const DOMAIN = new Names(DOMAINS);
const EVENT = new Names([
  'worker_id',
  'storage_tier',
  'residency_domain',
  'event',
  'state_source',
  'session_id',
  SCE,
  CON,
]);

/** An event of a payload that could not be read, by its place among all of them. */
export interface UnreadRouterEvent {
  readonly index: number;
  readonly code: FaultCode;
  readonly detail: string;
  /** Its number, where that was read before the fault. */
  readonly eventId: bigint | null;
}

/** What was met in one payload. */
export interface EventCounts {
  stored: number;
  removed: number;
  cleared: number;
  /** Hashes of stored and removed blocks. */
  blocks: number;
  eligible: number;
  /** Both spellings of eligibility, and they differ. */
  conflicts: number;
  /** Eligibility or contradiction that is no truth value; eligibility claimed for blocks that contradict, or that have multimodal information. */
  doubted: number;
  /** Events of the domain `cache_owner`: read, not applied to any worker. */
  cacheOwner: number;
}

/** What one payload holds: good events in order, bad ones apart. */
export interface EventBatch {
  readonly events: readonly RouterEvent[];
  readonly rejected: readonly UnreadRouterEvent[];
  readonly counts: Readonly<EventCounts>;
}

/** Reads lists of events where they stand. */
export class RouterEventReader {
  readonly #kv = new KvEventReader();
  #counts = noCounts();

  /** Starts on a payload. */
  start(): void {
    this.#kv.start();
    this.#counts = noCounts();
  }

  /** Reads the list that starts at the reader's place; null, and nothing is passed, when something else does. */
  list(reader: Reader): EventBatch | null {
    const count = reader.array();
    if (count < 0) return null;
    if (count > MAX_READ_EVENTS) {
      throw new WireError('too-many-events', `the payload has ${count} events, at most ${MAX_READ_EVENTS} are read`);
    }
    const events: RouterEvent[] = [];
    const rejected: UnreadRouterEvent[] = [];
    for (let index = 0; index < count; index++) {
      const start = reader.at;
      try {
        events.push(this.#event(reader));
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault;
        reader.at = start;
        reader.skip();
        rejected.push({ index, code: fault.code, detail: fault.text, eventId: this.#kv.eventId });
      }
    }
    return { events, rejected, counts: this.#counts };
  }

  #event(reader: Reader): RouterEvent {
    const kv = this.#kv;
    let workerId: bigint | null = null;
    let tier: Tier = 'device';
    let domain: ResidencyDomain | null = null;
    let sessionId: string | null = null;
    let stateSource: unknown = null;
    let flag: Flag = FLAG.missing;
    let contradiction: Flag = FLAG.missing;
    kv.reset();
    const pairs = mapOf(reader, 'the event');
    for (let i = 0; i < pairs; i++) {
      switch (reader.name(EVENT)) {
        case 0:
          workerId = unsigned64(reader, 'worker_id');
          break;
        case 1:
          tier = readTier(reader);
          break;
        case 2:
          domain = readDomain(reader);
          break;
        case 3:
          kv.read(reader);
          break;
        case 4:
          stateSource = kv.plain.read(reader);
          break;
        case 5:
          sessionId = readSession(reader);
          break;
        case 6:
          flag = readFlag(reader);
          break;
        case 7:
          contradiction = readFlag(reader);
          break;
        default:
          reader.skip();
      }
    }
    const { data, eventId, dpRank } = kv;
    if (workerId === null) throw missing('worker_id');
    if (eventId === null || data === null) throw missing('event');
    checkDomain(domain, tier, data);
    const contradicts = judgeContradiction(contradiction, data, this.#counts);
    const claimed = judgeEligibility(flag, kv.flag, data, this.#counts);
    if (claimed && contradicts) this.#counts.doubted++;
    const eligible = claimed && !contradicts;
    countEvent(this.#counts, data, domain, eligible);
    return { workerId, dpRank, tier, domain, eventId, data, eligible, contradicts, sessionId, stateSource };
  }
}

export function noCounts(): EventCounts {
  return { stored: 0, removed: 0, cleared: 0, blocks: 0, eligible: 0, conflicts: 0, doubted: 0, cacheOwner: 0 };
}

function countEvent(counts: EventCounts, data: EventData, domain: ResidencyDomain | null, eligible: boolean): void {
  counts[data.kind]++;
  if (data.kind !== 'cleared') counts.blocks += data.hashes.length;
  if (domain === 'cache_owner') counts.cacheOwner++;
  if (eligible) counts.eligible++;
}

/** There must be blocks to contradict. */
function judgeContradiction(flag: Flag, data: EventData, counts: Pick<EventCounts, 'doubted'>): boolean {
  if (flag === FLAG.unreadable) counts.doubted++;
  return (flag === FLAG.yes || flag === FLAG.unreadable) && data.kind !== 'cleared';
}

/** Only stored blocks are eligible, and only where nothing speaks against it. */
export function judgeEligibility(
  envelope: Flag,
  inside: Flag,
  data: EventData,
  counts: Pick<EventCounts, 'conflicts' | 'doubted'>,
): boolean {
  if (envelope === FLAG.unreadable || inside === FLAG.unreadable) {
    counts.doubted++;
    return false;
  }
  if (envelope !== FLAG.missing && inside !== FLAG.missing && envelope !== inside) {
    counts.conflicts++;
    return false;
  }
  if ((envelope !== FLAG.yes && inside !== FLAG.yes) || data.kind !== 'stored') return false;
  if (data.mm === null) return true;
  counts.doubted++;
  return false;
}

/** @throws {Fault} `unknown-tier` */
export function readTier(reader: Reader): Tier {
  const { at } = reader;
  const tier = reader.name(TIER);
  if (tier !== UNKNOWN) return TIERS[tier]!;
  reader.at = at;
  throw new Fault('unknown-tier', `the tier is ${reader.describe()}, expected one of ${TIERS.join(', ')}`);
}

/** A domain that is given must be one: null stands for none that the field knows. @throws {Fault} `residency-domain` */
export function readDomain(reader: Reader): ResidencyDomain {
  const { at } = reader;
  const domain = reader.name(DOMAIN);
  if (domain !== UNKNOWN) return DOMAINS[domain]!;
  reader.at = at;
  const seen = reader.describe();
  throw new Fault(
    'residency-domain',
    `the residency domain is ${seen}: not supported, only ${DOMAINS.join(' and ')} are`,
  );
}

/** A cache's owner has no blocks on a device; its clears say device for want of a tier. @throws {Fault} `residency-domain` */
export function checkDomain(domain: ResidencyDomain | null, tier: Tier, data: EventData): void {
  if (domain !== 'cache_owner' || tier !== 'device' || data.kind === 'cleared') return;
  throw new Fault('residency-domain', `blocks ${data.kind} on a device by the domain cache_owner: not supported`);
}

/** A name longer than is read is left out: what is passed on is not worth an event. @throws {Fault} `field-type` */
export function readSession(reader: Reader): string | null {
  if (reader.nil()) return null;
  const { at } = reader;
  const isLong = reader.textBytes() > MAX_SESSION_BYTES;
  reader.at = at;
  if (isLong) reader.skip();
  const session = isLong ? null : reader.text(MAX_SESSION_BYTES);
  if (session === null && !isLong) throw typeFault(reader, 'session_id', 'a text');
  return session;
}

/** Reads batches, one after the other. What it returns does not depend on the payload's bytes any more. */
export class EventBatchReader {
  readonly #reader = new Reader();
  readonly #events = new RouterEventReader();

  /**
   * @throws {WireError} `payload-too-large` (over 9 MiB), `payload-malformed` (not exactly one value), `payload-too-complex` (nested too deeply),
   * `batch-shape` (no list), `too-many-events` (over 65,536), `too-many-blocks` (over 1,048,576 hashes).
   */
  read(payload: Uint8Array): EventBatch {
    return readWhole(this.#reader, payload, (reader) => {
      this.#events.start();
      const batch = this.#events.list(reader);
      if (batch !== null) return batch;
      throw new Fault('batch-shape', `a batch is a list of events, this payload is ${reader.describe()}`);
    });
  }
}

// ---- writing ----

const writer = new Writer();

/**
 * A batch. The bytes are the caller's own.
 * @throws {WireError} `payload-too-large` (over 8 MiB: send fewer events), `unwritable` (a number out of its range, lists of different lengths)
 */
export function encodeEvents(events: readonly RouterEvent[]): Uint8Array {
  writer.start();
  writeEvents(writer, events);
  return writer.take();
}

/** A list of events. */
export function writeEvents(into: Writer, events: readonly RouterEvent[]): void {
  into.array(events.length);
  for (const event of events) writeEvent(into, event);
}

function writeEvent(into: Writer, event: RouterEvent): void {
  const { domain, stateSource, sessionId } = event;
  const contradicts = event.contradicts && event.data.kind !== 'cleared';
  const isEligible = event.eligible && event.data.kind === 'stored' && !contradicts;
  const hasSource = stateSource !== null && stateSource !== undefined;
  const flags = Number(isEligible) + Number(contradicts);
  into.map(3 + Number(domain !== null) + Number(hasSource) + Number(sessionId !== null) + flags);
  into.text('worker_id');
  into.unsigned(event.workerId, 'worker id');
  into.text('storage_tier');
  into.text(event.tier);
  if (domain !== null) {
    into.text('residency_domain');
    into.text(domain);
  }
  into.text('event');
  writeKvEvent(into, event);
  if (hasSource) {
    into.text('state_source');
    writePlain(into, stateSource);
  }
  if (sessionId !== null) {
    into.text('session_id');
    into.text(sessionId);
  }
  if (isEligible) {
    into.text(SCE);
    into.bool(true);
  }
  if (contradicts) {
    into.text(CON);
    into.bool(true);
  }
}
