// `moonroute/live`: feeds a router from real sockets. Node and Deno.
export { type Clock, systemClock } from './clock.js';
export type { DriftCause } from './drift.js';
export type { LogLevel, LogSink } from './limited-log.js';
export { type LiveOptions, type LiveStatus, type LiveStore, LiveStreams, type LiveWorker } from './live-streams.js';
export type { MasterState } from './master-choice.js';
export type { MasterHttpLimits } from './master-http.js';
export type { MasterEndpoint, MasterView } from './masters.js';
// An event plane: openPlaneSubscriber opens its transport (NATS with JetStream, or ZMQ), PlaneStreams.open feeds a router from it and shares load with
// other routers. Times are milliseconds. Errors: ConfigError for options, by code; MoonrouteError `plane-closed`; whatever the wire brings is counted in
// PlaneStreams.status(), never thrown.
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
