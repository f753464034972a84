// A reader of the PromQL that our dashboards use: numbers, selectors, ranges, `+ - * /`, functions, and aggregations with `by`. It says which metrics
// and labels a query names, and which labels its result has; anything that it does not know is an error, so nothing passes unread.

/** `name{label=~"…"}[range]` as it stands in a query. */
export interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
  /** Stands below `rate` or `increase`, which are for counters alone. */
  readonly counted: boolean;
}

/** What a query names. */
export interface Query {
  readonly selectors: readonly Selector[];
  /** Labels that an aggregation keeps, each with the metrics below it. */
  readonly groups: readonly { readonly label: string; readonly metrics: readonly string[] }[];
  /** Labels of the result by aggregation; null where the outermost step keeps all. */
  readonly kept: readonly string[] | null;
}

/** Functions with the number of their arguments. */
const FUNCTIONS: Readonly<Record<string, number>> = { rate: 1, increase: 1, scalar: 1, histogram_quantile: 2 };
const AGGREGATIONS = ['sum', 'max', 'min', 'avg', 'count'];
const TOKEN = /\s*(?:([a-zA-Z_:][\w:]*)|(\d+(?:\.\d+)?)|("(?:[^"\\]|\\.)*")|(\[[^\]]+\])|(=~|!~|!=|[-+*/(){},=]))/y;
const RANGE = /^\[(?:\$__rate_interval|\d+[smhd])\]$/;

type Kept = readonly string[] | null;

/** @throws Error for what is no query of the kind */
export function readQuery(text: string): Query {
  const tokens = tokensOf(text);
  const selectors: Selector[] = [];
  const groups: { label: string; metrics: readonly string[] }[] = [];
  let at = 0;
  const fail = (expected: string): never => {
    throw new Error(`expected ${expected} at '${tokens.slice(at).join(' ')}' in ${text}`);
  };
  const accept = (token: string): boolean => tokens[at] === token && at++ >= 0;
  const expect = (token: string): void => {
    if (!accept(token)) fail(`'${token}'`);
  };
  const name = (): string => (/^[a-zA-Z_:]/.test(tokens[at] ?? '') ? tokens[at++]! : fail('a name'));

  const listOf = <T>(close: string, item: () => T): T[] => {
    const found: T[] = [];
    while (!accept(close)) {
      if (found.length > 0) expect(',');
      found.push(item());
    }
    return found;
  };
  const matcher = (): string => {
    const label = name();
    if (!['=', '=~', '!=', '!~'].includes(tokens[at++] ?? '')) fail('a comparison');
    if (!tokens[at++]?.startsWith('"')) fail('a text');
    return label;
  };
  const selector = (metric: string, counted: boolean): Kept => {
    const labels = accept('{') ? listOf('}', matcher) : [];
    const range = tokens[at]?.startsWith('[') ? tokens[at++]! : null;
    if (counted ? range === null : range !== null) fail(counted ? 'a range' : 'no range');
    if (range !== null && !RANGE.test(range)) fail('a known range');
    selectors.push({ metric, labels, counted });
    return null;
  };
  const aggregation = (): Kept => {
    const hasLabels = accept('by');
    if (hasLabels) expect('(');
    const by = hasLabels ? listOf(')', name) : [];
    const from = selectors.length;
    expect('(');
    expression(false);
    expect(')');
    const metrics = selectors.slice(from).map(({ metric }) => metric);
    groups.push(...by.map((label) => ({ label, metrics })));
    return by;
  };
  const primary = (counted: boolean): Kept => {
    if (accept('(')) {
      const kept = expression(counted);
      expect(')');
      return kept;
    }
    if (/^\d/.test(tokens[at] ?? '')) {
      at++;
      return [];
    }
    const word = name();
    if (AGGREGATIONS.includes(word)) return aggregation();
    const known = FUNCTIONS[word];
    if (known === undefined) return selector(word, counted);
    expect('(');
    const results = listOf(')', () => expression(word === 'rate' || word === 'increase'));
    if (results.length !== known) fail(`${known} arguments of ${word}`);
    if (word === 'scalar') return [];
    // A quantile takes the buckets' bounds away.
    return word === 'histogram_quantile' ? (results[1]?.filter((label) => label !== 'le') ?? null) : null;
  };
  const expression = (counted: boolean): Kept => {
    let kept = primary(counted);
    while (['+', '-', '*', '/'].includes(tokens[at] ?? '')) {
      at++;
      const right = primary(counted);
      // A number, or a scalar, takes no labels away.
      if (kept !== null && kept.length === 0) kept = right;
    }
    return kept;
  };

  const kept = expression(false);
  if (at < tokens.length) fail('the end');
  return { selectors, groups, kept };
}

function tokensOf(text: string): string[] {
  const found: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw new Error(`unreadable: '${text.slice(from)}'`);
    found.push(match[0].trim());
  }
  return found;
}
