// How the router hears what a message says. The feed decides when, and whether at all; there are two ways how: decoded, as numbers that were
// made up, which is fast, and as the bytes of real messages, for checking. Both lead to the same decisions.
import type { MessageQueue } from './message-queue.js';
import type { Store } from './store.js';

export interface Evidence {
  /** Writes local hashes of a prompt's first `blocks` blocks, as pairs of words, the low one first. */
  writeLocals(path: Int32Array, blocks: number, to: Uint32Array): void;
  /** The oldest message of a worker's stream. */
  takeOfWorker(worker: number, queue: MessageQueue): void;
  /** A worker restarted, or some of its messages are lost for good. */
  loseWorker(worker: number): void;
  /** The oldest message of the store's stream; with `gap`, others were missed before it. */
  takeOfStore(queue: MessageQueue, gap: boolean): void;
  /** The store's stream begins anew. */
  restartStore(): void;
  /** All that the store holds, in place of what was known. */
  reconcile(store: Store): void;
}
