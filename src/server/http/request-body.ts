// The body of a request: JSON alone, under all bounds, read before anything is decided.
import { BodyShare } from './body-budget.js';
import { ApiError } from './errors.js';
import type { Exchange } from './exchange.js';
import { headerValue } from './headers.js';
import { type JsonObject, readJsonObject } from './json-text.js';
import type { HttpParts } from './parts.js';

/** A body with its bytes. `share` is to be ended when the bytes are not needed any more. */
export interface ReadBody extends JsonObject {
  readonly bytes: Uint8Array;
  readonly share: BodyShare;
}

/** Most headers: Node leaves out what is beyond a bound of its own, and so would change the request. */
const MAX_HEADERS = 256;

/**
 * Reads the body. Only what says that it is JSON is taken: a page of somebody else's in a browser can't say so unasked.
 * @throws ApiError 400, 408, 413, 415, 431, 503; ClientGone
 */
export async function readRequestBody(exchange: Exchange, { service, budget }: HttpParts): Promise<ReadBody> {
  const { headers } = exchange;
  if (headers.length > 2 * MAX_HEADERS) {
    throw new ApiError(431, 'too-many-headers', `the request has more than ${MAX_HEADERS} headers.`);
  }
  const type = (headerValue(headers, 'content-type') ?? '').split(';', 1)[0]!.trim().toLowerCase();
  if (type !== 'application/json') {
    throw new ApiError(415, 'not-json', 'send JSON, with the header `content-type: application/json`.');
  }
  if ((headerValue(headers, 'content-encoding') ?? 'identity').toLowerCase() !== 'identity') {
    throw new ApiError(415, 'encoded-body', 'the body is compressed; send it as it is.');
  }
  const { bodyBytes, bodyTime } = service.config.limits;
  const share = new BodyShare(budget);
  try {
    const bytes = await exchange.readBody({ bytes: bodyBytes, time: bodyTime, share });
    return { ...readJsonObject(bytes), bytes, share };
  } catch (error) {
    share.end();
    throw error;
  }
}
