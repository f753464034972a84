// The simulator page's worker, driven without a browser: what it says while it runs, what it answers, and that it exports the very bytes that the command
// prints for the same settings.
import { File } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { builtInWorkload } from '../src/sim/workload.js';
import type { Answer, Ask, Settings } from '../src/web/simulator/messages.js';
import { RUNS_WITH_DETAILS, SimulatorWorker } from '../src/web/simulator/worker-simulator.js';

const MAIN = resolve('build/js/src/cli/main.js');
const folder = mkdtempSync(join(tmpdir(), 'moonroute-worker-'));
test.after(() => rmSync(folder, { recursive: true }));

type Kind = Answer['kind'];
type Of<K extends Kind> = Extract<Answer, { readonly kind: K }>;
type Question = Extract<Ask, { readonly ask: number }>;

/** A worker with all that it has said. */
class Page {
  readonly said: Answer[] = [];
  /** Called after each answer. */
  hear: (answer: Answer) => void = () => undefined;
  readonly worker: SimulatorWorker;
  #asked = 0;

  constructor() {
    this.worker = new SimulatorWorker({
      post: (answer, transfer) => {
        // As a message does: copied, or handed over.
        const message = structuredClone(answer, { transfer });
        this.said.push(message);
        this.hear(message);
      },
      now: () => performance.now(),
      turn: () => new Promise((resolve) => setImmediate(resolve)),
    });
  }

  async run(settings: Settings, trace: File | null = null, run = 1): Promise<Answer> {
    this.worker.take({ kind: 'run', run, settings, trace: trace as globalThis.File | null });
    await this.worker.idle;
    return this.said.findLast((answer) => answer.kind === 'finished' || answer.kind === 'failed')!;
  }

  async ask<K extends Question['kind']>(
    question: { readonly kind: K } & Omit<Extract<Question, { readonly kind: K }>, 'ask' | 'kind'>,
  ): Promise<Of<K> | Of<'refused'>> {
    const ask = ++this.#asked;
    const before = this.hear;
    const answer = new Promise<Answer>((resolve) => {
      this.hear = (said) => {
        before(said);
        if ('ask' in said && said.ask === ask) resolve(said);
      };
    });
    this.worker.take({ ...question, ask } as unknown as Ask);
    return (await answer) as Of<K> | Of<'refused'>;
  }

  of<K extends Kind>(kind: K): Of<K>[] {
    return this.said.filter((answer): answer is Of<K> => answer.kind === kind);
  }

  async exported(form: 'json' | 'csv' = 'json', run = 1): Promise<string> {
    const answer = await this.ask<'export'>({ kind: 'export', run, form });
    if (answer.kind === 'export') return answer.text;
    throw new Error(answer.text);
  }
}

function printed(args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'simulate', ...args], { cwd: folder });
  assert.is(status, 0, stderr.toString());
  return stdout.toString();
}

/** A file for the page, and the same beside the command. */
function traceFile(name: string, content: string | Uint8Array): File {
  writeFileSync(join(folder, name), content);
  return new File([content], name);
}

/** Texts that differ are shown where they do, for they are long. */
function assertSameText(found: string, wanted: string): void {
  if (found === wanted) return;
  const at = [...wanted].findIndex((letter, i) => found[i] !== letter);
  assert.is(found.slice(at - 100, at + 200), wanted.slice(at - 100, at + 200));
  assert.is(found.length, wanted.length);
}

/** The built-in workload in the rows of the FAST'25 release. */
const FAST25 = [...builtInWorkload({ requests: 120, idTokens: 512 })]
  .map(({ at, inputTokens, outputTokens, hashIds }) =>
    JSON.stringify({ timestamp: at, input_length: inputTokens, output_length: outputTokens, hash_ids: [...hashIds!] }),
  )
  .join('\n');

const SMALL: Settings = { requests: '150', workers: '3' };
const SMALL_ARGS = ['--requests', '150', '--workers', '3'];

test('the built-in workload: progress, a simulation for each policy, the curve, and the command’s bytes', async () => {
  const page = new Page();
  const finished = (await page.run(SMALL)) as Of<'finished'>;
  assert.is(finished.kind, 'finished');
  assert.equal(
    page
      .of('simulated')
      .map(({ simulation, result, picture }) => [simulation, result.runs.length, picture.policy, picture.finished]),
    [
      [0, 1, 'kv', true],
      [1, 2, 'round-robin', true],
    ],
  );
  assert.is(page.of('curve').length, 1);
  assert.equal(page.of('curve')[0]!.curve, finished.result.curves[0]);
  const progress = page.of('progress');
  assert.ok(progress.length >= 1);
  assert.equal(
    progress.map(
      ({ simulations, label, picture }) => simulations === 2 && /^(kv|round-robin)$/.test(label) && picture !== null,
    ),
    progress.map(() => true),
  );
  assertSameText(await page.exported(), printed([...SMALL_ARGS, '--json']));
  assertSameText(await page.exported('csv'), printed([...SMALL_ARGS, '--csv']));
});

test('a FAST’25 trace, plain and packed, by sweep and with its curve: the command’s bytes', async () => {
  const page = new Page();
  const rows: readonly (readonly [
    name: string,
    content: string | Uint8Array,
    settings: Settings,
    args: readonly string[],
  ])[] = [
    ['a.jsonl', `${FAST25}\n\n{"timestamp": "x"}\n`, { policy: 'kv' }, ['--policy', 'kv']],
    ['a.jsonl.gz', gzipSync(FAST25), { policy: 'ttft', limit: '70' }, ['--policy', 'ttft', '--limit', '70']],
    [
      'b.jsonl',
      FAST25,
      { policy: 'kv,random', sweep: 'store=0,40GB', curve: 'true', workers: '2', gpu: '9k' },
      ['--policy', 'kv,random', '--sweep', 'store=0,40GB', '--curve', '--workers', '2', '--gpu', '9k'],
    ],
    ['c.jsonl', FAST25, { sweep: 'store=auto' }, ['--sweep', 'store=auto']],
    ['d.csv', 'when,in\n5,100\n6,900\n', { columns: 'time=when,input=in' }, ['--columns', 'time=when,input=in']],
  ];
  for (const [run, [name, content, settings, args]] of rows.entries()) {
    const finished = await page.run(settings, traceFile(name, content), run);
    assert.is(finished.kind, 'finished', JSON.stringify(finished));
    assertSameText(await page.exported('json', run), printed([name, ...args, '--json']));
    assertSameText(await page.exported('csv', run), printed([name, ...args, '--csv']));
  }
});

test('questions are answered while it runs, and cancel ends it with what it has: as if the trace had ended there', async () => {
  const page = new Page();
  const asked: Promise<Answer>[] = [];
  page.hear = (answer) => {
    if (answer.kind !== 'progress' || asked.length > 0) return;
    assert.ok(answer.part !== null && answer.part > 0 && answer.part < 1);
    assert.ok(answer.picture!.requests > 0 && !answer.picture!.finished);
    asked.push(
      page.ask<'timeline'>({
        kind: 'timeline',
        run: 1,
        simulation: 0,
        place: 0,
        from: 0,
        to: 1e5,
        columns: 10,
        families: 3,
      }),
      page.ask<'requests'>({ kind: 'requests', run: 1, simulation: 0, order: 'slowest', from: 0, count: 5 }),
      page.ask<'picture'>({ kind: 'picture', run: 1, simulation: 0 }),
      page.ask<'requests'>({ kind: 'requests', run: 1, simulation: 1, order: 'slowest', from: 0, count: 5 }),
      page.ask<'export'>({ kind: 'export', run: 1, form: 'json' }),
      page.ask<'decision'>({ kind: 'decision', run: 1, simulation: 0, request: 2 }),
    );
    page.worker.take({ kind: 'cancel', run: 1 });
  };
  const finished = (await page.run({ requests: '1500' })) as Of<'finished'>;
  assert.equal(
    (await Promise.all(asked)).map(({ kind }) => kind),
    ['timeline', 'requests', 'picture', 'refused', 'refused', 'decision'],
  );
  assert.equal([finished.kind, finished.result.partial, finished.result.runs.length], ['finished', true, 1]);
  const { requests } = finished.result.traces[0]!;
  assert.ok(requests > 0 && requests < 1500);
  assert.is(finished.result.runs[0]!.report.completed, requests);
  const whole = printed(['--requests', '1500', '--policy', 'kv', '--limit', `${requests}`, '--json']);
  assertSameText((await page.exported()).replaceAll('"partial": true', '"partial": false'), whole);
});

test('requests, timeline and decision of a run that has ended', async () => {
  const page = new Page();
  await page.run({ ...SMALL, policy: 'kv', store: '30GB', gpu: '8k' });
  const list = await page.ask<'requests'>({
    kind: 'requests',
    run: 1,
    simulation: 0,
    order: 'most-fetched',
    from: 0,
    count: 3,
  });
  if (list.kind !== 'requests') return assert.unreachable(list.text);
  assert.equal([list.rows.length, list.total], [3, 150]);
  assert.ok(list.rows[0]!.dram > 0);
  const { request } = list.rows[0]!;
  const told = await page.ask<'decision'>({ kind: 'decision', run: 1, simulation: 0, request });
  if (told.kind !== 'decision') return assert.unreachable(told.text);
  assert.equal(told.account.row, list.rows[0]);
  assert.is(told.account.decision.candidates!.length, 3);
  assert.is(told.account.counterfactual!.worker, list.rows[0]!.runnerUp);
  for (const place of [0, 'store'] as const) {
    const view = await page.ask<'timeline'>({
      ...{ kind: 'timeline', run: 1, simulation: 0, place },
      ...{ from: 0, to: 600_000, columns: 100, families: 5 },
    });
    if (view.kind !== 'timeline') return assert.unreachable(view.text);
    assert.equal([view.view.place, view.view.total.held.length], [place, 100]);
    assert.ok(Math.max(...view.view.total.held) <= view.view.capacity);
  }
  const none = await page.ask<'decision'>({ kind: 'decision', run: 1, simulation: 0, request: 5000 });
  assert.equal([none.kind, none.kind === 'refused' && /was not routed/.test(none.text)], ['refused', true]);
});

test('what is refused: settings by their flag, traces by what is wrong with them', async () => {
  const page = new Page();
  const rows: readonly (readonly [Settings, File | null, code: string, flag: string | null, text: RegExp])[] = [
    [{ store: '50' }, null, 'quantity', 'store', /write it like 50GB/],
    [{ workers: '0' }, null, 'sim-workers-count', 'workers', /workers\.count is 0/],
    [{ requests: '5' }, traceFile('e.jsonl', FAST25), 'option-misplaced', 'requests', /--limit/],
    [{ 'core-edges': '2000M', requests: '5' }, null, 'limits-edges', 'core-edges', /./],
    [{}, traceFile('odd.txt', 'once upon a time\n'), 'trace-format', 'format', /odd\.txt: no known trace begins with/],
    [{}, traceFile('empty.csv', ''), 'trace-empty', null, /empty\.csv holds no request/],
    [{}, traceFile('cut.gz', gzipSync(FAST25).subarray(0, 90)), 'trace-gzip', null, /cut\.gz: .*damaged/],
    [{ 'block-size': '48' }, traceFile('f.jsonl', FAST25), 'sim-id-tokens', 'block-size', /512/],
  ];
  for (const [settings, trace, code, flag, text] of rows) {
    const answer = await page.run(settings, trace);
    if (answer.kind !== 'failed') return assert.unreachable(JSON.stringify(settings));
    assert.equal([answer.code, answer.flag], [code, flag]);
    assert.match(answer.text, text);
  }
  const { kind } = await page.ask<'export'>({ kind: 'export', run: 1, form: 'json' });
  assert.is(kind, 'refused');
});

test('runs follow one another; one that is forgotten says nothing more; of old ones only the figures stay', async () => {
  const page = new Page();
  const few: Settings = { requests: '20', policy: 'kv' };
  page.hear = (answer) => {
    if (answer.kind === 'progress' && answer.run === 100) page.worker.take({ kind: 'forget', run: 100 });
  };
  page.worker.take({ kind: 'run', run: 100, settings: { requests: '1000' }, trace: null });
  page.worker.take({ kind: 'run', run: 101, settings: few, trace: null });
  page.worker.take({ kind: 'run', run: 102, settings: few, trace: null });
  page.worker.take({ kind: 'forget', run: 101 });
  page.worker.take({ kind: 'cancel', run: 102 });
  await page.worker.idle;
  assert.equal(
    page.said.filter(({ kind }) => kind === 'finished').map((answer) => (answer as Of<'finished'>).run),
    [102],
  );
  assert.is(page.of('finished')[0]!.result.partial, true);
  for (let run = 0; run <= RUNS_WITH_DETAILS; run++) await page.run(few, null, run);
  const asked = async (run: number) =>
    (await page.ask<'requests'>({ kind: 'requests', run, simulation: 0, order: 'arrival', from: 0, count: 1 })).kind;
  assert.equal([await asked(0), await asked(1), await asked(RUNS_WITH_DETAILS)], ['refused', 'requests', 'requests']);
  assert.match(await page.exported('json', 0), /"completed": 20/);
});

test('a newer question about a decision takes the place of the one before', async () => {
  const page = new Page();
  await page.run({ ...SMALL, policy: 'kv' });
  const ask = (request: number) => page.ask<'decision'>({ kind: 'decision', run: 1, simulation: 0, request });
  const [first, second] = await Promise.all([ask(149), ask(3)]);
  assert.equal([first.kind, second.kind], ['refused', 'decision']);
});

test('a decision that nobody waits for any more is not simulated to its end', async () => {
  const page = new Page();
  await page.run({ ...SMALL, requests: '1000', policy: 'kv' });
  const asked = page.ask<'decision'>({ kind: 'decision', run: 1, simulation: 0, request: 999 });
  page.worker.take({ kind: 'withdraw', question: 1 });
  assert.is((await asked).kind, 'refused');
});

test.run();
