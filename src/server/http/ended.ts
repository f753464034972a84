// Tells observers of a request's end, whatever became of it. An observer that throws does no harm to the request or to the others.
import { randomBytes } from 'node:crypto';
import type { Decision } from '../../router/decision.js';
import type { EndedRequest, PreparedPrompt, RequestObserver, ServerLog } from '../types.js';

/** A decision's part of what observers hear. */
export type DecisionPart = EndedRequest['decision'];

/** Of requests that were refused before they were routed. */
export const NO_DECISION: DecisionPart = Object.freeze({
  policy: '',
  fallback: false,
  cost: 0,
  terms: null,
  runnerUp: null,
  blocks: Object.freeze({ device: 0, host: 0, disk: 0, shared: 0, request: 0 }),
  bestReachable: 0,
  achieved: 0,
});
export const NO_WORKER = Object.freeze({ id: '', dpRank: 0 });

/** Names of this process's requests begin alike; another process's differ. */
const PROCESS = randomBytes(6).toString('hex');
let requests = 0;

/** A name that no other request has. */
export function requestId(): string {
  return `mr-${PROCESS}-${++requests}`;
}

/** All observers as one. */
export class Observers implements RequestObserver {
  readonly #observers: readonly RequestObserver[];
  readonly #log: ServerLog;

  constructor(observers: readonly RequestObserver[], log: ServerLog) {
    this.#observers = observers;
    this.#log = log;
  }

  ended(request: EndedRequest): void {
    this.#tell((observer) => observer.ended(request));
  }

  fault(code: string): void {
    this.#tell((observer) => observer.fault(code));
  }

  #tell(call: (observer: RequestObserver) => void): void {
    for (const observer of this.#observers) {
      try {
        call(observer);
      } catch (error) {
        this.#log.error({ error: String(error) }, 'an observer of requests failed');
      }
    }
  }
}

/** What a decision tells observers; it must not keep the lease. */
export function decisionPart(decision: Decision): DecisionPart {
  const { policy, fallback, cost, terms, runnerUp, blocks, bestReachable, achieved } = decision;
  return { policy, fallback, cost, terms, runnerUp, blocks, bestReachable, achieved };
}

/** Tokens that a decision counts on, wherever they are. */
export function predictedTokens({ device, host, disk, shared }: Decision['blocks'], blockSize: number): number {
  return (device + host + disk + shared) * blockSize;
}

/** What an ended request says of its prompt. */
export function promptPart(prompt: PreparedPrompt | null): Pick<EndedRequest, 'source' | 'promptTokens' | 'notProven'> {
  return {
    source: prompt?.source ?? 'none',
    promptTokens: prompt?.tokenCount ?? 0,
    notProven: prompt?.reason?.code ?? null,
  };
}
