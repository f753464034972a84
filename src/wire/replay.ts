// The replay protocol of vLLM's publisher: a DEALER asks its ROUTER for the batches from a sequence on, which come one a
// message, oldest first, and end with a marker. Both directions, since simulated workers speak it too. Three layouts of the
// answer exist in the field, and the reader takes all of them (spec/kv-events.md 1.3, vllm-store.md 9, vllm#45177, #16750).
//
//   sent by the ROUTER                                 | end marker
//   identity, empty, topic, sequence, payload          | identity, empty, empty, ff×8, empty     since July 2026
//   identity, empty, sequence, payload                 | identity, empty, ff×8, empty            before
//                                                      | identity, empty, empty                  draft of #16750
//
// A worker never says that its buffer has lost what was asked for: it answers with later batches only. `ReplayCursor`
// notices this. It is the only state here; sockets, timeouts and the index belong to the caller.
import { WireError } from '../errors.js';
import { readSequence, SEQUENCE_BYTES, writeSequence } from './frames.js';

/** Whether a worker puts its topic into replies: `with-topic` since vLLM #45177. */
export type ReplayLayout = 'with-topic' | 'without-topic';

/** What a worker is asked. */
export interface ReplayRequest {
  readonly identity: Uint8Array;
  /** First sequence that is wanted. */
  readonly start: bigint;
}

/** One reply message. */
export type ReplayReply =
  | {
      readonly kind: 'batch';
      /** Null in the layout without topic, and where an empty first frame may be the delimiter as well. */
      readonly topic: Uint8Array | null;
      readonly sequence: bigint;
      readonly payload: Uint8Array;
    }
  | { readonly kind: 'end' };

/** The sequence of the end marker, −1 as an unsigned number. No batch may have it. */
export const END_SEQUENCE = 2n ** 64n - 1n;

const EMPTY = new Uint8Array(0);
/** Frames of a request as the ROUTER sees it: identity, delimiter, start. */
const REQUEST_FRAMES = 3;
/** Frames of a reply without the identity: the fewest are sequence and payload, the most delimiter and topic before them. */
const FEWEST_REPLY_FRAMES = 2;
const MOST_REPLY_FRAMES = 4;
const BITS_PER_BYTE = 8n;

/**
 * What a DEALER sends to be given the batches from `start` on.
 * @throws {WireError} `sequence-range` when `start` is no batch's number.
 */
export function replayRequest(start: bigint): Uint8Array[] {
  return [EMPTY, writeSequence(checkedSequence(start, 'the start of a replay'))];
}

/**
 * Reads a request as a ROUTER sees it. vLLM reads the start at any width, so this does up to a value of 64 bits.
 * @throws {WireError} `frame-count`, `delimiter-not-empty` or `start-width`; vLLM sends no answer then.
 */
export function readReplayRequest(frames: readonly Uint8Array[]): ReplayRequest {
  if (frames.length !== REQUEST_FRAMES) {
    throw new WireError('frame-count', `a replay request has ${REQUEST_FRAMES} frames, got ${frames.length}`);
  }
  const [identity, delimiter, start] = frames as readonly [Uint8Array, Uint8Array, Uint8Array];
  checkDelimiter(delimiter);
  return { identity, start: readStart(start) };
}

/**
 * What a worker's ROUTER sends for one buffered batch. The topic is left out in the layout without it.
 * @throws {WireError} `sequence-range` or `payload-empty`: the message could not be told from an end marker.
 */
export function replayReply(
  identity: Uint8Array,
  batch: { readonly topic: Uint8Array; readonly sequence: bigint; readonly payload: Uint8Array },
  layout: ReplayLayout,
): Uint8Array[] {
  const sequence = checkedSequence(batch.sequence, 'the sequence of a batch');
  if (batch.payload.length === 0) {
    throw new WireError('payload-empty', `the payload of batch ${sequence} is empty; only the end marker's may be`);
  }
  return replyFrames(identity, batch.topic, writeSequence(sequence), batch.payload, layout);
}

/** What a worker's ROUTER sends behind the last batch. */
export function replayEnd(identity: Uint8Array, layout: ReplayLayout): Uint8Array[] {
  return replyFrames(identity, EMPTY, writeSequence(END_SEQUENCE), EMPTY, layout);
}

/**
 * Reads a reply as the asking socket sees it, in any layout, with the delimiter (DEALER) or without it (REQ).
 * @throws {WireError} `frame-count`, `delimiter-not-empty`, `sequence-width`, `end-with-payload` or `payload-empty`.
 */
export function readReplayReply(frames: readonly Uint8Array[]): ReplayReply {
  const count = frames.length;
  if (count < FEWEST_REPLY_FRAMES || count > MOST_REPLY_FRAMES) {
    throw new WireError(
      'frame-count',
      `a replay reply has ${FEWEST_REPLY_FRAMES} to ${MOST_REPLY_FRAMES} frames after the identity, got ${count}`,
    );
  }
  if (isDraftEnd(frames)) return { kind: 'end' };
  const topic = readTopic(frames);
  const sequence = readSequence(frames[count - 2]!);
  const payload = frames[count - 1]!;
  if (sequence === END_SEQUENCE) return readEnd(payload);
  if (payload.length === 0) {
    throw new WireError(
      'payload-empty',
      `batch ${sequence} of a replay has an empty payload; only the end marker's (sequence ff×8) may be empty`,
    );
  }
  return { kind: 'batch', topic, sequence, payload };
}

function replyFrames(
  identity: Uint8Array,
  topic: Uint8Array,
  sequence: Uint8Array,
  payload: Uint8Array,
  layout: ReplayLayout,
): Uint8Array[] {
  return layout === 'with-topic' ? [identity, EMPTY, topic, sequence, payload] : [identity, EMPTY, sequence, payload];
}

/** The end marker of the first draft: the delimiter and one empty frame, no sequence. */
function isDraftEnd(frames: readonly Uint8Array[]): boolean {
  return frames.length === FEWEST_REPLY_FRAMES && frames.every((frame) => frame.length === 0);
}

/** Of four frames the first is the delimiter; of three it is the delimiter if empty, else the topic. */
function readTopic(frames: readonly Uint8Array[]): Uint8Array | null {
  if (frames.length === FEWEST_REPLY_FRAMES) return null;
  const first = frames[0]!;
  if (frames.length === MOST_REPLY_FRAMES) {
    checkDelimiter(first);
    return frames[1]!;
  }
  return first.length === 0 ? null : first;
}

function readEnd(payload: Uint8Array): ReplayReply {
  if (payload.length > 0) {
    throw new WireError(
      'end-with-payload',
      `a replay reply has the end marker's sequence (ff×8) and a payload of ${payload.length} bytes, expected none`,
    );
  }
  return { kind: 'end' };
}

function readStart(frame: Uint8Array): bigint {
  const excess = frame.length - SEQUENCE_BYTES;
  if (frame.length === 0 || frame.some((byte, at) => at < excess && byte !== 0)) {
    throw new WireError(
      'start-width',
      `the start of a replay request has ${frame.length} bytes, expected 1 to ${SEQUENCE_BYTES}, or more with zeros in front`,
    );
  }
  return frame.reduce((value, byte) => (value << BITS_PER_BYTE) | BigInt(byte), 0n);
}

function checkDelimiter(frame: Uint8Array): void {
  if (frame.length > 0) {
    throw new WireError(
      'delimiter-not-empty',
      `the frame before the data has ${frame.length} bytes, expected an empty delimiter`,
    );
  }
}

function checkedSequence(sequence: bigint, what: string): bigint {
  if (sequence < 0n || sequence >= END_SEQUENCE) {
    throw new WireError('sequence-range', `${what} is ${sequence}, expected 0 to ${END_SEQUENCE - 1n}`);
  }
  return sequence;
}

/** Sequences that no reply brought: `from` up to, not including, `to`. */
export interface MissingRange {
  readonly from: bigint;
  readonly to: bigint;
  /**
   * `evicted`: before the first batch, the worker's buffer no longer holds them. `hole`: between two batches, the worker
   * failed to send them. `tail`: between the last batch and what the caller already holds, e.g. of a worker that restarted.
   */
  readonly cause: 'evicted' | 'hole' | 'tail';
}

/** What to do with a reply. `missing` is what this reply shows to be lost. */
export type ReplayStep =
  | { readonly kind: 'apply' | 'end'; readonly missing: MissingRange | null }
  | { readonly kind: 'duplicate' };

/** Most missing ranges that a cursor keeps for its report; all are counted. */
export const MAX_RANGES_KEPT = 16;
/** Most replies to one request: a hundred times vLLM's default buffer of 10,000 batches, and more than any that is sensible. */
export const MAX_REPLAY_REPLIES = 1_000_000;

/**
 * Follows the replies to one request. Whatever is missing can't be had again: then the worker's index must be rebuilt from
 * empty, and the batches that are to be applied from there on belong to the new one.
 */
export class ReplayCursor {
  readonly #asked: bigint;
  readonly #held: bigint | null;
  readonly #ranges: MissingRange[] = [];
  #next: bigint;
  #missingRanges = 0;
  #applied = 0;
  #duplicates = 0;
  #ended = false;

  /**
   * `asked` is the start of the request. `held` is the sequence of the live batch that showed the gap, if there was one: the
   * replay must reach it.
   * @throws {WireError} `sequence-range` when one of them is no batch's number.
   */
  constructor(asked: bigint, held: bigint | null = null) {
    this.#asked = checkedSequence(asked, 'the start of a replay');
    this.#held = held === null ? null : checkedSequence(held, 'the sequence of the batch held');
    this.#next = asked;
  }

  /**
   * Takes the next reply.
   * @throws {WireError} `reply-after-end`, or `replay-too-long` beyond a million replies: close the socket and start anew.
   */
  take(reply: ReplayReply): ReplayStep {
    if (this.#ended) {
      throw new WireError(
        'reply-after-end',
        `a replay from ${this.#asked} goes on after its end marker; use a new socket`,
      );
    }
    if (reply.kind === 'end') return this.#end();
    if (this.#applied + this.#duplicates >= MAX_REPLAY_REPLIES) {
      throw new WireError(
        'replay-too-long',
        `a replay from ${this.#asked} has no end after ${MAX_REPLAY_REPLIES} replies; rebuild this worker from empty`,
      );
    }
    return this.#batch(reply.sequence);
  }

  /** The sequence behind the last applied batch, `asked` before the first one. Live batches below it are duplicates. */
  get next(): bigint {
    return this.#next;
  }

  /** Batches that were to be applied. */
  get applied(): number {
    return this.#applied;
  }

  /** Batches that were to be ignored, because they or later ones had been applied. */
  get duplicates(): number {
    return this.#duplicates;
  }

  /** Whether the end marker was seen; without it nothing is known about the rest. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether something is lost, so that the worker's index must be rebuilt from empty. */
  get unrecoverable(): boolean {
    return this.#missingRanges > 0;
  }

  /** All missing ranges, counted. */
  get missingRanges(): number {
    return this.#missingRanges;
  }

  /** The first missing ranges, at most `MAX_RANGES_KEPT`. */
  get missing(): readonly MissingRange[] {
    return this.#ranges;
  }

  #batch(sequence: bigint): ReplayStep {
    if (sequence < this.#next) {
      this.#duplicates++;
      return { kind: 'duplicate' };
    }
    const missing = this.#miss(sequence, this.#applied === 0 ? 'evicted' : 'hole');
    this.#applied++;
    this.#next = sequence + 1n;
    return { kind: 'apply', missing };
  }

  #end(): ReplayStep {
    this.#ended = true;
    return { kind: 'end', missing: this.#held === null ? null : this.#miss(this.#held, 'tail') };
  }

  /** Records what lies between the last batch and `to`. */
  #miss(to: bigint, cause: MissingRange['cause']): MissingRange | null {
    if (to <= this.#next) return null;
    const range = { from: this.#next, to, cause };
    this.#missingRanges++;
    if (this.#ranges.length < MAX_RANGES_KEPT) this.#ranges.push(range);
    return range;
  }
}
