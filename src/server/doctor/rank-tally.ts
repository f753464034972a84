// Reads the messages of one rank and keeps what the checks ask for: counts, and bounded samples of hashes. No socket, no clock.
import { WireError } from '../../errors.js';
import { CACHE_SALT_PREFIX } from '../../events/namespace.js';
import type { NormalisedStored } from '../../events/normaliser.js';
import type { WorkerEvents } from '../../events/worker-events.js';
import { splitWorkerFrames } from '../../wire/vllm.js';
import type { FirstBlocks, RankTally } from './evidence.js';
import { Tallies } from './tallies.js';

/** Hashes kept a rank: those of 65,000 tokens in blocks of 16. */
const HASHES_KEPT = 4096;
const FIRST_BLOCKS_KEPT = 32;
/** Blocks of a prompt's start whose hashes are kept. */
const BLOCKS_KEPT = 4;
const TOPICS_KEPT = 8;
/** Longest topic that is shown whole. */
const TOPIC_CHARS = 80;
/** How older engines write an image's hash among the extra keys. */
const IMAGE_HASH = /^[0-9a-f]{64}$/;

const utf8 = new TextDecoder();

/** One rank's tally. The reader of events may be shared: it is told the worker's name. */
export class RankReader {
  readonly #events: WorkerEvents;
  readonly #name: string;
  /** Adapters that the worker lists; known once its HTTP has answered. */
  adapters: ReadonlySet<string> = new Set();
  readonly #unreadable = new Tallies();
  readonly #rejected = new Tallies();
  readonly #ineligible = new Tallies();
  readonly #dropped = new Tallies();
  readonly #dpRanks = new Tallies();
  readonly #blockSizes = new Tallies();
  readonly #adapters = new Tallies();
  readonly #namedInKeys = new Tallies();
  readonly #topics = new Set<string>();
  readonly #hashes: bigint[] = [];
  readonly #firstBlocks: FirstBlocks[] = [];
  #lastSequence: bigint | null = null;
  #faultText: string | null = null;
  #messages = 0;
  #missed = 0;
  #stored = 0;
  #eligible = 0;
  #integers = 0;
  #digests = 0;
  #salts = 0;
  #images = 0;
  #tagged = 0;

  /** @param name of this rank among all that share the reader of events */
  constructor(events: WorkerEvents, name: string) {
    this.#events = events;
    this.#name = name;
  }

  get messages(): number {
    return this.#messages;
  }

  take(frames: readonly Uint8Array[]): void {
    this.#messages++;
    try {
      const { topic, sequence } = splitWorkerFrames(frames);
      this.#heardTopic(topic);
      this.#heardSequence(sequence);
      const message = this.#events.read(this.#name, frames);
      this.#dpRanks.add(String(message.source.dpRank));
      for (const { code, text } of message.rejected) {
        this.#rejected.add(code);
        this.#faultText ??= text;
      }
      for (const event of message.events) {
        if (event.kind === 'dropped') this.#dropped.add(event.reason);
        else if (event.kind === 'stored' && event.tier === 'device') this.#takeStored(event);
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#unreadable.add(error.code);
      this.#faultText ??= error.message;
    }
  }

  result(): RankTally {
    return {
      messages: this.#messages,
      unreadable: this.#unreadable.toJSON(),
      rejected: this.#rejected.toJSON(),
      faultText: this.#faultText,
      missed: this.#missed,
      topics: [...this.#topics],
      dpRanks: this.#dpRanks.toJSON(),
      stored: this.#stored,
      eligible: this.#eligible,
      ineligible: this.#ineligible.toJSON(),
      dropped: this.#dropped.toJSON(),
      blockSizes: this.#blockSizes.toJSON(),
      hashForms: { integers: this.#integers, digests: this.#digests },
      adapters: this.#adapters.toJSON(),
      untagged: { salts: this.#salts, images: this.#images, adapters: this.#namedInKeys.toJSON() },
      tagged: this.#tagged,
      hashes: this.#hashes,
      firstBlocks: this.#firstBlocks,
    };
  }

  #heardTopic(topic: Uint8Array): void {
    if (this.#topics.size < TOPICS_KEPT) this.#topics.add(utf8.decode(topic).slice(0, TOPIC_CHARS));
  }

  #heardSequence(sequence: bigint): void {
    const last = this.#lastSequence;
    if (last !== null && sequence > last + 1n) this.#missed += Number(sequence - last - 1n);
    this.#lastSequence = sequence;
  }

  #takeStored({ ineligible, namespace, event }: NormalisedStored): void {
    this.#stored++;
    this.#blockSizes.add(String(event.blockSize));
    if (event.hashForm === 'digests') this.#digests++;
    else if (event.hashForm === 'integers') this.#integers++;
    if (event.loraName) this.#adapters.add(event.loraName);
    this.#lookAtKeys(event.extraKeys, event.hasParent, event.loraName);
    if (ineligible !== null) {
      this.#ineligible.add(ineligible);
      return;
    }
    this.#eligible++;
    const { low64 } = event.blockHashes;
    for (const hash of low64) if (this.#hashes.length < HASHES_KEPT) this.#hashes.push(hash);
    if (event.hasParent || namespace !== null || event.loraName || !event.dense) return;
    if (this.#firstBlocks.length >= FIRST_BLOCKS_KEPT) return;
    const { blockSize } = event;
    const hashes = low64.slice(0, BLOCKS_KEPT);
    this.#firstBlocks.push({ tokens: event.tokenIds.slice(0, hashes.length * blockSize), blockSize, hashes });
  }

  /** A salt stands among the extra keys of a prompt's first block, and only there. */
  #lookAtKeys(extraKeys: unknown, hasParent: boolean, loraName: string | null): void {
    if (hasParent || !Array.isArray(extraKeys) || !Array.isArray(extraKeys[0])) return;
    for (const key of extraKeys[0] as readonly unknown[]) {
      if (typeof key !== 'string' || key === loraName) continue;
      if (key.startsWith(CACHE_SALT_PREFIX)) this.#tagged++;
      else if (this.adapters.has(key)) this.#namedInKeys.add(key);
      else if (IMAGE_HASH.test(key)) this.#images++;
      else this.#salts++;
    }
  }
}
