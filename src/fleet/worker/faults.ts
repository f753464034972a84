// What a simulated worker does wrong when it is told to: HTTP faults for the next requests, lost messages, a replay socket that does not answer.
import { MoonrouteError } from '../../errors.js';

/** What becomes of a request for an answer. `wrong-usage` says another number of cached tokens than the true one. */
export type HttpFault =
  | { readonly kind: 'unavailable' } //  503
  | { readonly kind: 'no-first-byte' } // the connection ends before anything was said
  | { readonly kind: 'mid-stream' } //   it ends after the first token
  | { readonly kind: 'hang' } //         nothing is ever said
  | { readonly kind: 'wrong-usage'; readonly cachedTokens: number };

export const HTTP_FAULTS: readonly HttpFault['kind'][] = [
  'unavailable',
  'no-first-byte',
  'mid-stream',
  'hang',
  'wrong-usage',
];

/** How the replay socket behaves: `silent` never answers, `slow` waits before each reply. */
export type ReplayFault = 'none' | 'silent' | { readonly slowMs: number };

/** How a message is lost: `network`, as one that PUB drops above its high-water mark, can be asked for again; `send` can't. */
export type LossKind = 'network' | 'send';

/** Most requests that a fault may be ordered for. */
const MAX_ORDERED = 1_000_000;

/** The faults of requests to come. */
export class HttpFaults {
  readonly #orders: { fault: HttpFault; left: number }[] = [];

  /** Orders a fault for the next `count` requests, behind those ordered before. */
  order(fault: HttpFault, count = 1): void {
    this.#orders.push({ fault, left: Math.min(count, MAX_ORDERED) });
  }

  /** Forgets what was ordered. */
  clear(): void {
    this.#orders.length = 0;
  }

  /** The fault of the next request, or null. */
  next(): HttpFault | null {
    const order = this.#orders[0];
    if (order === undefined) return null;
    if (--order.left <= 0) this.#orders.shift();
    return order.fault;
  }
}

/** Reads a fault as `POST /moonroute/fault` takes it. @throws MoonrouteError `bad-request` */
export function readFault(json: unknown): { readonly fault: HttpFault; readonly count: number } {
  const { kind, count = 1, cached_tokens } = (json ?? {}) as Record<string, unknown>;
  if (!(HTTP_FAULTS as readonly unknown[]).includes(kind))
    throw new MoonrouteError('bad-request', `kind must be one of ${HTTP_FAULTS.join(', ')}`);
  if (!Number.isInteger(count) || Number(count) < 1)
    throw new MoonrouteError('bad-request', 'count must be a whole number of 1 or more');
  if (kind !== 'wrong-usage') return { fault: { kind } as HttpFault, count: Number(count) };
  if (!Number.isInteger(cached_tokens) || Number(cached_tokens) < 0)
    throw new MoonrouteError('bad-request', 'wrong-usage needs cached_tokens, a whole number of 0 or more');
  return { fault: { kind, cachedTokens: Number(cached_tokens) }, count: Number(count) };
}
