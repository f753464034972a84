// Settings in the address: `#policy=kv,ttft&workers=8&store=2TB`. A link reproduces a run, seeds included. With a trace of one's own it carries the trace's
// name, size and hash, so that the page can ask for exactly that file; the file itself never goes anywhere.
import { optionOf } from '../../sim/settings/options.js';
import type { Settings } from './messages.js';
import type { TraceName } from './trace-file.js';

/** Of an address; no set of options is near as long. */
const MAX_HASH_CHARS = 16_384;
const TRACE_KEYS = { name: 'trace', size: 'trace-size', sha256: 'trace-sha256' } as const;
/** What is read more easily as it is, and parts nothing in an address. */
const PLAIN = /%(?:2C|3A|40|2F|3D|7C)/g;

/** What an address says. */
export interface Linked {
  readonly settings: Settings;
  readonly trace: TraceName | null;
  /** What it says that no option is. */
  readonly unknown: readonly string[];
}

export function hashOf(settings: Settings, trace: TraceName | null): string {
  const given: [string, string][] = Object.entries(settings);
  if (trace !== null) {
    given.push([TRACE_KEYS.name, trace.name], [TRACE_KEYS.size, String(trace.size)]);
    if (trace.sha256 !== null) given.push([TRACE_KEYS.sha256, trace.sha256]);
  }
  return `#${given.map(([name, value]) => `${name}=${written(value)}`).join('&')}`;
}

/** Null for an address that says nothing of settings. */
export function linkedIn(hash: string): Linked | null {
  const text = hash.replace(/^#/, '');
  if (!text.includes('=') || text.length > MAX_HASH_CHARS) return null;
  const given = new Map<string, string>();
  for (const part of text.split('&')) {
    const [name = '', value = ''] = part.split(/=(.*)/s);
    const read = readable(value);
    if (name !== '' && read !== null) given.set(name, read);
  }
  const own = new Set<string>(Object.values(TRACE_KEYS));
  const flags = [...given].filter(([name]) => !own.has(name));
  const name = given.get(TRACE_KEYS.name);
  return {
    settings: Object.fromEntries(flags.filter(([flag, value]) => optionOf(flag) !== undefined && value !== '')),
    trace:
      name === undefined
        ? null
        : { name, size: Number(given.get(TRACE_KEYS.size)), sha256: given.get(TRACE_KEYS.sha256) ?? null },
    unknown: flags.filter(([flag]) => optionOf(flag) === undefined).map(([flag]) => flag),
  };
}

const written = (text: string): string => encodeURIComponent(text).replace(PLAIN, decodeURIComponent);

function readable(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
