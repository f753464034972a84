// The few metrics of vLLM that routers read, by their names, in Prometheus' text form.
import type { RankStatus, WorkerStatus } from '../worker.js';

type Read = (rank: RankStatus) => number;

const METRICS: readonly (readonly [name: string, type: 'gauge' | 'counter', read: Read])[] = [
  ['vllm:num_requests_running', 'gauge', ({ running }) => running],
  ['vllm:num_requests_waiting', 'gauge', ({ waiting }) => waiting],
  ['vllm:kv_cache_usage_perc', 'gauge', ({ usage }) => usage],
  ['vllm:prompt_tokens_total', 'counter', ({ promptTokens }) => promptTokens],
  ['vllm:generation_tokens_total', 'counter', ({ generatedTokens }) => generatedTokens],
  ['vllm:prefix_cache_queries_total', 'counter', ({ promptTokens }) => promptTokens],
  ['vllm:prefix_cache_hits_total', 'counter', ({ gpuTokens }) => gpuTokens],
  ['vllm:external_prefix_cache_queries_total', 'counter', ({ promptTokens, gpuTokens }) => promptTokens - gpuTokens],
  ['vllm:external_prefix_cache_hits_total', 'counter', ({ storeTokens }) => storeTokens],
];

/** All metrics of a worker. */
export function metricsText(model: string, { ranks }: Pick<WorkerStatus, 'ranks'>): string {
  const lines = METRICS.flatMap(([name, type, read]) => [
    `# TYPE ${name} ${type}`,
    ...ranks.map((rank) => `${name}{model_name="${label(model)}",engine="${rank.dpRank}"} ${read(rank)}`),
  ]);
  return `${lines.join('\n')}\n`;
}

function label(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
