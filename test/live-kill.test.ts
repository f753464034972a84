// kill -9 of master, worker and router in turn, each a process of its own: within five seconds of the restart the hits are the same as before.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BlockDigests, hexOf } from '../src/wire/block-digests.js';
import { complete, tokensOf, until, zeromq } from './support/fleet-worker.js';

const BLOCK = 16;
const BLOCKS = 8;
const TOKENS = tokensOf(1, BLOCKS * BLOCK + 1);
const WITHIN_MS = 5000;

/** A process of the pool. */
class Part {
  #child: ChildProcess | null = null;
  /** What it said last. */
  said: Record<string, unknown> | null = null;

  constructor(
    readonly name: 'master' | 'worker' | 'router',
    readonly settings: () => unknown,
  ) {}

  /** Starts it; resolves when it has said something. */
  async start(): Promise<void> {
    this.said = null;
    const child = spawn(process.execPath, ['test/runtimes/live-part.js', this.name, JSON.stringify(this.settings())], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    createInterface({ input: child.stdout! }).on('line', (line) => {
      this.said = JSON.parse(line);
    });
    await until(`${this.name} to start`, () => this.said !== null);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }
}

const portOf = (endpoint: unknown): number => Number(/:(\d+)$/.exec(String(endpoint))![1]);

if (zeromq !== null) {
  test('kill -9 of router, master and worker in turn', async () => {
    let ports: { master: object; worker: object } = { master: {}, worker: {} };
    const keys: string[] = [];
    const worker = new Part('worker', () => ports.worker);
    const master = new Part('master', () => ({ ...ports.master, keys }));
    const router = new Part('router', () => ({
      workers: [{ ...worker.said, dpRanks: { start: 0, size: 1 } }],
      masters: [master.said],
      tokens: TOKENS,
    }));
    try {
      await worker.start();
      const { groups } = worker.said!['descriptor'] as { groups: { key_prefixes: string[] }[] };
      const digests = new BlockDigests(BLOCK);
      let parent: Uint8Array | null = null;
      for (let block = 0; block < BLOCKS; block++) {
        parent = digests.digest(parent, TOKENS, block * BLOCK);
        for (const prefix of groups[0]!.key_prefixes) keys.push(`${prefix}@${hexOf(parent)}`);
      }
      await master.start();
      ports = {
        master: { eventsPort: portOf(master.said!['events']), httpPort: portOf(master.said!['http']) },
        worker: {
          httpPort: portOf(worker.said!['url']),
          eventsPort: portOf(worker.said!['events']),
          replayPort: portOf(worker.said!['replay']),
        },
      };
      /** The engine computes the prompt, and so names its blocks. */
      const ask = () => complete(String(worker.said!['url']), TOKENS, { max_tokens: 1 });
      const hits = (): number => (router.said?.['device'] === 0 ? Number(router.said['shared']) : 0);
      const hitsAgain = async (part: Part, before: number): Promise<void> => {
        const began = performance.now();
        await until(`the hits after ${part.name}'s restart`, () => hits() === before);
        const took = performance.now() - began;
        console.log(`  ${part.name}: ${before} blocks again after ${Math.round(took)} ms`);
        assert.ok(took <= WITHIN_MS);
      };
      await ask();
      await router.start();
      await until('all blocks', () => hits() === BLOCKS);
      for (const part of [router, master, worker, router]) {
        await part.kill();
        if (part === master) await until('the router to know nothing of the store', () => router.said!['shared'] === 0);
        await part.start();
        await hitsAgain(part, BLOCKS);
        // Traffic goes on: what the next router learns from.
        await ask();
      }
    } finally {
      for (const part of [router, master, worker]) await part.kill();
    }
  });
  test.run();
}
