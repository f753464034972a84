// The envelope codec as the plane uses it. Readers throw nothing but WireError.
export { decodeEventsJson, encodeEventsJson, jsonOf, msgpackOf } from './json.js';
export * from './limits.js';
export { decodeLoadReport, encodeLoadReport } from './load.js';
export { decodePlacementEvent, encodePlacementEvent, routerEventOf } from './placement.js';
export type { FaultCode } from './reader.js';
export {
  decodeRecoveryAnswer,
  decodeRecoveryQuestion,
  encodeRecoveryAnswer,
  encodeRecoveryQuestion,
  type RecoveryAnswerRead,
} from './recovery.js';
export {
  type EventBatch,
  EventBatchReader,
  type EventCounts,
  encodeEvents,
  type UnreadRouterEvent,
} from './router-event.js';
export type * from './types.js';
