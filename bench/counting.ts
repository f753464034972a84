// Counts of what one piece of work costs the core, from its own counters and from its memory. For a fixed table seed they are the same in every
// engine on every machine.

import { globalOf } from '../src/core/builds.js';
import type { Core } from '../src/core/core.js';
import type { Counters } from './suite.js';

const LINE_BYTES = 64;
const LINE_WORDS = LINE_BYTES / 4;
/** Of assembly/cells.ts: the longest way from an entry's own place that its table ever saw. */
const SPREADS = { edgeSpread: 15, childSpread: 16, digestSpread: 17 } as const;

/** Core counters that are costs. */
const COSTS = [
  'walkedBlocks',
  'runs',
  'movedSlots',
  'edgeEvictions',
  'digestEvictions',
  'conflicts',
  'refusedObjects',
] as const;

/** Lines of a memory that differ from what they were before the work. */
export function changedLines(memory: WebAssembly.Memory, work: () => void): number {
  const before = new Uint32Array(memory.buffer.slice(0));
  work();
  const after = new Uint32Array(memory.buffer);
  let lines = 0;
  for (let line = 0; line < after.length; line += LINE_WORDS)
    for (let word = line; word < line + LINE_WORDS; word++)
      if (after[word] !== before[word]) {
        lines++;
        break;
      }
  return lines;
}

/** What the work costs; counts that are 0 are left out, `linesWritten` never. */
export function counted(core: Core, work: () => void): Counters {
  const before = core.stats();
  const linesWritten = changedLines(core.exports.memory, work);
  const after = core.stats();
  const counters: Record<string, number> = { linesWritten };
  for (const name of COSTS) if (after[name] > before[name]) counters[name] = after[name] - before[name];
  return counters;
}

/** Longest displacements of the core's tables since it was configured. */
export function spreads(core: Core): Counters {
  const cells = new Uint32Array(core.exports.memory.buffer, globalOf(core.exports, 'CELLS'), 64);
  return Object.fromEntries(Object.entries(SPREADS).map(([name, at]) => [name, cells[at]!]));
}
