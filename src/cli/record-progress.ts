// How a recording goes, as lines for people: every few seconds while it runs, and at its end.
import type { RecordingSummary } from '../live/recorder.js';
import { bytesText, countText, timeText } from '../sim/report-format.js';

/** Sources that a line names; of more, those with losses or drops come first. */
const NAMED = 8;

/** One line: how long, how much, and of each source its messages and what went wrong. */
export function recordProgressText(summary: RecordingSummary, ms: number): string {
  const { messages, bytes, dropped, sources } = summary;
  const ranked = Object.entries(sources).sort(([, a], [, b]) => troubleOf(b) - troubleOf(a));
  const named = ranked.slice(0, NAMED).map(([name, source]) => `${name} ${sourceText(source)}`);
  if (ranked.length > NAMED) named.push(`${countText(ranked.length - NAMED)} more`);
  const drops = dropped === 0 ? '' : `, ${countText(dropped)} dropped`;
  return `${timeText(ms)}: ${countText(messages)} messages, ${bytesText(bytes)}${drops}; ${named.join(', ')}`;
}

type SourceSummary = RecordingSummary['sources'][string];

function sourceText({ messages, losses, gaps, dropped }: SourceSummary): string {
  const troubles = [
    ...(losses > 0 ? [`${countText(losses)} losses`] : []),
    ...(gaps > 0 ? [`${countText(gaps)} gaps`] : []),
    ...(dropped > 0 ? [`${countText(dropped)} dropped`] : []),
  ];
  return `${countText(messages)}${troubles.length > 0 ? ` (${troubles.join(', ')})` : ''}`;
}

const troubleOf = ({ losses, gaps, dropped }: SourceSummary): number => losses + gaps + dropped;
