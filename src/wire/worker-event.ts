// The KV events of a vLLM worker, as this project sees them whatever encoding they came in. Fields that decide whether an event may
// teach shared-cache edges keep the value that was on the wire, since there its very type matters. Fields and their meaning:
// spec/kv-events.md 1.5, 1.8 and 3.1.
//
// Token ids and hashes stand in the reader's memory (core/numbers.ts) and are copied out only when somebody asks for them: an event is
// good until its reader takes the next message, unless it was made to own its numbers.
import {
  BEHIND,
  DENSE,
  DIGEST_FORM,
  FOLLOWS,
  HASHED,
  type HashForm,
  hashForm,
  KEYED,
  type Numbers,
  ROW,
  ROW_WORDS,
} from '../core/numbers.js';
import { MoonrouteError } from '../errors.js';
import { DIGEST_BYTES, type EngineHash, type EngineHashes } from './engine-hashes.js';

const WELL_LAID = DENSE | KEYED;
const NO_LOW64 = new BigUint64Array(0);
const NO_TOKENS = new Uint32Array(0);
const NILS_KEPT = 64;
const NILS = Array.from({ length: NILS_KEPT }, (_, n) => Object.freeze(new Array<null>(n).fill(null)));

/** A list of `length` times nil. */
function nilList(length: number): readonly null[] {
  return NILS[length] ?? new Array<null>(length).fill(null);
}

/** An event's numbers, copied out. */
interface Owned {
  readonly hashes: EngineHashes;
  readonly tokens: Uint32Array;
  readonly parent: EngineHash | null;
}

/** Numbers of an event, in the reader's memory or its own. */
abstract class OwnableNumbers {
  /** Where they stand, unless the event owns them and was not placed. */
  numbers: Numbers | null;
  /** The event's row: in the reader's memory, or its own. */
  protected words: Uint32Array;
  protected base: number;
  /** Copies, once the event owns its numbers. */
  protected owned: Owned | null = null;
  private epoch: number;

  constructor(numbers: Numbers, row: number) {
    this.numbers = numbers;
    this.words = numbers.rows;
    this.base = row * ROW_WORDS;
    this.epoch = numbers.epoch;
  }

  /** Index of the first hash in `numbers`, and of the first local hash. */
  get hashesAt(): number {
    return this.words[this.base + ROW.hashesAt]!;
  }
  get blockCount(): number {
    return this.words[this.base + ROW.blockCount]!;
  }
  get hashForm(): HashForm {
    return hashForm(this.words[this.base + ROW.hashForm]!);
  }
  /** The wire carries whole digests, not their low 64 bits alone. */
  get wholeDigests(): boolean {
    return this.words[this.base + ROW.hashForm] === DIGEST_FORM;
  }

  /** One hash for each block. Copied out of the reader's memory; throws `stale-event` when that has moved on. */
  get blockHashes(): EngineHashes {
    return this.owned?.hashes ?? this.copyHashes();
  }

  private copyHashes(): EngineHashes {
    const numbers = this.live();
    if (this.blockCount === 0) return { low64: NO_LOW64, digests: null };
    return {
      low64: numbers.copyLows(this.hashesAt, this.blockCount),
      digests: this.hashForm === 'digests' ? numbers.copyDigests(this.hashesAt, this.blockCount) : null,
    };
  }

  /** Numbers that hold this event's: those it was read into, else `scratch`, which takes them from the event's own. */
  place(scratch: Numbers): Numbers {
    if (this.numbers !== null && this.numbers.epoch === this.epoch) return this.numbers;
    if (this.owned === null) throw staleEvent();
    const { tokens, hashes } = this.owned;
    scratch.load(tokens, hashes.low64, hashes.digests);
    this.words[ROW.hashesAt] = 0;
    this.words[ROW.tokensAt] = 0;
    this.numbers = scratch;
    this.epoch = scratch.epoch;
    return scratch;
  }

  protected live(): Numbers {
    if (this.numbers === null || this.numbers.epoch !== this.epoch) throw staleEvent();
    return this.numbers;
  }

  protected ownNumbers(tokens: Uint32Array, parent: EngineHash | null): void {
    this.owned = { hashes: this.blockHashes, tokens, parent };
    this.words = this.words.slice(this.base, this.base + ROW_WORDS);
    this.base = 0;
  }
}

/** All of a stored event but its numbers. Events of one worker mostly share one: then they have the very same object here. */
export class EventShape {
  readonly form: 'map' | 'positional';
  /** Tokens a block; below zero until it has been read. */
  blockSize = -1;
  medium: string | null = null;
  loraName: string | null = null;
  groupIdx: number | null = null;
  specKind: string | null = null;
  /** Tokens. */
  slidingWindow: number | null = null;
  locality: string | null = null;
  ownership: string | null = null;
  /** The salt that the producer names; the empty text says that there is none. Null says nothing. */
  cacheSalt: string | null = null;
  // As on the wire, undefined where absent.
  loraId: unknown = undefined;
  extraKeys: unknown = undefined;
  /** The extra keys are a list of nothing but nil; how long it is stands in the event. */
  nilKeys = false;
  isEagle: unknown = undefined;
  sharedCacheEligible: unknown = undefined;
  blockMmInfos: unknown = undefined;
  /** A field was said twice; the last one stands here. */
  repeats = false;

  constructor(form: 'map' | 'positional') {
    this.form = form;
  }
}

/** Blocks that entered a cache, as the reader fills it in; everybody else sees a `StoredEvent`. */
export class StoredRecord extends OwnableNumbers {
  readonly shape: EventShape;

  constructor(numbers: Numbers, row: number, shape: EventShape) {
    super(numbers, row);
    this.shape = shape;
  }

  get type(): 'stored' {
    return 'stored';
  }
  /** Index of the first token in `numbers`. */
  get tokensAt(): number {
    return this.words[this.base + ROW.tokensAt]!;
  }
  get tokenCount(): number {
    return this.words[this.base + ROW.tokenCount]!;
  }
  /** The wire carried pairs of tokens instead of tokens. */
  get tokenPairs(): boolean {
    return this.words[this.base + ROW.pairs] !== 0;
  }
  /** Single tokens, exactly those of its blocks: token i belongs to block ⌊i / blockSize⌋. */
  get dense(): boolean {
    return (this.words[this.base + ROW.laid]! & DENSE) !== 0;
  }
  /** So is the event read before this one, which has the same shape and form of hashes and whose numbers end where this one's begin. */
  get behind(): boolean {
    return (this.words[this.base + ROW.laid]! & BEHIND) !== 0;
  }
  /** Writes what the core wants to know of it besides hashes (core/core.ts, `ReadEvent`); returns how many blocks that says. */
  writeHeader(to: Uint32Array, at: number, most: number): number {
    this.live();
    const { words, base } = this;
    const blocks = Math.min(words[base + ROW.blockCount]!, most);
    to[at] = words[base + ROW.parentLow]!;
    to[at + 1] = words[base + ROW.parentHigh]!;
    to[at + 2] = blocks;
    to[at + 3] = words[base + ROW.parentForm]!;
    return blocks;
  }
  /** Whether there is a block before the first one, and the low 64 bits of its hash in two halves. */
  get hasParent(): boolean {
    return this.words[this.base + ROW.parentForm] !== 0;
  }
  get parentLow(): number {
    return this.words[this.base + ROW.parentLow]!;
  }
  get parentHigh(): number {
    return this.words[this.base + ROW.parentHigh]!;
  }
  get form(): 'map' | 'positional' {
    return this.shape.form;
  }
  /** Tokens a block. */
  get blockSize(): number {
    return this.shape.blockSize;
  }
  get medium(): string | null {
    return this.shape.medium;
  }
  get loraName(): string | null {
    return this.shape.loraName;
  }
  get groupIdx(): number | null {
    return this.shape.groupIdx;
  }
  get specKind(): string | null {
    return this.shape.specKind;
  }
  get slidingWindow(): number | null {
    return this.shape.slidingWindow;
  }
  get locality(): string | null {
    return this.shape.locality;
  }
  get ownership(): string | null {
    return this.shape.ownership;
  }
  get cacheSalt(): string | null {
    return this.shape.cacheSalt;
  }
  get loraId(): unknown {
    return this.shape.loraId;
  }
  get extraKeys(): unknown {
    return this.shape.nilKeys ? nilList(this.words[this.base + ROW.nilKeys]!) : this.shape.extraKeys;
  }
  /** Entries of the extra keys; -1 where they are absent or no list. */
  get extraKeyCount(): number {
    if (this.shape.nilKeys) return this.words[this.base + ROW.nilKeys]!;
    return Array.isArray(this.shape.extraKeys) ? this.shape.extraKeys.length : -1;
  }
  /** Dense, and extra keys, if there are any, are one entry for each block. */
  get wellLaid(): boolean {
    const laid = this.words[this.base + ROW.laid]!;
    if (this.shape.nilKeys) return (laid & WELL_LAID) === WELL_LAID;
    return (laid & DENSE) !== 0 && !this.keysAmiss;
  }
  /** Whether there are extra keys, but not an entry for each block. */
  get keysAmiss(): boolean {
    if (this.shape.nilKeys) return (this.words[this.base + ROW.laid]! & KEYED) === 0;
    return Array.isArray(this.shape.extraKeys) && this.shape.extraKeys.length !== this.blockCount;
  }
  get isEagle(): unknown {
    return this.shape.isEagle;
  }
  get sharedCacheEligible(): unknown {
    return this.shape.sharedCacheEligible;
  }
  get blockMmInfos(): unknown {
    return this.shape.blockMmInfos;
  }

  /** Token ids. Of pairs (Eagle) all first members, then the last second one. */
  get tokenIds(): Uint32Array {
    return this.owned?.tokens ?? this.live().tokens.slice(this.tokensAt, this.tokensAt + this.tokenCount);
  }

  /** Hash of the block before the first one, null at a prompt's start. */
  get parentBlockHash(): EngineHash | null {
    if (!this.hasParent) return null;
    return this.owned === null ? this.copyParent() : this.owned.parent;
  }

  private copyParent(): EngineHash {
    const { bytes } = this.live();
    const at = this.words[this.base + ROW.parentAt]!;
    const form = hashForm(this.words[this.base + ROW.parentForm]!);
    return {
      low64: (BigInt(this.parentHigh) << 32n) | BigInt(this.parentLow),
      digest: form === 'digests' ? bytes.slice(at, at + DIGEST_BYTES) : null,
    };
  }

  /** Its local hashes stand in `numbers`. */
  get hashed(): boolean {
    return (this.words[this.base + ROW.laid]! & HASHED) !== 0;
  }
  /** So do those of the event before it, of which it is `behind`, under the same namespace. */
  get follows(): boolean {
    return (this.words[this.base + ROW.laid]! & FOLLOWS) !== 0;
  }
  /** Says that the local hashes of its blocks have been made, and whether together with those of the event before. */
  markHashed(follows: boolean): void {
    this.words[this.base + ROW.laid]! |= follows ? HASHED | FOLLOWS : HASHED;
  }

  override place(scratch: Numbers): Numbers {
    const numbers = super.place(scratch);
    if (numbers === scratch) this.words[this.base + ROW.laid]! &= ~(HASHED | FOLLOWS);
    return numbers;
  }

  /** Copies the numbers out, so that the event outlives its message. */
  own(): this {
    this.ownNumbers(this.tokenIds, this.parentBlockHash);
    this.words[this.base + ROW.laid]! &= ~FOLLOWS;
    return this;
  }
}

/** Blocks that left a cache, as the reader fills it in. */
export class RemovedRecord extends OwnableNumbers {
  readonly type = 'removed';
  readonly form: 'map' | 'positional';
  medium: string | null = null;
  groupIdx: number | null = null;
  specKind: string | null = null;
  slidingWindow: number | null = null;
  locality: string | null = null;
  ownership: string | null = null;

  constructor(numbers: Numbers, row: number, form: 'map' | 'positional') {
    super(numbers, row);
    this.form = form;
  }

  /** Copies the hashes out, so that the event outlives its message. */
  own(): this {
    this.ownNumbers(NO_TOKENS, null);
    return this;
  }
}

/** Blocks that entered a cache. */
export type StoredEvent = Readonly<StoredRecord>;
/** Blocks that left a cache. */
export type RemovedEvent = Readonly<RemovedRecord>;

/** Everything of the worker's rank left its cache. */
export interface ClearedEvent {
  readonly type: 'cleared';
  readonly form: 'map' | 'positional';
  readonly ownership: string | null;
}

/** An event that its producer marked as meaningless for routers. */
export interface IgnoredEvent {
  readonly type: 'ignored';
  readonly form: 'map' | 'positional';
}

/** Any of them; told apart by `type`. */
export type WorkerEvent = StoredEvent | RemovedEvent | ClearedEvent | IgnoredEvent;

/** Why an event was not read. */
export type EventFault =
  | 'not-an-event'
  | 'tag-missing'
  | 'tag-unknown'
  | 'tag-conflict'
  | 'field-missing'
  | 'field-type'
  | 'too-many-tokens'
  | 'too-many-hashes'
  | 'hash-type'
  | 'hash-width'
  | 'hash-mixed';

/** An event that was not read. */
export interface UnreadEvent {
  readonly code: EventFault;
  /** What was wrong, with the value seen. */
  readonly text: string;
  /**
   * The event was a removal or a clear, or its type could not be read: whoever mirrors this worker may now keep blocks that it has lost. A
   * type that is read but unknown is not taken for one.
   */
  readonly lostRemoval: boolean;
}

/** The error for numbers that are gone. */
export function staleEvent(): MoonrouteError {
  return new MoonrouteError(
    'stale-event',
    'The event was read from an earlier message and its numbers are gone. Use the events of a message before the next one is read, or take them from decodeWorkerMessage.',
  );
}
