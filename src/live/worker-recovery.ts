// One worker rank's event stream, kept whole: what was missed is asked for at the worker's replay socket, and what can't be had again costs
// the rank its index part. A pure state machine (spec/kv-events.md 1.2, 1.3): the shell brings items and replies and carries out what is asked.
//
// After every (re)connection the replay is asked from the last batch applied, that one included. A publisher of the same life sends it
// again, byte for byte, and then what was missed. One that began anew has another batch of that number, or none: so a restart is seen even
// where its counters look contiguous. While a replay runs, live messages wait in their inbox, so an older batch is never applied after a newer one.
import { WireError } from '../errors.js';
import { writeSequence } from '../wire/frames.js';
import { ReplayCursor, type ReplayReply, readReplayReply } from '../wire/replay.js';
import { splitWorkerFrames } from '../wire/vllm.js';

/** Why the index part of a rank was emptied. */
export type RebuildCause =
  | 'restarted' //      the worker began anew
  | 'gap' //            messages were missed, and there is no replay socket
  | 'evicted' //        likewise, and the worker's buffer no longer holds them
  | 'hole' //           likewise, and the worker could not send them
  | 'unanswered' //     likewise, and the replay socket does not answer
  | 'mismatch' //       the replay socket does not have what came live: it is of another life, or of another worker
  | 'reconnected' //    the connection broke, and without a replay nothing says what was missed
  | 'stale' //          the connection has been down for too long
  | 'unreadable' //     a message could not be read
  | 'lost-removal'; //  a removal within a message could not be read

/** What recovery asks of the shell. */
export interface RecoveryActions {
  /** Hands a message to the router; whether a removal in it was lost, and whether it could be read at all. */
  apply(frames: readonly Uint8Array[]): { readonly lostRemoval: boolean; readonly unreadable: boolean };
  /** Empties the rank's index part; with `newLife` what was kept of its publisher goes too. */
  rebuild(cause: RebuildCause, newLife: boolean): void;
  /** Asks the replay socket for the batches from `start` on; an earlier question is given up. No end comes: `retry` or `failed`. */
  ask(start: bigint): void;
  /** The replay socket speaks for another life than the live messages did: drops those that wait, and subscribes anew. */
  resubscribe(): void;
}

/** Counts since the stream was opened. */
export interface RecoveryCounts {
  applied: number;
  /** Of those, batches that a replay brought. */
  replayed: number;
  duplicates: number;
  /** Times that live messages did not follow on each other. */
  gaps: number;
  replays: number;
  replayFailures: number;
  /** Restarts of the worker that were noticed. */
  restarts: number;
}

interface Awaited {
  readonly sequence: bigint;
  readonly payload: Uint8Array;
  found: boolean;
}

const EMPTY = new Uint8Array(0);
/** A worker may begin anew between message and replay; three times in a row is a wrong address. */
const MISMATCHES_BORNE = 3;
/** Batches of a replay that live ones are told by: vLLM keeps 10,000. Older ones came live before the replay was asked. */
const PRINTS_KEPT = 65_536;

/** Keeps one stream whole. */
export class WorkerRecovery {
  readonly #actions: RecoveryActions;
  readonly #canReplay: boolean;
  readonly #rebuilds = new Map<RebuildCause, number>();
  readonly counts: RecoveryCounts = {
    applied: 0,
    replayed: 0,
    duplicates: 0,
    gaps: 0,
    replays: 0,
    replayFailures: 0,
    restarts: 0,
  };
  /** The batch applied last, null before the first of a life. Its bytes tell one life from another. */
  #last: { readonly sequence: bigint; readonly payload: Uint8Array } | null = null;
  /** A replay has said that there is no batch yet: the first one will be number 0. */
  #beforeFirst = false;
  #cursor: ReplayCursor | null = null;
  /** Replays that did not have the live message which they were asked for, since the last that had. */
  #mismatches = 0;
  /** The rest of the running replay belongs to a question that is no longer ours: its end starts the one from 0. */
  #askAnew = false;
  /**
   * The live message that showed the gap which the running replay is to fill. A worker of the same life has it in its buffer, so the replay must
   * bring it too, byte for byte; or it is of another life than the replay.
   */
  #awaited: Awaited | null = null;
  /** What the last replay brought, by sequence, as a number for its bytes: live messages that came meanwhile are known by it. */
  readonly #prints = new Map<bigint, number>();

  constructor(actions: RecoveryActions, { canReplay }: { readonly canReplay: boolean }) {
    this.#actions = actions;
    this.#canReplay = canReplay;
  }

  /** Whether live messages have to wait. */
  get replaying(): boolean {
    return this.#cursor !== null;
  }
  /** The sequence applied last. */
  get lastSequence(): bigint | null {
    return this.#last?.sequence ?? null;
  }
  /** Whether gaps are filled from the replay socket: not where it has shown to be another worker's. */
  get #replays(): boolean {
    return this.#canReplay && this.#mismatches < MISMATCHES_BORNE;
  }
  get rebuilds(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#rebuilds);
  }

  /** The subscription stands (again): whatever was said before is missed. */
  connected(): void {
    if (this.#replays) this.#ask(null);
    else if (this.#last !== null) this.#restart('reconnected');
  }

  /** The connection has been down for so long that what is known of the rank is worth nothing. */
  stale(): void {
    this.#mismatches = 0; // whatever comes back is asked anew
    if (this.#last !== null) this.#restart('stale');
  }

  /**
   * Takes a live message. False when it has to wait for a replay that this call has begun: bring it again once `replaying` is over.
   */
  message(frames: readonly Uint8Array[]): boolean {
    const read = framesRead(frames);
    if (read === null) {
      this.#actions.apply(frames); // which counts it
      this.#lose('unreadable');
      return true;
    }
    const { sequence, payload } = read;
    const last = this.#last;
    const next = last === null ? (this.#beforeFirst ? 0n : sequence) : last.sequence + 1n;
    if (sequence === next) this.#follow(frames, sequence, payload);
    else if (sequence === last?.sequence ? same(payload, last.payload) : this.#wasReplayed(sequence, payload)) {
      this.counts.duplicates++;
    } else {
      this.counts.gaps++;
      if (this.#replays) {
        this.#ask({ sequence, payload, found: false });
        return false;
      }
      this.#jump(frames, sequence, payload);
    }
    return true;
  }

  /** Takes a message of the replay socket; false when it can't be read, which is for the shell to `retry` or call failed. */
  reply(frames: readonly Uint8Array[]): boolean {
    const cursor = this.#cursor;
    if (cursor === null) return true;
    try {
      const reply = readReplayReply(frames);
      if (this.#askAnew) {
        if (reply.kind === 'end') this.#askFromStart();
      } else if (reply.kind === 'batch') this.#replayed(cursor, reply);
      else this.#ended(cursor, reply);
      return true;
    } catch (error) {
      if (error instanceof WireError) return false;
      throw error;
    }
  }

  /** The running replay can't be had: live messages go on, and what they do not follow on is lost. */
  failed(): void {
    if (this.#cursor === null) return;
    this.counts.replayFailures++;
    this.#cursor = null;
    this.#awaited = null;
    this.#beforeFirst = false;
    // Whether the worker began anew is unknown as well, so nothing of it is kept. Before the first batch there is nothing to keep.
    if (this.#last !== null) this.#restart('unanswered');
  }

  /** Asks the running question again, from behind what it has brought so far. */
  retry(): void {
    if (this.#cursor !== null) this.#ask(this.#awaited);
  }

  #ask(awaited: Awaited | null): void {
    this.counts.replays++;
    this.#awaited = awaited;
    this.#askAnew = false;
    this.#prints.clear();
    const start = this.#last?.sequence ?? 0n;
    this.#cursor = new ReplayCursor(start);
    this.#actions.ask(start);
  }

  /** The worker began anew: its buffer is asked for from the start, and what waits from its last life is worth nothing. */
  #askFromStart(): void {
    this.#restart('restarted');
    this.#actions.resubscribe();
    this.#ask(null);
  }

  #replayed(cursor: ReplayCursor, reply: Extract<ReplayReply, { kind: 'batch' }>): void {
    const { sequence, payload } = reply;
    const last = this.#last;
    const awaited = this.#awaited;
    if (awaited !== null && sequence === awaited.sequence && same(payload, awaited.payload)) {
      awaited.found = true;
      this.#mismatches = 0;
    }
    const step = cursor.take(reply);
    if (step.kind !== 'apply') {
      this.counts.duplicates++;
      return;
    }
    if (last !== null && sequence === last.sequence) {
      // The batch that was asked for only to be recognised.
      if (!same(payload, last.payload)) this.#askAnew = true;
      return;
    }
    // The first batch ever need not be 0: what came before is unknown, and nothing was built on it.
    if (step.missing !== null && last !== null) this.#lose(step.missing.cause === 'hole' ? 'hole' : 'evicted');
    this.counts.replayed++;
    this.#prints.set(sequence, printOf(payload));
    if (this.#prints.size > PRINTS_KEPT) this.#prints.delete(this.#prints.keys().next().value!);
    this.#apply([reply.topic ?? EMPTY, writeSequence(sequence), payload], sequence, payload);
  }

  #ended(cursor: ReplayCursor, reply: Extract<ReplayReply, { kind: 'end' }>): void {
    cursor.take(reply);
    const awaited = this.#awaited;
    // A life that goes on always has its newest batch.
    if (this.#last !== null && cursor.applied === 0) {
      this.#askFromStart();
      return;
    }
    this.#cursor = null;
    this.#awaited = null;
    if (cursor.applied === 0) {
      // Either nothing has been sent yet, or the worker keeps no buffer: then the message that waits is as good a beginning as any.
      this.#beforeFirst = awaited === null;
      return;
    }
    if (awaited !== null && !awaited.found) {
      // Whose batches those were is unknown, so nothing of them is kept.
      this.#mismatches++;
      this.#restart('mismatch');
      this.#actions.resubscribe();
    }
  }

  /** Whether the replay brought this live message, byte for byte. */
  #wasReplayed(sequence: bigint, payload: Uint8Array): boolean {
    return this.#prints.get(sequence) === printOf(payload);
  }

  #follow(frames: readonly Uint8Array[], sequence: bigint, payload: Uint8Array): void {
    this.#beforeFirst = false;
    this.#prints.clear();
    this.#apply(frames, sequence, payload);
  }

  /** A live message that does not follow on the last one, and nobody can be asked why. */
  #jump(frames: readonly Uint8Array[], sequence: bigint, payload: Uint8Array): void {
    if (sequence <= this.#last!.sequence) this.#restart('restarted');
    else this.#lose('gap');
    this.#follow(frames, sequence, payload);
  }

  #apply(frames: readonly Uint8Array[], sequence: bigint, payload: Uint8Array): void {
    this.#last = { sequence, payload };
    this.counts.applied++;
    const { lostRemoval, unreadable } = this.#actions.apply(frames);
    if (unreadable) this.#lose('unreadable');
    else if (lostRemoval) this.#lose('lost-removal');
  }

  #lose(cause: RebuildCause): void {
    this.#count(cause);
    // Where the batch to recognise the worker by is gone from its buffer, it may be another life as well.
    this.#actions.rebuild(cause, cause === 'evicted');
  }

  /** Nothing is left of what the worker said before. */
  #restart(cause: RebuildCause): void {
    this.#count(cause);
    if (cause === 'restarted') this.counts.restarts++;
    this.#last = null;
    this.#beforeFirst = false;
    this.#prints.clear();
    this.#actions.rebuild(cause, true);
  }

  #count(cause: RebuildCause): void {
    this.#rebuilds.set(cause, (this.#rebuilds.get(cause) ?? 0) + 1);
  }
}

function framesRead(frames: readonly Uint8Array[]): { sequence: bigint; payload: Uint8Array } | null {
  try {
    return splitWorkerFrames(frames);
  } catch (error) {
    if (error instanceof WireError) return null;
    throw error;
  }
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** 32 bits that tell batches of one sequence apart (FNV-1a). Not against malice: who can forge batches can send any. */
function printOf(payload: Uint8Array): number {
  let print = 0x811c9dc5;
  for (let i = 0; i < payload.length; i++) print = Math.imul(print ^ payload[i]!, 0x01000193);
  return print >>> 0;
}
