// Mooncake's FAST'25 traces: {timestamp (ms), input_length, output_length, hash_ids of 512 tokens}, a JSON object a line, with the
// extensions that later tools write: session_id, and delay in ms after the session's previous request, in place of a timestamp or next to
// it. The names input_tokens, output_tokens, created_time and delay_ms are taken too, as those tools do. input_length is the whole prompt.
import { fieldOf, idsOf, type JsonObject, objectIn } from './json-row.js';
import { Recent } from './recent.js';
import { isTime, isTokens, type RowReader, UNKNOWN_OUTPUT_TOKENS } from './row.js';
import type { TraceTally } from './tally.js';

export const FAST25_ID_TOKENS = 512;
/** Sessions whose last arrival is remembered. */
const MAX_SESSIONS = 0x4_0000;

const INPUT = ['input_length', 'input_tokens'] as const;

export const looksLikeFast25 = (row: JsonObject): boolean => fieldOf(row, ...INPUT) !== undefined;

export function fast25Reader(tally: TraceTally): RowReader {
  const lastArrival = new Recent<number>(MAX_SESSIONS);
  return (text, line) => {
    const row = objectIn(text);
    if (row === null) return tally.skip('malformed-row', line, text);
    const inputTokens = fieldOf(row, ...INPUT);
    const output = fieldOf(row, 'output_length', 'output_tokens');
    const session = fieldOf(row, 'session_id');
    const wait = fieldOf(row, 'delay', 'delay_ms');
    const sessionId = typeof session === 'string' || typeof session === 'number' ? String(session) : null;
    if (wait !== undefined && !(isTime(wait) && wait >= 0)) return tally.skip('bad-value', line, text);

    const before = sessionId === null ? undefined : lastArrival.get(sessionId);
    const stated = fieldOf(row, 'timestamp', 'created_time');
    const at = stated ?? (wait !== undefined && before !== undefined ? before + wait : undefined);
    if (at === undefined || inputTokens === undefined) return tally.skip('missing-field', line, text);
    if (!isTime(at) || !isTokens(inputTokens, 1)) return tally.skip('bad-value', line, text);
    if (output !== undefined && !isTokens(output, 0)) return tally.skip('bad-value', line, text);

    if (output === undefined) tally.note('no-output-length', line);
    if (stated === undefined) tally.note('placed-by-delay', line);
    if (wait !== undefined && sessionId === null) tally.note('delay-without-session', line);
    if (sessionId !== null) lastArrival.set(sessionId, at);
    const given = fieldOf(row, 'hash_ids');
    const ids = idsOf(given, text);
    if (given === undefined) tally.note('no-hash-ids', line);
    else if (ids === null) tally.note('bad-hash-ids', line, 1, text);
    return {
      line,
      at,
      inputTokens,
      outputTokens: output ?? UNKNOWN_OUTPUT_TOKENS,
      ids,
      sessionId,
      delay: sessionId === null ? null : (wait ?? null),
    };
  };
}
