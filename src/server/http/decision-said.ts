// How a decision is said to others: in headers of an answer, and as JSON with field names as OpenAI writes them. Nothing here holds a prompt.
import type { CandidateView, Decision } from '../../router/decision.js';
import type { PreparedPrompt } from '../types.js';
import { predictedTokens } from './ended.js';

/** Headers that every routed answer carries. */
export function decisionHeaders(
  { worker, blocks, sharedReason }: Decision,
  prompt: PreparedPrompt,
  blockSize: number,
  requestId: string,
): Record<string, string> {
  const { device, host, disk, shared } = blocks;
  const tokens = Object.entries({ device, host, disk, shared }).map(([tier, of]) => `${tier}=${of * blockSize}`);
  // Why the prompt could not be judged says more than that it was not.
  const reason = sharedReason === null ? null : (prompt.reason?.code ?? sharedReason.code);
  return {
    'x-moonroute-worker': String(worker.id),
    'x-moonroute-dp-rank': String(worker.dpRank),
    'x-moonroute-cached-tokens': tokens.join(';'),
    ...(reason === null ? {} : { 'x-moonroute-reason': reason }),
    'x-moonroute-request-id': requestId,
  };
}

/** A decision as JSON. */
export function decisionJson(decision: Decision, blockSize: number): Record<string, unknown> {
  const { worker, policy, fallback, cost, terms, runnerUp, blocks, bestReachable, achieved, sharedReason } = decision;
  return {
    worker: workerJson(worker),
    policy,
    fallback,
    cost,
    terms: terms === null ? null : snakeCased(terms),
    runner_up: runnerUp === null ? null : { worker: workerJson(runnerUp.worker), cost: runnerUp.cost },
    blocks,
    block_size: blockSize,
    predicted_tokens: predictedTokens(blocks, blockSize),
    best_reachable: bestReachable,
    achieved,
    shared_reason: sharedReason,
  };
}

/** The part of a decision that was asked to explain itself. */
export function explanationJson({ candidates, reasons }: Decision): Record<string, unknown> {
  return { candidates: candidates?.map(candidateJson) ?? null, reasons };
}

/** JSON text; whole numbers too long for JSON's readers as texts. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? String(item) : item));
}

function candidateJson({ worker, notEligible, cost, terms, load, blocks, admission, zero }: CandidateView): object {
  return {
    worker: workerJson(worker),
    not_eligible: notEligible,
    cost,
    terms: terms === null ? null : snakeCased(terms),
    load: snakeCased(load),
    blocks,
    admission,
    zero,
  };
}

function workerJson({ id, dpRank }: Decision['worker']): object {
  return { id, dp_rank: dpRank };
}

function snakeCased(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}
