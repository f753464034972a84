// The question that a prompt is to `/tokenize`, as JSON. It has to hold what the engine gets: JavaScript reads 1.0, 1e3 and 9007199254740993 as other
// numbers than Python does, and puts names that look like numbers first, and a chat's template shows all of it. So fields stand in the question
// as the client wrote them. Where only their values are at hand, those that may have been written otherwise are told from the rest.
import type { TokenizeFields } from './prompt-input.js';
import type { RawFields } from './types.js';

export interface Question {
  /** An object. */
  readonly json: string;
  /** The engine is certain to read the same. */
  readonly exact: boolean;
}

/** The question; null where a value nests deeper than can be written. */
export function questionOf(fields: TokenizeFields, raw: RawFields | null): Question | null {
  const parts: string[] = [];
  let exact = true;
  for (const [name, value] of Object.entries(fields)) {
    // A prompt may have stood in a list; as a text it is written alike by everybody.
    let text = name === 'prompt' ? null : (raw?.(name) ?? null);
    if (text === null) {
      text = jsonOf(value);
      if (text === null) return null;
      exact &&= isWrittenOneWay(value);
    }
    parts.push(`${JSON.stringify(name)}:${text}`);
  }
  return { json: `{${parts.join(',')}}`, exact };
}

/** Whether a value has no number, and no name that could have changed its place. */
function isWrittenOneWay(value: unknown): boolean {
  const left = [value];
  while (left.length > 0) {
    const each = left.pop();
    if (typeof each === 'number') return false;
    if (typeof each !== 'object' || each === null) continue;
    for (const [name, inner] of Object.entries(each)) {
      if (!Array.isArray(each) && /^\d+$/.test(name)) return false;
      left.push(inner);
    }
  }
  return true;
}

function jsonOf(value: unknown): string | null {
  try {
    return JSON.stringify(value);
  } catch {
    return null;
  }
}
