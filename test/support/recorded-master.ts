// Plays a recording of a real Mooncake master as a stand-in for it: its messages over a real socket, which is dropped and bound again where
// the recording's subscriber saw that, and its HTTP bodies as they stood at that moment (data/README.md, mooncake-recordings).
//
// Two things keep the stand-in as honest as the master was. The recording's clock stands still at a recorded handshake until the subscriber under
// test is there, which may come back at another moment than the recorded one did. And bodies were sampled: a request that comes after a message
// and before the next sample waits for that sample, for the one before would deny what the stream has said.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import type { XPublisher } from 'zeromq';
import { type AdminReply, splitTarget } from '../../src/fleet/master/admin-replies.js';
import { AdminServer } from '../../src/fleet/master/admin-server.js';
import { bindTcp, loadZeromq, portOf, tcpEndpoint } from '../../src/fleet/sockets.js';

const FOLDER = 'test/fixtures/mooncake-recordings';
const HOST = '127.0.0.1';
/** How long a recorded handshake waits for a subscriber, and a port for its last owner. */
const PATIENCE_MS = 10_000;
const POLL_MS = 5;

/** One line of a recording. */
export type RecordingLine =
  | { readonly t: number; readonly kind: 'zmq'; readonly frames: readonly string[] }
  | { readonly t: number; readonly kind: 'monitor'; readonly event: string }
  | { readonly t: number; readonly kind: 'status'; readonly body: string }
  | {
      readonly t: number;
      readonly kind: 'keys';
      readonly n: number;
      readonly keys?: readonly string[];
      readonly same?: true;
    }
  | { readonly t: number; readonly kind: 'http-error'; readonly error: string };

/** Names of all recordings. */
export function recordingNames(): string[] {
  return readdirSync(FOLDER)
    .map((file) => file.replace(/\.jsonl\.gz$/, ''))
    .sort();
}

/** A recording's lines, in order of time. */
export function recordingLines(name: string): RecordingLine[] {
  const text = gunzipSync(readFileSync(join(FOLDER, `${name}.jsonl.gz`))).toString('utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RecordingLine);
}

/** The frames of all its messages. */
export function recordedMessages(lines: readonly RecordingLine[]): Uint8Array[][] {
  return lines.flatMap((line) => (line.kind === 'zmq' ? [framesOf(line.frames)] : []));
}

export interface RecordedMasterOptions {
  /** How many times faster than it was recorded. */
  readonly speed?: number;
  /** Subscribers that a recorded handshake waits for. */
  readonly subscribers?: number;
  /** Told after each sample of the key list, while the recording's clock stands still. */
  readonly onKeys?: (keys: ReadonlySet<string>, at: number) => void | Promise<void>;
}

/** A body as it was sampled last, and those who wait for its next sample. */
class Sampled {
  body: Uint8Array | null = null;
  /** A message has been played since. */
  #stale = false;
  /** Samples yet to come. */
  #left: number;
  #waiters: (() => void)[] = [];

  constructor(left: number) {
    this.#left = left;
  }

  sampled(body: Uint8Array): void {
    this.body = body;
    this.#left--;
    this.#stale = false;
    for (const done of this.#waiters.splice(0)) done();
  }

  spoil(): void {
    this.#stale = true;
  }

  /** Nobody waits any more. */
  end(): void {
    this.#left = 0;
    for (const done of this.#waiters.splice(0)) done();
  }

  async current(): Promise<Uint8Array | null> {
    if (this.#stale && this.#left > 0) await new Promise<void>((resolve) => this.#waiters.push(resolve));
    return this.body;
  }
}

export class RecordedMaster {
  readonly #lines: readonly RecordingLine[];
  readonly #options: RecordedMasterOptions;
  readonly #http: AdminServer;
  readonly #status: Sampled;
  readonly #keyList: Sampled;
  #keys: ReadonlySet<string> = new Set();
  #socket: XPublisher | null = null;
  #reading: Promise<void> = Promise.resolve();
  #port = 0;
  #subscriptions = 0;
  #failing = false;
  #closed = false;
  /** Recording time of the line played last, in milliseconds. */
  at = 0;
  ended = false;
  /** Messages played. */
  messages = 0;

  private constructor(lines: readonly RecordingLine[], options: RecordedMasterOptions) {
    this.#lines = lines;
    this.#options = options;
    const samples = (kind: RecordingLine['kind']) => lines.filter((line) => line.kind === kind).length;
    this.#status = new Sampled(samples('status'));
    this.#keyList = new Sampled(samples('keys'));
    this.#http = new AdminServer(HOST, 0, (_, target) => this.#answer(target));
  }

  /** Binds and listens; nothing is played before `play`. */
  static async start(name: string, options: RecordedMasterOptions = {}): Promise<RecordedMaster> {
    const master = new RecordedMaster(recordingLines(name), options);
    await master.#http.start();
    await master.#bind();
    return master;
  }

  get eventsEndpoint(): string {
    return tcpEndpoint(HOST, this.#port);
  }
  get httpUrl(): string {
    return this.#http.url;
  }
  /** Whether the event socket is bound. */
  get bound(): boolean {
    return this.#socket !== null;
  }
  /** The key list as it was sampled last; empty before the first. */
  keysNow(): ReadonlySet<string> {
    return this.#keys;
  }
  requests(path: string): number {
    return this.#http.requests(path);
  }

  /** Plays it all; resolves at its end. */
  async play(): Promise<void> {
    const { speed = 1 } = this.#options;
    let began = performance.now();
    for (const line of this.#lines) {
      const due = began + line.t / speed - performance.now();
      if (due >= 1) await wait(due);
      if (this.#closed) return;
      this.at = line.t;
      const before = performance.now();
      if (await this.#perform(line)) began += performance.now() - before;
    }
    this.#status.end();
    this.#keyList.end();
    this.ended = true;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#status.end();
    this.#keyList.end();
    await this.#unbind();
    await this.#http.stop();
  }

  /** True when the recording's clock stood still meanwhile. */
  async #perform(line: RecordingLine): Promise<boolean> {
    switch (line.kind) {
      case 'zmq':
        await this.#send(framesOf(line.frames));
        return false;
      case 'monitor':
        return await this.#monitored(line.event);
      case 'status':
        await this.#reachable();
        this.#status.sampled(Buffer.from(line.body));
        return false;
      case 'keys':
        await this.#reachable();
        if (line.keys !== undefined) this.#keys = new Set(line.keys);
        this.#keyList.sampled(Buffer.from([...this.#keys].map((key) => `${key}\n`).join('')));
        await this.#options.onKeys?.(this.#keys, line.t);
        return true;
      case 'http-error':
        if (line.error === 'ECONNREFUSED') await this.#http.stop();
        else this.#failing = true;
        return false;
    }
  }

  async #send(frames: Uint8Array[]): Promise<void> {
    this.#status.spoil();
    this.#keyList.spoil();
    await this.#socket?.send(frames);
    this.messages++;
  }

  async #monitored(event: string): Promise<boolean> {
    if (event === 'disconnect') await this.#unbind();
    else if (event === 'connect' && this.#socket === null) await this.#bind();
    else if (event === 'handshake') {
      const { subscribers = 1 } = this.#options;
      await this.#until('a subscriber', () => this.#closed || this.#subscriptions >= subscribers);
      return true;
    }
    return false;
  }

  async #reachable(): Promise<void> {
    this.#failing = false;
    if (!this.#http.running) await this.#http.start();
  }

  async #answer(target: string): Promise<AdminReply> {
    if (this.#failing) return { status: 500, type: 'text/plain', body: [] };
    const { path } = splitTarget(target);
    const sampled = path === '/kv_events/status' ? this.#status : path === '/get_all_keys' ? this.#keyList : null;
    if (sampled === null) return { status: 404, type: 'text/plain', body: [] };
    const body = await sampled.current();
    if (body === null) return { status: 503, type: 'text/plain', body: [Buffer.from('service plane is not active')] };
    return { status: 200, type: sampled === this.#status ? 'application/json' : 'text/plain', body: [body] };
  }

  async #bind(): Promise<void> {
    const { XPublisher } = await loadZeromq();
    for (const end = performance.now() + PATIENCE_MS; ; ) {
      const socket = new XPublisher({ linger: 0, verbosity: 'allSubs' });
      try {
        this.#port = portOf(await bindTcp(socket, HOST, this.#port));
        this.#socket = socket;
        this.#subscriptions = 0;
        this.#reading = this.#readSubscriptions(socket);
        return;
      } catch (error) {
        socket.close();
        if (performance.now() > end) throw error;
        await wait(POLL_MS);
      }
    }
  }

  async #unbind(): Promise<void> {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    await this.#reading;
  }

  async #readSubscriptions(socket: XPublisher): Promise<void> {
    for await (const [frame] of socket) if (frame?.[0] === 1) this.#subscriptions++;
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    for (const end = performance.now() + PATIENCE_MS; !holds(); ) {
      if (performance.now() > end) throw new Error(`waited ${PATIENCE_MS} ms for ${what} at ${this.at} ms`);
      await wait(POLL_MS);
    }
  }
}

function framesOf(frames: readonly string[]): Uint8Array[] {
  return frames.map((frame) => Buffer.from(frame, 'hex'));
}
