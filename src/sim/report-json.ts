// The document that `moonroute simulate --json` prints, and that a page exports: the same bytes.
import type { SimResult } from './report-types.js';

export const resultJson = (result: SimResult): string => `${JSON.stringify(result, null, 2)}\n`;
