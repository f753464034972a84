// What the timeline says in words: of a bar, of a column of a row, and of what was left out. Every number with its unit. Pure.
import type { RequestRow, ResidencyRow, SimPlace, TimelineView } from '../../../sim/observed/types.js';
import { bytesText, countText, NOTHING, shareText, timeText } from '../../../sim/report-format.js';
import { type PartKind, partsOf } from './parts.js';
import { clockText, digitsFor, roundStep } from './ticks.js';
import type { Span } from './window.js';

export const PART_WORDS: Readonly<Record<PartKind, string>> = {
  wait: 'waits',
  fetch: 'fetches from the store',
  compute: 'computes the prompt',
  decode: 'decodes',
};

export const blocksText = (value: number): string =>
  `${countText(value)} ${Math.round(value) === 1 ? 'block' : 'blocks'}`;
export const requestName = (request: number): string => `request ${countText(request)}`;
export const placeName = (place: SimPlace): string => (place === 'store' ? 'the store' : `worker ${place}`);

/** A title and lines of name and value. */
export interface Told {
  readonly title: string;
  readonly lines: readonly (readonly [name: string, value: string])[];
}

/** A request's bar. */
export function spanWords(row: RequestRow, now: number): Told {
  const names: Readonly<Record<PartKind, string>> = {
    wait: 'Waited',
    fetch: 'Fetched for',
    compute: 'Computed its prompt for',
    decode: 'Decoded for',
  };
  const times = partsOf(row, now).map(({ kind, from, to }) => [names[kind], timeText(to - from)] as const);
  const computed = row.full - row.gpu - row.dram - row.ssd;
  return {
    title: `Request ${countText(row.request)}`,
    lines: [
      ['Arrived', clockText(row.at)],
      ...times,
      ['First token after', Number.isNaN(row.firstTokenAt) ? NOTHING : timeText(row.firstTokenAt - row.at)],
      ['Prompt', `${countText(row.promptTokens)} tokens, ${blocksText(row.full)}`],
      [
        'Its blocks',
        `${countText(row.gpu)} from GPU, ${countText(row.dram + row.ssd)} from the store, ${countText(computed)} computed`,
      ],
      ['Output', `${countText(row.outputTokens)} tokens`],
    ],
  };
}

/** One column of what a place held. */
export function columnWords(
  view: TimelineView,
  row: ResidencyRow,
  column: number,
  { isTotal, blockBytes }: { readonly isTotal: boolean; readonly blockBytes: number | null },
): Told {
  const step = (view.to - view.from) / view.columns;
  const digits = digitsFor(step);
  const at = view.from + step * column;
  const isStore = view.place === 'store';
  const held = row.held[column] ?? 0;
  const bytes = blockBytes === null ? '' : `, ${bytesText(held * blockBytes)}`;
  const part = `${shareText(held / view.capacity)} of ${countText(view.capacity)}`;
  return {
    title: isTotal ? (isStore ? 'The store' : `GPU of worker ${view.place}`) : familyTitle(row),
    lines: [
      ['Time', `${clockText(at, digits)} – ${clockText(at + step, digits)}`],
      ['Held at its end', blocksText(held) + bytes],
      ['Of its capacity', view.capacity > 0 ? part : NOTHING],
      [isStore ? 'Put by workers' : 'Stored (computed here)', blocksText(row.stored[column] ?? 0)],
      [isStore ? 'Read by workers' : 'Fetched from the store', blocksText(row.fetched[column] ?? 0)],
      ['Evicted for want of room', blocksText(row.evicted[column] ?? 0)],
    ],
  };
}

export function familyTitle({ family, firstRequest, requests }: ResidencyRow): string {
  const how = requests === 1 ? '1 request' : `${countText(requests)} requests`;
  return `Family ${countText(family)}: ${how} that begin like ${requestName(firstRequest)}`;
}

/** In one breath, for a live region. */
export const spoken = ({ title, lines }: Told): string =>
  `${title}. ${lines.map(([name, value]) => `${name}: ${value}`).join('; ')}.`;

/** What is in view: 1:02.4 – 1:03.9, 1.5 s of 10 min. */
export function windowWords({ from, to }: Span, end: number): string {
  const digits = digitsFor(roundStep((to - from) / 20));
  return `${clockText(from, digits)} – ${clockText(to, digits)} · ${timeText(to - from)} of ${timeText(end)}`;
}

/** What is not shown; empty where all is. */
export function limitWords(view: TimelineView, end: number): string[] {
  const told: string[] = [];
  if (view.spansLeftOut > 0) {
    const all = view.spans.length + view.spansLeftOut;
    told.push(
      `Shown are the longest ${countText(view.spans.length)} of ${countText(all)} requests around here; zoom in for the rest.`,
    );
  }
  if (view.familiesLeftOut > 0) {
    told.push(`${countText(view.familiesLeftOut)} more families held or moved less than these.`);
  }
  if (view.recordedTo < end) {
    told.push(`Movements of blocks were recorded to ${clockText(view.recordedTo, 0)}; after that the record was full.`);
  }
  return told;
}

/** What a screen reader hears of the canvas. */
export function summaryOf(view: TimelineView | null, window: Span, end: number, label: string): string {
  if (view === null) return `Timeline, ${label}. Nothing to show yet.`;
  const spans = view.place === 'store' ? '' : ` ${countText(view.spans.length)} requests,`;
  const what = `${spans} ${countText(view.families.length)} families of prompts`;
  return `Timeline of ${placeName(view.place)}, ${label}: ${windowWords(window, end)}.${what}.`;
}
