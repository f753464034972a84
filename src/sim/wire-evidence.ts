// Messages handed to the router as the bytes that real publishers send, with token ids and engine hashes as they would be: what a simulation
// finds with made-up numbers is checked against it. It leads to the same report up to the caps of the router's core, where a key list is cut
// down in another order than decoded objects are.
//
// A message of the feed becomes as many as its publisher would make of it. They are numbered as one stream, in which a message that was lost
// counts once.
import { MoonrouteError } from '../errors.js';
import type { Router } from '../router/router.js';
import type { BlockTree } from './blocks.js';
import type { Evidence } from './evidence.js';
import { type MessageQueue, RUN_WORDS } from './message-queue.js';
import { forEachWorkerRun, groupOf, kindOf, mediumOf, STORED } from './message-runs.js';
import { poolContract } from './pool-contract.js';
import type { Store } from './store.js';
import type { SimConfig } from './types.js';
import { WireBlocks } from './wire-blocks.js';
import { WireNumbers } from './wire-numbers.js';
import { type ObjectTemplates, objectTemplates, STORE_BATCH_EVENTS, StoreBatch } from './wire-store-batch.js';
import {
  blockRemoved,
  blockStored,
  WORKER_BATCH_EVENTS,
  WORKER_BATCH_TOKENS,
  workerMessage,
} from './wire-worker-messages.js';

/** Digits of a digest. */
const HEX_DIGITS = 64;
/** Tokens of a stored event; of larger blocks, one block. */
const EVENT_TOKENS = 65_536;
/** The engine numbers its messages from 0, the master from 1. */
const FIRST_OF_STORE = 1;
/** What becomes of messages that are in order; by its settings a router may read neither kind. */
const WORKER_FATES: readonly string[] = ['applied', 'gpu-events-off'];
const STORE_FATES: readonly string[] = ['applied', 'gap-applied', 'no-cache'];

export class WireEvidence implements Evidence {
  readonly #router: Router;
  readonly #tree: BlockTree;
  readonly #blocks: WireBlocks;
  /** By store group. */
  readonly #prefixes: readonly (readonly string[])[];
  readonly #templates: readonly (readonly ObjectTemplates[])[];
  readonly #mainGroup: number;
  readonly #workers: readonly WireNumbers[];
  readonly #store = new WireNumbers(FIRST_OF_STORE);
  readonly #batch = new StoreBatch();
  /** Events of the store so far. */
  #objects = 0;
  /** The router knows a message, or a key list, before the store's next message. */
  #storeHeard = false;

  constructor(config: SimConfig, router: Router, tree: BlockTree) {
    const { groups, mainEventGroup } = poolContract(config);
    this.#router = router;
    this.#tree = tree;
    this.#blocks = new WireBlocks(tree);
    this.#prefixes = groups.map(({ keyPrefixes }) => keyPrefixes);
    this.#templates = groups.map(({ keyPrefixes }) => keyPrefixes.map((prefix) => objectTemplates(prefix)));
    this.#mainGroup = mainEventGroup!; // a contract that edges are learned under has one
    this.#workers = Array.from({ length: config.workers.count }, () => new WireNumbers(0));
  }

  writeLocals(path: Int32Array, blocks: number, to: Uint32Array): void {
    this.#blocks.writeLocals(path, blocks, to);
  }

  takeOfWorker(worker: number, queue: MessageQueue): void {
    const { blockSize } = this.#tree;
    const numbers = this.#workers[worker]!;
    numbers.begin(queue.firstSequence);
    let events: object[] = [];
    let tokens = 0;
    const send = () => {
      if (events.length > 0) this.#sendOfWorker(worker, numbers.next(), events);
      events = [];
      tokens = 0;
    };
    const add = (event: object, itsTokens: number) => {
      if (events.length === WORKER_BATCH_EVENTS || tokens + itsTokens > WORKER_BATCH_TOKENS) send();
      events.push(event);
      tokens += itsTokens;
    };
    const most = Math.max(1, Math.floor(EVENT_TOKENS / blockSize));
    forEachWorkerRun(queue, this.#tree, most, (what, first, count) => {
      if (what === STORED) add(this.#blockStored(first, count), count * blockSize);
      else
        for (let block = first; block < first + count; block++)
          add(blockRemoved(this.#blocks.low64(block), this.#mainGroup), 0);
    });
    send();
  }

  loseWorker(worker: number): void {
    this.#router.workerStreamLost(worker);
  }

  takeOfStore({ firstSequence, words, begin, stop }: MessageQueue, gap: boolean): void {
    // The router sees a gap by the number before. Without one it takes any number, and only the listener, who knows the first, can tell.
    if (gap && !this.#storeHeard) this.#router.storeStreamLost('gap');
    this.#storeHeard = true;
    const each = this.#tree.blocksPerNode;
    const batch = this.#batch;
    this.#store.begin(firstSequence);
    batch.begin(this.#store.next());
    for (let at = begin; at < stop; at += RUN_WORDS) {
      const what = words[at]!;
      const change = `${kindOf(what) === STORED ? 'stored' : 'removed'}-${mediumOf(what)}` as const;
      const templates = this.#templates[groupOf(what)]!.map((ofPrefix) => ofPrefix[change]);
      const first = words[at + 1]! * each + words[at + 2]!;
      for (let block = first; block < first + words[at + 3]!; block++) {
        for (const template of templates) {
          if (batch.events === STORE_BATCH_EVENTS) {
            this.#sendOfStore();
            batch.begin(this.#store.next());
          }
          batch.add(template, ++this.#objects);
          this.#blocks.writeHex(block, batch.bytes, batch.hexAt);
        }
      }
    }
    this.#sendOfStore();
  }

  restartStore(): void {
    this.#router.storeStreamLost('restart');
    this.#store.restart();
    this.#storeHeard = false;
    this.#objects = 0;
  }

  /** The list is newer than the last message taken; those under way are applied on top of it, as a real reconcile's are. */
  reconcile(store: Store): void {
    const keys: string[] = [];
    const hex = new Uint8Array(HEX_DIGITS);
    store.forEach((group, node, from, count) => {
      const first = node * this.#tree.blocksPerNode + from;
      for (let block = first; block < first + count; block++) {
        this.#blocks.writeHex(block, hex, 0);
        const digest = String.fromCharCode(...hex);
        for (const prefix of this.#prefixes[group]!) keys.push(`${prefix}@${digest}`);
      }
    });
    const token = this.#router.beginReconcile();
    const result = this.#router.reconcile(token, keys, { s0: this.#store.last, firstSequence: null });
    if (result.accepted) this.#storeHeard = true;
    else if (result.reason !== 'no-cache') refuse('the key list', result.reason, null);
  }

  #blockStored(first: number, count: number): object {
    const blocks = this.#blocks;
    const before = blocks.before(first);
    const hashes = Array.from({ length: count }, (_, i) => blocks.low64(first + i));
    return blockStored(before < 0 ? null : blocks.low64(before), hashes, blocks.tokens(first, count), this.#mainGroup);
  }

  #sendOfWorker(worker: number, sequence: number, events: readonly object[]): void {
    const { fate, lostRemoval, detail } = this.#router.onWorkerMessage(worker, workerMessage(sequence, events));
    if (!WORKER_FATES.includes(fate) || lostRemoval) refuse(`message ${sequence} of worker ${worker}`, fate, detail);
  }

  #sendOfStore(): void {
    const { fate, detail } = this.#router.onStoreMessage(this.#batch.frames());
    if (!STORE_FATES.includes(fate)) refuse(`message ${this.#store.last} of the store`, fate, detail);
  }
}

function refuse(what: string, answer: string, detail: string | null): never {
  throw new MoonrouteError(
    'sim-wire-refused',
    `the router answered '${answer}' to ${what}${detail === null ? '' : ` (${detail})`}: this is a fault of the simulator.`,
  );
}
