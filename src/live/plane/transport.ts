// What an event plane does, whatever carries it. Payloads are bytes that the envelope codec (wire/envelope) made; a transport knows nothing of what is in them.

/** Name of a rank on a plane. */
export interface PlaneRank {
  readonly workerId: bigint;
  readonly dpRank: number;
}

/** One batch of events of one rank, as it came. */
export interface PlaneMessage {
  readonly rank: PlaneRank;
  readonly payload: Uint8Array;
  /** Where the transport keeps a log: the message's place in it. Null elsewhere. */
  readonly place: bigint | null;
}

/** What a transport tells of its connections; each is counted and logged with a limit by who listens. */
export type PlaneNotice =
  | { readonly kind: 'connected'; readonly to: string }
  /** Messages may be missed from here on, until `connected`. */
  | { readonly kind: 'lost'; readonly to: string; readonly detail: string }
  /** The log's beginning moved past what this consumer had read: something is missed for certain. */
  | { readonly kind: 'gap'; readonly detail: string }
  /** Something was refused or is wrong with the set-up; goes on trying. */
  | { readonly kind: 'trouble'; readonly detail: string };

/** A worker's side. */
export interface PlanePublisher {
  /** Where subscribers find it, without credentials: what `openPlaneSubscriber` takes. */
  readonly url: string;
  /** Longest payload, and longest answer to a recovery question, in bytes. May change with the connection; batch and page by it. */
  readonly maxPayload: number;
  /**
   * Hands one batch over. Resolves when the transport has taken it (JetStream: when it is stored), false when it could not: the batch is lost, its ids
   * are missed by readers, who recover. Calls are carried out in their order; at most `MAX_PENDING` bytes wait, beyond that false at once.
   */
  publish(rank: PlaneRank, payload: Uint8Array): Promise<boolean>;
  /** Answers recovery questions: bytes in, bytes out. */
  serve(answer: (question: Uint8Array) => Uint8Array | Promise<Uint8Array>): Promise<void>;
  readonly onNotice: ((notice: PlaneNotice) => void) | null;
  close(): Promise<void>;
}

/** A router's side. */
export interface PlaneSubscriber {
  /** Begins: every batch of every rank of the model, in order of each rank, from the log's beginning where there is one, else from now on. */
  open(handlers: {
    /** Where it returns a promise, the next batch waits for it, and what comes meanwhile is held back at its source. */
    onMessage(message: PlaneMessage): void | Promise<void>;
    onNotice(notice: PlaneNotice): void;
    /** Reports of other routers' load (and, where the transport can't tell, one's own). */
    onLoad(payload: Uint8Array): void;
  }): Promise<void>;
  /** Asks a rank's local indexer; resolves with the answer's bytes. @throws MoonrouteError `plane-unanswered` after `patience` ms, `plane-closed` */
  ask(rank: PlaneRank, question: Uint8Array, patience: number): Promise<Uint8Array>;
  /** Tells the other routers. Best effort. */
  publishLoad(payload: Uint8Array): void;
  close(): Promise<void>;
}
