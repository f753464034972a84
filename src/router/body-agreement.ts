// Whether a request's own object says the same of salt and adapter as the caller does. The engine hashes what the object says, the router
// looks up what the caller says: where they differ, a hit is that of other blocks, and no credit is due.
import { CACHE_SALT_PREFIX } from '../events/namespace.js';
import type { RouteRequest } from './prompt.js';

/** What the caller says, and what its words are held against. */
export interface ScopeClaim extends Pick<RouteRequest, 'loraName' | 'cacheSalt'> {
  /** Whether a worker lists an adapter of that name. */
  readonly isAdapter: (name: string) => boolean;
}

/** A field that can't be relied on: what a getter returns may change between now and then. */
const GETTER = Symbol('getter');

/** The field that disagrees, in a text that never shows its content; null where none does. May throw what the object throws. */
export function whyBodyDisagrees(body: object, { loraName, cacheSalt, isAdapter }: ScopeClaim): string | null {
  const salt = fieldOf(body, 'cache_salt');
  // Salted by hand or as the engine is told it; an empty salt is none.
  const salted = (cacheSalt ?? '') !== '' && (salt === cacheSalt || salt === `${CACHE_SALT_PREFIX}${cacheSalt}`);
  if (salt !== null && !salted) {
    return "the body's cache_salt is not the request's cacheSalt; give route the salt that the engine will see";
  }
  const lora = fieldOf(body, 'lora_name');
  if (lora !== null) {
    if (lora === loraName) return null;
    return "the body's lora_name is not the request's loraName; give route the adapter that the engine will use";
  }
  // An OpenAI request asks for an adapter by the name of a model; any other name there is the base model's.
  const model = fieldOf(body, 'model');
  const asked = loraName ?? '';
  if (model === null || model === asked) return null;
  if (asked === '' && !(typeof model === 'string' && isAdapter(model))) return null;
  return "the body's model is not the request's loraName, and one of them is an adapter; give route the adapter that the engine will use";
}

/** What a field holds, on the object or up its prototype chain; null where it is absent, nil or an empty text, which all mean nothing. */
function fieldOf(body: object, field: string): unknown {
  for (let holder: object | null = body; holder !== null; holder = Object.getPrototypeOf(holder) as object | null) {
    const property = Object.getOwnPropertyDescriptor(holder, field);
    if (property === undefined) continue;
    if (!('value' in property)) return GETTER;
    const value: unknown = property.value;
    if (value !== null && value !== undefined && value !== '') return value;
  }
  return null;
}
