// What the `ttft` policy believes before it has seen anything, and how long it remembers (design.md 7). Whatever is wrong is refused at
// start, by name. The limits of the two rates also bound what may be learned later (ttft-rates.ts).
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';

/** Settings of the `ttft` policy. Those left out, or undefined, take their defaults. */
export interface TtftOptions {
  /** Prompt tokens that a rank computes in a second, until its completions say: 1 … 10,000,000. Default 8,000. */
  readonly prefillTokensPerSecond?: number | undefined;
  /** Bytes that a rank restores from the store in a second, until its completions say: 10^5 … 10^13. Default 4·10^9. */
  readonly fetchBytesPerSecond?: number | undefined;
  /**
   * Bytes of one token in the store: 1 … 2^30. It turns tokens into bytes and back, so that the prior and what is shown are bandwidths that
   * can be held against a network's; a wrong value scales what is shown, and no time once the rate is learned. Default 131,072:
   * 8 KV heads × 128 values × 2 bytes × 2 (keys and values) × 32 layers.
   */
  readonly kvBytesPerToken?: number | undefined;
  /** Milliseconds that any fetch takes before its first byte: 0 … 10,000. Default 5. */
  readonly fetchLatency?: number | undefined;
  /** After so many further observations one counts half: 1 … 1,000,000. Default 32. */
  readonly halfLife?: number | undefined;
}

/** Options with every default filled in. */
export type TtftSettings = { readonly [Name in keyof TtftOptions]-?: NonNullable<TtftOptions[Name]> };

interface Limits {
  readonly least: number;
  readonly most: number;
  readonly usual: number;
  /** As the message gives it. */
  readonly unit: string;
}

/** Least, most and default of every setting. */
export const TTFT_LIMITS: { readonly [Name in keyof TtftSettings]: Limits } = {
  prefillTokensPerSecond: { least: 1, most: 1e7, usual: 8000, unit: 'tokens a second' },
  fetchBytesPerSecond: { least: 1e5, most: 1e13, usual: 4e9, unit: 'bytes a second' },
  kvBytesPerToken: { least: 1, most: 2 ** 30, usual: 131_072, unit: 'bytes' },
  fetchLatency: { least: 0, most: 10_000, usual: 5, unit: 'milliseconds' },
  halfLife: { least: 1, most: 1_000_000, usual: 32, unit: 'observations' },
};

/**
 * The options with every default filled in, frozen.
 * @throws {ConfigError} a setting's name in kebab-case where its value is out of range, or `unknown-setting`
 */
export function validateTtftOptions(given: TtftOptions = {}): TtftSettings {
  const settings: TtftSettings = {
    prefillTokensPerSecond: settingOf(given, 'prefillTokensPerSecond'),
    fetchBytesPerSecond: settingOf(given, 'fetchBytesPerSecond'),
    kvBytesPerToken: settingOf(given, 'kvBytesPerToken'),
    fetchLatency: settingOf(given, 'fetchLatency'),
    halfLife: settingOf(given, 'halfLife'),
  };
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(settings, name));
  if (unknown !== undefined) {
    const known = Object.keys(settings).join(', ');
    throw new ConfigError('unknown-setting', `unknown ttft setting ${shown(unknown)}; the settings are ${known}.`);
  }
  return Object.freeze(settings);
}

function settingOf(given: TtftOptions, name: keyof TtftOptions): number {
  const { least, most, usual, unit } = TTFT_LIMITS[name];
  const value: unknown = given[name];
  if (value === undefined) return usual;
  if (typeof value === 'number' && value >= least && value <= most) return value;
  const code = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new ConfigError(code, `${name} is ${shown(value)}; give ${least} to ${most} ${unit} (default ${usual}).`);
}
