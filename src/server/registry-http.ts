// One bounded exchange with a worker's HTTP: a whole answer within a time and a size, and never anywhere else than asked, for a redirect leads past
// every check of addresses.
import { MoonrouteError } from '../errors.js';
import type { Clock } from '../live/clock.js';

/** What exchanges are made with. */
export interface HttpParts {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

export interface Question {
  readonly url: string;
  /** A JSON text to post; null for GET. */
  readonly body: string | null;
  /** Milliseconds for all of it. */
  readonly time: number;
  /** Most bytes of the answer, unpacked. */
  readonly bytes: number;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** An exchange that brought no answer: `http-refused` (nobody listens), `http-unreachable`, `http-slow`, `http-too-large`, `http-redirect`, `http-given-up`. */
export class WorkerHttpError extends MoonrouteError {}

/** Asks. An answer of any status but a redirect is one. @throws WorkerHttpError */
export async function ask({ fetch, clock }: HttpParts, question: Question): Promise<HttpAnswer> {
  const { url, body, time, bytes, signal } = question;
  const controller = new AbortController();
  let ended: WorkerHttpError | null = null;
  const end = (code: string, words: string): void => {
    ended ??= new WorkerHttpError(code, `${url}: ${words}`);
    controller.abort();
  };
  const giveUp = (): void => end('http-given-up', 'given up');
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp);
  const stopTimer = clock.after(time, () => end('http-slow', `no whole answer after ${time} ms`));
  try {
    const response = await fetch(url, {
      redirect: 'manual',
      signal: controller.signal,
      ...(body === null ? {} : { method: 'POST', body, headers: { 'content-type': 'application/json' } }),
    });
    if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
      throw new WorkerHttpError('http-redirect', `${url} redirects (status ${response.status}), which is not followed`);
    }
    return { status: response.status, text: await textOf(response, url, bytes) };
  } catch (error) {
    if (ended !== null) throw ended;
    if (error instanceof WorkerHttpError) throw error;
    const cause = causeOf(error);
    throw new WorkerHttpError(cause === 'ECONNREFUSED' ? 'http-refused' : 'http-unreachable', `${url}: ${cause}`);
  } finally {
    stopTimer();
    signal.removeEventListener('abort', giveUp);
    // What is left of a body is not wanted. Nothing, where all was read.
    controller.abort();
  }
}

async function textOf(response: Response, url: string, most: number): Promise<string> {
  if (response.body === null) return '';
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > most) throw new WorkerHttpError('http-too-large', `${url} answers with more than ${most} bytes`);
    text += decoder.decode(value, { stream: true });
  }
}

/** A status that is no success, in words. */
export function statusText(url: string, status: number): string {
  return `${url} answers with status ${status}`;
}

/** The system's word for what went wrong. */
function causeOf(error: unknown): string {
  const { cause, message } = error as { readonly cause?: { readonly code?: unknown }; readonly message?: unknown };
  return String(cause?.code ?? message ?? error);
}
