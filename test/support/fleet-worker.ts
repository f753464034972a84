// What the tests of simulated workers share: waiting for conditions, asking over HTTP, and the two kinds of sockets that routers open to a worker,
// from the zeromq package and so apart from this project's own client.
import type { MessageLike } from 'zeromq';
import { type ReplayReply, readReplayReply, replayRequest } from '../../src/wire/replay.js';
import { decodeWorkerMessage } from '../../src/wire/vllm.js';

/** The optional package; null where it is not installed, which CI does not allow. */
export const zeromq = await import('zeromq').catch(() => null);
if (zeromq === null && process.env['CI']) throw new Error('zeromq is not installed, and CI may not skip its tests');
if (zeromq === null) console.log('notice: zeromq is not installed; tests with real sockets are skipped');

const DEADLINE_MS = 10_000;

/** Waits until it holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + DEADLINE_MS; !(await holds()); ) {
    if (Date.now() > end) throw new Error(`waited ${DEADLINE_MS} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Token ids that no other `name` has. */
export function tokensOf(name: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => name * 10_000 + i);
}

/** What a simulated worker answers: usage and the truth behind it. */
export interface Answered {
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly moonroute: { readonly gpu_tokens: number; readonly store_tokens: number; readonly dp_rank: number };
  readonly choices: readonly { readonly text: string; readonly finish_reason: string }[];
}

export function post(url: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    body: JSON.stringify(body),
    ...init,
    headers: { 'content-type': 'application/json', ...init.headers },
  });
}

/** Asks for a completion of token ids. */
export async function complete(
  url: string,
  prompt: readonly number[],
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Answered> {
  const response = await post(`${url}/v1/completions`, { prompt, max_tokens: 4, ...fields });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as Answered;
}

/** A subscriber of one stream, with everything that it heard. */
export class Listener {
  readonly messages: Uint8Array[][] = [];
  readonly #socket: InstanceType<NonNullable<typeof zeromq>['Subscriber']>;
  readonly #receiving: Promise<void>;

  constructor(endpoint: string, onMessage: (frames: Uint8Array[]) => void = () => undefined) {
    const socket = new zeromq!.Subscriber({ receiveHighWaterMark: 0, linger: 0, reconnectInterval: 10 });
    this.#socket = socket;
    socket.subscribe('');
    socket.connect(endpoint);
    this.#receiving = (async () => {
      for await (const frames of socket) {
        this.messages.push(frames);
        onMessage(frames);
      }
    })();
  }

  get sequences(): number[] {
    return this.messages.map((frames) => Number(decodeWorkerMessage(frames).sequence));
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.#receiving;
  }
}

/** Asks a replay socket for everything from `start` on. Ends with the end marker, or with null for it when nothing more comes in time. */
export async function replayFrom(
  endpoint: string,
  start: bigint,
  waitMs = DEADLINE_MS,
  request: readonly MessageLike[] = replayRequest(start),
): Promise<{ readonly replies: ReplayReply[]; readonly frames: Uint8Array[][]; readonly ended: boolean }> {
  const dealer = new zeromq!.Dealer({ linger: 0, receiveTimeout: waitMs });
  dealer.connect(endpoint);
  const replies: ReplayReply[] = [];
  const frames: Uint8Array[][] = [];
  try {
    await dealer.send([...request]);
    for (;;) {
      frames.push(await dealer.receive());
      replies.push(readReplayReply(frames.at(-1)!));
      if (replies.at(-1)!.kind === 'end') return { replies, frames, ended: true };
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    return { replies, frames, ended: false };
  } finally {
    dealer.close();
  }
}
