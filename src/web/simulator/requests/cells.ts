// What the list's columns say of a request. Pure.
import type { RequestOrder, RequestRow } from '../../../sim/observed/types.js';
import { countText, NOTHING, timeText } from '../../../sim/report-format.js';
import { amountText } from '../decision/sentences.js';
import { clockText } from '../timeline/ticks.js';

export const ORDERS: readonly (readonly [RequestOrder, string])[] = [
  ['arrival', 'as they arrived'],
  ['slowest', 'slowest first token'],
  ['most-computed', 'most blocks computed'],
  ['most-fetched', 'most blocks fetched'],
  ['credit-error', 'largest credit error'],
  ['closest-call', 'closest call'],
];

/** Units of prices, by policy. */
export const PRICE_UNITS: Readonly<Record<string, string>> = {
  kv: 'blocks',
  'least-loaded': 'blocks',
  ttft: 'ms',
  'round-robin': 'turns',
};

export interface Column {
  readonly key: string;
  readonly head: string;
  readonly unit: string;
  /** How the number was made. */
  readonly hint: string;
  text(row: RequestRow): string;
}

export const COLUMNS: readonly Column[] = [
  {
    key: 'request',
    head: 'Request',
    unit: 'no.',
    hint: 'Its place in the trace, from 0',
    text: ({ request }) => countText(request),
  },
  { key: 'at', head: 'Arrived', unit: 'h:mm:ss', hint: 'On the simulation’s clock', text: ({ at }) => clockText(at) },
  {
    key: 'worker',
    head: 'Worker',
    unit: 'no.',
    hint: 'Where the router sent it',
    text: ({ worker }) => String(worker),
  },
  {
    key: 'prompt',
    head: 'Prompt',
    unit: 'tokens',
    hint: 'Length of its prompt',
    text: ({ promptTokens }) => countText(promptTokens),
  },
  {
    key: 'blocks',
    head: 'Blocks from',
    unit: 'GPU · store · computed',
    hint: 'Full blocks of its prompt by where the worker found them',
    text: ({ gpu, dram, ssd, full }) =>
      `${countText(gpu)} · ${countText(dram + ssd)} · ${countText(full - gpu - dram - ssd)}`,
  },
  {
    key: 'ttft',
    head: 'First token',
    unit: 'after',
    hint: 'From arrival to the first token',
    text: ({ at, firstTokenAt }) => time(firstTokenAt - at),
  },
  {
    key: 'latency',
    head: 'Latency',
    unit: 'to the end',
    hint: 'From arrival to the last token',
    text: ({ at, endedAt }) => time(endedAt - at),
  },
  {
    key: 'error',
    head: 'Credit error',
    unit: 'blocks',
    hint: 'What the store could restore, less what the router counted on: positive is short, negative stale',
    text: ({ creditError }) => errorText(creditError),
  },
  {
    key: 'gap',
    head: 'Price gap',
    unit: 'to runner-up',
    hint: 'The runner-up’s price less the chosen worker’s, in the policy’s unit',
    text: ({ cost, runnerUpCost }) => (Number.isNaN(runnerUpCost) ? NOTHING : amountText(runnerUpCost - cost)),
  },
];

const time = (value: number): string => (Number.isNaN(value) ? NOTHING : timeText(value));

export function errorText(error: number): string {
  if (Number.isNaN(error)) return NOTHING;
  if (error === 0) return '0';
  return error > 0 ? `${countText(error)} short` : `${countText(-error)} stale`;
}

/** Parts of the little bar, in hundredths: GPU, store, computed. */
export function sharesOf({
  gpu,
  dram,
  ssd,
  full,
}: RequestRow): readonly [gpu: number, store: number, computed: number] {
  if (full <= 0) return [0, 0, 0];
  const store = dram + ssd;
  return [(100 * gpu) / full, (100 * store) / full, (100 * (full - gpu - store)) / full];
}
