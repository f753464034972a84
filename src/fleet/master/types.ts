// Words that the parts of the simulated Mooncake master share. A replica is in one of three media; events know two, for whatever is not memory
// is `disk` to them (spec/mooncake-events.md 3).

/** Wire generations of the real publisher (spec/mooncake-events.md 0). */
export type Generation = 'A' | 'B' | 'C';

/** Where a replica is: memory of a segment, a disk that all share, or a client's own disk. */
export type ReplicaMedium = 'cpu' | 'disk' | 'local-disk';

/** What an event calls it. */
export type EventMedium = 'cpu' | 'disk';

/** The tenant of whoever names none; the only one that the master lists by HTTP. */
export const DEFAULT_TENANT = 'default';

/** An event before it has a number and a time. */
export interface Announcement {
  readonly kind: 'stored' | 'removed' | 'cleared';
  readonly tenant: string;
  /** Empty for `cleared`. */
  readonly key: string;
  readonly group: string | null;
  /** Null for `cleared`. */
  readonly medium: EventMedium | null;
}

/** What the publisher's flags say (spec/mooncake-events.md 7). The last five are ignored by generation A. */
export interface EventFlags {
  readonly backendId: string;
  readonly emitLegacyCompat: boolean;
  readonly emitObjectKey: boolean;
  readonly modelName: string;
  readonly blockSize: number;
  readonly dpRank: number;
  readonly additionalSalt: string;
  readonly loraName: string;
}
