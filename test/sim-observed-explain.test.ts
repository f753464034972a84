// Why this worker, and what if another: the simulation is repeated, so the decision is the one that was made, and the other way is simulated.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { checkSimConfig } from '../src/sim/config.js';
import type { SimConfigInput } from '../src/sim/index.js';
import { explainDecision } from '../src/sim/observed/explain.js';
import { ObservedRun } from '../src/sim/observed/observed-run.js';
import { simulate } from '../src/sim/simulate.js';
import { builtInWorkload } from '../src/sim/workload.js';

const requests = () => builtInWorkload({ requests: 150 });

test('to explain a decision changes nothing, random draws included', async () => {
  for (const config of [
    { workers: { count: 4 } },
    { workers: { count: 4 }, settings: { temperature: 3 } },
    { workers: { count: 4 }, policy: 'random' },
    { workers: { count: 4 }, policy: 'ttft', events: { loss: 0.02 } },
  ] satisfies SimConfigInput[]) {
    const plain = JSON.stringify(await simulate(config, requests()));
    const question = (request: number) => ({ explain: request % 2 === 0 });
    assert.is(JSON.stringify(await simulate(config, requests(), { question })), plain);
  }
});

test('the decision is the one that was made, with its candidates and reasons; the other way is the simulated one', async () => {
  for (const [policy, costUnit] of [
    ['kv', 'blocks'],
    ['ttft', 'ms'],
    ['round-robin', 'turns'],
    ['random', 'none'],
  ] as const) {
    const config = checkSimConfig({ policy, workers: { count: 3, gpuBlocks: 8000 }, store: { dramBytes: 40e9 } });
    const observed = new ObservedRun();
    await simulate(config, requests(), { observer: observed });
    for (const request of [0, 97, 149]) {
      const row = observed.row(request)!;
      const account = (await explainDecision({ config, open: async () => requests(), row }))!;
      const { decision, counterfactual } = account;
      assert.equal([account.row, account.costUnit], [row, costUnit]);
      assert.equal(
        [decision.worker.id, decision.cost, decision.runnerUp?.worker.id],
        [row.worker, row.cost, row.runnerUp],
      );
      assert.is(decision.candidates?.length, 3);
      assert.ok(Array.isArray(decision.reasons));
      assert.not.ok('lease' in decision);
      assert.equal(
        [counterfactual!.worker, counterfactual!.cost, counterfactual!.runnerUp, counterfactual!.at],
        [row.runnerUp, row.runnerUpCost, row.worker, row.at],
      );
      assert.ok(counterfactual!.firstTokenAt > counterfactual!.at);
      // The same way, simulated to its end.
      const other = new ObservedRun();
      const question = (asked: number) => (asked === request ? { allowed: [row.runnerUp] } : {});
      await simulate(config, requests(), { observer: other, question });
      const { begunAt, firstTokenAt, gpu, dram } = other.row(request)!;
      assert.equal(
        [counterfactual!.begunAt, counterfactual!.firstTokenAt, counterfactual!.gpu, counterfactual!.dram],
        [begunAt, firstTokenAt, gpu, dram],
      );
    }
  }
});

test('a request that a restart sent again: each of its decisions can be asked for', async () => {
  const config = checkSimConfig({
    workers: { count: 2, prefillTokensPerSecond: 4000 },
    restarts: Array.from({ length: 20 }, (_, i) => ({ at: i * 30_000, worker: 0 })),
  });
  const observed = new ObservedRun();
  await simulate(config, requests(), { observer: observed });
  const request = Array.from({ length: 150 }, (_, i) => i).find((i) => observed.decisionsOf(i) === 2)!;
  const row = observed.row(request)!;
  const open = async () => requests();
  const first = (await explainDecision({ config, open, row, turn: 1 }))!;
  const second = (await explainDecision({ config, open, row, turn: 2 }))!;
  assert.is(first.decision.worker.id, 0);
  assert.equal([second.decision.worker.id, second.decision.cost], [row.worker, row.cost]);
  assert.is(await explainDecision({ config, open, row, turn: 3 }), null);
});

test('one worker alone has no runner-up; a signal ends it', async () => {
  const config = checkSimConfig({ workers: { count: 1 } });
  const observed = new ObservedRun();
  await simulate(config, requests(), { observer: observed });
  const question = { config, open: async () => requests(), row: observed.row(5)! };
  const account = (await explainDecision(question))!;
  assert.equal([account.decision.runnerUp, account.counterfactual], [null, null]);
  const abort = new AbortController();
  abort.abort(new Error('enough'));
  try {
    await explainDecision({ ...question, signal: abort.signal });
    assert.unreachable();
  } catch (error) {
    assert.match((error as Error).message, /enough/);
  }
});

test.run();
