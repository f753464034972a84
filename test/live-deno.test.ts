// The live streams in Deno: warm from a replay and a reconcile, right through gaps, silent removals and restarts of a worker and a master that run in
// this process. Skipped, with a notice, where the zeromq package is not installed.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Fleet } from '../src/fleet/fleet.js';
import { complete, tokensOf, until, zeromq } from './support/fleet-worker.js';

const BLOCKS = 6;
const PROMPT = tokensOf(1, BLOCKS * 16 + 1);

/** How the streams in Deno stand. */
interface Said {
  readonly shared: number;
  readonly device: number;
  readonly gaps: number;
  readonly replayed: number;
  readonly restarts: number;
  readonly losses: number;
  readonly reconciled: boolean;
}

if (zeromq !== null) {
  test('Deno: replay, reconcile, gap, silent removal, restarts', async () => {
    const fleet = await Fleet.start({ workers: 1, worker: { latency: { timeScale: 0 } }, master: { generation: 'A' } });
    const worker = fleet.workers[0]!;
    const master = fleet.masters[0]!;
    let deno: ChildProcessWithoutNullStreams | null = null;
    try {
      await complete(worker.httpUrl, PROMPT, { max_tokens: 1 });
      const keys = [...master.truth()];
      assert.is(keys.length, BLOCKS);
      worker.evict(1000);
      const argument = JSON.stringify({
        contract: worker.descriptor,
        worker: { id: worker.id, events: worker.eventsEndpoints[0], replay: worker.replayEndpoints[0] },
        masters: [{ events: master.eventsEndpoint, http: master.httpUrl }],
        prompt: PROMPT,
      });
      deno = spawn('node_modules/.bin/deno', [
        'run',
        '--no-lock',
        '--no-remote',
        '--allow-read',
        '--allow-env',
        '--allow-net=127.0.0.1',
        'test/runtimes/deno-streams.js',
        argument,
      ]);
      let said: Said | null = null;
      let errors = '';
      createInterface({ input: deno.stdout }).on('line', (line) => {
        said = JSON.parse(line) as Said;
      });
      deno.stderr.on('data', (text) => {
        errors += text;
      });
      const sees = (what: string, holds: (said: Said) => boolean): Promise<void> =>
        until(`Deno to see ${what}; it says ${JSON.stringify(said)} ${errors}`, () => {
          assert.is(deno!.exitCode, null, errors);
          return said !== null && holds(said);
        });
      await sees(
        'what only the store holds',
        ({ shared, device, reconciled }) => shared === BLOCKS && device === 0 && reconciled,
      );
      master.batchRemove(keys, { force: true });
      await sees('a silent removal', ({ shared }) => shared === 0);
      worker.loseNext(1);
      await complete(worker.httpUrl, tokensOf(2, 65), { max_tokens: 1 });
      await complete(worker.httpUrl, tokensOf(3, 65), { max_tokens: 1 });
      await sees('a gap, and what the replay had', ({ gaps, replayed }) => gaps >= 1 && replayed >= 1);
      await worker.kill();
      await worker.revive();
      await complete(worker.httpUrl, tokensOf(4, 65), { max_tokens: 1 });
      await sees('a restart of the worker', ({ restarts }) => restarts >= 1);
      await master.restart();
      await sees('a restart of the master', ({ losses, shared }) => losses >= 1 && shared === 0);
    } finally {
      deno?.kill('SIGKILL');
      await fleet.close();
    }
  });
  test.run();
}
