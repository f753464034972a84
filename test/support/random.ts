// Random numbers that a test can repeat: the simulator's generator, and what tests draw besides. A test prints the seed it used, so that a
// failure names its own way back.
import { SeededRandom } from '../../src/sim/random.js';

/** A repeatable source of numbers; the same seed gives the same sequence on every machine. */
export class Random extends SeededRandom {
  /** One of the items; the list must not be empty. */
  pick<T>(items: readonly T[]): T {
    return items[this.int(items.length)]!;
  }

  /** An unsigned 64-bit number. */
  bigint64(): bigint {
    return (BigInt(this.uint32()) << 32n) | BigInt(this.uint32());
  }

  /** `bytes` random bytes as lowercase hexadecimal text. */
  hex(bytes: number): string {
    let text = '';
    for (let i = 0; i < bytes; i++) text += this.int(256).toString(16).padStart(2, '0');
    return text;
  }

  /** Shuffles the list in place and returns it. */
  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const other = this.int(i + 1);
      [items[i], items[other]] = [items[other]!, items[i]!];
    }
    return items;
  }
}
