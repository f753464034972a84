// What a simulation tells whoever watches it, as it happens. Watching changes nothing: an observer only takes notes, and throws nothing. Times are the
// clock's; nodes and blocks are those of the block tree (blocks.ts).
import type { Decision } from '../../router/decision.js';
import type { SimRequest } from '../sim-request.js';
import type { SimConfig } from '../types.js';

/** What stands for the whole simulation. */
export interface SimScene {
  readonly config: SimConfig;
  /** The time of what happens now, in milliseconds. */
  readonly clock: { readonly time: number };
}

export interface SimObserver {
  begin(scene: SimScene): void;

  // ---- requests ----

  /** The next one of the trace is due by its own time: it is number `place`. Nodes `firstNode` … `endNode` are new with it. */
  read(request: SimRequest, firstNode: number, endNode: number): void;
  /** It reaches the router; the best choice could hit `reachable` blocks. */
  arrived(request: SimRequest, reachable: number): void;
  /** It is larger than a worker's GPU, and is done with. */
  refused(request: SimRequest): void;
  /** The router has decided; it waits at its worker. Of one that a restart sent again, each time. */
  routed(request: SimRequest, worker: number, decision: Decision): void;
  /** Its worker begins it: it found `localEnd` blocks in its cache, and the store could restore up to `storeEnd`. */
  began(request: SimRequest, worker: number, localEnd: number, storeEnd: number): void;
  /** What it was restored from the store has come. */
  fetched(request: SimRequest, worker: number): void;
  firstToken(request: SimRequest, worker: number): void;
  ended(request: SimRequest, worker: number): void;
  /** Its worker starts anew; it still is as it was there. */
  lost(request: SimRequest, worker: number): void;

  // ---- work ----

  /** A worker computed from `from` until now. */
  computed(worker: number, from: number): void;
  /** From `from` to `to`, so many bytes a millisecond came from the store. */
  moved(from: number, to: number, bytesPerMs: number): void;

  // ---- what is where ----

  /** Blocks entered a worker's cache: it computed them, or they came from the store. */
  workerEntered(worker: number, restored: boolean, node: number, from: number, count: number): void;
  /** Blocks left it for want of room. */
  workerEvicted(worker: number, node: number, from: number, count: number): void;
  workerCleared(worker: number): void;
  /** Objects entered the store's memory. */
  storePut(group: number, node: number, from: number, count: number): void;
  /** Objects moved from memory to SSD. */
  storeSpilled(group: number, node: number, from: number, count: number): void;
  /** Objects left the store for want of room. */
  storeEvicted(tier: number, group: number, node: number, from: number, count: number): void;
  storeCleared(): void;
}

/** Takes no notes: for those who want to hear of a few things only. */
export class QuietObserver implements SimObserver {
  begin(_scene: SimScene): void {}
  read(_request: SimRequest, _firstNode: number, _endNode: number): void {}
  arrived(_request: SimRequest, _reachable: number): void {}
  refused(_request: SimRequest): void {}
  routed(_request: SimRequest, _worker: number, _decision: Decision): void {}
  began(_request: SimRequest, _worker: number, _localEnd: number, _storeEnd: number): void {}
  fetched(_request: SimRequest, _worker: number): void {}
  firstToken(_request: SimRequest, _worker: number): void {}
  ended(_request: SimRequest, _worker: number): void {}
  lost(_request: SimRequest, _worker: number): void {}
  computed(_worker: number, _from: number): void {}
  moved(_from: number, _to: number, _bytesPerMs: number): void {}
  workerEntered(_worker: number, _restored: boolean, _node: number, _from: number, _count: number): void {}
  workerEvicted(_worker: number, _node: number, _from: number, _count: number): void {}
  workerCleared(_worker: number): void {}
  storePut(_group: number, _node: number, _from: number, _count: number): void {}
  storeSpilled(_group: number, _node: number, _from: number, _count: number): void {}
  storeEvicted(_tier: number, _group: number, _node: number, _from: number, _count: number): void {}
  storeCleared(): void {}
}
