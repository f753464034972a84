// How a publisher goes, as a line for people: every few seconds while it runs, and at its end.

import type { PublisherStatus, RankStatus } from '../live/plane/publish/publisher.js';
import { bytesText, countText, shortNumber, timeText } from '../sim/report-format.js';

/** Sums over all ranks. */
export interface PublisherTotals {
  readonly ranks: number;
  readonly connected: number;
  readonly messagesIn: number;
  readonly eventsIn: number;
  readonly eventsOut: number;
  readonly blocksOut: number;
  /** Events that went into the one before them, and of which de-duplication left nothing. */
  readonly merged: number;
  readonly deduplicated: number;
  readonly messagesOut: number;
  readonly bytesOut: number;
  /** Blocks whose references are counted, and blocks that the local indexers know. */
  readonly trackedBlocks: number;
  readonly indexedBlocks: number;
  /** Events that wait for the transport; the slowest rank's last message, in milliseconds. */
  readonly queuedEvents: number;
  readonly lagMs: number;
  /** Times that the transport refused a message, and events given up, which readers then ask for. */
  readonly refused: number;
  readonly lostEvents: number;
  /** Times that a rank was cleared because its worker's stream lost something for good. */
  readonly rebuilds: number;
  /** Questions answered. */
  readonly answers: number;
}

export function publisherTotals({ ranks }: PublisherStatus): PublisherTotals {
  const sum = (read: (rank: RankStatus) => number): number => ranks.reduce((total, rank) => total + read(rank), 0);
  const all = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0);
  return {
    ranks: ranks.length,
    connected: sum(({ stream }) => (stream.connected ? 1 : 0)),
    messagesIn: sum(({ stream }) => stream.counts.applied),
    eventsIn: sum(({ pipeline }) => pipeline.eventsIn),
    eventsOut: sum(({ pipeline }) => pipeline.eventsOut),
    blocksOut: sum(({ pipeline }) => pipeline.blocksOut),
    merged: sum(({ pipeline }) => pipeline.merged),
    deduplicated: sum(({ pipeline }) => pipeline.deduplicated),
    messagesOut: sum(({ outbox }) => outbox.messages),
    bytesOut: sum(({ outbox }) => outbox.bytes),
    trackedBlocks: sum(({ pipeline }) => pipeline.dedup.tracked),
    indexedBlocks: sum(({ indexer }) => indexer.entries),
    queuedEvents: sum(({ pipeline }) => pipeline.queuedEvents),
    lagMs: Math.max(0, ...ranks.map(({ outbox }) => outbox.lagMs)),
    refused: sum(({ outbox }) => outbox.refusals),
    lostEvents: sum(({ outbox, pipeline }) => outbox.lostEvents + pipeline.droppedEvents),
    rebuilds: sum(({ stream }) => all(stream.rebuilds)),
    answers: sum(({ indexer }) => all(indexer.answers)),
  };
}

/** One line; what went wrong stands at its end, and only if it did. */
export function publisherText(totals: PublisherTotals, ms: number): string {
  const { ranks, connected } = totals;
  const troubles = [
    ...(connected < ranks ? [`${countText(ranks - connected)} of ${countText(ranks)} ranks not connected`] : []),
    ...(totals.queuedEvents > 0 ? [`${countText(totals.queuedEvents)} events wait`] : []),
    ...(totals.refused > 0 ? [`${countText(totals.refused)} refused`] : []),
    ...(totals.lostEvents > 0 ? [`${countText(totals.lostEvents)} events lost`] : []),
    ...(totals.rebuilds > 0 ? [`ranks cleared ${countText(totals.rebuilds)} times`] : []),
  ];
  return [
    `${timeText(ms)}: ${countText(totals.eventsIn)} events in, ${countText(totals.eventsOut)} out`,
    `${countText(totals.blocksOut)} blocks`,
    `${countText(totals.merged)} merged`,
    `${countText(totals.deduplicated)} deduplicated`,
    `${countText(totals.messagesOut)} messages, ${bytesText(totals.bytesOut)}`,
    `lag ${shortNumber(totals.lagMs)} ms`,
    `${countText(totals.answers)} questions answered`,
    ...troubles,
  ].join(', ');
}
