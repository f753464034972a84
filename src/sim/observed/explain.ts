// Why this worker, and what if another: a simulation is repeated up to one decision, which is made again with all that the router has to say about it, and
// once more with the runner-up as the only worker allowed. Nothing is estimated. Explaining changes nothing of a decision, so both find all as it was.
import type { Decision } from '../../router/decision.js';
import type { SimRequest } from '../sim-request.js';
import { type SimBreath, type SimOptions, simulate } from '../simulate.js';
import type { TraceRequest } from '../traces/types.js';
import type { SimConfig } from '../types.js';
import { ObservedRun } from './observed-run.js';
import { QuietObserver } from './observer.js';
import type { DecisionAccount, RequestRow } from './types.js';

/** Which decision of which simulation. */
export interface DecisionQuestion {
  readonly config: SimConfig;
  /** Opens the simulation's requests anew. */
  readonly open: () => Promise<AsyncIterable<TraceRequest> | Iterable<TraceRequest>>;
  /** The request as the simulation was observed to serve it. */
  readonly row: RequestRow;
  /** Which decision about it, from 1: a request that a restart sent again has several. Default its first. */
  readonly turn?: number;
  readonly signal?: AbortSignal;
  readonly breath?: SimBreath;
}

const COST_UNITS: Readonly<Record<string, DecisionAccount['costUnit']>> = {
  kv: 'blocks',
  'least-loaded': 'blocks',
  ttft: 'ms',
  'round-robin': 'turns',
};

/**
 * The decision in full, and its counterfactual; null where the request was never routed.
 * @throws what the requests throw, and the signal's reason
 */
export async function explainDecision(question: DecisionQuestion): Promise<DecisionAccount | null> {
  const { row, config } = question;
  const decision = await decisionOf(question);
  if (decision === null) return null;
  const { lease: _, ...told } = decision;
  return {
    row,
    decision: told,
    costUnit: COST_UNITS[decision.policy] ?? 'none',
    counterfactual: decision.runnerUp === null ? null : await otherwise(question, decision),
    blockSize: config.blockSize,
  };
}

/** Hears of the decisions about one request, up to the one that is asked about. */
class DecisionWatch extends QuietObserver {
  decision: Decision | null = null;
  /** Decisions about it so far. */
  turns = 0;
  readonly #place: number;
  readonly #turn: number;

  constructor(place: number, turn: number) {
    super();
    this.#place = place;
    this.#turn = turn;
  }

  override routed(request: SimRequest, _worker: number, decision: Decision): void {
    if (request.place === this.#place && ++this.turns === this.#turn) this.decision = decision;
  }
}

async function decisionOf({ row, turn = 1, ...question }: DecisionQuestion): Promise<Decision | null> {
  const watch = new DecisionWatch(row.request, turn);
  await again(question, {
    observer: watch,
    question: (request) => (request === row.request ? { explain: true } : {}),
    enough: () => watch.decision !== null,
  });
  return watch.decision;
}

/** Watches one request only, until it has its first token or is decided about again. */
class WayWatch extends ObservedRun {
  done = false;
  turns = 0;
  readonly #place: number;
  readonly #turn: number;

  constructor(place: number, turn: number) {
    super();
    this.#place = place;
    this.#turn = turn;
  }

  override routed(request: SimRequest, worker: number, decision: Decision): void {
    super.routed(request, worker, decision);
    if (request.place === this.#place && ++this.turns > this.#turn) this.done = true;
  }

  override firstToken(request: SimRequest, worker: number): void {
    super.firstToken(request, worker);
    if (request.place === this.#place) this.done = true;
  }
}

/** How it would have gone with the runner-up; prices are those of the decision itself, seen from there. */
async function otherwise(
  { row, turn = 1, ...question }: DecisionQuestion,
  { worker, cost, runnerUp }: Decision,
): Promise<RequestRow | null> {
  const watch = new WayWatch(row.request, turn);
  const there = [runnerUp!.worker.id];
  await again(question, {
    observer: watch,
    question: (request) => (request === row.request && watch.turns === turn - 1 ? { allowed: there } : {}),
    enough: () => watch.done,
  });
  const way = watch.row(row.request);
  if (way === null) return null;
  return { ...way, cost: runnerUp!.cost, runnerUp: worker.id as number, runnerUpCost: cost };
}

async function again(
  { config, open, signal, breath }: Omit<DecisionQuestion, 'row' | 'turn'>,
  options: SimOptions,
): Promise<void> {
  await simulate(config, await open(), { ...options, signal, breath });
}
