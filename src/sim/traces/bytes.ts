// The bytes of a trace as they come: from a stream or any iterable of chunks, unpacked where they are gzip. One chunk is held at a time.
import { MoonrouteError } from '../../errors.js';

/** Where a trace comes from; chunks may be of any size. */
export type TraceSource = AsyncIterable<Uint8Array> | Iterable<Uint8Array> | ReadableStream<Uint8Array>;

const GZIP_MAGIC = [0x1f, 0x8b] as const;

/**
 * The chunks of `source`, unpacked if the first two bytes are gzip's.
 * @param onGzip called before the first chunk of a packed source
 * @throws MoonrouteError `trace-gzip` when packed bytes are damaged or cut short
 */
export async function* unpacked(source: TraceSource, onGzip: () => void): AsyncGenerator<Uint8Array> {
  const chunks = chunksOf(source);
  try {
    let head = new Uint8Array(0);
    while (head.length < GZIP_MAGIC.length) {
      const next = await chunks.next();
      if (next.done) break;
      head = joined(head, next.value);
    }
    if (!GZIP_MAGIC.every((byte, i) => head[i] === byte)) {
      if (head.length > 0) yield head;
      yield* chunks;
      return;
    }
    onGzip();
    yield* gunzipped(head, chunks);
  } finally {
    await chunks.return(undefined);
  }
}

async function* gunzipped(head: Uint8Array, rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let fault: { readonly error: unknown } | null = null; // of the source, which is no fault of gzip
  let first: Uint8Array | null = head;
  const packed = new ReadableStream<BufferSource>({
    async pull(controller) {
      try {
        const next: IteratorResult<Uint8Array> = first === null ? await rest.next() : { done: false, value: first };
        first = null;
        if (next.done) controller.close();
        else controller.enqueue(next.value as Uint8Array<ArrayBuffer>);
      } catch (error) {
        fault = { error };
        controller.error(error);
      }
    },
  });
  const faultOf = (): { readonly error: unknown } | null => fault; // set in a callback, which narrowing does not see
  try {
    yield* chunksOf(packed.pipeThrough(new DecompressionStream('gzip')));
  } catch (error) {
    const sourceFault = faultOf();
    if (sourceFault !== null) throw sourceFault.error;
    const why = error instanceof Error ? error.message : String(error);
    throw new MoonrouteError(
      'trace-gzip',
      `the trace begins as gzip but can't be unpacked (${why}); it is cut short or damaged: fetch it again`,
      { cause: error },
    );
  }
}

/** Reads streams by their reader, since not every browser's streams are iterable; closes what it did not read to the end. */
export async function* chunksOf(source: TraceSource): AsyncGenerator<Uint8Array> {
  if (!('getReader' in source)) {
    yield* source;
    return;
  }
  const reader = source.getReader();
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      yield value;
    }
    ended = true;
  } finally {
    if (!ended) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
