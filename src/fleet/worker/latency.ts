// How long a simulated engine's step takes. Rates of one rank; defaults are of the order of a 70B model on a node of eight GPUs.
import { ConfigError } from '../../errors.js';
import type { StepResult } from './engine.js';

/** How long a simulated worker takes. */
export interface LatencyModel {
  /** Tokens a second that prefill computes. */
  readonly prefillRate: number;
  /** Milliseconds of a step that decodes. */
  readonly decodeMs: number;
  /** Bytes a second from the store. */
  readonly fetchRate: number;
  /** Real time by simulated time: 0 does not wait at all, 1 is real, 0.1 is ten times as fast. */
  readonly timeScale: number;
}

export const DEFAULT_LATENCY: LatencyModel = { prefillRate: 8000, decodeMs: 20, fetchRate: 20e9, timeScale: 1 };

/** @throws ConfigError `worker-latency` */
export function checkedLatency(model: Partial<LatencyModel>): LatencyModel {
  const checked = { ...DEFAULT_LATENCY, ...model };
  for (const [name, value] of Object.entries(checked)) {
    const least = name.endsWith('Rate') ? Number.MIN_VALUE : 0;
    if (!Number.isFinite(value) || value < least)
      throw new ConfigError(
        'worker-latency',
        `latency.${name} is ${value}; give a number of ${least ? 'more than 0' : '0 or more'}`,
      );
  }
  return checked;
}

/** Real milliseconds of a step. */
export function stepMs(
  { prefillTokens, decodeTokens, restoredBytes }: Pick<StepResult, 'prefillTokens' | 'decodeTokens' | 'restoredBytes'>,
  { prefillRate, decodeMs, fetchRate, timeScale }: LatencyModel,
): number {
  const seconds = prefillTokens / prefillRate + restoredBytes / fetchRate;
  return (seconds * 1000 + (decodeTokens > 0 ? decodeMs : 0)) * timeScale;
}
