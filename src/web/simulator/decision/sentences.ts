// "Why this worker?" in sentences: the choice, what would have come of the runner-up, and how credit compares with what was found. The tone is that of
// the console's why.ts; the numbers are written as the simulator's reports write them. Pure.
import type { Reason } from '../../../cache/reasons.js';
import type { Decision } from '../../../router/decision.js';
import type { ZeroReason } from '../../../router/zero-credit.js';
import type { DecisionAccount, RequestRow } from '../../../sim/observed/types.js';
import { countText, timeText } from '../../../sim/report-format.js';
import { rankName } from '../../console/why.js';
import { zeroWords } from '../../console/words.js';
import type { Sum } from './sums.js';

type Unit = DecisionAccount['costUnit'];

export const workerName = (runner: Parameters<typeof rankName>[0]): string => `worker ${rankName(runner)}`;
export const blocksText = (value: number): string => `${amountText(value)} ${value === 1 ? 'block' : 'blocks'}`;

/** A number that others are added to: two digits behind the point, so that sums come out, and thousands apart. */
export function amountText(value: number): string {
  const size = Math.round(Math.abs(value) * 100) / 100;
  const sign = value < 0 && size > 0 ? '−' : '';
  const whole = Math.floor(size);
  const rest = String(Number((size - whole).toFixed(2))).slice(1);
  return `${sign}${countText(whole)}${rest}`;
}

export function signedText(value: number): string {
  const text = amountText(value);
  return text === '0' || value < 0 ? text : `+${text}`;
}

export function priceText(value: number, unit: Unit): string {
  if (unit === 'ms') return timeText(value);
  if (unit === 'blocks') return blocksText(value);
  return unit === 'turns' ? `turn ${countText(value)}` : amountText(value);
}

/** The choice in one sentence. */
export function choiceSentence({ decision, costUnit }: Pick<DecisionAccount, 'decision' | 'costUnit'>): string {
  const { policy, fallback, cost, runnerUp } = decision;
  const chosen = capital(workerName(decision));
  if (fallback) return `${policy} priced nobody, so the least loaded one was taken: ${workerName(decision)}.`;
  if (runnerUp === null) return `${chosen} was the only candidate.`;
  const next = workerName(runnerUp);
  if (policy === 'round-robin') return `It was ${possessive(workerName(decision))} turn; ${next} is next.`;
  if (policy === 'random') return `${chosen} was drawn at random.`;
  const priced = (value: number) => priceText(value, costUnit);
  if (runnerUp.cost === cost)
    return `${chosen} was as cheap as ${next}, at ${priced(cost)}; of equals the less busy one wins, then a draw.`;
  if (runnerUp.cost < cost)
    return `${chosen} was drawn by temperature at ${priced(cost)}, although ${next} was at ${priced(runnerUp.cost)}.`;
  const how = costUnit === 'ms' ? 'promised the first token soonest' : 'was cheapest';
  return `${chosen} ${how}, at ${priced(cost)}; next was ${next} at ${priced(runnerUp.cost)}.`;
}

/** How much less of a part the chosen one has, in words that follow "less" and "more". */
const PART_WORDS: Readonly<Record<string, string>> = {
  before: 'to compute',
  decode: 'decode load',
  active: 'for active requests',
  queue: 'waiting in its queue',
  fetch: 'fetching',
  prefill: 'computing',
};

/** What decided it: of the parts of the price the one in which the chosen worker gains most on the runner-up, and what stood against it. */
export function decidingSentence(chosen: Sum, other: Sum): string | null {
  const [mine, its] = [partsOf(chosen), partsOf(other)];
  const gains = Object.keys(PART_WORDS).map((key) => ({ key, gain: (its.get(key) ?? 0) - (mine.get(key) ?? 0) }));
  gains.sort((a, b) => b.gain - a.gain);
  const [best, worst] = [gains[0]!, gains.at(-1)!];
  if (best.gain < LEAST_TOLD) return null;
  const told = (value: number) => (chosen.unit === 'ms' ? timeText(value) : blocksText(value));
  const credit = creditOf(chosen) - creditOf(other);
  const thanks = best.key === 'before' && credit >= LEAST_TOLD ? `, with ${told(credit)} more credit` : '';
  const against = worst.gain > -LEAST_TOLD ? '' : `, against ${told(-worst.gain)} more ${PART_WORDS[worst.key]}`;
  return `What told most: ${told(best.gain)} less ${PART_WORDS[best.key]}${thanks}${against}.`;
}

/** Differences below it are not worth a sentence. */
const LEAST_TOLD = 0.01;

/** The parts of a price; what is to compute is told less its credits. */
function partsOf({ terms }: Sum): Map<string, number> {
  const parts = new Map<string, number>();
  for (const { key, kind, value } of terms) {
    const part = kind === 'credit' || key === 'unused' ? 'before' : key;
    parts.set(part, (parts.get(part) ?? 0) + value);
  }
  return parts;
}

const creditOf = ({ terms }: Sum): number =>
  terms.reduce((all, { kind, value }) => (kind === 'credit' ? all - value : all), 0);

/** The counterfactual in one sentence. */
export function insteadSentence(row: RequestRow, other: RequestRow): string {
  const mine = row.firstTokenAt - row.at;
  const its = other.firstTokenAt - other.at;
  const lead = `Simulated anew with everything before it equal: on worker ${other.worker}`;
  const blocks = `${countText(computedOf(other))} blocks computed instead of ${countText(computedOf(row))}`;
  if (Number.isNaN(mine) || Number.isNaN(its)) return `${lead} ${blocks}.`;
  const verdict =
    Math.abs(its - mine) < 0.005
      ? 'no difference'
      : its > mine
        ? `${timeText(its - mine)} later`
        : `${timeText(mine - its)} sooner`;
  return `${lead} its first token would have come after ${timeText(its)} instead of ${timeText(mine)} (${verdict}), ${blocks}.`;
}

export const computedOf = ({ full, gpu, dram, ssd }: RequestRow): number => full - gpu - dram - ssd;

/** Which of chosen and runner-up served the request better, once one knows. */
export function hindsight(row: RequestRow, other: RequestRow | null): 'right' | 'wrong' | 'equal' | 'unknown' {
  if (other === null) return 'unknown';
  const gain = other.firstTokenAt - other.at - (row.firstTokenAt - row.at);
  if (Number.isNaN(gain)) return 'unknown';
  return Math.abs(gain) < 0.5 ? 'equal' : gain > 0 ? 'right' : 'wrong';
}

/** What the worker really found, against what the router counted on. */
export function foundSentences(row: RequestRow, decision: Pick<Decision, 'blocks'>): string[] {
  const { blocks } = decision;
  const store = row.dram + row.ssd;
  const gpu =
    blocks.device === row.gpu && row.gpu === 0
      ? 'The router knew of nothing on the GPU, and nothing was there.'
      : blocks.device === row.gpu
        ? `The router knew of ${blocksText(row.gpu)} on the GPU, and the worker found as many.`
        : `The router knew of ${blocksText(blocks.device)} on the GPU; when the request began the worker found ${countText(row.gpu)}.`;
  const from = row.ssd > 0 ? ` (${countText(row.dram)} from memory, ${countText(row.ssd)} from SSD)` : '';
  return [
    gpu,
    `${creditSentence(row)} It restored ${store === 0 ? 'none' : blocksText(store)}${from} and computed ${blocksText(computedOf(row))}.`,
  ];
}

function creditSentence({ credited, creditError }: RequestRow): string {
  if (Number.isNaN(creditError)) return `It counted on ${blocksText(credited)} of the store.`;
  if (creditError === 0) {
    return credited === 0
      ? 'It counted on nothing from the store, and nothing was to be had.'
      : `It counted on ${blocksText(credited)} of the store, exactly what could be restored.`;
  }
  const real = credited + creditError;
  return creditError > 0
    ? `It counted on ${blocksText(credited)} of the store where ${countText(real)} could be restored: ${countText(creditError)} short.`
    : `It counted on ${blocksText(credited)} of the store where only ${countText(Math.max(0, real))} could still be restored: ${countText(-creditError)} stale.`;
}

// ---- why credit ends ----

export interface ReasonText {
  readonly lead: string;
  readonly text: string;
  readonly missing: readonly string[];
}

/** Object keys that are named; the rest are counted. */
const MISSING_NAMED = 3;

/** Each reason: a few words on its code, and its own text. */
export function reasonTexts({ reasons, sharedReason }: Pick<Decision, 'reasons' | 'sharedReason'>): ReasonText[] {
  const all: readonly (Reason | ZeroReason)[] = reasons ?? (sharedReason === null ? [] : [sharedReason]);
  return all.map((reason) => {
    const missing = 'missing' in reason ? reason.missing : [];
    const more = missing.length - MISSING_NAMED;
    const named = missing.slice(0, MISSING_NAMED);
    return {
      lead: capital(zeroWords(reason.code)),
      text: sentence(reason.text),
      missing: more > 0 ? [...named, `and ${countText(more)} more`] : named,
    };
  });
}

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const sentence = (text: string): string => (/[.!?]$/.test(text) ? capital(text) : `${capital(text)}.`);
const possessive = (name: string): string => `${name}’s`;
