// `moonroute simulate --ui`: what it serves, to whom, at which address, and what it refuses.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const MAIN = 'build/js/src/cli/main.js';
const ROW = '{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2]}\n';
const folder = mkdtempSync(join(tmpdir(), 'moonroute-ui-'));
const trace = join(folder, 'my "trace".jsonl');
writeFileSync(trace, ROW);
test.after(() => rmSync(folder, { recursive: true }));

async function served(args: readonly string[], work: (address: URL, child: ChildProcess) => Promise<void>) {
  const child = spawn(process.execPath, [MAIN, 'simulate', '--ui', '--open', 'no', ...args]);
  try {
    const [said] = (await once(child.stdout!, 'data')) as [Buffer];
    const address = /^moonroute simulator: (http:\S+)\n$/.exec(said.toString())?.[1];
    assert.ok(address, said.toString());
    await work(new URL(address), child);
  } finally {
    child.kill('SIGKILL');
  }
}

/** As another site's name would reach it. */
function statusFor(address: URL, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(new URL('/', address), { headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.on('error', reject).end();
  });
}

test('the page as it is built, on loopback; Ctrl-C ends it', () =>
  served([], async (address, child) => {
    assert.is(address.hostname, '127.0.0.1');
    assert.is(address.hash, '');
    const page = await (await fetch(address)).text();
    assert.match(page, /default-src 'none'; script-src/);
    assert.not.match(page, /connect-src|<meta name="moonroute-trace"/);
    assert.is((await fetch(new URL('/trace', address))).status, 404);
    assert.is(await statusFor(address, 'elsewhere.example'), 403);
    child.kill('SIGINT');
    assert.equal(await once(child, 'exit'), [0, null]);
  }));

test('options become the address, and a trace is served beside the page', () =>
  served(
    [trace, '--workers', '4', '--restart', 'store@1min', '--restart', 'worker:0@90s', '--port', '0'],
    async (address) => {
      const hash = '#curve=true&policy=kv,round-robin&workers=4&restart=store@1min,worker:0@90s';
      assert.is(decodeURIComponent(address.hash), hash);
      const page = await (await fetch(address)).text();
      assert.match(page, /default-src 'none'; connect-src 'self'; script-src/);
      assert.match(page, 'data-path="trace" data-name="my &quot;trace&quot;.jsonl"');
      assert.is(await (await fetch(new URL('/trace', address))).text(), ROW);
    },
  ));

for (const [args, refusal] of [
  [['--json'], /--json does not go with --ui/],
  [['--csv'], /--csv does not go with --ui/],
  [['--html', 'x.html'], /--html does not go with --ui/],
  [['--workers', '0'], /from 1 to 1024/],
  [['--requests', '5', trace], /--requests is for the built-in workload/],
  [[trace, trace], /one at a time/],
  [['-'], /standard input/],
  [['nowhere.jsonl'], /cannot read nowhere\.jsonl/],
  [['--port', '70000'], /no port/],
] as const)
  test(`refused: ${args.map((arg) => (arg === trace ? 'TRACE' : arg)).join(' ')}`, () => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [MAIN, 'simulate', '--ui', ...args], {
      encoding: 'utf8',
    });
    assert.is(status, 1);
    assert.is(stdout, '');
    assert.match(stderr, refusal);
  });

test.run();
