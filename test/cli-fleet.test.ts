// `moonroute fleet` as a person or a script meets it: endpoints that answer, a line that says it is simulated, an end by time or by signal.
import { spawn } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { complete, tokensOf, until, zeromq } from './support/fleet-worker.js';

const RUN = `import { fleetCommand } from './build/js/src/cli/fleet.js';
await fleetCommand().parseAsync(process.argv.slice(1), { from: 'user' });`;

/** Runs the command until `work` has seen enough, then ends it by `signal`, or waits for its own end. */
async function fleet(
  args: readonly string[],
  work: (out: () => string) => Promise<void> = async () => undefined,
  signal: NodeJS.Signals | null = null,
): Promise<{ readonly status: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', RUN, '--', ...args]);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const status = new Promise<number | null>((resolve) => child.on('close', resolve));
  try {
    await work(() => stdout);
    if (signal !== null) child.kill(signal);
    return { status: await status, stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

const linesOf = (text: string) => text.trim().split('\n');

test('--help has an example, the models, encodings and what may happen', async () => {
  const { status, stdout } = await fleet(['--help']);
  assert.is(status, 0);
  for (const text of [/Example:\n {2}moonroute fleet /, /sliding/, /array-fixed-5/, /worker-restart/, /[Ss]imulated/])
    assert.match(stdout, text);
});

for (const [args, text] of [
  [['--encoding', 'array-10'], /array-9/],
  [['--churn', 'fire=2s'], /gpu-evict/],
  [['--churn', 'gpu-evict'], /gpu-evict=2s/],
  [['--model', 'huge'], /full, sliding, mamba/],
  [['--workers', 'two'], /64/],
] as const) {
  test(`${args.join(' ')}: refused with what to write`, async () => {
    const { status, stdout, stderr } = await fleet(args);
    assert.is(status, 1);
    assert.is(stdout, '');
    assert.match(stderr, text);
  });
}

if (zeromq !== null) {
  test('a table of endpoints that says it is simulated; Ctrl-C ends it with the counters', async () => {
    const { status, stdout, stderr } = await fleet(
      ['--workers', '2', '--dp', '2', '--tp', '2', '--generation', 'A', '--standby', '--time-scale', '0'],
      async (out) => {
        await until('the table', () => /worker-1 rank 1.*tcp/.test(out()));
        const [url] = /http:\/\/\S+/.exec(out().slice(out().indexOf('worker-0')))!;
        assert.is((await complete(url, tokensOf(1, 50))).usage.prompt_tokens, 50);
      },
      'SIGINT',
    );
    assert.equal([status, stderr], [0, '']);
    assert.match(stdout, /^Simulated: no model computes here/);
    assert.match(stdout, /leader \(generation A\) +http:\/\/127\.0\.0\.1:\d+ +tcp:\/\/127\.0\.0\.1:\d+\n/);
    assert.match(stdout, /standby \(generation A\)/);
    assert.match(
      linesOf(stdout).at(-1)!,
      /^1 answers, 0 under way · 50 prompt tokens: 0 from GPUs, 0 from the store · 1 KV/,
    );
  });

  test('--json: endpoints first, then counters, an end by itself', async () => {
    const { status, stdout } = await fleet(
      [
        '--json',
        '--duration',
        '1s',
        '--every',
        '200ms',
        '--churn',
        'lose-message=50ms',
        '--model',
        'mamba',
        '--replay',
        'none',
      ],
      async (out) => {
        await until('the endpoints', () => out().includes('\n'));
        const { workers } = JSON.parse(linesOf(out())[0]!);
        assert.is((await fetch(`${workers[0].http}/health`)).status, 200);
        assert.equal(workers[0].replay, []);
      },
    );
    assert.is(status, 0);
    const lines = linesOf(stdout).map((line) => JSON.parse(line));
    assert.equal([lines[0].kind, lines[0].simulated, lines[0].workers.length], ['endpoints', true, 2]);
    const kinds = new Set(lines.map(({ kind }) => kind));
    assert.equal(kinds, new Set(['endpoints', 'counters', 'churn']));
    assert.is(lines.at(-1).kind, 'counters');
    assert.is(lines.at(-1).workers.length, 2);
  });

  test('a port that is taken is an error on stderr', async () => {
    await fleet(
      ['--json'],
      async (out) => {
        await until('the endpoints', () => out().includes('\n'));
        const { masters } = JSON.parse(linesOf(out())[0]!);
        const { status, stderr } = await fleet(['--port', new URL(masters[0].http).port]);
        assert.is(status, 1);
        assert.match(stderr, /can't (bind|listen)/);
      },
      'SIGTERM',
    );
  });
}

test.run();
