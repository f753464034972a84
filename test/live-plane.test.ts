// A whole pool on an event plane: simulated workers, a `moonroute publish` at each, a nats-server with JetStream, three routers as processes of their
// own, and beside them a router that the workers feed directly. Under load, one after the other is killed without warning and started again: within five
// seconds all hold the same, and no router ever counts on what the direct one would not: not for a moment on blocks of which the workers' own messages teach
// nothing (some prompts are only asked for with a salt), and of what they teach only while the store has it.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { sharedNumbers } from '../src/core/numbers.js';
import type { NormalisedStored } from '../src/events/normaliser.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { Fleet } from '../src/fleet/fleet.js';
import { blockHashes } from '../src/index.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import type { WorkerId } from '../src/router/worker-info.js';
import { complete, zeromq } from './support/fleet-worker.js';
import { hasNats, NatsServer } from './support/nats.js';
import { dumpedSet } from './support/prefix-dumps.js';
import { Random } from './support/random.js';

const BLOCK = 16;
const WORKERS = 3;
const ROUTERS = 3;
const PROMPTS = 12;
/** The last prompts, which share nothing with others, are asked for with a salt only: nobody may learn anything of them. */
const SALTED = 2;
const isSalted = (prompt: number): boolean => prompt >= PROMPTS - SALTED;
const MODEL = 'org/pool model';
const WITHIN_MS = 5000;
const GIVE_UP_MS = 40_000;
const WATCH_MS = 10;
/** What a router counts on, the direct one counted on within this time before: no longer is anything on its way. */
const LAG_MS = WITHIN_MS;
/** How long a router may count on more, being ahead of the direct one in one stream and behind in another. */
const MOMENT_MS = 2000;
const LEASES = 2;
const LOAD_GOOD_FOR_MS = 3000;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Patient: processes start slowly where a machine is busy. */
async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + GIVE_UP_MS; !holds(); await pause(5)) {
    if (Date.now() > end) throw new Error(`waited ${GIVE_UP_MS} ms for ${what}`);
  }
}

/** By prompt: each worker's blocks of the GPU and of the store. */
type Reaches = readonly (readonly (readonly [id: string, device: number, shared: number])[])[];

interface Said {
  readonly at: number;
  readonly digests: readonly string[];
  readonly reaches: Reaches;
  readonly warm: boolean;
  readonly foreign: number;
  /** Lives of its publisher that it saw begin, by worker. */
  readonly lives: readonly number[];
  readonly ranks: unknown;
}

/** A process that says lines of JSON. */
class Part<T> {
  #child: ChildProcess | null = null;
  said: T | null = null;
  running = false;
  errors = '';
  /** Hears every line. */
  onSaid: (said: T) => void = () => {};

  constructor(
    readonly name: string,
    readonly args: () => readonly string[],
  ) {}

  start(): void {
    this.said = null;
    this.running = false;
    const child = spawn(process.execPath, this.args(), { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (this.#child !== child) return;
      this.running = true;
      if (line === '') return;
      this.said = JSON.parse(line) as T;
      this.onSaid(this.said);
    });
    child.stderr!.on('data', (chunk) => {
      this.errors = (this.errors + chunk).slice(-4000);
    });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    this.said = null;
    if (child === null || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }
}

/** Prompts that share beginnings. */
const tokensOf = (prompt: number): number[] => {
  const tokens: number[] = [];
  const add = (name: number, blocks: number) => {
    for (let token = 0; token < blocks * BLOCK; token++) tokens.push(name * 1000 + token);
  };
  if (isSalted(prompt)) {
    add(200 + prompt, 12);
    return [...tokens, 7];
  }
  add(1 + (prompt % 3), 4);
  add(10 + (prompt >> 1), 4);
  add(100 + prompt, 4);
  return [...tokens, 7];
};

/** What the workers' own messages teach, by the rule and in plain Maps: the block behind a block, by what it holds. */
class Taught {
  readonly #events = new WorkerEvents();
  readonly #behind = new Map<string, bigint>();

  take(id: WorkerId, frames: readonly Uint8Array[]): void {
    for (const event of this.#events.read(id, frames).events) {
      if (event.kind !== 'stored' || event.tier !== 'device' || event.ineligible !== null) continue;
      if (event.namespace === null) this.#learn(event);
    }
  }

  #learn({ event }: NormalisedStored): void {
    let parent = event.hasParent ? `${(BigInt(event.parentHigh) << 32n) | BigInt(event.parentLow)}` : '';
    const { tokens } = event.place(sharedNumbers());
    const locals = blockHashes(tokens.slice(event.tokensAt, event.tokensAt + event.tokenCount), BLOCK);
    for (const [i, hash] of event.blockHashes.low64.entries()) {
      this.#behind.set(`${parent}/${locals[i]}`, hash);
      parent = `${hash}`;
    }
  }

  /** Blocks of a prompt from its start. */
  reach(locals: BigUint64Array): number {
    let [parent, blocks] = ['', 0];
    for (const local of locals) {
      const next = this.#behind.get(`${parent}/${local}`);
      if (next === undefined) break;
      parent = `${next}`;
      blocks++;
    }
    return blocks;
  }
}

class Pool {
  readonly random = new Random(5);
  readonly prompts = Array.from({ length: PROMPTS }, (_, prompt) => Uint32Array.from(tokensOf(prompt)));
  readonly #locals = this.prompts.map((tokens) => blockHashes(tokens, BLOCK));
  readonly #taught = new Taught();
  /** The most blocks up to which a router ever counted on the store, by prompt. */
  readonly #claims = this.prompts.map(() => 0);
  readonly publishers: Part<{ kind: string }>[];
  readonly routers: Part<Said>[];
  readonly direct: Router;
  readonly #live: LiveStreams;
  /** What the direct router counted on, by time, as long as it may still be on its way to the others. */
  readonly #history: { readonly at: number; readonly reaches: Uint16Array }[] = [];
  /** What a router counted on, and the direct one did not. */
  readonly above: string[] = [];
  /** Counts that the direct router did not make, by router, prompt and worker. */
  readonly #doubted = new Map<string, { readonly claim: string; readonly since: number }>();
  /** Counts on the store that were held against the direct router's. */
  checked = 0;
  #ended = false;
  /** Milliseconds that this process had to wait for its turns: a machine that is busy with other things holds up all processes about alike. */
  heldUp = 0;
  #load: Promise<void> = Promise.resolve();
  requests = 0;
  /** The load rests, so that what is on its way arrives. */
  resting = false;

  private constructor(
    readonly server: NatsServer,
    readonly fleet: Fleet,
    direct: Router,
  ) {
    this.direct = direct;
    const master = fleet.masters[0]!;
    const masters = [{ events: master.eventsEndpoint, http: master.httpUrl }];
    const workers = fleet.workers.map((worker) => ({
      id: worker.id,
      dpRanks: { start: 0, size: 1 },
      descriptor: worker.descriptor,
      events: worker.eventsEndpoints,
      replay: worker.replayEndpoints,
    }));
    this.#live = LiveStreams.open(direct, { workers, store: { masters, keeper: { pollEvery: 200 } } });
    this.publishers = fleet.workers.map(
      ({ eventsEndpoints, replayEndpoints }, id) =>
        new Part(`publisher ${id}`, () => [
          ...['build/js/src/cli/main.js', 'publish', '--json', '--to', server.url, '--model', MODEL, '--id', `${id}`],
          ...['--worker', eventsEndpoints[0]!, '--replay', replayEndpoints[0]!, '--block-size', `${BLOCK}`],
        ]),
    );
    const settings = {
      plane: server.url,
      model: MODEL,
      masters,
      prompts: this.prompts.map((tokens) => [...tokens]),
      leases: LEASES,
    };
    // Each of its states counts, however short.
    const take = direct.onWorkerMessage.bind(direct);
    direct.onWorkerMessage = (...message) => {
      this.#taught.take(message[0], message[1]);
      const result = take(...message);
      this.#remember();
      return result;
    };
    const plane = workers.map(({ events, replay, ...worker }, planeId) => ({ ...worker, planeId }));
    this.routers = Array.from({ length: ROUTERS }, (_, at) => {
      const router = new Part<Said>(`router ${at}`, () => [
        'test/runtimes/plane-part.js',
        JSON.stringify({ ...settings, name: `router ${at}`, workers: plane }),
      ]);
      router.onSaid = (said) => {
        this.#remember();
        this.#check(router.name, said);
      };
      return router;
    });
  }

  static async open(): Promise<Pool> {
    const server = await NatsServer.start();
    const worker = { tp: 2, latency: { timeScale: 0 }, gpuBlocks: 120 };
    const fleet = await Fleet.start({ workers: WORKERS, worker, master: { generation: 'C' } });
    const direct = await Router.create({
      settings: { sharedCacheType: 'mooncake-store' },
      index: { bytes: 4 << 20 },
    });
    return new Pool(server, fleet, direct);
  }

  start(): void {
    for (const part of [...this.publishers, ...this.routers]) part.start();
    this.#load = this.#run();
    this.#watch();
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#load;
    for (const part of [...this.publishers, ...this.routers]) await part.kill();
    await this.#live.close();
    this.direct.dispose();
    await this.fleet.close();
    await this.server.close();
  }

  /** Requests of all kinds, and GPUs that forget. */
  async #run(): Promise<void> {
    const { random, fleet } = this;
    while (!this.#ended) {
      if (this.resting) {
        await pause(5);
        continue;
      }
      const worker = random.pick(fleet.workers);
      // A salted request's blocks may teach nobody, and nobody else may use them.
      const prompt = random.int(PROMPTS);
      const salted = isSalted(prompt) ? prompt : random.int(4) === 0 ? random.int(2) : null;
      const salt = salted === null ? {} : { cache_salt: `salt ${salted}` };
      await complete(worker.httpUrl, [...this.prompts[prompt]!], { max_tokens: 1, ...salt });
      this.requests++;
      if (random.int(3) === 0) random.pick(fleet.workers).evict(20);
      if (random.int(60) === 0) random.pick(fleet.workers).clear();
      if (random.int(15) === 0) {
        const keys = [...fleet.masters[0]!.truth()];
        for (let key = 0; key < 4 && keys.length > 0; key++)
          fleet.masters[0]!.remove(random.pick(keys), { force: true });
      }
      await pause(5);
    }
  }

  // ---- what routers count on ----

  /** By prompt and worker. */
  #reaches(): Uint16Array {
    const reaches = new Uint16Array(PROMPTS * WORKERS);
    for (const [prompt, tokens] of this.prompts.entries()) {
      const { candidates, lease } = this.direct.route({ tokens, textOnly: true, explain: true });
      lease.cancel(0);
      for (const { worker, blocks } of candidates!) {
        reaches[prompt * WORKERS + this.#at(worker.id)] = blocks.device + blocks.shared;
      }
    }
    return reaches;
  }

  #at(id: WorkerId): number {
    return this.fleet.workers.findIndex((worker) => worker.id === id);
  }

  #watch(): void {
    if (this.#ended) return;
    this.#remember();
    for (const { name, said } of this.routers) if (said !== null) this.#check(name, said);
    const due = performance.now() + WATCH_MS;
    setTimeout(() => {
      this.heldUp += Math.max(0, performance.now() - due);
      this.#watch();
    }, WATCH_MS);
  }

  #remember(): void {
    const now = Date.now();
    this.#history.push({ at: now, reaches: this.#reaches() });
    while (this.#history[0]!.at < now - 2 * LAG_MS) this.#history.shift();
  }

  /**
   * What a router counts on of the store, against what the direct one did. Of one message the plane brings event by event, and of two streams' messages
   * each router hears another first, so a moment of more is none; where all agree, all is compared.
   */
  #check(name: string, { at, reaches }: Said): void {
    for (const [prompt, byWorker] of reaches.entries()) {
      for (const [id, device, shared] of byWorker) {
        const what = `${name}: prompt ${prompt} at ${id}`;
        const place = prompt * WORKERS + this.#at(id);
        // Most are as the direct one is now.
        const before = this.#history.findLast((then) => then.reaches[place]! >= device + shared);
        if (shared > 0) {
          this.checked++;
          this.#claims[prompt] = Math.max(this.#claims[prompt]!, device + shared);
        }
        if (shared === 0 || (before !== undefined && before.at >= at - LAG_MS)) {
          this.#doubted.delete(what);
          continue;
        }
        const claim = `${device} of the GPU and ${shared} of the store`;
        const doubt = this.#doubted.get(what);
        if (doubt?.claim !== claim) this.#doubted.set(what, { claim, since: Date.now() });
        else if (Date.now() - doubt.since > MOMENT_MS) this.above.push(`${what}: ${claim}`);
      }
    }
  }

  /** Prompts of whose blocks a router ever counted on more in the store than all that the workers said could have taught it. */
  untaught(): string[] {
    return this.#claims.flatMap((claim, prompt) => {
      const taught = this.#taught.reach(this.#locals[prompt]!);
      return claim <= taught ? [] : [`prompt ${prompt}: ${claim}, and ${taught} were taught`];
    });
  }

  /** Blocks of the prompts that must teach nobody, and of all others. */
  taught(): readonly [salted: number, others: number] {
    const sum = (salted: boolean) =>
      this.#locals.reduce((all, locals, at) => all + (isSalted(at) === salted ? this.#taught.reach(locals) : 0), 0);
    return [sum(true), sum(false)];
  }

  // ---- agreement ----

  #digests(): string[] {
    return this.fleet.workers.map(({ id }) => {
      const blocks = [...dumpedSet(this.direct.dump(id))].map(
        ([path, { name, eligible }]) => `${path} ${name} ${eligible}`,
      );
      return createHash('sha256').update(blocks.sort().join()).digest('base64');
    });
  }

  /** All routers hold what the direct one holds, and none counts on more. */
  agree(): boolean {
    const truth = this.#digests().join();
    const reaches = this.#reaches();
    return this.routers.every(
      ({ said }) =>
        said?.warm === true &&
        said.digests.join() === truth &&
        said.reaches.every((byWorker, prompt) =>
          byWorker.every(([id, device, shared]) => device + shared <= reaches[prompt * WORKERS + this.#at(id)]!),
        ),
    );
  }

  /** Waits until they do, the load resting for moments only. Counts from when the new process runs: how long that takes is the machine's affair. */
  async agreed(after: string, part: Pick<Part<never>, 'name' | 'running'> | null = null): Promise<void> {
    if (part !== null) await until(`${part.name} to run`, () => part.running);
    const began = performance.now();
    const heldUp = this.heldUp;
    let agreed = false;
    while (!agreed) {
      const took = performance.now() - began;
      if (took > GIVE_UP_MS) {
        const states = this.routers.map(({ name, said, errors }) => ({ name, ...said, reaches: 0, errors }));
        throw new Error(
          `no agreement after ${after}: ${JSON.stringify(states)} ${this.publishers.map(({ errors }) => errors)}`,
        );
      }
      await pause(100);
      this.resting = true;
      for (let look = 0; look < 30 && !agreed; look++) {
        await pause(5);
        agreed = this.agree();
      }
      this.resting = false;
    }
    const took = Math.max(0, performance.now() - began - (this.heldUp - heldUp));
    console.log(`  all agree ${Math.round(took)} ms after ${after}`);
    assert.ok(took <= WITHIN_MS, `${after}: ${took} ms`);
  }
}

if (zeromq === null || !hasNats) test.skip('all of it');
else {
  test('routers, publishers and the server are killed and come back: all agree again, and none counts on more than the direct one', async () => {
    const pool = await Pool.open();
    const { routers, publishers, server } = pool;
    const others = (ROUTERS - 1) * LEASES;
    try {
      pool.start();
      await until('the publishers', () => publishers.every(({ said }) => said !== null));
      await pool.agreed('the start');
      await until('the load of the others', () => routers.every(({ said }) => said!.foreign === others));

      await routers[0]!.kill();
      await pause(300);
      routers[0]!.start();
      await pool.agreed("a router's restart", routers[0]!);

      const lives = routers.map(({ said }) => said!.lives[1]!);
      await publishers[1]!.kill();
      await pause(300);
      publishers[1]!.start();
      await until('the new life to be seen', () => routers.every(({ said }, at) => said!.lives[1]! > lives[at]!));
      await pool.agreed("a publisher's restart", publishers[1]!);

      await server.kill();
      await pause(300);
      await server.restart();
      await pool.agreed("the server's restart");

      // The load of a router that is gone is returned; one that is back is another.
      await until('the load of all again', () => routers.every(({ said }) => said!.foreign === others));
      const [began, heldUp] = [performance.now(), pool.heldUp];
      await routers[2]!.kill();
      await until('the load of two', () => routers.slice(0, 2).every(({ said }) => said!.foreign === others - LEASES));
      const took = performance.now() - began - (pool.heldUp - heldUp);
      console.log(`  a dead router's load is returned after ${Math.round(took)} ms`);
      assert.ok(took <= LOAD_GOOD_FOR_MS + 1500, `${took} ms`);
      routers[2]!.start();
      await pool.agreed("another router's restart", routers[2]!);

      console.log(`  ${pool.requests} requests, ${pool.checked} counts on the store checked`);
      assert.equal(pool.above, []);
      assert.equal(pool.untaught(), []);
      assert.equal(pool.taught(), [0, (PROMPTS - SALTED) * 12]);
      assert.ok(pool.checked > 1000, `${pool.checked} counts on the store`);
    } finally {
      await pool.close();
    }
  });
}

test.run();
