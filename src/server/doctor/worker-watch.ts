// One worker as the doctor sees it: its HTTP asked, its ranks' event sockets listened to, its replay sockets asked at the end.
import type { Hashing } from '../../contract/descriptor.js';
import type { WorkerEvents } from '../../events/worker-events.js';
import { endpointsOf } from '../../live/live-streams.js';
import { parseEndpoint } from '../../live/zmtp/endpoint.js';
import { ask, statusText } from '../registry-http.js';
import { firstModel, type ModelCard, readModels, sortModels } from '../registry-models.js';
import type { WorkerSpec } from '../types.js';
import { complete } from './completion.js';
import { contractEvidence } from './contract-evidence.js';
import { EventPort } from './event-port.js';
import type { ContractEvidence, RankEvidence, TokenizingEvidence, WorkerEvidence } from './evidence.js';
import type { CollectParts, Tokenises } from './parts.js';
import { RankReader } from './rank-tally.js';
import { askReplay } from './replay-port.js';
import { tokenizing } from './tokenize.js';

const ANSWER_MS = 3000;
const HEALTH_BYTES = 65_536;
const MODELS_BYTES = 1 << 20;

interface WatchedRank {
  readonly dpRank: number;
  readonly port: EventPort | null;
  readonly replay: string | null;
  readonly reader: RankReader;
  probe: RankEvidence['probe'];
}

export class WorkerWatch {
  readonly spec: WorkerSpec;
  readonly #parts: CollectParts;
  readonly #ranks: readonly WatchedRank[];
  #httpFault: string | null = 'not asked';
  #models: WorkerEvidence['models'] = null;
  #contract: ContractEvidence = { contract: null, code: null, fault: null };
  #tokenizing: readonly TokenizingEvidence[] = [];

  /** Opens its event sockets. @throws ConfigError `endpoint`, `live-endpoints`, `curve-keys` */
  constructor(spec: WorkerSpec, events: WorkerEvents, parts: CollectParts) {
    this.spec = spec;
    this.#parts = parts;
    const { id, dpRanks } = spec;
    const { start, size } = dpRanks;
    const eventsAt = spec.events === null ? null : endpointsOf(id, 'events', spec.events, start, size);
    const replayAt = spec.replay === null ? null : endpointsOf(id, 'replay', spec.replay, start, size);
    // Before any socket is opened, so that none stays open.
    for (const endpoint of [...(eventsAt ?? []), ...(replayAt ?? [])]) parseEndpoint(endpoint);
    this.#ranks = Array.from({ length: size }, (_, i) => {
      const dpRank = start + i;
      const reader = new RankReader(events, `${id}/${dpRank}`);
      const endpoint = eventsAt?.[i];
      const port = endpoint === undefined ? null : new EventPort(endpoint, parts, (frames) => reader.take(frames));
      return { dpRank, port, replay: replayAt?.[i] ?? null, reader, probe: null };
    });
  }

  get contract(): ContractEvidence['contract'] {
    return this.#contract.contract;
  }

  /** Hashes that its ranks announced. */
  get hashes(): bigint[] {
    return this.#ranks.flatMap(({ reader }) => reader.result().hashes);
  }

  /** Asks its HTTP for everything. The model's name is the configured one, else the first that it lists. */
  async ask(model: string | null, hashing: Hashing, local: Tokenises | null): Promise<void> {
    this.#httpFault = await this.#health();
    this.#contract = await contractEvidence(this.spec, hashing, this.#parts);
    if (this.#httpFault !== null) return;
    const cards = await this.#cards();
    if (cards !== null) {
      const { models, adapters } = sortModels(cards, model ?? firstModel(cards));
      // Where the configured name is not among them, all that are nobody's child are models: another one, not an adapter.
      const base = models.length > 0 ? models : cards.filter(({ parent }) => parent === null).map(({ id }) => id);
      this.#models = { base, adapters: adapters.filter((name) => !base.includes(name)) };
      for (const { reader } of this.#ranks) reader.adapters = new Set(this.#models.adapters);
    }
    this.#tokenizing = await tokenizing(this.spec.url, this.#modelName(model), local, this.#parts);
  }

  /** Resolves when each event socket has connected, or has failed to once. */
  async settled(): Promise<void> {
    await Promise.all(this.#ranks.map(({ port }) => port?.settled));
  }

  /** Sends a small completion to each rank. */
  async complete(model: string | null, prompt: string): Promise<void> {
    if (this.#httpFault !== null) {
      for (const rank of this.#ranks) rank.probe = { fault: this.#httpFault };
      return;
    }
    for (const rank of this.#ranks) {
      rank.probe = { fault: await complete(this.spec, this.#modelName(model), rank.dpRank, prompt, this.#parts) };
    }
  }

  /** Everything that was seen. */
  async evidence(): Promise<WorkerEvidence> {
    const ranks = await Promise.all(
      this.#ranks.map(async ({ dpRank, port, replay, reader, probe }): Promise<RankEvidence> => {
        const [events, replied] = await Promise.all([
          port?.evidence() ?? null,
          replay === null ? null : askReplay(replay, this.#parts),
        ]);
        return { dpRank, events, replay: replied, heard: reader.result(), probe };
      }),
    );
    return {
      spec: this.spec,
      httpFault: this.#httpFault,
      models: this.#models,
      contract: this.#contract,
      ranks,
      tokenizing: this.#tokenizing,
    };
  }

  close(): void {
    for (const { port } of this.#ranks) port?.close();
  }

  #modelName(model: string | null): string | null {
    const listed = this.#models?.base ?? [];
    return model !== null && listed.includes(model) ? model : (listed[0] ?? model);
  }

  async #health(): Promise<string | null> {
    const url = `${this.spec.url}/health`;
    try {
      const { status } = await this.#get(url, HEALTH_BYTES);
      return status >= 200 && status <= 299 ? null : statusText(url, status);
    } catch (error) {
      return (error as Error).message;
    }
  }

  async #cards(): Promise<readonly ModelCard[] | null> {
    try {
      const { status, text } = await this.#get(`${this.spec.url}/v1/models`, MODELS_BYTES);
      return status === 200 ? readModels(text) : null;
    } catch {
      return null; // the check of models says that it was not to be had
    }
  }

  #get(url: string, bytes: number): ReturnType<typeof ask> {
    const { fetch, clock, signal } = this.#parts;
    return ask({ fetch, clock }, { url, body: null, time: ANSWER_MS, bytes, signal });
  }
}
