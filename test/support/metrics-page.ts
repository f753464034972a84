// A page of metrics as Prometheus reads it.

export interface PageSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricsPage {
  readonly text: string;
  readonly samples: readonly PageSample[];
  /** Kinds by family. */
  readonly kinds: ReadonlyMap<string, string>;
  find(name: string, labels?: Readonly<Record<string, string>>): PageSample[];
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

/** `Nan` is what prom-client writes of times that were never measured; Prometheus reads it. */
const NUMBER = /^(?:Nan|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** @throws Error for a line that is none */
export function metricsPage(text: string): MetricsPage {
  const samples: PageSample[] = [];
  const kinds = new Map<string, string>();
  for (const line of text.split('\n')) {
    const kind = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (kind !== null) kinds.set(kind[1]!, kind[2]!);
    if (line === '' || line.startsWith('#')) continue;
    const [, name, labels = '', value] = LINE.exec(line) ?? [];
    if (name === undefined || !NUMBER.test(value!)) throw new Error(`no sample: ${line}`);
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, text!]);
    samples.push({
      name,
      labels: Object.fromEntries(pairs),
      value: Number(value!.replace('Nan', 'NaN').replace('Inf', 'Infinity')),
    });
  }
  const find: MetricsPage['find'] = (name, labels = {}) =>
    samples.filter(
      (one) => one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value),
    );
  return {
    text,
    samples,
    kinds,
    find,
    sum: (name, labels) => find(name, labels).reduce((all, { value }) => all + value, 0),
  };
}
