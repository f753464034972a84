// Which runs a sweep makes: one for each of its values and each policy. A sweep changes one quantity, so that its lines can be read.
import type { BuiltInPolicy } from '../router/roles.js';
import { bytesText, countText } from './report-format.js';
import type { SimConfig } from './types.js';

interface Axis {
  /** Axis title, with its unit. */
  readonly title: string;
  readonly text: (value: number) => string;
  readonly apply: (config: SimConfig, value: number) => SimConfig;
}

/** Quantities that can be swept. */
export const SWEEP_AXES = {
  store: {
    title: 'store memory (bytes)',
    text: bytesText,
    apply: (config, dramBytes) => ({ ...config, store: { ...config.store, dramBytes } }),
  },
  ssd: {
    title: 'store SSD (bytes)',
    text: bytesText,
    apply: (config, ssdBytes) => ({ ...config, store: { ...config.store, ssdBytes } }),
  },
  gpu: {
    title: 'GPU blocks a worker',
    text: countText,
    apply: (config, gpuBlocks) => ({ ...config, workers: { ...config.workers, gpuBlocks } }),
  },
  workers: {
    title: 'workers',
    text: countText,
    apply: (config, count) => ({ ...config, workers: { ...config.workers, count } }),
  },
  speedup: {
    title: 'speed-up of the trace (times)',
    text: (value) => `×${value}`,
    apply: (config, speedup) => ({ ...config, speedup }),
  },
} as const satisfies Record<string, Axis>;

export type SweepAxis = keyof typeof SWEEP_AXES;

export interface Sweep {
  readonly axis: SweepAxis;
  /** In the axis's own unit: bytes, blocks, workers, times. */
  readonly values: readonly number[];
}

/** One value of a sweep. */
export interface SweepPoint {
  readonly axis: SweepAxis;
  readonly value: number;
}

export interface PlannedRun {
  readonly policy: BuiltInPolicy;
  readonly point: SweepPoint | null;
  readonly config: SimConfig;
}

export const isSweepAxis = (name: string): name is SweepAxis => Object.hasOwn(SWEEP_AXES, name);

/** A point for people: `store 50 GB`. */
export const pointText = ({ axis, value }: SweepPoint): string => `${axis} ${SWEEP_AXES[axis].text(value)}`;

/** A run for people: `kv, store 50 GB`. */
export const runText = ({ policy, point }: { readonly policy: string; readonly point: SweepPoint | null }): string =>
  point === null ? policy : `${policy}, ${pointText(point)}`;

/** All runs over one trace: value by value, and for each value policy by policy. */
export function planRuns(base: SimConfig, policies: readonly BuiltInPolicy[], sweep: Sweep | null): PlannedRun[] {
  const points: (SweepPoint | null)[] =
    sweep === null ? [null] : sweep.values.map((value) => ({ axis: sweep.axis, value }));
  return points.flatMap((point) => {
    const config = point === null ? base : SWEEP_AXES[point.axis].apply(base, point.value);
    return policies.map((policy) => ({ policy, point, config: { ...config, policy } }));
  });
}
