// The simulated master's store: objects with replicas on segments and disks, tenants, leases, groups, pins and eviction, and what it
// announces of each mutation. No socket, timer or clock: its time is told by `tick`. What fires an event is in announcements.ts; what happens to
// the objects is here, after spec/mooncake-events.md 4.
//
// Differences from the real master: an eviction follows the put that needs it at once instead of up to 10 ms later; what a restart keeps is
// said by whoever restarts; removals of many are one step.
import { announcementsOf, type Operation, saysCleared } from './announcements.js';
import { EVICTION_SHARE, evictionVictims, HIGH_WATERMARK } from './eviction.js';
import { ObjectTable } from './object-table.js';
import {
  DEFAULT_SEGMENT,
  type ForceOption,
  LEASE_MS,
  type PutOptions,
  type PutResult,
  type RemoveResult,
  type ReplicaView,
  SOFT_PIN_MS,
  type StoreModelOptions,
  type StoreSnapshot,
  type TenantOption,
} from './store-options.js';
import { copyOf, hasReplica, isReadable, mediaOf, type StoredObject } from './stored-object.js';
import { type Announcement, DEFAULT_TENANT, type EventMedium, type Generation, type ReplicaMedium } from './types.js';

export class StoreModel {
  readonly #generation: Generation;
  readonly #oplog: boolean;
  readonly #announce: (event: Announcement) => void;
  readonly #objects: ObjectTable;
  /** Mounted segments, and whose they are. */
  readonly #segments = new Map<string, string>();
  #now = 0;
  /** Objects evicted for want of room, or on demand. */
  evicted = 0;

  constructor(options: StoreModelOptions, announce: (event: Announcement) => void) {
    this.#generation = options.generation;
    this.#oplog = options.oplog ?? false;
    this.#announce = announce;
    this.#objects = new ObjectTable(options);
  }

  /** Tells the time, in milliseconds. */
  tick(now: number): void {
    this.#now = now;
  }

  // ---- what is there ----

  /** The keys that can be read, in order of arrival. */
  readableKeys(tenant = DEFAULT_TENANT): string[] {
    const keys: string[] = [];
    for (const object of this.#objects.of(tenant)) if (isReadable(object)) keys.push(object.key);
    return keys;
  }

  /** Whether a key can be read; grants no lease. */
  has(key: string, tenant = DEFAULT_TENANT): boolean {
    const object = this.#objects.find(key, tenant);
    return object !== undefined && isReadable(object);
  }

  /** The replicas of a key that can be read; grants no lease. */
  replicas(key: string, tenant = DEFAULT_TENANT): ReplicaView | null {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !isReadable(object)) return null;
    const { size, memory, disk, localDisk } = object;
    return { size, memory: [...memory], disk, localDisk: [...localDisk] };
  }

  /** Objects of all tenants, those being written too. */
  get objectCount(): number {
    return this.#objects.count;
  }

  get usedBytes(): number {
    return this.#objects.usedBytes;
  }
  get capacityBytes(): number {
    return this.#objects.capacityBytes;
  }
  get segments(): string[] {
    return [...this.#segments.keys()];
  }

  /** The client that mounted a segment; null when it is not mounted. */
  clientOf(segment: string): string | null {
    return this.#segments.get(segment) ?? null;
  }

  // ---- clients ----

  /** Mounts a segment for a client. What is put on a segment that nobody has mounted mounts it for a client of the same name. */
  mountSegment(segment: string, client = segment): void {
    this.#segments.set(segment, client);
  }

  /** A client's read (Get, Query, Exist): whether the key can be read; grants a lease. */
  read(key: string, tenant = DEFAULT_TENANT): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !isReadable(object)) return false;
    object.leaseUntil = Math.max(object.leaseUntil, this.#now + LEASE_MS);
    return true;
  }

  /** PutStart: room is taken, nothing can be read yet. */
  putStart(key: string, size: number, options: PutOptions = {}): PutResult {
    if (this.#objects.find(key, options.tenant) !== undefined) return 'exists';
    const segments = segmentsOf(options);
    if (!this.#makeRoom(segments.length, segments.length * size)) return 'no-space';
    this.#mountNew(segments);
    const object = this.#add(key, size, options);
    object.writing = true;
    this.#objects.setMemory(object, segments);
    return 'stored';
  }

  /**
   * PutEnd: a client has written a replica of that medium, of a new object, of one begun by `putStart`, or, on disk, of one that lacks it there:
   * a client with two kinds of replica ends its put once for each, memory first. What is on disk only comes back to memory by `promote`, not by
   * a put.
   */
  putEnd(key: string, medium: ReplicaMedium, size: number, options: PutOptions = {}): PutResult {
    const known = this.#objects.find(key, options.tenant);
    if (known !== undefined && !known.writing && (medium === 'cpu' || hasReplica(known, medium))) return 'exists';
    const segments = segmentsOf(options);
    const inMemory = medium === 'cpu' && known === undefined;
    if (inMemory && !this.#makeRoom(segments.length, segments.length * size)) return 'no-space';
    const object = known ?? this.#add(key, size, options);
    this.#change(object, 'put', medium === 'cpu' ? 'cpu' : 'disk', () => {
      if (inMemory) {
        this.#mountNew(segments);
        this.#objects.setMemory(object, segments);
      } else if (medium === 'disk') object.disk = true;
      else if (medium === 'local-disk') {
        this.#mountNew(segments.slice(0, 1));
        object.localDisk = including(object.localDisk, segments[0]!);
      }
      object.writing = false;
    });
    if (medium === 'cpu') this.#evictAboveWatermark();
    return 'stored';
  }

  /** PutRevoke, or a PutStart that has expired: what was begun is forgotten. False when nothing was begun. */
  putRevoke(key: string, { tenant }: TenantOption = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !object.writing) return false;
    this.#objects.drop(object);
    return true;
  }

  /** UpsertStart: an object that is there can't be read until it is written anew; a new one is begun. */
  upsertStart(key: string, size: number, options: PutOptions = {}): PutResult {
    const object = this.#objects.find(key, options.tenant);
    if (object === undefined) return this.putStart(key, size, options);
    const segments = object.memory.length > 0 && options.segment === undefined ? object.memory : segmentsOf(options);
    const bytes = segments.length * size - object.memory.length * object.size;
    if (!this.#objects.fits(segments.length - object.memory.length, bytes)) return 'no-space';
    this.#change(object, 'upsert-start', null, () => {
      this.#mountNew(segments);
      this.#objects.setMemory(object, []);
      object.size = size;
      object.disk = false;
      object.localDisk = [];
      object.writing = true;
      this.#objects.setMemory(object, segments);
    });
    return 'stored';
  }

  /** UpsertEnd. False when nothing was begun. */
  upsertEnd(key: string, { tenant }: TenantOption = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !object.writing) return false;
    this.#change(object, 'upsert-end', 'cpu', () => {
      object.writing = false;
    });
    this.#evictAboveWatermark();
    return true;
  }

  /** Both at once. */
  upsert(key: string, size: number, options: PutOptions = {}): PutResult {
    const begun = this.upsertStart(key, size, options);
    if (begun === 'stored') this.upsertEnd(key, options);
    return begun;
  }

  /** The writer dies between UpsertStart and UpsertEnd: the key is gone. False when nobody was writing. */
  writerDies(key: string, { tenant }: TenantOption = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !object.writing) return false;
    this.#change(object, 'writer-died', null, () => this.#objects.clear(object));
    return true;
  }

  // ---- removals ----

  remove(key: string, options: ForceOption = {}): RemoveResult {
    return this.#remove('remove', key, options);
  }

  /** How many of them were removed. */
  batchRemove(keys: Iterable<string>, options: ForceOption = {}): number {
    return this.#removeAllOf('batch-remove', keys, options);
  }

  removeByRegex(pattern: RegExp | string, options: ForceOption = {}): number {
    const matcher = typeof pattern === 'string' ? new RegExp(pattern) : pattern;
    const keys = this.readableKeys(options.tenant).filter((key) => key.search(matcher) >= 0);
    return this.#removeAllOf('remove-by-regex', keys, options);
  }

  /** RemoveAll of a tenant, or of all when none is given. */
  removeAll({ tenant, force = false }: ForceOption = {}): number {
    let removed = 0;
    for (const name of tenant === undefined ? this.#objects.tenants : [tenant]) {
      const keys = this.#objects.of(name).map(({ key }) => key);
      removed += this.#removeAllOf('remove-all', keys, { tenant: name, force });
      if (saysCleared(this.#generation) && this.#objects.of(name).length === 0)
        this.#announce({ kind: 'cleared', tenant: name, key: '', group: null, medium: null });
    }
    return removed;
  }

  // ---- eviction ----

  /** BatchEvict on demand: at least that many objects leave memory, if as many may. Their keys. */
  evict(wanted?: number): string[] {
    return this.#evict('evict', this.#objects.all(), wanted);
  }

  /** A tenant is over its quota. */
  quotaEvict(tenant: string, wanted?: number): string[] {
    return this.#evict('quota-evict', this.#objects.of(tenant), wanted);
  }

  /** EvictDiskReplica: its replicas on disk go, of that kind when one is named. False when there is none. */
  evictDisk(key: string, { tenant, medium }: TenantOption & { readonly medium?: 'disk' | 'local-disk' } = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || object.writing) return false;
    const shared = medium !== 'local-disk' && object.disk;
    const local = medium !== 'disk' && object.localDisk.length > 0;
    if (!shared && !local) return false;
    this.#change(object, 'evict-disk', null, () => {
      if (shared) object.disk = false;
      if (local) object.localDisk = [];
    });
    return true;
  }

  // ---- what moves between media ----

  /** A copy to disk begins: its memory can't be evicted until it ends. */
  offloadStart(key: string, { tenant }: TenantOption = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !isReadable(object)) return false;
    object.offloading = true;
    return true;
  }

  /** NotifyOffloadSuccess: the client of a segment has it on its own disk now. */
  offload(key: string, { tenant, segment }: TenantOption & { readonly segment?: string } = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !isReadable(object)) return false;
    const owner = segment ?? object.memory[0] ?? DEFAULT_SEGMENT;
    this.#change(object, 'offload', null, () => {
      this.#mountNew([owner]);
      object.offloading = false;
      object.localDisk = including(object.localDisk, owner);
    });
    return true;
  }

  /** A rescan finds an object that only a client's disk has. False when the key is known. */
  appearOnDisk(key: string, size: number, options: PutOptions = {}): boolean {
    if (this.#objects.find(key, options.tenant) !== undefined) return false;
    const owner = segmentsOf(options)[0]!;
    const object = this.#add(key, size, options);
    this.#change(object, 'appear-on-disk', null, () => {
      this.#mountNew([owner]);
      object.localDisk = [owner];
    });
    return true;
  }

  /** What is on disk is brought back to memory. False when it is in memory or there is no room. */
  promote(key: string, options: TenantOption & { readonly segment?: string } = {}): boolean {
    const object = this.#objects.find(key, options.tenant);
    if (object === undefined || !isReadable(object) || object.memory.length > 0) return false;
    return this.#addMemory(object, 'promote', options.segment ?? DEFAULT_SEGMENT);
  }

  /** Another memory replica on another segment. */
  copy(key: string, segment: string, { tenant }: TenantOption = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || !isReadable(object) || object.memory.includes(segment)) return false;
    return this.#addMemory(object, 'copy', segment);
  }

  /** A memory replica goes from one segment to another. */
  move(key: string, from: string, to: string, { tenant }: TenantOption = {}): boolean {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || object.writing || !object.memory.includes(from)) return false;
    this.#change(object, 'move', null, () => {
      this.#mountNew([to]);
      this.#objects.setMemory(object, including(excluding(object.memory, from), to));
    });
    return true;
  }

  // ---- what is lost ----

  /** UnmountSegment: all memory replicas on it are gone. How many objects lost one. */
  unmountSegment(segment: string): number {
    this.#segments.delete(segment);
    return this.#lose('unmount-segment', new Set([segment]), true, false);
  }

  /** UnmountLocalDiskSegment: all replicas on its client's disk are gone. */
  unmountLocalDisk(segment: string): number {
    return this.#lose('unmount-local-disk', new Set([segment]), false, true);
  }

  /** A client crashes, or does not ping within `client_ttl`: its segments and its disk are gone. */
  clientCrash(client: string): number {
    const segments = new Set([...this.#segments].filter(([, owner]) => owner === client).map(([segment]) => segment));
    for (const segment of segments) this.#segments.delete(segment);
    return this.#lose('client-crash', segments, true, true);
  }

  /** BatchReplicaClear: the memory replicas of these keys on a segment, or on all, are gone. */
  replicaClear(keys: Iterable<string>, { tenant, segment }: TenantOption & { readonly segment?: string } = {}): number {
    let cleared = 0;
    for (const key of keys) {
      const object = this.#objects.find(key, tenant);
      if (object === undefined || object.writing) continue;
      const left = segment === undefined ? [] : excluding(object.memory, segment);
      if (left.length === object.memory.length) continue;
      this.#change(object, 'replica-clear', null, () => this.#objects.setMemory(object, left));
      cleared++;
    }
    return cleared;
  }

  // ---- snapshots ----

  /** Every object that can be read, as it is now. */
  snapshot(): StoreSnapshot {
    return { objects: this.#objects.all().filter(isReadable).map(copyOf), segments: new Map(this.#segments) };
  }

  /** Takes over a snapshot, of which nothing is announced, but for what is dropped on the way. Only before anything else. */
  restore({ objects, segments }: StoreSnapshot, drops: (object: StoredObject) => boolean): void {
    for (const [segment, client] of segments) this.#segments.set(segment, client);
    for (const object of objects) if (!drops(object)) this.#objects.add(copyOf(object));
  }

  // ---- the steps that these are made of ----

  #add(key: string, size: number, { tenant = DEFAULT_TENANT, group, softPin, hardPin }: PutOptions): StoredObject {
    const object: StoredObject = {
      tenant,
      key,
      group: group ?? null,
      size,
      memory: [],
      disk: false,
      localDisk: [],
      writing: false,
      leaseUntil: this.#now, // a put grants none, but counts as the last use
      softPinUntil: softPin ? this.#now + SOFT_PIN_MS : 0,
      hardPinned: hardPin ?? false,
      offloading: false,
    };
    this.#objects.add(object);
    return object;
  }

  /** Does it, drops the object when nothing of it is left, and announces what its generation says of it. */
  #change(object: StoredObject, operation: Operation, written: EventMedium | null, act: () => void): void {
    const before = mediaOf(object);
    act();
    const after = mediaOf(object);
    if (after.length === 0 && !object.writing) this.#objects.drop(object);
    const { tenant, key, group } = object;
    const change = { tenant, key, group, before, after, written };
    for (const event of announcementsOf(this.#generation, operation, change, this.#oplog)) this.#announce(event);
  }

  #addMemory(object: StoredObject, operation: Operation, segment: string): boolean {
    if (!this.#objects.fits(1, object.size)) return false;
    this.#change(object, operation, null, () => {
      this.#mountNew([segment]);
      this.#objects.setMemory(object, including(object.memory, segment));
    });
    return true;
  }

  #mountNew(segments: readonly string[]): void {
    for (const segment of segments) if (!this.#segments.has(segment)) this.#segments.set(segment, segment);
  }

  #remove(operation: Operation, key: string, { tenant, force = false }: ForceOption): RemoveResult {
    const object = this.#objects.find(key, tenant);
    if (object === undefined || object.writing) return 'absent';
    if (object.leaseUntil > this.#now && !force) return 'leased';
    this.#change(object, operation, null, () => this.#objects.clear(object));
    return 'removed';
  }

  #removeAllOf(operation: Operation, keys: Iterable<string>, options: ForceOption): number {
    let removed = 0;
    for (const key of keys) if (this.#remove(operation, key, options) === 'removed') removed++;
    return removed;
  }

  #lose(operation: Operation, segments: ReadonlySet<string>, memory: boolean, localDisk: boolean): number {
    const stays = (segment: string) => !segments.has(segment);
    let hit = 0;
    for (const object of this.#objects.all()) {
      const gone =
        (memory && object.memory.some((segment) => !stays(segment))) ||
        (localDisk && object.localDisk.some((segment) => !stays(segment)));
      if (!gone) continue;
      hit++;
      this.#change(object, operation, null, () => {
        if (memory) this.#objects.setMemory(object, object.memory.filter(stays));
        if (localDisk) object.localDisk = object.localDisk.filter(stays);
        if (object.memory.length === 0) object.writing = false; // nowhere left to write to
      });
    }
    return hit;
  }

  #evict(operation: Operation, objects: readonly StoredObject[], wanted?: number): string[] {
    const least = wanted ?? Math.ceil(objects.length * EVICTION_SHARE);
    const victims = evictionVictims(objects, least, this.#now);
    for (const object of victims) this.#change(object, operation, null, () => this.#objects.setMemory(object, []));
    this.evicted += victims.length;
    return victims.map(({ key }) => key);
  }

  /** Evicts until it fits; false when no more may go. */
  #makeRoom(replicas: number, bytes: number): boolean {
    while (!this.#objects.fits(replicas, bytes)) if (this.evict().length === 0) return false;
    return true;
  }

  #evictAboveWatermark(): void {
    if (this.#objects.usedShare > HIGH_WATERMARK) this.evict();
  }
}

function segmentsOf({ segment = DEFAULT_SEGMENT }: PutOptions): readonly string[] {
  return typeof segment === 'string' ? [segment] : [...new Set(segment)];
}

function including(segments: readonly string[], segment: string): string[] {
  return segments.includes(segment) ? [...segments] : [...segments, segment];
}

function excluding(segments: readonly string[], segment: string): string[] {
  return segments.filter((one) => one !== segment);
}
