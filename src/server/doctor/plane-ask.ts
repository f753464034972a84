// Asks the publishers of an event plane what a router asks that comes late: all that their ranks hold. The first page is enough to know.
import { MoonrouteError, WireError } from '../../errors.js';
import type { PlaneSubscriber } from '../../live/plane/transport.js';
import { decodeRecoveryAnswer, encodeRecoveryQuestion } from '../../wire/envelope/index.js';
import { planeIdOf } from '../plane.js';
import type { WorkerSpec } from '../types.js';
import type { PlaneRankEvidence } from './evidence.js';

/** For one rank, in milliseconds. */
const PATIENCE = 3000;
/** Ranks that are asked at the same time. */
const AT_ONCE = 16;

/** Asks every rank of the workers that have a plane, in their order. */
export async function askPlane(
  subscriber: Pick<PlaneSubscriber, 'open' | 'ask' | 'close'>,
  workers: readonly WorkerSpec[],
): Promise<PlaneRankEvidence[]> {
  const ranks = workers.flatMap((spec) => {
    const workerId = planeIdOf(spec);
    if (workerId === null) return [];
    const { start, size } = spec.dpRanks;
    return Array.from({ length: size }, (_, i) => ({ id: spec.id, size, workerId, dpRank: start + i }));
  });
  const found: PlaneRankEvidence[] = [];
  try {
    await subscriber.open({ onMessage: () => {}, onNotice: () => {}, onLoad: () => {} });
    for (let at = 0; at < ranks.length; at += AT_ONCE) {
      const some = ranks.slice(at, at + AT_ONCE);
      found.push(...(await Promise.all(some.map((rank) => askRank(subscriber, rank)))));
    }
  } finally {
    await subscriber.close();
  }
  return found;
}

interface Asked {
  readonly id: string;
  readonly size: number;
  readonly workerId: bigint;
  readonly dpRank: number;
}

async function askRank(
  subscriber: Pick<PlaneSubscriber, 'ask'>,
  { id, size, workerId, dpRank }: Asked,
): Promise<PlaneRankEvidence> {
  const rank = { workerId, dpRank };
  const subject = size === 1 ? id : `${id} rank ${dpRank}`;
  const question = { ...rank, startEventId: null, endEventId: null, supportsTreeDumpFailed: true, page: null };
  const evidence = { subject, planeId: String(workerId) };
  try {
    const { answer } = decodeRecoveryAnswer(await subscriber.ask(rank, encodeRecoveryQuestion(question), PATIENCE));
    if (answer.kind === 'events' || answer.kind === 'tree-dump') {
      return { ...evidence, lastEventId: answer.lastEventId, fault: null };
    }
    const words = 'detail' in answer ? answer.detail : answer.kind;
    return { ...evidence, lastEventId: null, fault: `it answers ${answer.kind}: ${words}` };
  } catch (error) {
    if (!(error instanceof MoonrouteError || error instanceof WireError)) throw error;
    return { ...evidence, lastEventId: null, fault: error.message };
  }
}
