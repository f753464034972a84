// Short names of options for a form and for differences between runs; the command's own words explain them. An option without one goes by its flag.
import { optionOf, type SettingOption } from '../../sim/settings/options.js';

const LABELS: Readonly<Record<string, string>> = {
  policy: 'policies',
  curve: 'capacity curve',
  limit: 'most requests',
  'id-tokens': 'tokens of an id',
  columns: 'CSV columns',
  'time-unit': 'unit of times',
  rate: 'arrivals a second',
  mix: 'mix of sessions',
  'workload-seed': 'workload seed',
  gpu: 'GPU cache, each',
  prefill: 'prefill, tokens/s',
  chunk: 'prefill step, tokens',
  'decode-step': 'decode step',
  'decode-step-more': '… for each more',
  batch: 'running at once',
  store: 'store memory',
  ssd: 'store SSD',
  link: 'link of a worker',
  'store-rate': 'links together',
  'ssd-rate': 'SSDs together',
  latency: 'latency of a fetch',
  'block-size': 'tokens of a block',
  groups: 'KV groups',
  delay: 'delay of events',
  jitter: 'jitter of events',
  loss: 'loss of events',
  'reconcile-after': 'reconcile after',
  speedup: 'speed-up',
  index: "router's GPU index",
  'core-edges': "core's hash edges",
  restart: 'restarts',
  setting: "router's settings",
  wire: 'real message bytes',
};

export const labelOf = (flag: string): string => LABELS[flag] ?? flag;

/** What stands in an empty field: what is taken then. */
export const emptyText = ({ flag, usual }: SettingOption): string => usual ?? (flag === 'limit' ? 'all' : 'none');

/** What an option is, alone. */
export const shortHelp = ({ text }: SettingOption): string => `${capital(text)}.`;

/** First letter large, for the beginning of a line. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What an option is, how it is written and what it is without, in full. */
export function helpOf({ flag, text, usual, example, choices, value }: SettingOption): string {
  const form = value === null ? '' : ` Like ${choices === null ? example : choices.join(', ')}.`;
  return `${capital(text)}.${form} ${usual === null ? 'Left out by default.' : `Default ${usual}.`} On the command line --${flag}.`;
}

const SPACED = new Set(['size', 'rate', 'time', 'blocks|size']);

/** An option's text for people: `500GB` → `500 GB`; its default where it is left out. */
export function valueText(flag: string, text: string | undefined): string {
  const option = optionOf(flag);
  if (text === undefined) return option?.usual ?? (option?.value === null ? 'off' : 'none');
  if (option?.value === null) return text === 'true' ? 'on' : 'off';
  return SPACED.has(option?.value ?? '') ? text.replace(/(\d)(?=[A-Za-zµ])/, '$1 ') : text;
}
