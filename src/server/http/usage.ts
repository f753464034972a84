// Reads what an engine says of a request from the bytes that pass, without changing or delaying them: how many prompt tokens it counted, how many of
// them were cached, how many it generated. Memory is bounded whatever passes; what can't be read is unknown.
import { Buffer } from 'node:buffer';

/** What an engine said; null where it said nothing. */
export interface Usage {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly generatedTokens: number | null;
}

/** Listens to a passing body. */
export interface UsageReader {
  take(chunk: Uint8Array): void;
  /** Tokens generated so far, as far as can be told: chunks of a stream hold one each with usual engines. */
  readonly generated: number;
  /** To be asked when the body has passed. */
  usage(): Usage;
}

const NOTHING: Usage = { promptTokens: null, cachedTokens: null, generatedTokens: null };

/** Longest line of a stream that is looked at: one with usage is short. */
const MAX_LINE_BYTES = 65_536;
/** Last part of a whole answer that is kept: usage stands behind the text. */
const TAIL_BYTES = 65_536;
/** Longest usage that is looked at, and how many places that look like one: together they bound the search. */
const MAX_USAGE_CHARACTERS = 4096;
const MAX_PLACES = 64;
const MAX_COUNT = 0xffff_ffff;

const LINE_FEED = 0x0a;
const NAME = '"usage"';
const NO_CHOICES = '"choices":[]';
const IS_NULL = /^\s*:\s*null/;

/**
 * The reader for a body.
 * @param contentType of the answer; null for none
 * @param encoding its `content-encoding`; what is compressed can't be read
 */
export function usageReader(contentType: string | null, encoding: string | null): UsageReader {
  if (encoding !== null && encoding.toLowerCase() !== 'identity') return new DeafReader();
  const type = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();
  if (type === 'text/event-stream') return new StreamReader();
  return type === 'application/json' ? new WholeReader() : new DeafReader();
}

class DeafReader implements UsageReader {
  readonly generated = 0;
  take(): void {}
  usage(): Usage {
    return NOTHING;
  }
}

/** Server-sent events: the last data line with a usage counts. */
class StreamReader implements UsageReader {
  generated = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** The line is too long to be held: the rest of it is left out. */
  #skipping = false;
  #last: Buffer | null = null;

  take(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      this.#line(bytes.subarray(start, end));
      start = end + 1;
    }
    this.#hold(bytes.subarray(start));
  }

  usage(): Usage {
    if (this.#last === null) return NOTHING;
    try {
      return usageOf((JSON.parse(this.#last.toString('utf8')) as { usage?: unknown }).usage);
    } catch {
      return NOTHING;
    }
  }

  #hold(rest: Buffer): void {
    if (rest.length === 0 || this.#skipping) return;
    this.#heldBytes += rest.length;
    if (this.#heldBytes > MAX_LINE_BYTES) {
      this.#skipping = true;
      this.#held = [];
      return;
    }
    this.#held.push(rest);
  }

  #line(end: Buffer): void {
    const whole = this.#held.length === 0 ? end : Buffer.concat([...this.#held, end]);
    const isSkipped = this.#skipping || whole.length > MAX_LINE_BYTES;
    this.#held = [];
    this.#heldBytes = 0;
    this.#skipping = false;
    if (isSkipped) {
      this.generated++; // nothing else is as long
      return;
    }
    // data: {…}, with or without the space
    if (whole.length < 6 || whole[0] !== 0x64 || whole[4] !== 0x3a) return;
    const data = whole.subarray(whole[5] === 0x20 ? 6 : 5);
    if (data[0] !== 0x7b) return;
    const at = data.indexOf(NAME);
    const hasUsage = at >= 0 && !IS_NULL.test(data.toString('latin1', at + NAME.length, at + NAME.length + 16));
    // Copied: it must not keep the chunk that it came in.
    if (hasUsage) this.#last = Buffer.from(data);
    // The last chunk with usage is empty otherwise; engines that are asked to may say it with every token.
    if (!hasUsage || data.indexOf(NO_CHOICES) < 0) this.generated++;
  }
}

/** A whole answer in JSON: usage is looked for in its last part. */
class WholeReader implements UsageReader {
  readonly generated = 0;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  take(chunk: Uint8Array): void {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes - this.#parts[0]!.length >= TAIL_BYTES) this.#bytes -= this.#parts.shift()!.length;
  }

  usage(): Usage {
    const text = Buffer.concat(this.#parts).toString('utf8');
    let at = text.length;
    for (let places = 0; places < MAX_PLACES && at > 0; places++) {
      at = text.lastIndexOf(NAME, at - 1);
      if (at < 0) break;
      const found = usageOf(objectAt(text, at + NAME.length));
      if (found !== NOTHING) return found;
    }
    return NOTHING;
  }
}

/** The flat or nested object that begins behind the next colon; undefined for none. Usage holds numbers only, so braces are braces. */
function objectAt(text: string, at: number): unknown {
  const [opening] = /^\s*:\s*\{/.exec(text.slice(at, at + 32)) ?? [];
  if (opening === undefined) return undefined;
  const start = at + opening.length - 1;
  let depth = 0;
  const last = Math.min(text.length, start + MAX_USAGE_CHARACTERS);
  for (let end = start; end < last; end++) {
    if (text[end] === '{') depth++;
    else if (text[end] === '}' && --depth === 0) {
      try {
        return JSON.parse(text.slice(start, end + 1));
      } catch {
        return undefined;
      }
    }
  }
  return undefined;
}

function usageOf(usage: unknown): Usage {
  if (typeof usage !== 'object' || usage === null) return NOTHING;
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = usage as Record<string, unknown>;
  if (countOf(prompt_tokens) === null) return NOTHING;
  const details = (prompt_tokens_details ?? {}) as Record<string, unknown>;
  return {
    promptTokens: countOf(prompt_tokens),
    cachedTokens: countOf(details['cached_tokens']),
    generatedTokens: countOf(completion_tokens),
  };
}

function countOf(value: unknown): number | null {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_COUNT ? Number(value) : null;
}
