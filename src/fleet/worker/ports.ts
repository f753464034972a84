// Ports of ranks that follow one another: rank r has the first one's and r, as vLLM has it. With no port given, free ones are looked for.
import { ConfigError } from '../../errors.js';

/** Tries before giving up: with some ports in a row taken, others are free. */
const TRIES = 20;

/**
 * Opens one thing a rank, at ports in a row, as `first` says, or as the system gives the first one.
 * @throws what `open` throws when the ports are given, or none was found
 */
export async function openInRow<T extends { close(): Promise<void> }>(
  count: number,
  ports: readonly (number | null)[],
  open: (ports: readonly (number | null)[]) => Promise<T>,
  portsOf: (opened: T) => readonly (number | null)[],
): Promise<T[]> {
  const isGiven = ports.every((port) => port !== 0);
  for (let attempt = 1; ; attempt++) {
    const opened: T[] = [];
    try {
      for (let rank = 0; rank < count; rank++) {
        const first = rank === 0 ? ports : portsOf(opened[0]!);
        opened.push(await open(first.map((port) => (port === null || port === 0 ? port : port + rank))));
      }
      return opened;
    } catch (error) {
      for (const one of opened) await one.close();
      const isTaken = error instanceof ConfigError && error.code === 'bind-failed';
      if (isGiven || !isTaken || attempt === TRIES) throw error;
    }
  }
}
