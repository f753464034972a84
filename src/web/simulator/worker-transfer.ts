// What of an answer is handed over rather than copied: the memory of its columns, which are the answer's own.

/** Memory of all columns below `value`, each once. */
export function columnsOf(value: unknown, found: Set<ArrayBuffer> = new Set()): Set<ArrayBuffer> {
  if (value instanceof Float64Array) found.add(value.buffer as ArrayBuffer);
  else if (Array.isArray(value)) for (const part of value) columnsOf(part, found);
  else if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) columnsOf(part, found);
  return found;
}
