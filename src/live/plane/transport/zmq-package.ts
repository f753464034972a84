// The zeromq package, which binds what a plane over ZMQ binds; to connect, our own sockets are enough.
import { ConfigError } from '../../../errors.js';

/** @throws ConfigError `zeromq-missing` */
export async function loadPlaneZeromq(): Promise<typeof import('zeromq')> {
  try {
    return await import('zeromq');
  } catch (error) {
    throw new ConfigError(
      'zeromq-missing',
      `a plane over tcp:// binds sockets through the zeromq package, which can't be loaded: ${(error as Error).message}. Install it (npm install zeromq) and run this in Node.`,
    );
  }
}
