// The fleet's public face (Node): simulated vLLM workers and a simulated Mooncake master that speak the real wire, to test routers against.

export {
  Fleet,
  type FleetEndpoints,
  type FleetOptions,
  type FleetStatus,
  storeOf,
} from './fleet.js';
export type { ChurnIntervals, ChurnKind } from './fleet-churn.js';
export { SimulatedMaster, type SimulatedMasterOptions } from './master.js';
export {
  DEFAULT_ENCODING,
  type Encoding,
  EVENT_FORMS,
  type EventForm,
  HASH_FORMS,
  type HashForm,
  parseEncoding,
} from './worker/encoding.js';
export type { HttpFault, LossKind, ReplayFault } from './worker/faults.js';
export type { Geometry, Group, GroupOptions } from './worker/geometry.js';
export type { LatencyModel } from './worker/latency.js';
export type { SharedStore } from './worker/shared-store.js';
export { type RankStatus, SimulatedWorker, type WorkerOptions, type WorkerStatus } from './worker.js';
