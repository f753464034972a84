// What a simulated store can be told, what it answers, and the real master's defaults (spec/mooncake-events.md 4).
import type { StoredObject } from './stored-object.js';
import type { Generation } from './types.js';

/** How long a read protects an object (`default_kv_lease_ttl`), in milliseconds. */
export const LEASE_MS = 10_000;
/** How long a soft pin holds (`default_kv_soft_pin_ttl`), in milliseconds. */
export const SOFT_PIN_MS = 30 * 60_000;
/** Memory replicas that fit unless said otherwise: as many as anyone simulates here, and no more, for nothing grows without bound. */
export const DEFAULT_CAPACITY_OBJECTS = 1_048_576;
/** Where memory replicas go when nobody says. */
export const DEFAULT_SEGMENT = 'segment-0';

export interface StoreModelOptions {
  readonly generation: Generation;
  /** Bytes of all memory replicas together; no limit unless given. */
  readonly capacityBytes?: number;
  /** Most memory replicas. */
  readonly capacityObjects?: number;
  /** `--enable_oplog`: generation A then publishes no removals. */
  readonly oplog?: boolean;
}

/** Whom an operation means. */
export interface TenantOption {
  /** `default` unless given. */
  readonly tenant?: string;
}

/** How an operation treats leases. */
export interface ForceOption extends TenantOption {
  /** Removes leased objects too. */
  readonly force?: boolean;
}

export interface PutOptions extends TenantOption {
  readonly group?: string;
  /** Segments that get a memory replica each, or the one whose client has it on its own disk. First use mounts them. */
  readonly segment?: string | readonly string[];
  readonly softPin?: boolean;
  readonly hardPin?: boolean;
}

/** `exists` is what the client takes for success; `no-space` means that nothing more may be evicted. */
export type PutResult = 'stored' | 'exists' | 'no-space';
export type RemoveResult = 'removed' | 'absent' | 'leased';

/** What a snapshot of the master keeps. */
export interface StoreSnapshot {
  readonly objects: readonly StoredObject[];
  readonly segments: ReadonlyMap<string, string>;
}

/** What one object looks like from outside. */
export interface ReplicaView {
  readonly size: number;
  readonly memory: readonly string[];
  readonly disk: boolean;
  readonly localDisk: readonly string[];
}
