// How many characters must be put in, taken out or replaced to make one text of another (Levenshtein's distance, row by row).

/** Characters of each text that are compared; what lies behind counts as its difference in length. */
export const MOST_CHARS = 200;

export function editDistance(a: string, b: string): number {
  const [left, right] = [a.slice(0, MOST_CHARS), b.slice(0, MOST_CHARS)];
  const beyond = Math.abs(Math.max(0, a.length - MOST_CHARS) - Math.max(0, b.length - MOST_CHARS));
  let row = Uint16Array.from({ length: right.length + 1 }, (_, i) => i);
  for (let i = 0; i < left.length; i++) {
    const next = new Uint16Array(right.length + 1);
    next[0] = i + 1;
    for (let j = 0; j < right.length; j++) {
      const replaced = row[j]! + (left[i] === right[j] ? 0 : 1);
      next[j + 1] = Math.min(replaced, row[j + 1]! + 1, next[j]! + 1);
    }
    row = next;
  }
  return row[right.length]! + beyond;
}
