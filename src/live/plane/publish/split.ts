// Events that no message could carry, cut into events that mean the same: each piece of a store is chained to the one before. Done before numbers are
// given, for each piece has one of its own.
import { blocksOf, bytesAtMost, type Draft, storedPiece } from './draft.js';

/** What one message carries at most (spec/kv-events.md 4.2). */
export interface BatchCaps {
  readonly events: number;
  readonly blocks: number;
  /** By the upper bound of draft.ts. */
  readonly bytes: number;
}

export const BATCH_CAPS: BatchCaps = { events: 128, blocks: 8192, bytes: 8 << 20 };

/** The event, or pieces of it that fit. A single block that is too long loses its multimodal information: its hashes stand for it already. */
export function splitDraft(draft: Draft, caps: Pick<BatchCaps, 'blocks' | 'bytes'> = BATCH_CAPS): readonly Draft[] {
  const { data } = draft;
  const blocks = blocksOf(data);
  if (blocks <= caps.blocks && bytesAtMost(draft) <= caps.bytes) return [draft];
  if (data.kind === 'cleared') return [{ ...draft, stateSource: null }];
  if (blocks > 1) {
    // By halves of whole multiples, so that pieces of plain events are as long as they may be.
    const half = blocks > caps.blocks ? caps.blocks : Math.ceil(blocks / 2);
    return [pieceOf(draft, 0, half), pieceOf(draft, half, blocks)].flatMap((piece) => splitDraft(piece, caps));
  }
  return [{ ...draft, stateSource: null, data: data.kind === 'stored' ? { ...data, mm: null } : data }];
}

function pieceOf(draft: Draft, from: number, to: number): Draft {
  const { data } = draft;
  if (data.kind === 'cleared') return draft;
  if (data.kind === 'stored') return { ...draft, data: storedPiece(data, from, to) };
  return { ...draft, data: { kind: 'removed', hashes: data.hashes.subarray(from, to) } };
}
