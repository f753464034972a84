// One object of the simulated store: its replicas and what protects it from eviction.
import type { EventMedium, ReplicaMedium } from './types.js';

export interface StoredObject {
  readonly tenant: string;
  readonly key: string;
  group: string | null;
  /** Bytes of one replica. */
  size: number;
  /** Segments that hold a memory replica, each once. */
  memory: string[];
  /** Whether the shared disk holds a replica. */
  disk: boolean;
  /** Segments whose client holds a replica on its own disk. */
  localDisk: string[];
  /** A client is writing it (PutStart, UpsertStart): it can't be read. */
  writing: boolean;
  /** Milliseconds: no read lease after this. */
  leaseUntil: number;
  /** Milliseconds: evicted last before this. */
  softPinUntil: number;
  hardPinned: boolean;
  /** A copy to disk is under way: its memory can't be evicted. */
  offloading: boolean;
}

/** Whether a replica can be read. */
export function isReadable({ writing, memory, disk, localDisk }: StoredObject): boolean {
  return !writing && (memory.length > 0 || disk || localDisk.length > 0);
}

/** The media of what can be read, as events name them, in their order. */
export function mediaOf({ writing, memory, disk, localDisk }: StoredObject): EventMedium[] {
  const media: EventMedium[] = [];
  if (writing) return media;
  if (memory.length > 0) media.push('cpu');
  if (disk || localDisk.length > 0) media.push('disk');
  return media;
}

/** Whether it has a replica in that medium. */
export function hasReplica({ memory, disk, localDisk }: StoredObject, medium: ReplicaMedium): boolean {
  return medium === 'cpu' ? memory.length > 0 : medium === 'disk' ? disk : localDisk.length > 0;
}

export function copyOf(object: StoredObject): StoredObject {
  return { ...object, memory: [...object.memory], localDisk: [...object.localDisk] };
}
