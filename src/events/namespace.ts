// The cache namespace that a stored event names by itself: its explicit salt, or the tagged salt among the extra keys of its
// first block. A namespace inherited from the parent block is state and therefore not found here (spec/kv-events.md 1.11).
import type { StoredEvent } from '../wire/vllm.js';

/** What stands before a user's salt once it has gone through vLLM. A raw salt is never a namespace. */
export const CACHE_SALT_PREFIX = 'dynamo-cache-salt:';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The namespace that the event itself names, or null. An explicit salt wins over the extra keys, and an empty one says none. */
export function ownNamespace(event: StoredEvent): string | null {
  if (event.cacheSalt !== null) return event.cacheSalt || null;
  if (event.shape.nilKeys) return null;
  const firstBlock = Array.isArray(event.extraKeys) ? event.extraKeys[0] : null;
  if (!Array.isArray(firstBlock)) return null;
  let loraName = event.loraName || null;
  for (const item of firstBlock) {
    // Binary counts here, though it makes the event ineligible: the GPU index still has to keep tenants apart.
    const key = item instanceof Uint8Array ? decodeText(item) : item;
    if (key === null) return null;
    if (typeof key !== 'string') continue;
    if (key === loraName) {
      loraName = null; // skipped once, so that a salt that reads like the adapter's name is still found
    } else if (key.startsWith(CACHE_SALT_PREFIX) && key.length > CACHE_SALT_PREFIX.length) {
      return key.slice(CACHE_SALT_PREFIX.length);
    }
  }
  return null;
}

/** Null when the bytes are no UTF-8; the search for a namespace ends there. */
function decodeText(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}
