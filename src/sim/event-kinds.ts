// What can happen in a simulation, as the numbers that stand in the heap, with what a, b and c of each are.

/** The next request of the trace is due. */
export const READ = 0;
/** A session's request is due. a: where it is parked. */
export const SESSION = 1;
/** A worker's plan ends. a: worker; b: epoch of the plan. */
export const STEP = 2;
/** The latency of a fetch is over. a: number of the fetch. */
export const FETCH = 3;
/** Some part of a fetch ends. a: epoch of the shares. */
export const ARRIVED = 4;
/** A message reaches the router. a: stream; b: its life; c: sequence. */
export const MESSAGE = 5;
/** The router notices that a stream began anew. a: stream; b: its life. */
export const ANEW = 6;
/** A gap in the store's stream is mended. */
export const RECONCILE = 7;
/** a: place in the list of restarts. */
export const RESTART = 8;
