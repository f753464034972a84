// `moonroute/live`: feeds a router from real sockets. Node and Deno.
export { type Clock, systemClock } from './clock.js';
export type { DriftCause } from './drift.js';
export type { LogLevel, LogSink } from './limited-log.js';
export { type LiveOptions, type LiveStatus, type LiveStore, LiveStreams, type LiveWorker } from './live-streams.js';
export type { MasterState } from './master-choice.js';
export type { MasterHttpLimits } from './master-http.js';
export type { MasterEndpoint, MasterView } from './masters.js';
// An event plane, for pools of several routers. At a router: openPlaneSubscriber opens its transport (NATS with JetStream: nats:// and tls://, or ZMQ:
// tcp://), PlaneStreams.open feeds the router from it and shares load with other routers. At a worker: openPlanePublisher and WorkerPublisher.open, as
// `moonroute publish` does. PlaneStreams closes its subscriber; a publisher's transport is its caller's, to be closed after it. Workers are numbered by bigints of 64 bits, ranks by numbers; times
// are milliseconds, sizes bytes. Errors: ConfigError for options, by code; MoonrouteError `plane-closed`, and `plane-unanswered` of PlaneSubscriber.ask;
// whatever the wire brings is counted in PlaneStreams.status() and WorkerPublisher.status(), never thrown. The bytes of a transport of one's own are
// made and read by the envelope codec of `moonroute`.
export type { RingLimits } from './plane/publish/event-ring.js';
export type { IntakeStats } from './plane/publish/intake.js';
export type { LocalIndexerStats } from './plane/publish/local-indexer.js';
export type { OutboxStats } from './plane/publish/outbox.js';
export {
  type PublisherOptions,
  type PublisherStatus,
  type RankStatus,
  WorkerPublisher,
} from './plane/publish/publisher.js';
export type { RankPipelineStats } from './plane/publish/rank-pipeline.js';
export type { LoadTimes } from './plane/route/load-pace.js';
export type { LoadSharingStatus } from './plane/route/load-sharing.js';
export { type PlaneOptions, type PlaneStatus, PlaneStreams, type PlaneWorker } from './plane/route/plane-streams.js';
export type { PlaneRankStatus } from './plane/route/rank-stream.js';
export type { RecoveryCause, RecoveryOutcome, ResetCause, SpliceCounts } from './plane/route/splice-terms.js';
export {
  openPlanePublisher,
  openPlaneSubscriber,
  type PlanePublisherOptions,
  type PlaneSubscriberOptions,
  type PlaneTls,
  type StreamLimits,
} from './plane/transport/index.js';
export type { PlaneMessage, PlaneNotice, PlanePublisher, PlaneRank, PlaneSubscriber } from './plane/transport.js';
export type { StoreKeeperOptions } from './store-keeper.js';
export type { ReconcileReport, StoreStreamStatus } from './store-status.js';
export type { StoreStreamOptions } from './store-stream.js';
export type { RebuildCause, RecoveryCounts } from './worker-recovery.js';
export type { WorkerStreamLimits, WorkerStreamStatus } from './worker-stream.js';
export { CurveKeys, type CurveOptions } from './zmtp/socket.js';
