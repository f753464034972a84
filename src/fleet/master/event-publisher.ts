// The publisher of one life of the master: its queue, and the PUB socket while it is bound. It sends whatever waits as soon as it comes to
// it, which in one thread is after the synchronous work that filled the queue: puts made in one go share messages, as a BatchPutEnd's do.
//
// The socket is an XPUB that reads its subscriptions, so that a test can wait for its subscriber instead of sleeping; on the wire there is no
// difference. Without a socket messages go nowhere and count as published, as they do for the real one without subscribers.
import { setImmediate as turn } from 'node:timers/promises';
import type { XPublisher } from 'zeromq';
import { ConfigError, MoonrouteError } from '../../errors.js';
import { bindTcp, loadZeromq } from '../sockets.js';
import type { EventQueue, QueuedMessage } from './event-queue.js';
import type { Announcement } from './types.js';

/** Messages that wait for one slow subscriber before more are lost to it (the real publisher's `ZMQ_SNDHWM`). */
export const DEFAULT_SEND_HIGH_WATER_MARK = 10_000;
/** How long a port may stay taken by the life before. */
const REBIND_MS = 2_000;
const REBIND_EVERY_MS = 10;
/** Messages sent before others in this thread get their turn: at most 1,024 events, some milliseconds. */
const MESSAGES_A_TURN = 16;

export class EventPublisher {
  readonly #queue: EventQueue;
  readonly #now: () => number;
  #socket: XPublisher | null = null;
  #reading: Promise<void> | null = null;
  #draining: Promise<void> | null = null;
  #closed = false;
  #toFail = 0;
  #toLose = 0;
  readonly #waiters = new Set<{ readonly count: number; readonly settle: (arrived: boolean) => void }>();
  /** Subscriptions that have arrived since it was bound. */
  subscriptions = 0;

  constructor(queue: EventQueue, now: () => number) {
    this.#queue = queue;
    this.#now = now;
  }

  get queue(): EventQueue {
    return this.#queue;
  }

  /** Binds, and says where. A port of the life before is waited for. @throws ConfigError `zeromq-missing`, `bind-failed` */
  async bind(host: string, port: number, sendHighWaterMark: number): Promise<string> {
    const zeromq = await loadZeromq();
    for (const end = Date.now() + REBIND_MS; ; ) {
      const socket = new zeromq.XPublisher({ linger: 0, sendHighWaterMark, verbosity: 'allSubs' });
      try {
        const endpoint = await bindTcp(socket, host, port);
        if (this.#closed) throw new MoonrouteError('master-unavailable', `the master ended while it bound ${endpoint}`);
        this.#socket = socket;
        this.#reading = this.#readSubscriptions(socket);
        return endpoint;
      } catch (error) {
        socket.close();
        if (port === 0 || !(error instanceof ConfigError) || Date.now() > end) throw error;
        await new Promise((resolve) => setTimeout(resolve, REBIND_EVERY_MS));
      }
    }
  }

  publish(event: Announcement): void {
    this.#queue.push(event);
    this.#draining ??= this.#drain();
  }

  /** The next messages are refused by the socket: their numbers are spent, their events count as dropped. */
  failNext(messages: number): void {
    this.#toFail += messages;
  }

  /** The next messages are lost on their way, as beyond a high water mark: they count as published. */
  loseNext(messages: number): void {
    this.#toLose += messages;
  }

  /** Resolves when nothing waits. */
  async flushed(): Promise<void> {
    while (this.#draining !== null) await this.#draining;
  }

  /** Resolves when that many subscriptions have arrived since it was bound. @throws MoonrouteError `no-subscription` */
  subscribed(count: number, timeoutMs: number): Promise<void> {
    if (this.subscriptions >= count) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const settle = (arrived: boolean) => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
        if (arrived) return resolve();
        const text = `wanted ${count} subscriptions within ${timeoutMs} ms, got ${this.subscriptions}`;
        reject(new MoonrouteError('no-subscription', this.#closed ? `${text} before the master ended` : text));
      };
      const timer = setTimeout(() => settle(false), timeoutMs);
      const waiter = { count, settle };
      this.#waiters.add(waiter);
    });
  }

  /** Ends it as a kill does: what waits, here or in the socket, is lost. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { settle } of [...this.#waiters]) settle(false);
    this.#socket?.close();
    await this.#draining;
    await this.#reading;
    this.#socket = null;
  }

  async #drain(): Promise<void> {
    await undefined; // after the synchronous work that filled the queue
    let sent = 0;
    for (let message = this.#take(); message !== null; message = this.#take()) {
      if (++sent % MESSAGES_A_TURN === 0) await turn();
      if (this.#toFail > 0) {
        this.#toFail--;
        this.#queue.failed(message);
      } else if (this.#toLose > 0 || this.#socket === null) {
        this.#toLose = Math.max(0, this.#toLose - 1);
        this.#queue.sent(message);
      } else await this.#send(this.#socket, message);
    }
    this.#draining = null;
  }

  #take(): QueuedMessage | null {
    return this.#closed ? null : this.#queue.next(this.#now());
  }

  async #send(socket: XPublisher, message: QueuedMessage): Promise<void> {
    try {
      await socket.send(message.frames as Uint8Array[]);
      this.#queue.sent(message);
    } catch {
      this.#queue.failed(message);
    }
  }

  async #readSubscriptions(socket: XPublisher): Promise<void> {
    try {
      for await (const [frame] of socket) {
        if (frame?.[0] !== 1) continue;
        this.subscriptions++;
        for (const { count, settle } of [...this.#waiters]) if (count <= this.subscriptions) settle(true);
      }
    } catch (error) {
      if (!this.#closed) throw error;
    }
  }
}
