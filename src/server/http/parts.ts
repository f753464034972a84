// What the handlers of the HTTP app share: the service, and what is made once for all requests.
import type { Service } from '../types.js';
import { Keys } from './auth.js';
import { BodyBudget } from './body-budget.js';
import { Observers } from './ended.js';
import { Upstream } from './upstream.js';

export interface HttpParts {
  readonly service: Service;
  readonly keys: Keys;
  readonly budget: BodyBudget;
  readonly observers: Observers;
  readonly upstream: Upstream;
  /** Requests that workers have and have not begun to answer, by the rank's number in the router. */
  readonly unanswered: Map<number, number>;
}

export function httpPartsOf(service: Service): HttpParts {
  return {
    service,
    keys: new Keys(service.config.auth),
    budget: new BodyBudget(service.config.limits.bodyBytes),
    observers: new Observers(service.observers, service.log),
    upstream: new Upstream(),
    unanswered: new Map(),
  };
}
