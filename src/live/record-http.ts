// Asks the master for its status and its key list, again and again, for a recording: bodies as they come, bounded, and what went wrong. The
// status is read before the list and after it: only that tells whether the list stands for a known place in the stream.
import { createHash } from 'node:crypto';
import { MoonrouteError } from '../errors.js';
import { systemClock } from './clock.js';
import { MASTER_HTTP_LIMITS, MasterHttp, MasterHttpError } from './master-http.js';

/** 100,000 keys are 13 MB. They are kept whole here, to be written in pieces. */
const MAX_KEYS_BYTES = 64 << 20;
const LIST_MS = 10_000;

/** What is told of a round, each as it comes. */
export interface PollWatcher {
  /** A round begins; nothing has been asked yet. */
  asking(): void;
  status(body: string): void;
  /** @param fingerprint the same for the same list */
  keys(keys: readonly string[], fingerprint: string): void;
  failed(error: string): void;
}

/** The master whose admin address this is, like http://10.0.0.1:9003. */
export function polledMaster(base: string): MasterHttp {
  return new MasterHttp(base, systemClock, { ...MASTER_HTTP_LIMITS, listBytes: MAX_KEYS_BYTES, listTime: LIST_MS });
}

/**
 * One round: status, key list, status.
 * @param signal ends it early, without a word
 */
export async function pollMaster(http: MasterHttp, watcher: PollWatcher, signal: AbortSignal): Promise<void> {
  watcher.asking();
  try {
    watcher.status(await statusOf(http, signal));
    const decoder = new TextDecoder();
    let list = '';
    await http.keys((part) => {
      list += decoder.decode(part, { stream: true });
    }, signal);
    list += decoder.decode();
    if (signal.aborted) return;
    const keys = list.split(/\r?\n/).filter((key) => key !== '');
    watcher.keys(keys, createHash('sha256').update(list).digest('hex'));
    watcher.status(await statusOf(http, signal));
  } catch (error) {
    if (!(error instanceof MoonrouteError)) throw error;
    if (!signal.aborted) watcher.failed(error.message);
  }
}

async function statusOf(http: MasterHttp, signal: AbortSignal): Promise<string> {
  const text = await http.statusText(signal);
  if (text === null) throw new MasterHttpError('http-standby', 'the master is a standby');
  return text;
}
