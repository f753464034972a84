// What goes over ZMQ's sockets. Batches: `[topic, counter, payload]`, the counter of the publisher's messages from 1 in 8 bytes, so that what a
// socket dropped is seen. Questions: `[empty, number, rank, question]`, answers: `[empty, number, status, bytes]`. Load: `[topic, report]`.

import type { PlaneRank } from '../transport.js';
import { rankText, readRank } from './names.js';

const NUMBER_BYTES = 8;
const EMPTY = new Uint8Array(0);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** How a publisher answers. */
export type AnswerStatus = 'answer' | 'not-mine' | 'refused';
const STATUSES: readonly AnswerStatus[] = ['answer', 'not-mine', 'refused'];

export function text(frame: Uint8Array): string {
  return decoder.decode(frame);
}
export function bytes(words: string): Uint8Array {
  return encoder.encode(words);
}

export function number(value: bigint): Uint8Array {
  const frame = new Uint8Array(NUMBER_BYTES);
  new DataView(frame.buffer).setBigUint64(0, value);
  return frame;
}

export function readNumber(frame: Uint8Array): bigint | null {
  if (frame.length !== NUMBER_BYTES) return null;
  return new DataView(frame.buffer, frame.byteOffset, frame.length).getBigUint64(0);
}

export function questionFrames(id: bigint, rank: PlaneRank, question: Uint8Array): Uint8Array[] {
  return [EMPTY, number(id), bytes(rankText(rank)), question];
}

/** What a ROUTER received; null when it is no question. */
export function readQuestion(frames: readonly Uint8Array[]): {
  readonly identity: Uint8Array;
  readonly id: Uint8Array;
  readonly rank: PlaneRank;
  readonly question: Uint8Array;
} | null {
  const [identity, empty, id, name, question] = frames;
  if (frames.length !== 5 || empty?.length !== 0 || id?.length !== NUMBER_BYTES || name === undefined) return null;
  const rank = readRank(text(name));
  return rank === null ? null : { identity: identity!, id, rank, question: question! };
}

export function answerFrames(
  identity: Uint8Array,
  id: Uint8Array,
  status: AnswerStatus,
  answer: Uint8Array = EMPTY,
): Uint8Array[] {
  return [identity, EMPTY, id, Uint8Array.of(STATUSES.indexOf(status)), answer];
}

/** What a DEALER received; null when it is no answer. */
export function readAnswer(
  frames: readonly Uint8Array[],
): { readonly id: bigint; readonly status: AnswerStatus; readonly answer: Uint8Array } | null {
  const [empty, id, kind, answer] = frames;
  if (frames.length !== 4 || empty?.length !== 0 || id?.length !== NUMBER_BYTES || kind?.length !== 1) return null;
  const status = STATUSES[kind[0]!];
  return status === undefined ? null : { id: readNumber(id)!, status, answer: answer! };
}
