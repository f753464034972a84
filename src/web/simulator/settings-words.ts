// How the settings of two runs differ, in words: what a list of runs calls its rows.
import { HEADINGS, SETTING_OPTIONS } from '../../sim/settings/options.js';
import type { Settings } from './messages.js';
import { labelOf, valueText } from './settings-labels.js';

/** Flags in the order of a form. */
const ORDER = [...SETTING_OPTIONS].sort((a, b) => HEADINGS.indexOf(a.heading) - HEADINGS.indexOf(b.heading));

/** `store memory 2 TB → 500 GB`; one text for each option that differs. */
export function differences(from: Settings, to: Settings): string[] {
  return ORDER.flatMap(({ flag }) => {
    const [before, now] = [wordOf(flag, from), wordOf(flag, to)];
    return before === now ? [] : [`${labelOf(flag)} ${before} → ${now}`];
  });
}

/** A curve that is asked for without a policy is all that runs. */
const wordOf = (flag: string, settings: Settings): string =>
  flag === 'policy' && settings['policy'] === undefined && settings['curve'] !== undefined
    ? 'none'
    : valueText(flag, settings[flag]);
