// Why a request went where it went, in words: the price and of what it is made, who came next, and why the store gave nothing. Pure, so that every
// sentence is tested without a page.
import type { RequestData } from '../../server/console-data.js';
import { amount, milliseconds } from './format.js';
import { zeroWords } from './words.js';

type Routed = Pick<RequestData, 'worker' | 'decision' | 'sharedReason' | 'notProven' | 'source' | 'retried'>;
type Runner = { readonly worker: { readonly id: unknown; readonly dpRank: number } };

/** A worker's rank by name; rank 0 goes without saying. */
export function rankName({ worker }: Runner): string {
  return worker.dpRank === 0 ? String(worker.id) : `${worker.id} rank ${worker.dpRank}`;
}

/** The choice in one sentence. */
export function choiceWords({ decision }: Pick<Routed, 'decision'>): string {
  const { policy, fallback, cost, terms, runnerUp } = decision;
  if (fallback) return `${policy} priced nobody, so the least loaded one was taken.`;
  if (runnerUp === null) return 'The only candidate.';
  const next = rankName(runnerUp);
  if (policy === 'round-robin') return `Its turn came; ${next} is next.`;
  if (policy === 'random') return 'Drawn at random.';
  const isTime = terms?.kind === 'time' || policy === 'ttft';
  const priced = (value: number) =>
    isTime ? milliseconds(value) : `${amount(value)} ${unitOf(policy, terms !== null)}`;
  if (runnerUp.cost === cost) return `As cheap as ${next} at ${priced(cost)}.`;
  if (runnerUp.cost < cost) return `Drawn by temperature at ${priced(cost)}; ${next} was at ${priced(runnerUp.cost)}.`;
  return `${isTime ? 'Soonest' : 'Cheapest'} at ${priced(cost)}; next ${next} at ${priced(runnerUp.cost)}.`;
}

function unitOf(policy: string, hasTerms: boolean): string {
  return hasTerms || policy === 'least-loaded' ? 'blocks' : 'by its policy';
}

/** Why nothing came from the store; null when something did. */
export function creditWords({ sharedReason, notProven, source }: Routed): string | null {
  if (source === 'none') return `Not tokenised${notProven === null ? '' : ` (${notProven})`}, so routed by load.`;
  if (sharedReason === null) return null;
  const proof = notProven === null || notProven === sharedReason ? '' : ` (${notProven})`;
  return `No shared credit: ${zeroWords(sharedReason)}${proof}.`;
}

/** Every term with its value, for whoever wants to check the sum. */
export function termRows({
  decision: { policy, cost, terms, blocks, bestReachable, achieved, runnerUp },
}: Routed): [string, string][] {
  const rows: [string, string][] = [['Policy', policy]];
  if (terms?.kind === 'cost') {
    const { overlap, credit } = terms;
    const tier = (found: number, worth: number) => (found === 0 ? '0' : `${amount(found)}, worth ${amount(worth)}`);
    rows.push(
      ['Prefill', blocksOf(terms.prefill)],
      ['Decode load', blocksOf(terms.decode)],
      ['Active requests', blocksOf(terms.active)],
      ['Cost', `${blocksOf(cost)} (prefill + decode + active)`],
      ['On the device', tier(overlap.device, credit.device)],
      ['In host memory', tier(overlap.host, credit.host)],
      ['On disk', tier(overlap.disk, credit.disk)],
      ['In the store', tier(credit.sharedBlocks, credit.shared)],
    );
    if (terms.decay !== 1) rows.push(['Decay of device credit', amount(terms.decay)]);
  } else if (terms?.kind === 'time') {
    rows.push(
      ['Queue', milliseconds(terms.queue)],
      ['Fetch from the store', milliseconds(terms.fetch)],
      ['Prefill', milliseconds(terms.prefill)],
      ['Time to first token', `${milliseconds(terms.time)} (queue + fetch + prefill)`],
    );
  } else rows.push(['Price', amount(cost)]);
  rows.push(
    ['Prompt', blocksOf(blocks.request)],
    ['Reusable here', blocksOf(achieved)],
    ['Reusable at best', blocksOf(bestReachable)],
    ['Runner-up', runnerUp === null ? 'none' : `${rankName(runnerUp)} at ${amount(runnerUp.cost)}`],
  );
  return rows;
}

function blocksOf(value: number): string {
  return `${amount(value)} ${value === 1 ? 'block' : 'blocks'}`;
}
