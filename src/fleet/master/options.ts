// The options of a simulated master: the real one's flags under the names of this project, and what only a simulation has.
import { ConfigError } from '../../errors.js';
import type { StoreModelOptions } from './store-options.js';
import type { EventFlags } from './types.js';

/** Where a simulated master listens, which wire generation it speaks, and how its store behaves. */
export interface SimulatedMasterOptions extends StoreModelOptions, Partial<EventFlags> {
  /** Address to listen on; 127.0.0.1 unless given. */
  readonly host?: string;
  /** Port of the event stream; any unless given. */
  readonly eventsPort?: number;
  /** Port of the admin HTTP; any unless given. */
  readonly httpPort?: number;
  /** Events that wait before the oldest is dropped. */
  readonly queueCapacity?: number;
  /** Messages that wait for one slow subscriber before more are lost to it. */
  readonly sendHighWaterMark?: number;
  /** Given: the master is one of an HA pair. Left out: there is only one, and it serves. */
  readonly role?: 'leader' | 'standby';
  /** False: the master runs without events, as the real one does when it can't bind. */
  readonly events?: boolean;
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number;
}

/** The publisher's flags, with the real master's defaults. */
export function flagsOf(options: SimulatedMasterOptions): EventFlags {
  return {
    backendId: options.backendId ?? 'simulated-master',
    emitLegacyCompat: options.emitLegacyCompat ?? true,
    emitObjectKey: options.emitObjectKey ?? true,
    modelName: options.modelName ?? '',
    blockSize: options.blockSize ?? 0,
    dpRank: options.dpRank ?? 0,
    additionalSalt: options.additionalSalt ?? '',
    loraName: options.loraName ?? '',
  };
}

/** @throws ConfigError `master-option` */
export function checkOptions(options: SimulatedMasterOptions): void {
  const bounds: readonly (readonly [name: string, value: number | undefined, least: number, most: number])[] = [
    ['eventsPort', options.eventsPort, 0, 65_535],
    ['httpPort', options.httpPort, 0, 65_535],
    ['queueCapacity', options.queueCapacity, 1, 1 << 24],
    ['sendHighWaterMark', options.sendHighWaterMark, 1, 1 << 24],
    ['capacityBytes', options.capacityBytes, 1, Number.MAX_SAFE_INTEGER],
    ['capacityObjects', options.capacityObjects, 1, 1 << 24],
    ['blockSize', options.blockSize, 0, 0xffff_ffff],
    ['dpRank', options.dpRank, 0, 0xffff_ffff],
  ];
  for (const [name, value, least, most] of bounds) {
    if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) continue;
    throw new ConfigError('master-option', `${name} must be a whole number from ${least} to ${most}, got ${value}`);
  }
  if (options.backendId === '')
    throw new ConfigError(
      'master-option',
      'backendId must not be empty: the real master publishes nothing without one',
    );
}
