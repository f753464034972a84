// What is counted of requests as they end: outcomes, times, credit by tier, and what was predicted against what engines report. Predictions are
// compared over the same requests only: those that completed and whose engine said how much it had cached.
import { Counter, Histogram, type Registry } from 'prom-client';
import { BoundedCodes } from './metrics-labels.js';
import type { EndedRequest, RequestObserver } from './types.js';

/** Microseconds to a tenth of a second: a decision takes tens of microseconds. */
const DECISION_BUCKETS = [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.1];
const FIRST_BYTE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const TOTAL_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const SECOND = 1000;
const TIERS = ['device', 'host', 'disk', 'shared'] as const;

/** The observer that counts into the registry. */
export function countRequests(registry: Registry): RequestObserver {
  const registers = [registry];
  const count = <Name extends string>(name: string, help: string, labelNames: readonly Name[] = []) =>
    new Counter<Name>({ name: `moonroute_${name}_total`, help, labelNames, registers });
  const time = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name: `moonroute_${name}_seconds`, help, buckets, registers });

  const requests = count('requests', 'Requests that ended, by outcome and HTTP status (0: the client went first)', [
    'kind',
    'outcome',
    'code',
  ] as const);
  const retries = count('retried_requests', 'Requests that went to the runner-up, for the first choice failed');
  const faults = count('faults', 'What went wrong apart from requests’ ends, by code', ['code'] as const);
  const promptTokens = count('prompt_tokens', 'Tokens of the prompts of requests that were routed');
  const generatedTokens = count('generated_tokens', 'Tokens generated for them');
  const requestBlocks = count('ended_request_blocks', 'Their blocks: the denominator of credit by tier');
  const credited = count('credited_blocks', 'Blocks that the chosen worker was credited with', ['tier'] as const);
  const compared = count('compared_requests', 'Completed requests whose engine said how many tokens it had cached');
  const unreported = count('unreported_requests', 'Completed requests whose engine did not say');
  const comparedTokens = count('compared_prompt_tokens', 'Prompt tokens of the compared requests');
  const predicted = count('predicted_cached_tokens', 'Tokens that decisions counted on, in the compared requests');
  const reported = count('reported_cached_tokens', 'Tokens that engines said were cached, in the same requests');
  const over = count('overpredicted_tokens', 'Tokens predicted above the report, summed over requests where it was so');
  const under = count('underpredicted_tokens', 'Tokens predicted below the report, likewise');
  const decision = time('decision', 'Time that a decision took', DECISION_BUCKETS);
  const firstByte = time('first_byte', 'Time from request to first byte of the answer', FIRST_BYTE_BUCKETS);
  const total = time('request', 'Time from request to end', TOTAL_BUCKETS);
  for (const tier of TIERS) credited.inc({ tier }, 0);
  const statuses = new BoundedCodes();
  const codes = new BoundedCodes();

  return {
    ended(request: EndedRequest): void {
      const { kind, outcome, status, retried, cachedTokens } = request;
      requests.inc({ kind, outcome, code: statuses.of(String(status)) });
      if (retried) retries.inc();
      const { blocks } = request.decision;
      if (blocks.request === 0) return; // nothing was decided: a prompt has a block at least
      promptTokens.inc(request.promptTokens);
      generatedTokens.inc(request.generatedTokens);
      requestBlocks.inc(blocks.request);
      for (const tier of TIERS) credited.inc({ tier }, blocks[tier]);
      decision.observe(request.decisionTime / SECOND);
      if (kind === 'route') return; // nothing was forwarded
      if (request.firstByteTime !== null) firstByte.observe(request.firstByteTime / SECOND);
      total.observe(request.totalTime / SECOND);
      if (outcome !== 'completed') return;
      if (cachedTokens === null) {
        unreported.inc();
        return;
      }
      const difference = request.predictedTokens - cachedTokens;
      compared.inc();
      comparedTokens.inc(request.promptTokens);
      predicted.inc(request.predictedTokens);
      reported.inc(cachedTokens);
      over.inc(Math.max(0, difference));
      under.inc(Math.max(0, -difference));
    },
    fault(code: string): void {
      faults.inc({ code: codes.of(code) });
    },
  };
}
