// From what happens in the pool to what the router hears of it. Every worker has a stream of messages, and so has the store. A message is
// late by delay and jitter, or lost; its sequence shows a gap when a later one arrives first.
//
// - A worker's stream has a replay buffer, so the router gets what it missed, in order, at that moment. What was lost longer ago than the
//   buffer reaches back is lost for good, and the worker's index part starts from empty.
// - The store's stream has none. A gap costs all residency, the late message is dropped, and after a while a reconcile finds what is there.
// - When a worker or the store starts anew, so does its stream: what was under way is gone, and the router notices after the same delay.
//
// Messages hold runs of blocks. How the router hears them is another matter (evidence.ts).
import type { Router } from '../router/router.js';
import type { BlockTree } from './blocks.js';
import { DecodedEvidence } from './decoded-evidence.js';
import type { EventHeap } from './event-heap.js';
import { ANEW, MESSAGE, RECONCILE } from './event-kinds.js';
import type { Evidence } from './evidence.js';
import { MessageQueue } from './message-queue.js';
import { REMOVED, STORED, whatOf } from './message-runs.js';
import { SeededRandom } from './random.js';
import type { Store, StoreWatcher } from './store.js';
import type { SimConfig } from './types.js';
import { WireEvidence } from './wire-evidence.js';

/** Messages that a worker's publisher keeps (spec/vllm-store.md 9). */
export const REPLAY_MESSAGES = 10_000;

interface Stream {
  readonly queue: MessageQueue;
  /** Counts its beginnings. */
  life: number;
  /** The life that the router has noticed. */
  heard: number;
  /** A message is gone that was lost on the way and can't be replayed. */
  broken: boolean;
}

export interface FeedParts {
  readonly config: SimConfig;
  readonly router: Router;
  readonly tree: BlockTree;
  readonly heap: EventHeap;
}

export class RouterFeed implements StoreWatcher {
  readonly #evidence: Evidence;
  readonly #heap: EventHeap;
  readonly #config: SimConfig;
  readonly #random: SeededRandom;
  readonly #streams: Stream[];
  readonly #storeStream: number;
  /** Sequence that the router expects of the store. */
  #expected = 0;
  #reconcileDue = false;
  messages = 0;
  lostMessages = 0;

  constructor({ config, router, tree, heap }: FeedParts) {
    this.#config = config;
    this.#evidence = config.wire ? new WireEvidence(config, router, tree) : new DecodedEvidence(router, tree);
    this.#heap = heap;
    this.#random = new SeededRandom(config.seed);
    this.#storeStream = config.workers.count;
    this.#streams = Array.from({ length: config.workers.count + 1 }, () => ({
      queue: new MessageQueue(),
      life: 0,
      heard: 0,
      broken: false,
    }));
  }

  // ---- what happens ----

  /** Blocks entered a worker's GPU cache. */
  stored(worker: number, node: number, from: number, count: number): void {
    this.#streams[worker]!.queue.add(STORED, node, from, count);
  }

  /** Blocks left it. */
  removed(worker: number, node: number, from: number, count: number): void {
    this.#streams[worker]!.queue.add(REMOVED, node, from, count);
  }

  entered(tier: number, group: number, node: number, from: number, count: number): void {
    this.#streams[this.#storeStream]!.queue.add(whatOf(STORED, tier, group), node, from, count);
  }

  left(tier: number, group: number, node: number, from: number, count: number): void {
    this.#streams[this.#storeStream]!.queue.add(whatOf(REMOVED, tier, group), node, from, count);
  }

  /** What a worker has said since makes a message. */
  sendOfWorker(worker: number, now: number): void {
    const stream = this.#streams[worker]!;
    this.#send(worker, now, false);
    while (stream.queue.length > REPLAY_MESSAGES && stream.queue.firstIsLost) {
      stream.queue.shift();
      stream.broken = true;
    }
  }

  /** Likewise of the store; lost ones are not kept, for nobody can ask for them. */
  sendOfStore(now: number): void {
    const { queue } = this.#streams[this.#storeStream]!;
    this.#send(this.#storeStream, now, true);
    while (queue.length > 0 && queue.firstIsLost) queue.shift();
  }

  /** A worker, or the store (null), starts anew. */
  restart(worker: number | null, now: number): void {
    const number = worker ?? this.#storeStream;
    const stream = this.#streams[number]!;
    stream.queue.clear();
    stream.broken = false;
    stream.life++;
    this.#heap.put(now + this.#lateness(), ANEW, number, stream.life);
  }

  // ---- what the router hears ----

  /** Local hashes of a prompt's first `blocks` blocks, as pairs of words, the low one first: what a request is routed by. */
  writeLocals(path: Int32Array, blocks: number, to: Uint32Array): void {
    this.#evidence.writeLocals(path, blocks, to);
  }

  /** A message arrives; `now` is its time. */
  arrive(number: number, life: number, sequence: number, now: number): void {
    const stream = this.#streams[number]!;
    if (life !== stream.life) return;
    this.notice(number, life, now);
    if (number === this.#storeStream) this.#arriveOfStore(stream.queue, sequence, now);
    else this.#arriveOfWorker(number, stream, sequence);
  }

  /** The router notices that a stream began anew, by itself or by its first message. */
  notice(number: number, life: number, now: number): void {
    const stream = this.#streams[number]!;
    if (life <= stream.heard || life !== stream.life) return;
    stream.heard = life;
    if (number !== this.#storeStream) {
      this.#evidence.loseWorker(number);
      return;
    }
    this.#expected = 0;
    this.#evidence.restartStore();
    this.#planReconcile(now);
  }

  /** The router is told all that the store holds. */
  reconcile(store: Store): void {
    this.#reconcileDue = false;
    this.#evidence.reconcile(store);
  }

  #send(number: number, now: number, dropsLost: boolean): void {
    const { queue, life } = this.#streams[number]!;
    if (!queue.begun) return;
    const { loss } = this.#config.events;
    const lost = loss > 0 && this.#random.chance(loss);
    const late = this.#lateness();
    const sequence = queue.end(lost, lost && dropsLost);
    this.messages++;
    if (lost) this.lostMessages++;
    else this.#heap.put(now + late, MESSAGE, number, life, sequence);
  }

  #lateness(): number {
    const { delay, jitter } = this.#config.events;
    return jitter > 0 ? delay + (jitter * this.#random.uint32()) / 0x1_0000_0000 : delay;
  }

  #arriveOfWorker(worker: number, stream: Stream, sequence: number): void {
    const { queue } = stream;
    if (stream.broken) this.#evidence.loseWorker(worker);
    stream.broken = false;
    while (queue.firstSequence <= sequence) {
      this.#evidence.takeOfWorker(worker, queue);
      queue.shift();
    }
  }

  #arriveOfStore(queue: MessageQueue, sequence: number, now: number): void {
    if (sequence < this.#expected) return; // overtaken: the gap has cost its evidence already
    const gap = sequence > this.#expected;
    if (gap) this.#planReconcile(now);
    while (queue.firstSequence < sequence) queue.shift();
    this.#evidence.takeOfStore(queue, gap);
    queue.shift();
    this.#expected = sequence + 1;
  }

  #planReconcile(now: number): void {
    if (this.#reconcileDue) return;
    this.#reconcileDue = true;
    this.#heap.put(now + this.#config.events.reconcileAfter, RECONCILE);
  }
}
