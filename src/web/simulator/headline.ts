// The answer in a few sentences: which policy does best, against what, what the store has to do with it, and how large it should be. Every number says how
// it was made.

import { kneeOf } from '../../sim/knee.js';
import type { SimPicture } from '../../sim/observed/types.js';
import { figureOf, figureText, hitShare } from '../../sim/report-figures.js';
import { bytesText, countText, shareText, shortNumber, timeText } from '../../sim/report-format.js';
import type { CurveReport, SimRun } from '../../sim/report-types.js';
import { runText } from '../../sim/sweep.js';
import { h } from '../console/dom.js';
import { madeOf, noteOf } from './figure-notes.js';
import { figure } from './how.js';
import { deltaOf } from './table-deltas.js';

type Part = Node | string;

/** Percentage points below which hits are alike. */
const ALIKE = 0.005;

/** The simulation that answers first: least mean time to first token. */
export function bestOf(runs: readonly SimRun[]): SimRun | null {
  const meanOf = ({ report }: SimRun) => report.ttft.mean ?? Number.POSITIVE_INFINITY;
  return runs.reduce<SimRun | null>((best, run) => (best === null || meanOf(run) < meanOf(best) ? run : best), null);
}

/** Seconds of prefill a second, of all workers together, that one computes less than the other. */
function savedPrefill(run: SimRun, base: SimRun): number {
  const seconds = (each: SimRun) => each.report.tokens.computed / each.config.workers.prefillTokensPerSecond;
  return (seconds(base) - seconds(run)) / (run.report.duration / 1000);
}

/** While nothing is complete yet. */
export function soFar(label: string, { series, requests }: SimPicture): string {
  const sum = (values: Float64Array) => values.reduce((all, value) => all + value, 0);
  const [gpu, store, computed] = [sum(series.gpu), sum(series.dram) + sum(series.ssd), sum(series.computed)];
  const full = gpu + store + computed;
  if (full === 0) return '';
  return `So far, after ${countText(requests)} requests, ${label} hits ${shareText((gpu + store) / full)} of prompt blocks, ${shareText(store / full)} from the store …`;
}

/** Sentences of a run's results; `base` is what is compared with. */
export function headline(runs: readonly SimRun[], base: SimRun | null, curve: CurveReport | null): Part[] {
  const best = bestOf(runs);
  const parts: Part[] = best === null ? [] : bestParts(best);
  if (best !== null && base !== null && base !== best) parts.push(...againstParts(best, base));
  if (curve !== null) parts.push(...kneeParts(curve));
  return parts;
}

function bestParts(best: SimRun): Part[] {
  const { report } = best;
  const { blocks } = report;
  const fromStore = blocks.full > 0 ? (blocks.dram + blocks.ssd) / blocks.full : 0;
  const hit = hitShare(report);
  if (hit === null) return [name(best), ' ran; no prompt had a full block. '];
  const ceiling = blocks.full > 0 ? report.ceilingBlocks / blocks.full : 0;
  return [
    name(best),
    ' answers first: it hits ',
    figure(shareText(hit), madeOf(figureOf('hit_share'), report)),
    ' of prompt blocks, ',
    figure(
      shareText(fromStore),
      `Full prompt blocks restored from the store's memory or SSD, of all: ${countText(blocks.dram + blocks.ssd)} ÷ ${countText(blocks.full)}.`,
    ),
    ' from the store (ceiling ',
    figure(shareText(ceiling), madeOf(figureOf('ceiling_share'), report)),
    '), with a first token after ',
    shownOf('ttft_p50_ms', best),
    ' in the median and ',
    shownOf('ttft_p99_ms', best),
    ' at p99. ',
  ];
}

function againstParts(best: SimRun, base: SimRun): Part[] {
  const saved = savedPrefill(best, base);
  const [hit, hitBase] = [hitShare(best.report) ?? 0, hitShare(base.report) ?? 0];
  const sooner = deltaOf(figureOf('ttft_p50_ms'), best.report, base.report);
  const ttft =
    sooner === null || sooner.verdict === 'same'
      ? null
      : figure(timesText(best, base), compared('ttft_p50_ms', best, base));
  const fetches = deltaOf(figureOf('fetched_bytes'), best.report, base.report)?.verdict;
  if (Math.abs(hit - hitBase) < ALIKE && fetches === 'same')
    return ttft === null
      ? [name(base), ' does no better. ']
      : ['It hits and fetches as much as ', name(base), '; its median first token comes ', ttft, '. '];
  if (Math.abs(hit - hitBase) < ALIKE)
    return [
      'It hits as much as ',
      name(base),
      ', but fetches ',
      shownOf('fetched_bytes', best),
      ' from the store instead of ',
      shownOf('fetched_bytes', base),
      ...(ttft === null ? [] : ['; its median first token comes ', ttft]),
      '. ',
    ];
  const amount = `${shortNumber(Math.abs(saved))} worker-seconds`;
  return [
    saved >= 0 ? 'That saves ' : 'That costs ',
    figure(
      amount,
      `Prompt tokens that ${runText(base)} computes and ${runText(best)} does not (${countText(base.report.tokens.computed)} − ${countText(best.report.tokens.computed)}), by the prefill speed of a worker (${countText(best.config.workers.prefillTokensPerSecond)} tokens/s), by the duration (${timeText(best.report.duration)}). 1 is the prefill of one whole worker.`,
    ),
    ' of prefill a second against ',
    name(base),
    ...(ttft === null ? [] : [', and its median first token comes ', ttft]),
    '. ',
  ];
}

/** `1.9 × sooner`. */
function timesText({ report }: SimRun, base: SimRun): string {
  const times = (base.report.ttft.p50 ?? 0) / (report.ttft.p50 ?? 1);
  return times >= 1 ? `${shortNumber(times)} × sooner` : `${shortNumber(1 / times)} × later`;
}

function kneeParts(curve: CurveReport): Part[] {
  const knee = kneeOf(curve);
  const last = curve.corners.at(-1);
  if (knee !== null)
    return [
      'The knee of the store is at ',
      figure(
        bytesText(knee.bytes),
        `On the capacity curve of one LRU cache, more memory pays clearly less from here on: there it hits ${shareText(knee.share)} of block references. A bound for a store of that size alone; what GPUs hold comes on top.`,
      ),
      '.',
    ];
  if (last === undefined) return ['No prompt of the trace begins like an earlier one, so no store can help.'];
  return [
    'The curve of the store has no knee: each doubling pays up to ',
    figure(
      bytesText(last.bytes),
      `The least capacity at which one LRU cache hits all that it ever can, ${shareText(last.share)} of block references.`,
    ),
    '.',
  ];
}

const name = (run: SimRun): HTMLElement => h('b', {}, runText(run));

const shownOf = (key: string, { report }: SimRun): HTMLElement =>
  figure(figureText(figureOf(key), report), madeOf(figureOf(key), report));

const compared = (key: string, run: SimRun, base: SimRun): string =>
  `${figureText(figureOf(key), run.report)} of ${runText(run)} beside ${figureText(figureOf(key), base.report)} of ${runText(base)}. ${noteOf(figureOf(key))}`;
