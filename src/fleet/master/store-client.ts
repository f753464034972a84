// What clients of the master, and accidents, do to its store: one method each, in the store's own terms (store-model.ts).
import type { StoreModel } from './store-model.js';
import type { ForceOption, PutOptions, PutResult, RemoveResult, TenantOption } from './store-options.js';
import type { ReplicaMedium } from './types.js';

/** Bytes of an object that nobody says the size of. */
export const FILLER_BYTES = 1;

/** Each method throws what `act` throws while nobody serves. */
export abstract class StoreClient {
  /** Does it on the store, at the present time. @throws MoonrouteError `master-unavailable` */
  protected abstract act<T>(work: (store: StoreModel) => T): T;

  /** A client's read: whether the key can be read; grants a lease of 10 s. */
  read(key: string, tenant?: string): boolean {
    return this.act((store) => store.read(key, tenant));
  }
  putStart(key: string, size: number, options?: PutOptions): PutResult {
    return this.act((store) => store.putStart(key, size, options));
  }
  /** A whole put, or the end of one that was begun. */
  putEnd(key: string, medium: ReplicaMedium = 'cpu', size = FILLER_BYTES, options?: PutOptions): PutResult {
    return this.act((store) => store.putEnd(key, medium, size, options));
  }
  putRevoke(key: string, options?: TenantOption): boolean {
    return this.act((store) => store.putRevoke(key, options));
  }
  upsertStart(key: string, size = FILLER_BYTES, options?: PutOptions): PutResult {
    return this.act((store) => store.upsertStart(key, size, options));
  }
  upsertEnd(key: string, options?: TenantOption): boolean {
    return this.act((store) => store.upsertEnd(key, options));
  }
  upsert(key: string, size = FILLER_BYTES, options?: PutOptions): PutResult {
    return this.act((store) => store.upsert(key, size, options));
  }
  writerDies(key: string, options?: TenantOption): boolean {
    return this.act((store) => store.writerDies(key, options));
  }
  remove(key: string, options?: ForceOption): RemoveResult {
    return this.act((store) => store.remove(key, options));
  }
  batchRemove(keys: Iterable<string>, options?: ForceOption): number {
    return this.act((store) => store.batchRemove(keys, options));
  }
  removeByRegex(pattern: RegExp | string, options?: ForceOption): number {
    return this.act((store) => store.removeByRegex(pattern, options));
  }
  removeAll(options?: ForceOption): number {
    return this.act((store) => store.removeAll(options));
  }
  evict(wanted?: number): string[] {
    return this.act((store) => store.evict(wanted));
  }
  quotaEvict(tenant: string, wanted?: number): string[] {
    return this.act((store) => store.quotaEvict(tenant, wanted));
  }
  evictDisk(key: string, options?: TenantOption & { readonly medium?: 'disk' | 'local-disk' }): boolean {
    return this.act((store) => store.evictDisk(key, options));
  }
  offloadStart(key: string, options?: TenantOption): boolean {
    return this.act((store) => store.offloadStart(key, options));
  }
  offload(key: string, options?: TenantOption & { readonly segment?: string }): boolean {
    return this.act((store) => store.offload(key, options));
  }
  appearOnDisk(key: string, size = FILLER_BYTES, options?: PutOptions): boolean {
    return this.act((store) => store.appearOnDisk(key, size, options));
  }
  promote(key: string, options?: TenantOption & { readonly segment?: string }): boolean {
    return this.act((store) => store.promote(key, options));
  }
  copy(key: string, segment: string, options?: TenantOption): boolean {
    return this.act((store) => store.copy(key, segment, options));
  }
  move(key: string, from: string, to: string, options?: TenantOption): boolean {
    return this.act((store) => store.move(key, from, to, options));
  }
  mountSegment(segment: string, client?: string): void {
    this.act((store) => store.mountSegment(segment, client));
  }
  unmountSegment(segment: string): number {
    return this.act((store) => store.unmountSegment(segment));
  }
  unmountLocalDisk(segment: string): number {
    return this.act((store) => store.unmountLocalDisk(segment));
  }
  clientCrash(client: string): number {
    return this.act((store) => store.clientCrash(client));
  }
  replicaClear(keys: Iterable<string>, options?: TenantOption & { readonly segment?: string }): number {
    return this.act((store) => store.replicaClear(keys, options));
  }
}
