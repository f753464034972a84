// How an event looks, as one number: so that an event that is seen again is told from another one of the same id.
import type { RouterEvent } from '../../../wire/envelope/types.js';

const KINDS = { stored: 1, removed: 2, cleared: 3 } as const;
const TIERS = { device: 1, host_pinned: 2, disk: 3, external: 4 } as const;

/** 32 bits (FNV-1a, by words). Not against malice: who can forge an event can send any. */
export function eventPrint({ data, tier, eligible, contradicts, domain }: RouterEvent): number {
  const flags = (eligible ? 256 : 0) | (contradicts ? 512 : 0);
  let print = mixed(0x811c9dc5, KINDS[data.kind] | (TIERS[tier] << 4) | flags);
  if (domain === 'cache_owner') print = mixed(print, 1);
  if (data.kind === 'cleared') return print >>> 0;
  print = mixedWords(print, data.hashes);
  if (data.kind === 'stored') {
    print = mixedWords(print, data.locals);
    if (data.parent !== null) print = mixedWords(mixed(print, 1), BigUint64Array.of(data.parent));
  }
  return print >>> 0;
}

function mixedWords(start: number, { buffer, byteOffset, length }: BigUint64Array): number {
  const words = new Uint32Array(buffer, byteOffset, length * 2);
  let print = mixed(start, length);
  for (let i = 0; i < words.length; i++) print = mixed(print, words[i]!);
  return print;
}

function mixed(print: number, word: number): number {
  const x = Math.imul(print ^ word, 0x01000193);
  return x ^ (x >>> 15);
}
