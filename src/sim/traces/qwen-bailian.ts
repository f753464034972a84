// Alibaba's Qwen-Bailian usage traces (github.com/alibaba-edu/qwen-bailian-usagetraces-anon): {chat_id, parent_chat_id (−1 for a first
// request), timestamp (s), input_length, output_length, type, turn, hash_ids of 16 tokens}, a JSON object a line. A chat_id names one
// request; the chain of parents is the session, named by its first chat_id. Each row is a whole prompt, history included.
import { fieldOf, idsOf, type JsonObject, objectIn } from './json-row.js';
import { Recent } from './recent.js';
import { isTime, isTokens, type RowReader, UNKNOWN_OUTPUT_TOKENS } from './row.js';
import type { TraceTally } from './tally.js';

export const QWEN_BAILIAN_ID_TOKENS = 16;
/** Chats whose session is remembered, for the next turn to find. */
const MAX_CHATS = 0x4_0000;
const NO_PARENT = '-1';
/** Seconds become milliseconds rounded to this part, so that 61.114 s is 61114 ms and not a hair less. */
const PARTS_PER_MS = 1000;

export const looksLikeQwenBailian = (row: JsonObject): boolean =>
  fieldOf(row, 'chat_id') !== undefined && fieldOf(row, 'input_length') !== undefined;

export function qwenBailianReader(tally: TraceTally): RowReader {
  const sessionOf = new Recent<string>(MAX_CHATS);
  return (text, line) => {
    const row = objectIn(text);
    if (row === null) return tally.skip('malformed-row', line, text);
    const seconds = fieldOf(row, 'timestamp');
    const inputTokens = fieldOf(row, 'input_length');
    const output = fieldOf(row, 'output_length');
    if (seconds === undefined || inputTokens === undefined) return tally.skip('missing-field', line, text);
    if (!isTime(seconds) || !isTokens(inputTokens, 1)) return tally.skip('bad-value', line, text);
    if (output !== undefined && !isTokens(output, 0)) return tally.skip('bad-value', line, text);

    if (output === undefined) tally.note('no-output-length', line);
    const chat = nameOf(fieldOf(row, 'chat_id'));
    const parent = nameOf(fieldOf(row, 'parent_chat_id')) ?? NO_PARENT;
    const known = parent === NO_PARENT ? undefined : sessionOf.get(parent);
    if (parent !== NO_PARENT && known === undefined) tally.note('unknown-parent-chat', line);
    const sessionId = known ?? chat;
    if (chat !== null && sessionId !== null) sessionOf.set(chat, sessionId);
    const given = fieldOf(row, 'hash_ids');
    const ids = idsOf(given, text);
    if (given === undefined) tally.note('no-hash-ids', line);
    else if (ids === null) tally.note('bad-hash-ids', line, 1, text);
    return {
      line,
      at: Math.round(seconds * 1000 * PARTS_PER_MS) / PARTS_PER_MS,
      inputTokens,
      outputTokens: output ?? UNKNOWN_OUTPUT_TOKENS,
      ids,
      sessionId,
      delay: null,
    };
  };
}

const nameOf = (value: unknown): string | null =>
  typeof value === 'number' || typeof value === 'string' ? String(value) : null;
