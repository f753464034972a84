// A master that does everything it can do, at random and for long, and a router that listens: after every step each credited object must have been in
// the master at some instant within the evidence age. Over real sockets. MOONROUTE_SOAK=MINUTES runs on for longer, MOONROUTE_SEED repeats a run.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SimulatedMaster } from '../src/fleet/master.js';
import { until, zeromq } from './support/fleet-worker.js';
import { LivePool } from './support/live-pool.js';
import type { Prompt } from './support/messages.js';
import { Random } from './support/random.js';
import { TcpGate } from './support/tcp-gate.js';

const STEPS = 10_000;
const PROMPTS = 40;
/** Milliseconds. A tenth of it passes in some hundred steps, so that evidence does grow too old. */
const EVIDENCE_AGE = 1500;
/** A check may come late by as much as the process was held up since the last one, plus what timers add. */
const LATE = 150;
const RANKS = 2;
const soakMinutes = Number(process.env['MOONROUTE_SOAK'] ?? 0);
const seed = Number(process.env['MOONROUTE_SEED'] ?? 1);

/** Everything that may happen to a master and the connections to it, with its weight. */
type Act = readonly [weight: number, name: string, act: (world: World) => Promise<void> | void];

class World {
  readonly #seen = new Map<string, number>();
  readonly #last: number[] = [];

  constructor(
    readonly random: Random,
    readonly master: SimulatedMaster,
    readonly gate: TcpGate,
    readonly keys: readonly (readonly string[])[],
  ) {}

  get prompt(): readonly string[] {
    return this.random.pick(this.keys);
  }
  get key(): string {
    return this.random.pick(this.prompt);
  }

  /** Notes what is in the master now. */
  look(now: number): void {
    for (const key of this.master.truth()) this.#seen.set(key, now);
    this.#last.push(now);
    if (this.#last.length > 2) this.#last.shift();
  }

  /** How long it was held up since the look before the last. */
  get heldUp(): number {
    return this.#last.length < 2 ? 0 : this.#last[1]! - this.#last[0]!;
  }

  /** Whether a key was there within the evidence age. */
  wasThere(key: string, now: number): boolean {
    return now - (this.#seen.get(key) ?? Number.NEGATIVE_INFINITY) <= EVIDENCE_AGE + LATE + this.heldUp;
  }
}

/** Restarts as a master whose counters look like those of its last life. After drops none can, and it is a restart like others. */
async function looksContiguous({ master }: World): Promise<void> {
  if (master.counts!.droppedEvents === 0) await master.restartContiguously();
  else await master.restart();
}

const ACTS: readonly Act[] = [
  [
    300,
    'put',
    ({ master, prompt }) => {
      for (const key of prompt) master.putEnd(key, 'cpu', 1, { segment: 'one' });
    },
  ],
  [240, 'put one', ({ master, key }) => master.putEnd(key)],
  [160, 'remove', ({ master, key }) => master.remove(key, { force: true })],
  [80, 'upsert', ({ master, key }) => master.upsert(key, 3)],
  [50, 'batch remove', ({ master, prompt }) => master.batchRemove(prompt, { force: true })],
  [16, 'regex', ({ master, key }) => master.removeByRegex(key.slice(-12), { force: true })],
  [3, 'remove all', ({ master }) => master.removeAll({ force: true })],
  [60, 'evict', ({ master }) => master.evict(3)],
  [4, 'unmount', ({ master }) => master.unmountSegment('one')],
  [24, 'replica clear', ({ master, prompt }) => master.replicaClear(prompt)],
  [40, 'offload', ({ master, key }) => master.offload(key)],
  [40, 'evict disk', ({ master, key }) => master.evictDisk(key)],
  [40, 'on disk', ({ master, key }) => master.appearOnDisk(key)],
  [20, 'quota', ({ master }) => master.quotaEvict('default', 2)],
  [40, 'foreign', ({ master }) => master.burst(20)],
  [10, 'lose messages', ({ master, random }) => master.loseNextMessages(1 + random.int(3))],
  [4, 'fail sends', ({ master, random }) => master.failNextSends(1 + random.int(2))],
  [4, 'cut', ({ gate }) => gate.cut()],
  [2, 'overflow', ({ master }) => master.burst(3000)],
  [2, 'restart', ({ master }) => master.restart()],
  [2, 'restart with snapshot', ({ master }) => master.restart({ keep: 'snapshot' })],
  [2, 'restart that looks contiguous', looksContiguous],
  [3, 'HTTP slow', ({ master }) => master.setHttpFault({ kind: 'slow', bytesPerSecond: 2000 }, '/get_all_keys')],
  [3, 'HTTP cut short', ({ master }) => master.setHttpFault({ kind: 'truncated', share: 0.5 }, '/get_all_keys')],
  [3, 'HTTP 503', ({ master }) => master.setHttpFault({ kind: 'status', status: 503 })],
  [
    60,
    'HTTP well',
    ({ master }) => {
      master.setHttpFault(null);
      master.setHttpFault(null, '/get_all_keys');
    },
  ],
];
const WEIGHT = ACTS.reduce((sum, [weight]) => sum + weight, 0);

function drawAct(random: Random): Act {
  let left = random.int(WEIGHT);
  for (const act of ACTS) {
    left -= act[0];
    if (left < 0) return act;
  }
  throw new Error('no act');
}

/** Of so many steps the last ones are an outage: HTTP fails, the stream stays whole, and the oldest generation removes without a word. Then nothing but the
 *  evidence's age ends credit. */
const PHASE_STEPS = 2500;
const OUTAGE_STEPS = 1000;
const IN_OUTAGE: ReadonlySet<string> = new Set(['batch remove', 'regex', 'replica clear', 'quota', 'foreign']);
const inOutage = (step: number): boolean => step % PHASE_STEPS >= PHASE_STEPS - OUTAGE_STEPS;

function setOutage(master: SimulatedMaster, on: boolean): void {
  for (const path of [undefined, '/get_all_keys'])
    master.setHttpFault(on ? { kind: 'status', status: 500 } : null, path);
}

interface Tally {
  steps: number;
  credited: number;
  right: number;
  stale: number;
  acts: Record<string, number>;
}

async function soak(generation: 'A' | 'C', steps: number, until_: number): Promise<Tally> {
  const random = new Random(seed);
  const master = await SimulatedMaster.start({ generation, queueCapacity: 256 });
  const gate = await TcpGate.open(master.eventsEndpoint);
  const pool = await LivePool.open(
    { eventsEndpoint: gate.endpoint, httpUrl: master.httpUrl },
    {
      keeper: { pollEvery: 200, maxEvidenceAge: EVIDENCE_AGE, reconcileEvery: 400 },
      http: { silence: 300, listTime: 1000 },
      shape: { groups: [{ ranks: RANKS }] },
    },
  );
  const tally: Tally = { steps: 0, credited: 0, right: 0, stale: 0, acts: {} };
  try {
    const prompts: Prompt[] = Array.from({ length: PROMPTS }, (_, i) => pool.learned(i + 1, 2));
    const world = new World(
      random,
      master,
      gate,
      prompts.map((prompt) => pool.keys(prompt)),
    );
    const perBlock = pool.keys(prompts[0]!).length / 2;
    await until('the first reconcile', () => pool.store.reconciled > 0);
    /** Every credited object now. */
    const check = (name: string): void => {
      const now = performance.now();
      world.look(now);
      const truth = master.truth();
      for (const [i, prompt] of prompts.entries()) {
        const blocks = pool.credit(prompt);
        for (const key of world.keys[i]!.slice(0, blocks * perBlock)) {
          tally.credited++;
          if (truth.has(key)) tally.right++;
          else {
            tally.stale++;
            assert.ok(
              world.wasThere(key, now),
              `seed ${seed}, step ${tally.steps} (${name}): ${key} is credited and was not in the master for ${EVIDENCE_AGE} ms; ${JSON.stringify(pool.store, (_, value) => (typeof value === 'bigint' ? `${value}` : value))}`,
            );
          }
        }
      }
    };
    /** Everything ordered to be lost is lost, everything is stored, and a reconcile has confirmed it. */
    const settle = async ({ keys }: World): Promise<void> => {
      setOutage(master, false);
      for (let i = 0; i < 12; i++) {
        master.burst(1);
        await master.flushed();
      }
      for (const key of keys.flat()) master.putEnd(key, 'cpu', 1, { segment: 'one' });
      await until('credit for all', () => prompts.every((prompt) => pool.credit(prompt) === prompt.blocks));
      world.look(performance.now());
    };
    for (; tally.steps < steps || performance.now() < until_; tally.steps++) {
      const outage = inOutage(tally.steps);
      if (outage !== inOutage(tally.steps - 1)) {
        if (outage) await settle(world);
        setOutage(master, outage);
      }
      const [, name, act] = drawAct(random);
      if (outage && !IN_OUTAGE.has(name)) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        check(name);
        continue;
      }
      world.look(performance.now());
      try {
        await act(world);
      } catch (error) {
        throw new Error(`step ${tally.steps}, ${name}: ${(error as Error).stack}`);
      }
      tally.acts[name] = (tally.acts[name] ?? 0) + 1;
      // Some steps follow on each other at once, others leave time for what is under way.
      await new Promise((resolve) =>
        random.int(4) === 0 ? setTimeout(resolve, random.int(8)) : setImmediate(resolve),
      );
      check(name);
    }
    assert.is(master.queryKeyUses, 0);
  } finally {
    await pool.close();
    await gate.close();
    await master.kill();
  }
  return tally;
}

if (zeromq !== null) {
  for (const generation of ['A', 'C'] as const) {
    test(`generation ${generation}: ${STEPS / 2} random steps, every credited object was there within the evidence age`, async () => {
      const tally = await soak(generation, STEPS / 2, performance.now() + soakMinutes * 60_000);
      console.log(`  ${generation}: ${JSON.stringify(tally)}`);
      assert.ok(tally.right > 2 * tally.steps, 'something is credited, or nothing was tested');
      if (generation === 'A')
        assert.ok(tally.stale > 0, 'silent removals were credited for a moment, or nothing was tested');
    });
  }
  test.run();
}
