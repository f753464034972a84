// Tells an observer of the store what it tells the feed. What spills to SSD enters there and then leaves memory; what only leaves is gone.
import { SSD, type StoreWatcher } from '../store.js';
import type { SimObserver } from './observer.js';

export class StoreWatch implements StoreWatcher {
  readonly #next: StoreWatcher;
  readonly #observer: SimObserver;
  #spills = false;

  constructor(next: StoreWatcher, observer: SimObserver) {
    this.#next = next;
    this.#observer = observer;
  }

  entered(tier: number, group: number, node: number, from: number, count: number): void {
    this.#next.entered(tier, group, node, from, count);
    this.#spills = tier === SSD;
    if (this.#spills) this.#observer.storeSpilled(group, node, from, count);
    else this.#observer.storePut(group, node, from, count);
  }

  left(tier: number, group: number, node: number, from: number, count: number): void {
    this.#next.left(tier, group, node, from, count);
    if (!this.#spills) this.#observer.storeEvicted(tier, group, node, from, count);
    this.#spills = false;
  }
}
