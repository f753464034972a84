// Which headers go on to a worker, and which come back. Headers are lists of names and values in turn, as they came: order, case and repetitions
// are kept. What concerns one connection alone stays on it (RFC 9110, 7.6.1), and so does what is between a client and this router.

/** Names and values in turn. */
export type HeaderList = readonly string[];

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What a worker must not get: the client's key, and what is told anew. The rank is the router's to say. */
const NOT_FORWARDED = new Set(['authorization', 'host', 'content-length', 'expect', 'x-data-parallel-rank']);

/** Our own answers: a worker can't speak in our name. */
const OURS = 'x-moonroute-';

/** What goes to a worker. */
export function requestHeaders(given: HeaderList, host: string, bodyBytes: number, dpRank: number | null): string[] {
  const headers = ['host', host, ...kept(given, (name) => !NOT_FORWARDED.has(name))];
  headers.push('content-length', String(bodyBytes));
  if (dpRank !== null) headers.push('X-data-parallel-rank', String(dpRank));
  return headers;
}

/** What comes back from a worker. */
export function responseHeaders(given: HeaderList, ours: Readonly<Record<string, string>>): string[] {
  return [...kept(given, (name) => !name.startsWith(OURS)), ...Object.entries(ours).flat()];
}

/** The first value of a header; null without one. */
export function headerValue(headers: HeaderList, name: string): string | null {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() === name) return headers[i + 1]!;
  }
  return null;
}

function kept(given: HeaderList, isKept: (name: string) => boolean): string[] {
  const named = namedByConnection(given);
  const headers: string[] = [];
  for (let i = 0; i < given.length; i += 2) {
    const name = given[i]!.toLowerCase();
    if (HOP_BY_HOP.has(name) || named?.has(name) === true || !isKept(name)) continue;
    headers.push(given[i]!, given[i + 1]!);
  }
  return headers;
}

/** Headers that `connection` declares to be about the connection; null for none. */
function namedByConnection(given: HeaderList): ReadonlySet<string> | null {
  let named: Set<string> | null = null;
  for (let i = 0; i < given.length; i += 2) {
    if (given[i]!.toLowerCase() !== 'connection' || /^(keep-alive|close)$/i.test(given[i + 1]!)) continue;
    named ??= new Set();
    for (const name of given[i + 1]!.split(',')) named.add(name.trim().toLowerCase());
  }
  return named;
}
