// What the console's page is told once a second, in the shape that goes over the wire; the page's own code reads it by these types. Numbers that
// JSON does not have (sequences) are texts. No prompt is in it.
import type { LiveStatus } from '../live/live-streams.js';
import type { WorkerStreamStatus } from '../live/worker-stream.js';
import type { RankView } from '../router/worker-views.js';
import type { SecondsView } from './console-series.js';
import type { DerivationView } from './derivation.js';
import type { EndedRequest, PromptStats, RegisteredWorker } from './types.js';

type StoreStreamStatus = NonNullable<LiveStatus['store']>;

/** Something that a person should know. */
export interface Warning {
  /** Stable, for tests and for the page to know it again. */
  readonly code: string;
  readonly text: string;
}

/** A worker's rank with its stream; null where it sends no events. */
export interface RankData {
  readonly dpRank: number;
  readonly admission: RankView['admission'];
  readonly admissionText: string | null;
  readonly load: RankView['load'];
  readonly resting: boolean;
  readonly stream:
    | (Omit<WorkerStreamStatus, 'id' | 'dpRank' | 'lastSequence'> & { readonly lastSequence: string | null })
    | null;
}

export interface WorkerData extends Pick<RegisteredWorker, 'id' | 'healthy' | 'adapters' | 'models' | 'contractFault'> {
  /** Without what stands before an `@` in it. */
  readonly url: string;
  readonly draining: boolean;
  readonly ranks: readonly RankData[];
}

/** A request that ended and was not refused, with its place in the row of all. */
export type RequestData = EndedRequest & { readonly number: number };

export interface ConsoleData {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly startedAt: number;
  /** The model that workers list, null while none does. */
  readonly model: string | null;
  readonly contracts: { readonly ranks: number; readonly admitted: number; readonly reason: string | null };
  /** Whether a shared store is kept at all. */
  readonly shares: boolean;
  /** Where engine hashes come from, and how far derived ones are trusted. */
  readonly derivation: DerivationView;
  readonly openLeases: number;
  readonly decisions: number;
  /** Decisions without shared credit since start, by reason. */
  readonly zeroCredit: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly seconds: SecondsView;
  readonly workers: readonly WorkerData[];
  /** Workers that are too many to show. */
  readonly workersLeftOut: number;
  readonly store: (Omit<StoreStreamStatus, 'lastSequence'> & { readonly lastSequence: string | null }) | null;
  readonly prompts: PromptStats;
  /** Requests since start that were refused before they were routed; they are in no other figure, and not listed. */
  readonly refused: number;
  /** The last ones, oldest first. */
  readonly requests: readonly RequestData[];
  readonly warnings: readonly Warning[];
}
