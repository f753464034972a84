// The objects of the simulated store by tenant and key, and the memory that their replicas take. It knows no rule of the master.
import { DEFAULT_CAPACITY_OBJECTS, type StoreModelOptions } from './store-options.js';
import type { StoredObject } from './stored-object.js';
import { DEFAULT_TENANT } from './types.js';

export class ObjectTable {
  readonly capacityBytes: number;
  readonly capacityReplicas: number;
  readonly #tenants = new Map<string, Map<string, StoredObject>>();
  #usedBytes = 0;
  #usedReplicas = 0;

  constructor({ capacityBytes, capacityObjects }: StoreModelOptions) {
    this.capacityBytes = capacityBytes ?? Number.POSITIVE_INFINITY;
    this.capacityReplicas = capacityObjects ?? DEFAULT_CAPACITY_OBJECTS;
  }

  /** Bytes of all memory replicas. */
  get usedBytes(): number {
    return this.#usedBytes;
  }
  /** The used share of memory, by bytes or by replicas, whichever is more. */
  get usedShare(): number {
    return Math.max(this.#usedReplicas / this.capacityReplicas, this.#usedBytes / this.capacityBytes);
  }
  get count(): number {
    let count = 0;
    for (const objects of this.#tenants.values()) count += objects.size;
    return count;
  }
  /** Tenants that have an object. */
  get tenants(): string[] {
    return [...this.#tenants.keys()];
  }

  find(key: string, tenant = DEFAULT_TENANT): StoredObject | undefined {
    return this.#tenants.get(tenant)?.get(key);
  }

  /** A tenant's objects, in order of arrival. */
  of(tenant = DEFAULT_TENANT): StoredObject[] {
    return Array.from(this.#tenants.get(tenant)?.values() ?? []);
  }

  all(): StoredObject[] {
    return this.tenants.flatMap((tenant) => this.of(tenant));
  }

  /** Takes in an object that is not known yet, with the memory that it has. */
  add(object: StoredObject): void {
    let objects = this.#tenants.get(object.tenant);
    if (objects === undefined) {
      objects = new Map();
      this.#tenants.set(object.tenant, objects);
    }
    objects.set(object.key, object);
    this.#usedReplicas += object.memory.length;
    this.#usedBytes += object.memory.length * object.size;
  }

  drop(object: StoredObject): void {
    this.clear(object);
    const objects = this.#tenants.get(object.tenant)!;
    objects.delete(object.key);
    if (objects.size === 0) this.#tenants.delete(object.tenant);
  }

  /** Takes all its replicas away. */
  clear(object: StoredObject): void {
    this.setMemory(object, []);
    object.disk = false;
    object.localDisk = [];
    object.writing = false;
  }

  setMemory(object: StoredObject, segments: readonly string[]): void {
    const more = segments.length - object.memory.length;
    this.#usedReplicas += more;
    this.#usedBytes += more * object.size;
    object.memory = [...segments];
  }

  /** Whether so much more fits into memory. */
  fits(replicas: number, bytes: number): boolean {
    return this.#usedReplicas + replicas <= this.capacityReplicas && this.#usedBytes + bytes <= this.capacityBytes;
  }
}
