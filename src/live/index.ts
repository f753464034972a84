// `moonroute/live`: feeds a router from real sockets. Node and Deno.
export { type Clock, systemClock } from './clock.js';
export type { DriftCause } from './drift.js';
export type { LogLevel, LogSink } from './limited-log.js';
export { type LiveOptions, type LiveStatus, type LiveStore, LiveStreams, type LiveWorker } from './live-streams.js';
export type { MasterState } from './master-choice.js';
export type { MasterHttpLimits } from './master-http.js';
export type { MasterEndpoint, MasterView } from './masters.js';
export type { ReconcileReport, StoreStreamStatus } from './store-status.js';
export type { StoreStreamOptions } from './store-stream.js';
export type { RebuildCause, RecoveryCounts } from './worker-recovery.js';
export type { WorkerStreamLimits, WorkerStreamStatus } from './worker-stream.js';
export { CurveKeys, type CurveOptions } from './zmtp/socket.js';
