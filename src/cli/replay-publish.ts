// `moonroute replay --publish`: sends what was recorded again, from PUB sockets on loopback, a socket for each source, frames as they were.
// Messages are never dropped here: a subscriber that is slow makes it slow. Losses are not played: sockets stay connected.
import { Buffer } from 'node:buffer';
import { ConfigError } from '../errors.js';
import type { Pace } from './replay-pace.js';
import { type ReplayFile, timeline } from './replay-read.js';

type ZeroMq = typeof import('zeromq');
type Publisher = InstanceType<ZeroMq['XPublisher']>;

/** As vLLM's own publisher has it. */
const HIGH_WATER_MARK = 100_000;
/** How long the last messages may take to leave. */
const LINGER_MS = 10_000;
/** How long to wait where a subscriber has no room. */
const FULL_WAIT_MS = 2;
const MAX_PORT = 65_535;
/** Sockets at once. */
const MAX_SOCKETS = 256;
/** First byte of what a subscriber sends to subscribe. */
const SUBSCRIBES = 1;

export interface PublishOptions {
  /** Of the first socket; each further one has the next. Null: free ones. */
  readonly port: number | null;
  /** Whether to send only when each socket has a subscriber. */
  readonly waitForSubscriber: boolean;
  readonly pace: Pace;
  /** Messages that may wait for one subscriber. Default 100,000. */
  readonly highWaterMark?: number;
  /** Told of each socket, before anything is sent. */
  readonly bound: (name: string, endpoint: string) => void;
  /** Told when all sockets are bound that are known of, before subscribers are waited for. */
  readonly ready: () => void;
}

/** Messages sent, by source. */
export type Sent = Readonly<Record<string, number>>;

interface Outlet {
  readonly socket: Publisher;
  /** Resolves when somebody has subscribed. */
  readonly subscribed: Promise<void>;
  sent: number;
}

/**
 * Publishes groups of files, one after the other.
 * @throws ConfigError `zeromq-missing`, `publish-bind`, `too-many-sources`
 */
export async function publishAll(groups: readonly ReplayFile[][], options: PublishOptions): Promise<Sent> {
  const zeromq = await import('zeromq').catch(() => {
    throw new ConfigError('zeromq-missing', '--publish needs the zeromq package: npm install zeromq');
  });
  const outlets = new Map<string, Outlet>();
  const open = async (name: string): Promise<Outlet> => {
    const outlet = await openOutlet(zeromq, outlets.size, options);
    outlets.set(name, outlet);
    options.bound(name, outlet.socket.lastEndpoint!);
    return outlet;
  };
  try {
    for (const name of namesOf(groups.flat())) await open(name);
    options.ready();
    if (options.waitForSubscriber) await Promise.all([...outlets.values()].map(({ subscribed }) => subscribed));
    for (const group of groups) {
      for await (const { recorded, file, at } of timeline(group)) {
        if (recorded.type !== 'message') continue;
        const wait = options.pace.until(at);
        if (wait !== null) await wait;
        const name = recorded.from ?? file.name;
        const outlet = outlets.get(name) ?? (await open(name));
        await send(outlet.socket, recorded.frames);
        outlet.sent++;
      }
    }
  } finally {
    for (const { socket } of outlets.values()) socket.close();
  }
  return Object.fromEntries([...outlets].map(([name, { sent }]) => [name, sent]));
}

/** Sends a message as soon as every subscriber has room for it: with `noDrop`, libzmq refuses it until then. */
async function send(socket: Publisher, frames: readonly Uint8Array[]): Promise<void> {
  const buffers = frames.map(bufferOf);
  for (;;) {
    try {
      await socket.send(buffers);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, FULL_WAIT_MS));
  }
}

/** Sources that headers name, and files without a header. */
function namesOf(files: readonly ReplayFile[]): string[] {
  const names = files.flatMap(({ header, name }) => header?.sources.map((source) => source.name) ?? [name]);
  return [...new Set(names)];
}

async function openOutlet(zeromq: ZeroMq, place: number, options: PublishOptions): Promise<Outlet> {
  const { port, highWaterMark = HIGH_WATER_MARK } = options;
  if (place >= MAX_SOCKETS)
    throw new ConfigError('too-many-sources', `more than ${MAX_SOCKETS} sources are recorded; replay fewer files`);
  const socket = new zeromq.XPublisher({ linger: LINGER_MS, sendHighWaterMark: highWaterMark, noDrop: true });
  const address = `tcp://127.0.0.1:${port === null ? '*' : port + place}`;
  try {
    if (port !== null && port + place > MAX_PORT) throw new Error('there is no such port');
    await socket.bind(address);
  } catch (error) {
    socket.close();
    throw new ConfigError('publish-bind', `cannot publish on ${address}: ${(error as Error).message}`);
  }
  return { socket, subscribed: subscriptionOf(socket), sent: 0 };
}

/** Hears what subscribers say, the first of which counts, until the socket is closed. */
function subscriptionOf(socket: Publisher): Promise<void> {
  return new Promise((resolve) => {
    const listen = async (): Promise<void> => {
      for await (const [frame] of socket) if (frame?.[0] === SUBSCRIBES) resolve();
    };
    listen().catch(() => undefined); // the socket was closed
  });
}

const bufferOf = ({ buffer, byteOffset, length }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, length);
