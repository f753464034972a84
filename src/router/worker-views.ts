// The workers of a router as people and dashboards see them.
import type { AdmissionCode } from './admission.js';
import type { RankLoad } from './load.js';
import type { RouterParts } from './parts.js';
import type { TtftRates } from './ttft.js';
import type { WorkerId } from './worker-info.js';

/** A worker's rank, as it stands. */
export interface RankView {
  readonly dpRank: number;
  /** Its compact number in this router. */
  readonly rank: number;
  /** How it stands to the contract in force. */
  readonly admission: AdmissionCode;
  /** A sentence where it is not admitted. */
  readonly admissionText: string | null;
  /** Of this router's own leases. */
  readonly load: RankLoad;
  /** What other routers said that they have put onto it. */
  readonly foreignLoad: RankLoad;
  /** It is left out for a while, for its last requests failed. */
  readonly resting: boolean;
  readonly rates: TtftRates;
}

/** A worker with its ranks. */
export interface WorkerView {
  readonly id: WorkerId;
  readonly draining: boolean;
  readonly adapters: readonly string[];
  readonly ranks: readonly RankView[];
}

/** All workers, in the order of their ranks' numbers. */
export function workerViews({ workers, load, foreignLoad, health, ttft, latest }: RouterParts): WorkerView[] {
  foreignLoad.any(latest.now);
  const views = new Map<string, WorkerView & { ranks: RankView[] }>();
  for (const { rank, source, worker, admission } of workers.slots) {
    const { id, key, draining, adapters } = worker;
    const view = views.get(key) ?? { id, draining, adapters: [...adapters], ranks: [] };
    views.set(key, view);
    const { activeRequests, prefillTokens, decodeBlocks } = load.of(rank);
    view.ranks.push({
      dpRank: source.dpRank,
      rank,
      admission: admission.code,
      admissionText: admission.text,
      load: { activeRequests, prefillTokens, decodeBlocks },
      foreignLoad: foreignLoad.of(rank),
      resting: health.isOut(rank, latest.now),
      rates: ttft.rates(rank),
    });
  }
  return [...views.values()];
}
