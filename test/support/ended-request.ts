// Requests as observers hear of them, with something in every field.
import type { DecisionBlocks } from '../../src/router/decision.js';
import type { EndedRequest, PromptStats } from '../../src/server/types.js';

export type RequestFields = Partial<Omit<EndedRequest, 'decision'>> & {
  readonly blocks?: DecisionBlocks;
  readonly decision?: Partial<EndedRequest['decision']>;
};

export function endedRequest({ blocks, decision, ...fields }: RequestFields = {}): EndedRequest {
  const counted = blocks ?? { device: 2, host: 0, disk: 0, shared: 1, request: 6 };
  const held = counted.device + counted.host + counted.disk + counted.shared;
  return {
    id: 'r1',
    at: 1_700_000_000_000,
    kind: 'completions',
    model: 'm',
    worker: { id: 'w0', dpRank: 0 },
    source: 'ids',
    promptTokens: 96,
    decision: {
      policy: 'kv',
      fallback: false,
      cost: 3,
      terms: null,
      runnerUp: null,
      blocks: counted,
      bestReachable: held,
      achieved: held,
      ...decision,
    },
    sharedReason: null,
    notProven: null,
    predictedTokens: 48,
    cachedTokens: 48,
    generatedTokens: 4,
    outcome: 'completed',
    status: 200,
    retried: false,
    decisionTime: 0.1,
    firstByteTime: 10,
    totalTime: 20,
    ...fields,
  };
}

/** Of a reader that has read nothing. */
export function noPrompts(): PromptStats {
  return {
    bySource: { ids: 0, local: 0, worker: 0, none: 0 },
    notProven: {},
    local: { state: 'none', detail: null },
    cache: { entries: 0, hits: 0, misses: 0 },
  };
}
