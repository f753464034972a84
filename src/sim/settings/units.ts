// Quantities as people type them: sizes, rates, times, counts and shares. A unit is asked for where a bare number could mean several
// things. What is refused says what was seen and shows a right one.
import { ConfigError } from '../../errors.js';
import { bytesText, countText, rateText, shareText, timeText } from '../report-format.js';

const BYTE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  pb: 1e15,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  pib: 2 ** 50,
};

const BIT_UNITS: Readonly<Record<string, number>> = { kbit: 1e3, mbit: 1e6, gbit: 1e9, tbit: 1e12 };

const MS_UNITS: Readonly<Record<string, number>> = { us: 0.001, µs: 0.001, ms: 1, s: 1000, min: 60_000, h: 3_600_000 };

const COUNT_UNITS: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6 };

/** A way to read a quantity; `example` stands in refusals and in help. */
export interface Unit {
  readonly example: string;
  /** @throws ConfigError `quantity` */
  readonly parse: (text: string) => number;
  /** A value for people. */
  readonly say: (value: number) => string;
}

/** The words of a number and its unit; null when it begins with no number. */
function split(text: string): { readonly value: number; readonly unit: string } | null {
  const parts = /^\s*(\d[\d_]*(?:\.\d+)?|\.\d+)\s*([^\d\s].*?)?\s*$/.exec(text);
  return parts === null ? null : { value: Number(parts[1]!.replaceAll('_', '')), unit: parts[2] ?? '' };
}

function refuse(text: string, what: string, example: string): never {
  throw new ConfigError('quantity', `"${text}" is no ${what}; write it like ${example}`);
}

/** Units by name in any case; but a lone small b after a capital means bits, and is not taken for bytes. */
function bytesOf(unit: string): number | undefined {
  return /^[KMGTP]i?b$/.test(unit) ? undefined : BYTE_UNITS[unit.toLowerCase()];
}

/** Bytes, whole: 50GB, 200GiB, 0. */
export const SIZE: Unit = {
  example: '50GB, 200GiB or 0',
  say: bytesText,
  parse: (text) => {
    const { value, unit } = split(text) ?? refuse(text, 'size', SIZE.example);
    if (value === 0 && unit === '') return 0;
    const bytes = bytesOf(unit) ?? refuse(text, 'size', SIZE.example);
    return Math.round(value * bytes);
  },
};

/** Bytes a second: 25GB/s, 400Gbit/s. */
export const RATE: Unit = {
  example: '25GB/s or 400Gbit/s',
  say: rateText,
  parse: (text) => {
    const { value, unit } = split(text) ?? refuse(text, 'rate', RATE.example);
    const name = /^(.+)\/s$/.exec(unit)?.[1] ?? refuse(text, 'rate', RATE.example);
    const bits = BIT_UNITS[name.toLowerCase()];
    const bytes = bits === undefined ? bytesOf(name) : bits / 8;
    return value * (bytes ?? refuse(text, 'rate', RATE.example));
  },
};

/** Milliseconds: 5ms, 2s, 10min, 0. */
export const TIME: Unit = {
  example: '5ms, 2s or 10min',
  say: timeText,
  parse: (text) => {
    const { value, unit } = split(text) ?? refuse(text, 'time', TIME.example);
    if (value === 0 && unit === '') return 0;
    return value * (MS_UNITS[unit.toLowerCase()] ?? refuse(text, 'time', TIME.example));
  },
};

/** A whole number: 64, 65536, 262_144, 20k, 1.5M. */
export const COUNT: Unit = {
  example: '64, 20k or 1.5M',
  say: countText,
  parse: (text) => {
    const { value, unit } = split(text) ?? refuse(text, 'whole number', COUNT.example);
    const count = value * (COUNT_UNITS[unit.toLowerCase()] ?? refuse(text, 'whole number', COUNT.example));
    // 1.1k is 1100.0000000000002 in binary.
    const whole = Math.round(count);
    return Math.abs(count - whole) < 1e-6 && Number.isSafeInteger(whole)
      ? whole
      : refuse(text, 'whole number', COUNT.example);
  },
};

/** A number of anything, 0 or more: 1, 0.5, 2.5. */
export const NUMBER: Unit = {
  example: '1 or 2.5',
  say: String,
  parse: (text) => {
    const { value, unit } = split(text) ?? refuse(text, 'number', NUMBER.example);
    return unit === '' ? value : refuse(text, 'number', NUMBER.example);
  },
};

/** A part of a whole: 0.01 or 1%. */
export const SHARE: Unit = {
  example: '0.01 or 1%',
  say: shareText,
  parse: (text) => {
    const { value, unit } = split(text) ?? refuse(text, 'share', SHARE.example);
    if (unit !== '' && unit !== '%') refuse(text, 'share', SHARE.example);
    const share = unit === '%' ? value / 100 : value;
    return share <= 1 ? share : refuse(text, 'share', SHARE.example);
  },
};

/** GPU memory as a number of blocks, or as a size from which it follows. */
export function gpuBlocksOf(text: string, bytesPerBlock: number): number {
  const unit = split(text)?.unit ?? '';
  return /b$/i.test(unit) ? Math.floor(SIZE.parse(text) / bytesPerBlock) : COUNT.parse(text);
}
