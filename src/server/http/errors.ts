// Refusals as OpenAI words them: `{ error: { message, type, param, code } }`, so that every client library shows them as its own.
import { ConfigError, MoonrouteError } from '../../errors.js';

/** What becomes of a request that is not served: a status and a stable code. Its message shows nothing of what was asked. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly more: { readonly param?: string; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message);
  }

  /** The body of the answer. */
  body(): { readonly error: Readonly<Record<'message' | 'type' | 'code', string> & { param: string | null }> } {
    return {
      error: { message: this.message, type: typeOf(this.status), param: this.more.param ?? null, code: this.code },
    };
  }

  /** The answer. */
  response(headers: Readonly<Record<string, string>> = {}): Response {
    return new Response(JSON.stringify(this.body()), {
      status: this.status,
      headers: { 'content-type': 'application/json', ...this.more.headers, ...headers },
    });
  }
}

/** The client has gone before it was answered. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** What is returned for it; it reaches nobody. The number is nginx's. */
export function clientGoneResponse(): Response {
  return new Response(null, { status: 499 });
}

/** Statuses of this project's own codes, where 400 would mislead. */
const STATUS: Readonly<Record<string, number>> = {
  'no-workers': 503,
  'worker-address': 403,
  'router-full': 507,
  'too-many-workers': 507,
  'worker-overtaken': 409,
  'registry-closed': 503,
  'router-disposed': 503,
};

/** The refusal that an error of the router or the registry comes to; what was not foreseen is 500 and says nothing of itself. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (!(error instanceof MoonrouteError)) {
    return new ApiError(500, 'internal-error', 'something went wrong in the router; its log says what.');
  }
  const status = STATUS[error.code] ?? (error instanceof ConfigError || error.code !== 'route-reentered' ? 400 : 500);
  return new ApiError(status, error.code, error.message);
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}
