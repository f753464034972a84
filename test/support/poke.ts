// Reaches into a core's memory where no call leads: states that would take years to come about.
import { globalOf } from '../../src/core/builds.js';
import type { Core } from '../../src/core/core.js';

const GENERATION_CELL = 6; // assembly/cells.ts

/**
 * Pretends that residency was cleared so many times already, by clearing it and writing the count, so that the next clears wrap around.
 * What the skipped generations would have left behind stays as the last ones left it.
 */
export function setClearGeneration(core: Core, generation: number): void {
  core.clearResidency();
  new DataView(core.exports.memory.buffer).setUint32(
    globalOf(core.exports, 'CELLS') + GENERATION_CELL * 4,
    generation,
    true,
  );
}
