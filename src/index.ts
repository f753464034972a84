// The browser-safe entry: everything that needs no sockets, files or other Node features.

export type { Reason, ReasonCode } from './cache/reasons.js';
export type { ReconcileToken, ReconcileWatermark } from './cache/reconcile.js';
export { SharedCache } from './cache/shared-cache.js';
export type {
  CacheHits,
  CacheLimits,
  CacheQuery,
  CacheStats,
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
