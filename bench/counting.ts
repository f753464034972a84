// Counts of what one piece of work costs the core, from its own counters and from its memory. For a fixed table seed they are the same in every
// engine on every machine.

import { globalOf } from '../src/core/builds.js';
import type { Core } from '../src/core/core.js';
import type { Counters } from './suite.js';

const LINE_BYTES = 64;
const LINE_WORDS = LINE_BYTES / 4;
const GENERATION_CELL = 6;
const HOME_SHIFT = 25;
const HOME_MASK = 127;
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

/** Probes that finding every entry of the core's tables once would take, and the longest ways from an entry's own place since it was configured. */
export function probes(core: Core): Counters {
  const at = (name: string) => globalOf(core.exports, name);
  const { buffer } = core.exports.memory;
  const places = 2 ** at('TABLE_BITS');
  const cells = new Uint32Array(buffer, at('CELLS'), 64);
  const digests = new Uint32Array(buffer, at('DIGEST_TABLE'), places * 2);
  const generation = cells[GENERATION_CELL]!;
  return {
    edgeProbes: probesOf(new Uint32Array(buffer, at('EDGE_TABLE'), places)),
    childProbes: probesOf(new Uint32Array(buffer, at('CHILD_TABLE'), places)),
    digestProbes: probesOf(
      Uint32Array.from({ length: places }, (_, place) =>
        digests[2 * place + 1] === generation ? digests[2 * place]! : 0,
      ),
    ),
    ...Object.fromEntries(Object.entries(SPREADS).map(([name, cell]) => [name, cells[cell]!])),
  };
}

/** An entry's upper bits are the low ones of its own place (assembly/table.ts). */
function probesOf(table: Uint32Array): number {
  let sum = 0;
  for (let place = 0; place < table.length; place++) {
    const entry = table[place]!;
    if (entry !== 0) sum += ((place - (entry >>> HOME_SHIFT)) & HOME_MASK) + 1;
  }
  return sum;
}
