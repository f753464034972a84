// Whether a value names a way of getting at engine hashes.
import { ConfigError } from '../errors.js';
import { HASHINGS, type Hashing, shown } from './descriptor.js';

/**
 * Refuses anything but a `Hashing`.
 * @throws ConfigError `hashing`
 */
export function checkHashing(hashing: unknown): asserts hashing is Hashing {
  if (HASHINGS.includes(hashing as Hashing)) return;
  throw new ConfigError('hashing', `hashing is ${shown(hashing)}; give one of ${HASHINGS.join(', ')}.`);
}
