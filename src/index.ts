// The browser-safe entry: everything that needs no sockets, files or other Node features.

export type { KeyList } from './cache/key-list.js';
export type { Reason, ReasonCode } from './cache/reasons.js';
export type { ReconcileToken, ReconcileWatermark } from './cache/reconcile.js';
export { SharedCache } from './cache/shared-cache.js';
export type {
  CacheHits,
  CacheLimits,
  CacheQuery,
  CacheStats,
  DecodedObjects,
  Explanation,
  Learned,
  ReconcileResult,
  SharedCacheOptions,
  StoreMessageFate,
  StoreMessageResult,
} from './cache/types.js';
export * from './contract/index.js';
export type { GroupCensus } from './core/core.js';
export { blockHashes, type HashScope, sequenceHashes } from './core/local-hash.js';
export {
  type DumpedBlocks,
  type IndexedBlocks,
  type IndexTier,
  indexedBlocks,
  type PrefixIndexOptions,
  type PrefixIndexStats,
  type StoreOutcome,
} from './core/prefix-types.js';
export type { CoreStats } from './core/stats.js';
export * from './errors.js';
export type { EligibilityReason } from './events/eligibility.js';
export type {
  DroppedEvent,
  DropReason,
  NormalisedCleared,
  NormalisedEvent,
  NormalisedRemoved,
  NormalisedStored,
} from './events/normaliser.js';
export {
  cloneRequest,
  isProvenTextOnly,
  judgeRequest,
  proveTextOnly,
  type RequestFacts,
  type RequestJudgement,
  type RequestReason,
} from './events/request.js';
export { type BlocksStopped, type RouterBlockOptions, RouterBlocks, routerBlocks } from './events/router-blocks.js';
export {
  type Source,
  WorkerEvents,
  type WorkerLimits,
  type WorkerMessage,
  type WorkerStats,
} from './events/worker-events.js';
export type { AdmissionCode } from './router/admission.js';
export type { CostTerms } from './router/cost.js';
export type {
  CandidateView,
  ChosenWorker,
  Decision,
  DecisionBlocks,
  NotEligibleCode,
} from './router/decision.js';
export type { DecisionStats } from './router/decision-tally.js';
export type { FeedbackOptions, FeedbackStats } from './router/feedback.js';
export type { ForeignLoadStats, LoadReportFate } from './router/foreign-load.js';
export type { DecodedResult, GpuEventStats, WorkerMessageFate, WorkerMessageResult } from './router/gpu-events.js';
export type { HealthOptions, HealthStats } from './router/health.js';
export type { LeaseHandlers, LeaseObservation, LeaseOutcome, LeaseStats } from './router/lease-types.js';
export type { Lease } from './router/leases.js';
export type { RankLoad } from './router/load.js';
export type { PlaneEventFate, PlaneEventResult, PlaneEventStats } from './router/plane-events.js';
export type { PolicyOption } from './router/policies.js';
export type { PolicyTerms } from './router/policy.js';
export type { CustomPolicy, PolicyCandidate, PolicyCost, PolicyRequest } from './router/policy-custom.js';
export type { RouteRequest } from './router/prompt.js';
export type { BuiltInPolicy, NotReadCode, PolicyInput, Role } from './router/roles.js';
export { Router, type RouterStats, type RouterStoreResult } from './router/router.js';
export type { RouterOptions } from './router/router-options.js';
export {
  type RouterSettings,
  type RouterSettingsInput,
  type SharedCacheType,
  validateSettings,
} from './router/settings.js';
export type { TtftRates, TtftStats, TtftTerms } from './router/ttft.js';
export type { TtftOptions } from './router/ttft-options.js';
export type { WorkerId, WorkerInfo } from './router/worker-info.js';
export type { RankView, WorkerView } from './router/worker-views.js';
export type { LocalZeroCode, SharedZeroCode, ZeroReason } from './router/zero-credit.js';
export type { EventData, LoadReport, RankLoadShare, RouterEvent } from './wire/envelope/types.js';
export {
  type MissingRange,
  ReplayCursor,
  type ReplayReply,
  type ReplayStep,
  readReplayReply,
  replayRequest,
} from './wire/replay.js';
export { decodeWorkerBatch, decodeWorkerMessage, type WorkerBatch } from './wire/vllm.js';
export type { ClearedEvent, IgnoredEvent, RemovedEvent, StoredEvent, WorkerEvent } from './wire/worker-event.js';
