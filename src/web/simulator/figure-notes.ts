// How each figure is made, in a sentence or two: what a table's headings explain.
import type { Figure } from '../../sim/report-figures.js';
import { countText, NOTHING, shareText } from '../../sim/report-format.js';
import type { SimReport } from '../../sim/types.js';

/** By a figure's key. */
const NOTES: Readonly<Record<string, string>> = {
  requests: 'Requests of the trace that reached the router.',
  completed: 'Requests whose last token was made.',
  refused: "Requests whose prompt and answer need more blocks than a worker's GPU has. They are counted nowhere else.",
  prompt_tokens: 'Tokens of all prompts together.',
  cached_tokens: 'Prompt tokens that no worker computed: found on its GPU or restored from the store.',
  computed_tokens: 'Prompt tokens that workers computed.',
  generated_tokens: 'Output tokens, as long as the trace says.',
  hit_share:
    'Full prompt blocks that were not computed, of all full prompt blocks: found on the GPU, or restored from the store.',
  gpu_share: "Full prompt blocks found on the chosen worker's GPU, of all.",
  dram_share: "Full prompt blocks restored from the store's memory, of all.",
  ssd_share: "Full prompt blocks restored from the store's SSD, of all.",
  computed_share: 'Full prompt blocks that the worker computed, of all.',
  reachable_share:
    'What the best choice could have hit at each decision: the best worker, or the store. Workers look later, so where requests wait, hits may exceed it.',
  ceiling_share:
    'What a single cache without limit would hit, requests being served as they arrive. No routing and no store gets more.',
  ttft: 'Time to first token: from a request’s arrival at the router to its first token. Waiting, fetching and prefill are in it; the network to the client is not.',
  latency: 'From a request’s arrival at the router to its last token.',
  duration_ms: 'From the first arrival to the last token.',
  requests_per_second: 'Completed requests by the duration.',
  prompt_tokens_per_second: 'Prompt tokens by the duration.',
  generated_tokens_per_second: 'Output tokens by the duration.',
  imbalance: "The most loaded worker's busy time over the mean of all. 1 is even.",
  fetched_bytes: 'Bytes that workers fetched from the store.',
  fetch_mean_bytes_per_second: 'Fetched bytes by the duration.',
  fetch_peak_bytes_per_second: 'Fetched bytes in the busiest whole second.',
  put_bytes: 'Bytes that workers put into the store.',
  dram_peak_bytes: "Most bytes in the store's memory at one time.",
  ssd_peak_bytes: "Most bytes on the store's SSD at one time.",
  store_evicted_blocks: 'Blocks of groups that left memory and SSD for want of room.',
  credited: 'Requests that began at a worker with blocks of the store credited by the router.',
  credit_right: 'Credited requests for which exactly that many blocks could be restored.',
  credit_short: 'Requests for which more could be restored than the router credited; those without credit included.',
  credit_short_blocks: 'Blocks that could be restored and were not credited.',
  credit_stale:
    'Requests for which less could be restored than the router credited: it had left the store, or the router had not heard.',
  credit_stale_blocks: 'Blocks that were credited and could not be restored.',
  router_index_evictions: "Blocks that the router's GPU index forgot at its cap.",
  router_edge_evictions: "Hash edges that the router's core forgot at its cap.",
  router_digest_evictions: "Digests that the router's core forgot at its cap.",
  router_clears: "How often the router's core dropped all residency: after gaps, losses and restarts.",
  messages: 'Messages of workers and store that were sent to the router.',
  lost_messages: 'Messages that were lost on the way.',
};

const PARTS: Readonly<Record<string, string>> = {
  p50: 'Half of the requests were faster.',
  p90: 'Nine of ten requests were faster.',
  p99: '99 of 100 requests were faster.',
  mean: 'The mean of all requests.',
};

export function noteOf({ key, label }: Figure): string {
  const measured = /^(ttft|latency)_/.exec(key)?.[1];
  return measured === undefined ? (NOTES[key] ?? label) : `${NOTES[measured]} ${PARTS[label] ?? ''}`;
}

const SHARE_PARTS: Readonly<Record<string, (report: SimReport) => number>> = {
  gpu_share: ({ blocks }) => blocks.gpu,
  dram_share: ({ blocks }) => blocks.dram,
  ssd_share: ({ blocks }) => blocks.ssd,
  computed_share: ({ blocks }) => blocks.computed,
  reachable_share: ({ reachableBlocks }) => reachableBlocks,
  ceiling_share: ({ ceilingBlocks }) => ceilingBlocks,
};

/** How one value was made, with the numbers in it. */
export function madeOf(figure: Figure, report: SimReport): string {
  const { blocks } = report;
  const note = noteOf(figure);
  if (figure.of(report) === null) return `${note} ${NOTHING}: nothing was measured.`;
  if (figure.key === 'hit_share')
    return `${note} (${countText(blocks.gpu)} GPU + ${countText(blocks.dram)} memory + ${countText(blocks.ssd)} SSD) ÷ ${countText(blocks.full)} = ${shareText(figure.of(report)!)}.`;
  const part = SHARE_PARTS[figure.key];
  return part === undefined ? note : `${note} ${countText(part(report))} ÷ ${countText(blocks.full)} blocks.`;
}
