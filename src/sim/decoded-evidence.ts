// Messages handed to the router as numbers, made up once in the block tree: nothing is made for a single block until the router takes it.
import type { Router } from '../router/router.js';
import { type BlockTree, DIGEST_WORDS } from './blocks.js';
import type { Evidence } from './evidence.js';
import { type MessageQueue, RUN_WORDS } from './message-queue.js';
import { forEachWorkerRun, groupOf, kindOf, mediumOf, STORED } from './message-runs.js';
import type { Store } from './store.js';

/** Blocks handed to the router at once. */
const BLOCKS_AT_ONCE = 4096;
/** The only data-parallel rank of a simulated worker. */
const DP_RANK = 0;

export class DecodedEvidence implements Evidence {
  readonly #router: Router;
  readonly #tree: BlockTree;
  readonly #digests = new Uint32Array(BLOCKS_AT_ONCE * DIGEST_WORDS);

  constructor(router: Router, tree: BlockTree) {
    this.#router = router;
    this.#tree = tree;
  }

  writeLocals(path: Int32Array, blocks: number, to: Uint32Array): void {
    this.#tree.writeLocals(path, blocks, to);
  }

  takeOfWorker(worker: number, queue: MessageQueue): void {
    forEachWorkerRun(queue, this.#tree, BLOCKS_AT_ONCE, (what, first, count) => {
      if (what === STORED) this.#takeStored(worker, first, count);
      else this.#router.takeRemoved(worker, DP_RANK, 'device', this.#tree.lows, first, count);
    });
  }

  loseWorker(worker: number): void {
    this.#router.workerStreamLost(worker);
  }

  /** What entered, then what left: a block that does both moves on within this message, and never comes back in it. */
  takeOfStore(queue: MessageQueue, gap: boolean): void {
    if (gap) this.#router.storeStreamLost('gap');
    this.#takeRuns(queue, 'stored');
    this.#takeRuns(queue, 'removed');
  }

  restartStore(): void {
    this.#router.storeStreamLost('restart');
  }

  reconcile(store: Store): void {
    this.#router.storeStreamLost('reconcile');
    let filled = 0;
    let of = 0;
    const hand = () => {
      this.#takeObjects('stored', 'unknown', of, filled);
      filled = 0;
    };
    store.forEach((group, node, from, count) => {
      if (group !== of) hand();
      of = group;
      const first = node * this.#tree.blocksPerNode + from;
      for (let at = 0; at < count; ) {
        const part = Math.min(count - at, BLOCKS_AT_ONCE - filled);
        this.#tree.writeDigests(first + at, part, this.#digests, filled);
        filled += part;
        at += part;
        if (filled === BLOCKS_AT_ONCE) hand();
      }
    });
    hand();
  }

  #takeStored(worker: number, at: number, count: number): void {
    const { lows, locals, blocksPerNode: each } = this.#tree;
    const node = Math.floor(at / each);
    const before = at > node * each ? at - 1 : this.#tree.parentOf(node) * each + each - 1;
    const hasParent = before >= 0;
    this.#router.takeStored(worker, DP_RANK, 'device', {
      lows,
      locals,
      at,
      count,
      hasParent,
      parentLow: hasParent ? lows[before * 2]! : 0,
      parentHigh: hasParent ? lows[before * 2 + 1]! : 0,
      eligible: true,
    });
  }

  #takeRuns({ words, begin, stop }: MessageQueue, kind: 'stored' | 'removed'): void {
    const each = this.#tree.blocksPerNode;
    let of = -1;
    let filled = 0;
    const hand = () => {
      if (filled === 0) return;
      this.#takeObjects(kind, mediumOf(of), groupOf(of), filled);
      filled = 0;
    };
    for (let at = begin; at < stop; at += RUN_WORDS) {
      const what = words[at]!;
      if ((kindOf(what) === STORED) !== (kind === 'stored')) continue;
      if (what !== of) hand();
      of = what;
      let block = words[at + 1]! * each + words[at + 2]!;
      for (const end = block + words[at + 3]!; block < end; ) {
        const part = Math.min(end - block, BLOCKS_AT_ONCE - filled);
        this.#tree.writeDigests(block, part, this.#digests, filled);
        filled += part;
        block += part;
        if (filled === BLOCKS_AT_ONCE) hand();
      }
    }
    hand();
  }

  #takeObjects(kind: 'stored' | 'removed', medium: 'cpu' | 'disk' | 'unknown', group: number, count: number): void {
    if (count > 0) this.#router.takeObjects({ kind, medium, group, digests: this.#digests, at: 0, count });
  }
}
