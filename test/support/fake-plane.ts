// An event plane in one process, for tests of the router's side: publishers with real local indexers, whose messages a test may lose, and routers' load.
import { PrefixIndex } from '../../src/core/prefix-index.js';
import { MoonrouteError } from '../../src/errors.js';
import { LocalIndexer } from '../../src/live/plane/publish/local-indexer.js';
import type { PlaneNotice, PlaneRank, PlaneSubscriber } from '../../src/live/plane/transport.js';
import {
  decodeRecoveryQuestion,
  encodeEvents,
  encodeRecoveryAnswer,
  type RouterEvent,
} from '../../src/wire/envelope/index.js';
import { type EventWords, planeEvent } from './plane-events.js';

type Handlers = Parameters<PlaneSubscriber['open']>[0];

/** One rank's publisher. */
export class FakePublisher {
  #nextId = 1n;
  /** Whether it answers questions. */
  answers = true;
  asked = 0;

  private constructor(
    readonly plane: FakePlane,
    readonly rank: PlaneRank,
    readonly indexer: LocalIndexer,
  ) {}

  static async start(plane: FakePlane, workerId: bigint, dpRank = 0): Promise<FakePublisher> {
    const index = await PrefixIndex.create({ bytes: 4 << 20, ranks: 1, provenance: true });
    const publisher = new FakePublisher(plane, { workerId, dpRank }, new LocalIndexer({ workerId, dpRank, index }));
    plane.publishers.set(`${workerId}/${dpRank}`, publisher);
    return publisher;
  }

  /** Something happened in the worker; `lost`: the plane does not bring it. */
  emit(data: RouterEvent['data'], words: EventWords & { readonly lost?: boolean } = {}): RouterEvent {
    const { lost = false, ...rest } = words;
    const event = planeEvent(this.#nextId++, data, { ...this.rank, ...rest });
    this.indexer.apply(event);
    if (!lost) this.plane.send(this.rank, encodeEvents([event]));
    return event;
  }
}

/** What all routers of a test are connected to. */
export class FakePlane {
  readonly publishers = new Map<string, FakePublisher>();
  readonly #routers = new Set<{ handlers: Handlers; place: bigint }>();
  /** Batches that the log keeps; null where there is none. */
  log: { readonly rank: PlaneRank; readonly payload: Uint8Array }[] | null = null;

  send(rank: PlaneRank, payload: Uint8Array): void {
    this.log?.push({ rank, payload });
    const place = this.log === null ? null : BigInt(this.log.length);
    for (const { handlers } of this.#routers) void handlers.onMessage({ rank, payload, place });
  }

  notice(notice: PlaneNotice): void {
    for (const { handlers } of this.#routers) handlers.onNotice(notice);
  }

  /** A router's side. */
  subscriber(): PlaneSubscriber & { failsToOpen: number; readonly isOpen: boolean } {
    const routers = this.#routers;
    const { publishers } = this;
    const plane = this;
    let own: { handlers: Handlers; place: bigint } | null = null;
    return {
      failsToOpen: 0,
      get isOpen() {
        return own !== null;
      },
      async open(handlers) {
        if (this.failsToOpen-- > 0) throw new MoonrouteError('plane-closed', 'nobody there');
        own = { handlers, place: 0n };
        routers.add(own);
        for (const [i, { rank, payload }] of (plane.log ?? []).entries()) {
          await handlers.onMessage({ rank, payload, place: BigInt(i + 1) });
        }
      },
      async ask(rank, question) {
        const publisher = publishers.get(`${rank.workerId}/${rank.dpRank}`);
        if (publisher !== undefined) publisher.asked++;
        if (!publisher?.answers) throw new MoonrouteError('plane-unanswered', 'no answer');
        return encodeRecoveryAnswer(publisher.indexer.answer(decodeRecoveryQuestion(question), 0));
      },
      publishLoad(payload) {
        for (const router of routers) router.handlers.onLoad(payload);
      },
      async close() {
        if (own !== null) routers.delete(own);
        own = null;
      },
    };
  }
}
