// Reconciles as a gateway lives through them: real sockets, a simulated master in a process of its own, and decisions that are wanted all the while.
// Measured is how long a reconcile takes and how long a decision has to wait meanwhile, beside the same time without one.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setImmediate as breathe, setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { validateContract } from '../src/contract/validate.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import { Sample } from './method/sample.js';
import type { Effort, Row } from './row.js';

const KEYS = 100_000;
const MOST_MS = 1000;
const MOST_WAIT_MS = 20;
const BLOCK = 16;
const QUIET_MS = 300;
const PREFIXES = [0, 1].map((rank) => `prod@Llama-3.1-70B-Instruct@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:0`);

/** Routes a request at every turn of the event loop. */
class Decisions {
  readonly #router: Router;
  readonly #tokens = Uint32Array.from({ length: 4096 }, (_, i) => i);
  #running = true;
  #longest = 0;
  #longestWork = 0;

  constructor(router: Router) {
    this.#router = router;
    void this.#run();
  }

  /** The longest wait since the last time that this was asked, and the most processor time that this process took during one. */
  longest(): { readonly wait: number; readonly work: number } {
    const longest = { wait: this.#longest, work: this.#longestWork };
    this.#longest = 0;
    this.#longestWork = 0;
    return longest;
  }
  end(): void {
    this.#running = false;
  }

  async #run(): Promise<void> {
    let worked = process.cpuUsage();
    for (let last = performance.now(); this.#running; ) {
      await breathe();
      this.#router.route({ tokens: this.#tokens, textOnly: true }).lease.cancel(0);
      const now = performance.now();
      const { user, system } = process.cpuUsage(worked);
      worked = process.cpuUsage();
      this.#longest = Math.max(this.#longest, now - last);
      this.#longestWork = Math.max(this.#longestWork, (user + system) / 1000);
      last = now;
    }
  }
}

interface Master {
  readonly child: ChildProcess;
  readonly events: string;
  readonly http: string;
}

async function startMaster(): Promise<Master> {
  const script = fileURLToPath(new URL('./live-master.js', import.meta.url));
  const child = spawn(process.execPath, [script, `${KEYS}`, ...PREFIXES], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, ...(JSON.parse(line) as { events: string; http: string }) };
}

async function routerOf(): Promise<Router> {
  const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' } });
  const contract = validateContract(
    descriptorFromCase({
      hash_block_size: BLOCK,
      coordinator_alignment: BLOCK,
      partial_hash_hits: false,
      main_event_block_size: BLOCK,
      groups: [{ group_id: 0, kind: 'full_attention', block_size: BLOCK, window: null, prefixes: PREFIXES }],
    }),
  );
  router.addWorker({ id: 0, contract });
  return router;
}

/** Reconciles of a live router, one after the other: how long each took, and what decisions waited. */
export async function liveSuite(effort: Effort): Promise<Row[]> {
  const { child, events, http } = await startMaster();
  const router = await routerOf();
  // Opening streams loads what Node loads at its first use. Nobody waits for decisions yet.
  await LiveStreams.open(router, { store: { masters: [{ events, http }] } }).close();
  const decisions = new Decisions(router);
  const took: number[] = [];
  const waits: number[] = [];
  const works: number[] = [];
  const steps: number[] = [];
  const quiet: number[] = [];
  try {
    for (let turn = 0; turn < effort.turns; turn++) {
      decisions.longest();
      await wait(QUIET_MS);
      quiet.push(decisions.longest().wait);
      // Streams of their own each time: the first reconcile comes at once, and no share of time holds it back.
      const live = LiveStreams.open(router, { store: { masters: [{ events, http }] } });
      while (live.status().store!.reconciled === 0) await wait(5);
      const { wait: waited, work } = decisions.longest();
      waits.push(waited);
      works.push(work);
      const { lastReconcile } = live.status().store!;
      if (lastReconcile!.placed !== KEYS) throw new Error(`${lastReconcile!.placed} of ${KEYS} keys were placed`);
      took.push(lastReconcile!.took);
      steps.push(lastReconcile!.step);
      await live.close();
    }
  } finally {
    decisions.end();
    child.kill();
  }
  const longest = new Sample(waits).at(1);
  return [
    {
      suite: `live reconcile of ${KEYS.toLocaleString('en')} keys over sockets, first request to last step`,
      core: new Sample(took),
      aim: `≤ ${MOST_MS} ms`,
      met: new Sample(took).at(1) <= MOST_MS,
      note: `final step ${new Sample(steps).median.toFixed(1)} ms`,
    },
    {
      suite: 'longest wait of a decision meanwhile',
      core: new Sample(waits),
      aim: `≤ ${MOST_WAIT_MS} ms`,
      met: longest <= MOST_WAIT_MS,
      note: `at most ${longest.toFixed(1)} ms, of which this process worked at most ${new Sample(works).at(1).toFixed(1)}; without a reconcile ${new Sample(quiet).median.toFixed(1)} ms, at most ${new Sample(quiet).at(1).toFixed(1)} ms`,
    },
  ];
}
