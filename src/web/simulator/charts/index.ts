// The charts of the simulator page. Each owns the element that it is given.
export { CapacityChart, type CapacityEvents, type CapacityOptions } from './capacity.js';
export { FetchChart } from './fetch.js';
export type { Limits } from './fetch-data.js';
export type { Labelled } from './labelled.js';
export { LoadChart } from './load.js';
export { pngOf } from './png.js';
export { TiersChart } from './tiers.js';
export { type TimeWindow, timeWindow } from './time-window.js';
export { TtftChart } from './ttft.js';
