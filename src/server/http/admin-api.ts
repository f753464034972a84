// What operators ask: workers and their registration, how everything stands, whether it is ready.
import { derivationOf } from '../derivation.js';
import type { RegisteredWorker, WorkerSpec } from '../types.js';
import { ApiError } from './errors.js';
import type { Exchange } from './exchange.js';
import type { HttpParts } from './parts.js';
import { readRequestBody } from './request-body.js';
import { json } from './route-api.js';

export class AdminApi {
  readonly #parts: HttpParts;

  constructor(parts: HttpParts) {
    this.#parts = parts;
  }

  workers(): Response {
    const { registry, router } = this.#parts.service;
    const views = new Map(router.workers().map((view) => [String(view.id), view]));
    return json(200, { workers: registry.list().map((worker) => workerJson(worker, views.get(worker.id) ?? null)) });
  }

  async addWorker(exchange: Exchange): Promise<Response> {
    const { service } = this.#parts;
    const body = await readRequestBody(exchange, this.#parts);
    body.share.end();
    // What was sent is anything; the registry checks it.
    const spec = body.fields as unknown as WorkerSpec;
    const known = service.registry.get(spec.id);
    if (known?.configured === true) {
      throw new ApiError(
        409,
        'worker-configured',
        'a worker of that name is in the configuration file; change it there.',
      );
    }
    const worker = await service.registry.add(spec);
    service.log.info({ worker: worker.id, url: worker.url }, 'worker registered');
    return json(known === null ? 201 : 200, workerJson(worker, null));
  }

  removeWorker(id: string): Response {
    const { registry, log } = this.#parts.service;
    if (!registry.remove(id)) throw noWorker();
    log.info({ worker: id }, 'worker removed');
    return json(200, { removed: id });
  }

  drainWorker(id: string, draining: boolean): Response {
    if (!this.#parts.service.registry.setDraining(id, draining)) throw noWorker();
    return json(200, { id, draining });
  }

  ready(): Response {
    const reason = this.#parts.service.activity.draining ? 'it is shutting down' : this.#parts.service.notReady();
    return reason === null ? json(200, { ready: true }) : json(503, { ready: false, reason });
  }

  status(openLeases: number): Response {
    const { config, router, live, plane, registry, prompts, active } = this.#parts.service;
    const stats = router.stats();
    return json(200, {
      active_requests: active,
      route_leases: openLeases,
      router: stats,
      derivation: derivationOf(stats, router.contract, config.sharedCache),
      workers: router.workers(),
      live: live.status(),
      plane: plane?.status() ?? null,
      registry: registry.list().map((worker) => workerJson(worker, null)),
      prompts: prompts.stats(),
    });
  }

  /** The model and its adapters, as OpenAI lists them. */
  models(): Response {
    return json(200, { object: 'list', data: this.#models() });
  }

  model(id: string): Response {
    const found = this.#models().find((model) => model.id === id);
    if (found !== undefined) return json(200, found);
    throw new ApiError(404, 'model_not_found', 'the model does not exist; GET /v1/models lists those that do.');
  }

  #models(): { readonly id: string }[] {
    const { registry, config } = this.#parts.service;
    const workers = registry.list();
    const names = [...(config.model === null ? [] : [config.model]), ...workers.flatMap(({ models }) => models)];
    const models = new Set(names.filter((name) => registry.knows(name) === 'model'));
    const adapters = new Set(workers.flatMap((worker) => worker.adapters));
    const [base = null] = models;
    const card = (id: string, parent: string | null) => ({
      ...{ id, object: 'model', created: 0, owned_by: 'moonroute' },
      ...{ root: parent ?? id, parent },
    });
    return [...[...models].map((id) => card(id, null)), ...[...adapters].map((id) => card(id, base))];
  }
}

/** A worker for people and machines; an inline contract is long and its owner has it. */
function workerJson(
  worker: RegisteredWorker,
  view: { readonly draining: boolean; readonly ranks: unknown } | null,
): object {
  const { contract, dpRanks, contractFault, ...rest } = worker;
  return {
    ...rest,
    dp_ranks: dpRanks,
    contract: contract !== null && typeof contract === 'object' && 'inline' in contract ? 'inline' : contract,
    contract_fault: contractFault,
    ...(view === null ? {} : { draining: view.draining, ranks: view.ranks }),
  };
}

function noWorker(): ApiError {
  return new ApiError(404, 'unknown-worker', 'there is no worker of that name.');
}
