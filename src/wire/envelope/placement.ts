// PlacementEvents as MessagePack with named fields (spec/kv-events.md 4.1): an event and its place, before it is some worker's. One a payload.
import type { Tier } from '../../events/tiers.js';
import {
  FLAG,
  type Flag,
  KvEventReader,
  mapOf,
  missing,
  readFlag,
  unsigned32,
  unsigned64,
  writeKvEvent,
} from './kv-event.js';
import { Names } from './names.js';
import { Fault, Reader, readWhole } from './reader.js';
import { checkDomain, judgeEligibility, noCounts, readDomain, readSession, readTier, SCE } from './router-event.js';
import type { PlacementEvent, PlacementOwner, ResidencyDomain, RouterEvent } from './types.js';
import { Writer } from './writer.js';

const PLACEMENT_EVENT = new Names(['placement', 'event', 'session_id', SCE]);
const PLACEMENT = new Names(['owner', 'tier', 'residency_domain']);
const OWNER = new Names(['LocalWorker', 'Shared']);
const SHARED = 1;
const WORKER = new Names(['worker_id', 'dp_rank']);

type Placement = Pick<PlacementEvent, 'owner' | 'tier' | 'domain'>;

const reader = new Reader();
const kv = new KvEventReader();
const writer = new Writer();

/** The worker's event that a placement event tells of; null for a shared owner, whose blocks are no worker's. */
export function routerEventOf(placement: PlacementEvent): RouterEvent | null {
  const { owner, tier, domain, event, eligible, sessionId } = placement;
  if (owner.kind === 'shared') return null;
  const { eventId, data } = event;
  return {
    workerId: owner.workerId,
    dpRank: owner.dpRank,
    tier,
    domain,
    eventId,
    data,
    eligible,
    contradicts: false,
    sessionId,
    stateSource: null,
  };
}

/** @throws {WireError} `payload-too-large`, `payload-malformed`, `payload-too-complex`, `too-many-blocks`, and the codes of faults */
export function decodePlacementEvent(payload: Uint8Array): PlacementEvent {
  return readWhole(reader, payload, readPlacementEvent);
}

function readPlacementEvent(from: Reader): PlacementEvent {
  let placement: Placement | null = null;
  let sessionId: string | null = null;
  let flag: Flag = FLAG.missing;
  kv.start();
  kv.reset();
  const pairs = mapOf(from, 'the placement event');
  for (let i = 0; i < pairs; i++) {
    switch (from.name(PLACEMENT_EVENT)) {
      case 0:
        placement = readPlacement(from);
        break;
      case 1:
        kv.read(from);
        break;
      case 2:
        sessionId = readSession(from);
        break;
      case 3:
        flag = readFlag(from);
        break;
      default:
        from.skip();
    }
  }
  const { eventId, data } = kv;
  if (placement === null) throw missing('placement');
  if (eventId === null || data === null) throw missing('event');
  const { owner, tier, domain } = placement;
  checkDomain(domain, tier, data);
  let { dpRank } = kv;
  if (owner.kind === 'worker') {
    if (kv.hasRank && dpRank !== owner.dpRank) {
      throw new Fault('rank-conflict', `the event is of rank ${dpRank}, its owner is rank ${owner.dpRank}`);
    }
    ({ dpRank } = owner);
  }
  const eligible = judgeEligibility(flag, kv.flag, data, noCounts());
  return { owner, tier, domain, event: { eventId, dpRank, data }, eligible, sessionId };
}

function readPlacement(from: Reader): Placement {
  let owner: PlacementOwner | null = null;
  let tier: Tier | null = null;
  let domain: ResidencyDomain = 'worker';
  const pairs = mapOf(from, 'the placement');
  for (let i = 0; i < pairs; i++) {
    switch (from.name(PLACEMENT)) {
      case 0:
        owner = readOwner(from);
        break;
      case 1:
        tier = readTier(from);
        break;
      case 2:
        domain = readDomain(from);
        break;
      default:
        from.skip();
    }
  }
  if (owner === null) throw missing('placement.owner');
  if (tier === null) throw missing('placement.tier');
  return { owner, tier, domain };
}

function readOwner(from: Reader): PlacementOwner {
  const start = from.at;
  const pairs = from.map();
  if (pairs === 1 || pairs < 0) {
    const variant = from.name(OWNER);
    if (pairs === 1 && variant === 0) return readWorker(from);
    if (variant === SHARED && (pairs < 0 || from.nil())) return { kind: 'shared' };
  }
  from.at = start;
  throw new Fault('field-type', `the owner is ${from.describe()}, expected a map of LocalWorker, or Shared`);
}

function readWorker(from: Reader): PlacementOwner {
  let workerId: bigint | null = null;
  let dpRank: number | null = null;
  const pairs = mapOf(from, 'LocalWorker');
  for (let i = 0; i < pairs; i++) {
    const name = from.name(WORKER);
    if (name === 0) workerId = unsigned64(from, 'worker_id');
    else if (name === 1) dpRank = unsigned32(from, 'dp_rank');
    else from.skip();
  }
  if (workerId === null || dpRank === null) throw missing(`LocalWorker.${workerId === null ? 'worker_id' : 'dp_rank'}`);
  return { kind: 'worker', workerId, dpRank };
}

/** The bytes are the caller's own. @throws {WireError} `payload-too-large`, `unwritable` */
export function encodePlacementEvent(placement: PlacementEvent): Uint8Array {
  const { owner, tier, domain, event, sessionId } = placement;
  const isEligible = placement.eligible && event.data.kind === 'stored';
  writer.start();
  writer.map(2 + Number(sessionId !== null) + Number(isEligible));
  writer.text('placement');
  writer.map(3);
  writer.text('owner');
  if (owner.kind === 'shared') writer.text('Shared');
  else {
    writer.map(1);
    writer.text('LocalWorker');
    writer.map(2);
    writer.text('worker_id');
    writer.unsigned(owner.workerId, 'worker id');
    writer.text('dp_rank');
    writer.uint32(owner.dpRank, 'rank');
  }
  writer.text('tier');
  writer.text(tier);
  writer.text('residency_domain');
  writer.text(domain);
  writer.text('event');
  writeKvEvent(writer, event);
  if (sessionId !== null) {
    writer.text('session_id');
    writer.text(sessionId);
  }
  if (isEligible) {
    writer.text(SCE);
    writer.bool(true);
  }
  return writer.take();
}
