// What a client may be told, with the defaults and why they are so.
import { ConfigError } from '../../errors.js';
import { CurveKeys, type CurveOptions } from './curve-keys.js';

export interface SocketOptions {
  /** Largest message, all frames together. */
  readonly maxMessageBytes?: number;
  /** Most frames of a message. */
  readonly maxFrames?: number;
  /** After so long without a byte from the peer it is asked for one. */
  readonly heartbeatMs?: number;
  /** After so long without a byte from the peer the connection is lost. */
  readonly heartbeatTimeoutMs?: number;
  /** Longest time from the start of an attempt to the end of its handshake. */
  readonly connectTimeoutMs?: number;
  /** The first wait before another attempt, and the longest. */
  readonly reconnectMs?: number;
  readonly reconnectMaxMs?: number;
  /** Draws from [0, 1), for the jitter. */
  readonly random?: () => number;
  /** Encrypts everything, and takes no server that hasn't its key. Default null: all in the clear. */
  readonly curve?: CurveOptions | CurveKeys | null;
}

type Plain = { -readonly [Name in keyof Omit<SocketOptions, 'curve'>]-?: NonNullable<SocketOptions[Name]> };
export interface SocketSettings extends Plain {
  curve: CurveKeys | null;
}

const DEFAULTS: SocketSettings = {
  maxMessageBytes: 16 << 20, // a batch of vLLM with 100,000 hashes has some 4 MB
  maxFrames: 16, // the wires read here have at most 5
  heartbeatMs: 2_000,
  heartbeatTimeoutMs: 6_000, // three pings
  connectTimeoutMs: 5_000, // a lost SYN is sent again after 1 and 3 s
  reconnectMs: 100,
  reconnectMaxMs: 5_000,
  random: Math.random,
  curve: null,
};

/** Timers can't be longer: Node's fire at once then. */
const MAX_TIMER_MS = 2 ** 31 - 1;

type NumberName = Exclude<keyof SocketOptions, 'random' | 'curve'>;
const HIGHEST: Readonly<Record<NumberName, number>> = {
  maxMessageBytes: 2 ** 31 - 1,
  maxFrames: 65_536,
  heartbeatMs: MAX_TIMER_MS,
  heartbeatTimeoutMs: MAX_TIMER_MS,
  connectTimeoutMs: MAX_TIMER_MS,
  reconnectMs: MAX_TIMER_MS,
  reconnectMaxMs: MAX_TIMER_MS,
};

/**
 * Fills in the defaults.
 * @throws {ConfigError} `socket-options` or `curve-keys`, which name the option.
 */
export function socketSettings(options: SocketOptions): SocketSettings {
  const settings = { ...DEFAULTS };
  for (const [name, highest] of Object.entries(HIGHEST) as [NumberName, number][]) {
    const value = options[name] ?? DEFAULTS[name];
    if (!Number.isInteger(value) || value < 1 || value > highest) {
      throw new ConfigError('socket-options', `${name} is ${value}, expected a whole number from 1 to ${highest}`);
    }
    settings[name] = value;
  }
  settings.random = options.random ?? DEFAULTS.random;
  settings.curve = options.curve == null ? null : CurveKeys.of(options.curve);
  checkOrder(settings, 'heartbeatMs', 'heartbeatTimeoutMs');
  checkOrder(settings, 'reconnectMs', 'reconnectMaxMs');
  return settings;
}

function checkOrder(settings: SocketSettings, low: NumberName, high: NumberName): void {
  if (settings[low] <= settings[high]) return;
  throw new ConfigError('socket-options', `${low} is ${settings[low]}, above ${high}, which is ${settings[high]}`);
}
