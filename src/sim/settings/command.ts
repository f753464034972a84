// The command line that does what a page's settings do, to be pasted into a shell.
import { isOff, type SettingTexts } from './from-texts.js';
import { SETTING_OPTIONS } from './options.js';

/** Texts that every shell takes as they stand. */
const PLAIN = /^[A-Za-z0-9_@%+:,./=-]+$/;

/** The file into which groups must be written for it: the command reads them from there. */
export const GROUPS_FILE = 'groups.json';

/**
 * `moonroute simulate …` for these texts.
 * @param trace the trace's file name; null for the built-in workload
 */
export function commandOf(texts: SettingTexts, trace: string | null): string {
  const words = ['moonroute', 'simulate'];
  for (const { flag, value, repeats } of SETTING_OPTIONS) {
    const text = texts[flag]?.trim() ?? '';
    if (text === '' || isOff(flag, text)) continue;
    if (value === null) words.push(`--${flag}`);
    else if (flag === 'groups') words.push(`--${flag}`, GROUPS_FILE);
    else for (const part of repeats ? text.split(',') : [text]) words.push(`--${flag}`, quoted(part.trim()));
  }
  // A name that begins with a dash would be taken for an option, or for standard input.
  if (trace !== null) words.push(quoted(trace.startsWith('-') ? `./${trace}` : trace));
  return words.join(' ');
}

const quoted = (text: string): string => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
