// Records streams: subscribers and the master's HTTP on one side, the recorder's decisions in the middle, files on the other. A thin shell:
// it starts everything, hands times in, and ends everything in order, so that nothing is left open and the last line is a summary.
import type { MoonrouteError } from '../errors.js';
import { RecordingFiles } from './record-files.js';
import { polledMaster, pollMaster } from './record-http.js';
import { Recorder, type RecordingSummary } from './recorder.js';
import { NOTE, type RecordedSource } from './recording.js';
import type { SocketHandlers } from './zmtp/socket.js';

/** A subscription to one publisher; after `close` its handlers are called no more. */
export interface Stream {
  open(): void;
  close(): void;
}

export interface RecordOptions {
  readonly sources: readonly RecordedSource[];
  /** The master's HTTP address, and how often it is asked; its lines are from the source of this name. */
  readonly http?: { readonly base: string; readonly everyMs: number; readonly from: string };
  readonly out: string;
  readonly gzip: boolean;
  readonly rotateBytes: number;
  readonly keep: number;
  readonly queueBytes?: number;
  readonly subscribe: (endpoint: string, handlers: SocketHandlers) => Stream;
}

/** A recording under way. */
export interface Recording {
  /** Counts so far. */
  summary(): RecordingSummary;
  /** Brings what is packed so far into the file. */
  flush(): void;
  /** Ends it; `why` stands in the last line. Resolves when everything is in the files. */
  stop(why: string): Promise<RecordingSummary>;
  /** Settles when the recording ended by itself, since the files could not be written. */
  readonly failed: Promise<MoonrouteError>;
}

/**
 * Starts a recording.
 * @throws ConfigError `record-exists`, `record-unwritable`, and what `subscribe` throws for an endpoint that can't be
 */
export async function startRecording(options: RecordOptions): Promise<Recording> {
  const { sources, http, out, gzip, rotateBytes, keep, queueBytes, subscribe } = options;
  const started = Date.now();
  const began = performance.now();
  const now = (): number => performance.now() - began;
  let tellFailure: (error: MoonrouteError) => void = () => undefined;
  const failed = new Promise<MoonrouteError>((resolve) => {
    tellFailure = resolve;
  });
  // Made before the files: what can't be subscribed to leaves no file behind.
  const streams = sources.map((source) => subscribe(source.endpoint, handlersOf(source.name)));
  const files = await RecordingFiles.open({
    out,
    gzip,
    landed: (bytes) => recorder.landed(bytes),
    failed: (error) => tellFailure(error),
  });
  const recorder = new Recorder(
    { sources, started, rotateBytes, keep, ...(queueBytes === undefined ? {} : { queueBytes }) },
    (step) => files.take(step),
  );
  function handlersOf(name: string): SocketHandlers {
    return {
      onMessage: (frames) => recorder.message(now(), name, frames),
      onEvent: ({ kind, ...more }) => recorder.monitor(now(), name, kind, more),
    };
  }
  for (const stream of streams) stream.open();
  const polls = new AbortController();
  const polling = http === undefined ? Promise.resolve() : pollAll(http, recorder, now, polls.signal);
  let stopping: Promise<RecordingSummary> | null = null;
  const stop = async (why: string): Promise<RecordingSummary> => {
    for (const stream of streams) stream.close();
    polls.abort();
    await polling;
    recorder.end(now(), why);
    await files.end();
    return recorder.summary();
  };
  return {
    summary: () => recorder.summary(),
    flush: () => files.flush(),
    stop: (why) => {
      stopping ??= stop(why);
      return stopping;
    },
    failed,
  };
}

/** Round after round, each at least `everyMs` after the beginning of the one before, until the signal ends them. */
async function pollAll(
  { base, everyMs, from }: NonNullable<RecordOptions['http']>,
  recorder: Recorder,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  const master = polledMaster(base);
  while (!signal.aborted) {
    const began = now();
    await pollMaster(
      master,
      {
        asking: () => recorder.monitor(now(), from, 'poll'),
        status: (body) => recorder.status(now(), from, body),
        keys: (keys, fingerprint) => recorder.keys(now(), from, keys, fingerprint),
        failed: (error) => recorder.note(now(), from, NOTE.httpError, { error }),
      },
      signal,
    );
    await waited(began + everyMs - now(), signal);
  }
}

function waited(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, ms));
    if (signal.aborted) done();
    else signal.addEventListener('abort', done);
  });
}
