// From a request to a decision, in the order of design.md 7: the prompt's blocks, who may serve it, what each holds, what the store could
// restore, the policy's prices, the choice, its lease. One request at a time; columns and counts are kept between requests.
import { shown } from '../contract/descriptor.js';
import { MoonrouteError } from '../errors.js';
import { Candidates, type Demands } from './candidates.js';
import type { Choice } from './choose.js';
import { creditedBlocks, whyNoShared } from './credited.js';
import type { ChosenWorker, Decision } from './decision.js';
import { type DecisionStats, DecisionTally } from './decision-tally.js';
import { allRanks, explainCandidates } from './explain.js';
import type { Lease } from './leases.js';
import type { RouterParts } from './parts.js';
import type { Policy, PricedRequest } from './policy.js';
import { type Prompt, promptOf, type RouteRequest, refused, wholeNumber } from './prompt.js';
import { multiplierFor } from './settings.js';
import type { SharedHit, SharedQuestion } from './shared-credit.js';
import { isWorkerId, workerKey } from './worker-info.js';
import type { RankSlot } from './workers.js';

/** A choice with what it was made by. */
interface Chosen {
  readonly policy: Policy;
  readonly choice: Choice;
}

/** What a request was found to be. */
interface Seen {
  readonly demands: Demands;
  readonly priced: PricedRequest;
  readonly question: SharedQuestion;
  readonly hit: SharedHit;
}

/** The part of a decision that is made on demand. */
type Account = Pick<Decision, 'candidates' | 'reasons'>;
const UNEXPLAINED: Account = { candidates: null, reasons: null };

/** Decides, one request at a time. */
export class Decider {
  readonly #parts: RouterParts;
  readonly #candidates: Candidates;
  /** For policies whose ties are drawn among all. */
  readonly #noLoad: Float64Array;
  readonly #tally = new DecisionTally();
  #busy = false;

  constructor(parts: RouterParts) {
    this.#parts = parts;
    this.#candidates = new Candidates(parts.index.ranks);
    this.#noLoad = new Float64Array(parts.index.ranks);
  }

  /**
   * Decides where a request goes, and opens its lease.
   * @throws MoonrouteError `route-request`, `no-workers`, `route-reentered`; ConfigError `shared-cache-multiplier`
   */
  decide(request: RouteRequest): Decision {
    this.refuseReentry('route');
    this.#busy = true;
    try {
      return this.#decide(request);
    } finally {
      this.#busy = false;
    }
  }

  /**
   * Refuses a call that would change what is being decided on: it comes from a policy, or from `isPending`, while route asks it.
   * @throws MoonrouteError `route-reentered`
   */
  refuseReentry(call: string): void {
    if (!this.#busy) return;
    this.#tally.countReentry();
    throw new MoonrouteError(
      'route-reentered',
      `${call} was called by a policy, or by isPending, that is asked by route. Answer first, and call it after route has returned.`,
    );
  }

  stats(): DecisionStats {
    return this.#tally.stats(this.#parts.policy.faults ?? {});
  }

  #decide(request: RouteRequest): Decision {
    const { plan, workers, index, health, load, foreignLoad, credit } = this.#parts;
    const candidates = this.#candidates;
    const prompt = promptOf(request, plan);
    const priced = this.#priced(request, prompt);
    const demands = demandsOf(request, priced);
    candidates.gather(workers.slots, demands, health);
    if (candidates.count === 0) throw this.#noWorkers(demands);
    const depths = index.lookup(prompt.localHashes);
    const foreign = foreignLoad.any(priced.now) ? foreignLoad : null;
    candidates.fill(depths, load, foreign);
    const all = request.explain === true ? allRanks(workers.slots, depths, load, foreign) : null;
    const question = { request, prompt, adapterUnknown: candidates.adapterUnknown, now: priced.now };
    const hit = credit.look(question);
    candidates.credit(hit);
    const chosen = this.#choose(priced);
    const account = all === null ? UNEXPLAINED : this.#explain(all, chosen, { demands, priced, question, hit });
    return this.#conclude(chosen, priced, prompt, hit, account);
  }

  /** Times, counts and weights of the request. */
  #priced(request: RouteRequest, prompt: Prompt): PricedRequest {
    const { plan, latest } = this.#parts;
    const { settings, blockSize } = plan;
    const { tokenCount, blocks } = prompt;
    const { loraName } = request;
    const now = request.now ?? latest.now;
    if (!Number.isFinite(now)) throw refused(`now is ${shown(now)}, expected milliseconds`);
    const outputTokens = wholeNumber('expectedOutputTokens', request.expectedOutputTokens ?? 0);
    const sharedCacheMultiplier = multiplierFor(settings, request.sharedCacheMultiplier ?? undefined);
    latest.tell(now);
    return {
      tokenCount,
      blocks,
      blockSize,
      decodeBlocks: Math.max(1, Math.ceil((tokenCount + outputTokens) / blockSize)),
      sharedCacheMultiplier,
      loraName: loraName === undefined || loraName === '' ? null : loraName,
      now,
    };
  }

  /** Prices and picks; by load alone where the policy prices nobody. */
  #choose(priced: PricedRequest): Chosen {
    const { policy, fallback } = this.#parts;
    const choice = this.#pick(policy, priced);
    if (choice !== null) return { policy, choice };
    return { policy: fallback, choice: this.#pick(fallback, priced)! };
  }

  #pick(policy: Policy, priced: PricedRequest): Choice | null {
    const candidates = this.#candidates;
    const { count, costs, activeRequests } = candidates;
    policy.price(candidates, priced);
    const ties = policy.tiesByLoad ? activeRequests : this.#noLoad;
    return this.#parts.chooser.choose(costs.subarray(0, count), ties, policy.temperature);
  }

  #conclude(
    { policy, choice }: Chosen,
    priced: PricedRequest,
    prompt: Prompt,
    hit: SharedHit,
    account: Account,
  ): Decision {
    const candidates = this.#candidates;
    const { index: at, runnerUp, runnerUpCost } = choice;
    const slot = candidates.slots[at]!;
    const terms = policy.termsOf(candidates, at, priced);
    const blocks = creditedBlocks(candidates, at, terms, priced.blocks);
    const sharedReason = whyNoShared(candidates, at, terms, hit);
    policy.chosen?.(slot.rank);
    const decision = {
      worker: workerOf(slot),
      rank: slot.rank,
      policy: policy.name,
      fallback: policy !== this.#parts.policy,
      cost: candidates.costs[at]!,
      terms,
      runnerUp: runnerUp === null ? null : this.#runnerUp(runnerUp, runnerUpCost!),
      blocks,
      bestReachable: this.#bestReachable(),
      achieved: candidates.reach(at),
      sharedReason,
      lease: this.#open(slot, blocks, prompt, priced),
      ...account,
    };
    this.#tally.count(decision, candidates.allResting);
    return decision;
  }

  #explain(all: Candidates, { policy }: Chosen, seen: Seen): Account {
    const { plan, health, credit } = this.#parts;
    const { demands, priced, question, hit } = seen;
    const candidates = explainCandidates({
      ...{ all, candidates: this.#candidates, demands, prompt: question.prompt, priced, policy, hit, health },
      useKvEvents: plan.settings.useKvEvents,
    });
    return { candidates, reasons: credit.explain(question, hit) };
  }

  #open({ rank }: RankSlot, blocks: Decision['blocks'], prompt: Prompt, { blockSize, now }: PricedRequest): Lease {
    const { plan, leases, credit } = this.#parts;
    const { device, host, disk, shared } = blocks;
    const local = device + host + disk;
    const request = {
      rank,
      promptTokens: prompt.tokenCount,
      localTokens: local * blockSize,
      sharedTokens: shared * blockSize,
      blockSize,
      tracksPrefill: plan.role !== 'decode',
      prefix: shared > 0 ? credit.marksOf(prompt, local + shared) : null,
    };
    return leases.open(request, now);
  }

  #runnerUp(at: number, cost: number): Decision['runnerUp'] {
    const slot = this.#candidates.slots[at]!;
    return { worker: workerOf(slot), rank: slot.rank, cost };
  }

  #bestReachable(): number {
    const candidates = this.#candidates;
    let best = 0;
    for (let at = 0; at < candidates.count; at++) best = Math.max(best, candidates.reach(at));
    return best;
  }

  #noWorkers({ allowed }: Demands): MoonrouteError {
    this.#tally.countNoWorkers();
    const { slots } = this.#parts.workers;
    const draining = slots.filter(({ worker }) => worker.draining).length;
    const forbidden = allowed === null ? 0 : slots.filter(({ worker }) => !allowed.has(worker.key)).length;
    return new MoonrouteError(
      'no-workers',
      `no worker may serve the request: of ${slots.length} ranks ${draining} are draining and ${forbidden} are not allowed by the request. Add a worker, end its draining, or allow more.`,
    );
  }
}

function demandsOf({ allowed }: RouteRequest, { loraName, now }: PricedRequest): Demands {
  return {
    allowed: allowed === undefined || allowed === null ? null : keysOf(allowed),
    loraName,
    now,
  };
}

function keysOf(allowed: unknown): Set<string> {
  if (typeof allowed !== 'object' || allowed === null || !isIterable(allowed)) {
    throw refused(`allowed is ${shown(allowed)}, expected a list or set of worker ids`);
  }
  return new Set(listed(allowed).map((id) => (isWorkerId(id) ? workerKey(id) : refuseId(id))));
}

function refuseId(id: unknown): never {
  throw refused(`allowed has ${shown(id)}, expected worker ids`);
}

function listed(allowed: Iterable<unknown>): unknown[] {
  try {
    return [...allowed];
  } catch {
    throw refused('allowed can not be read through, expected a list or set of worker ids');
  }
}

function isIterable(value: object): value is Iterable<unknown> {
  return Symbol.iterator in value && typeof value[Symbol.iterator] === 'function';
}

function workerOf({ source: { workerId, dpRank } }: RankSlot): ChosenWorker {
  return { id: workerId, dpRank };
}
