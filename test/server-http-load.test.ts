// A thousand streams at once through a router in a process of its own: none fails, and afterwards nothing of them is left there: no socket, no lease,
// no timer, no memory.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Agent, request as httpRequest } from 'node:http';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Fleet } from '../src/fleet/fleet.js';
import { tokensOf, until, zeromq } from './support/fleet-worker.js';
import type { ProcessStanding } from './support/served-process.js';
import { MODEL, workersOf } from './support/server-pool.js';

const STREAMS = 1000;
const TOKENS = 20;
/** Thousands of streams, the first of which warms up. */
const MOST_ROUNDS = 4;
/** Part of the heap by which it may have grown. */
const MOST_GROWN = 0.1;

/** The router's process. */
class ServedProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  #errors = '';

  constructor(config: object) {
    const script = fileURLToPath(new URL('./support/served-process.js', import.meta.url));
    this.#child = spawn(process.execPath, ['--expose-gc', script, JSON.stringify(config)]);
    this.#lines = createInterface({ input: this.#child.stdout });
    this.#child.stderr.on('data', (text) => {
      this.#errors += text;
    });
  }

  next(): Promise<ProcessStanding> {
    return new Promise((resolve, reject) => {
      this.#child.once('exit', () => reject(new Error(`the router's process ended: ${this.#errors}`)));
      this.#lines.once('line', (line) => resolve(JSON.parse(line) as ProcessStanding));
    });
  }

  ask(): Promise<ProcessStanding> {
    const answer = this.next();
    this.#child.stdin.write('\n');
    return answer;
  }

  end(): void {
    this.#child.removeAllListeners('exit');
    this.#child.kill('SIGKILL');
  }
}

/** One stream; what it ended with. */
function stream(url: string, agent: Agent, name: number): Promise<string> {
  const { hostname, port } = new URL(url);
  const body = JSON.stringify({ model: MODEL, prompt: tokensOf(name % 50, 100), max_tokens: TOKENS, stream: true });
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        ...{ agent, host: hostname, port, path: '/v1/completions', method: 'POST' },
        headers: { 'content-type': 'application/json', 'content-length': body.length },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part) => {
          text += part;
        });
        response.on('end', () =>
          resolve(`${response.statusCode} ${text.match(/data: \{/g)?.length} ${text.endsWith('data: [DONE]\n\n')}`),
        );
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

async function thousand(url: string): Promise<void> {
  const agent = new Agent({ maxSockets: STREAMS });
  const ends = await Promise.all(Array.from({ length: STREAMS }, (_, i) => stream(url, agent, i)));
  agent.destroy();
  assert.equal([...new Set(ends)], [`200 ${TOKENS} true`]);
}

if (zeromq !== null) {
  test(`${STREAMS} streams at once: no error, and nothing is left of them`, async () => {
    const worker = { latency: { timeScale: 0.2 }, maxRunning: 512, gpuBlocks: 4096 };
    const fleet = await Fleet.start({ workers: 2, worker });
    const served = new ServedProcess({ workers: workersOf(fleet), limits: { connections: 2 * STREAMS } });
    try {
      const first = await served.next();
      // Code is compiled and tables grow with the first ones; what stays is compared from there.
      await thousand(first.url);
      let standing = first;
      const settled = async () =>
        until('sockets and leases to be gone', async () => {
          standing = await served.ask();
          const { sockets, openLeases, active, timers } = standing;
          return sockets <= first.sockets && openLeases === 0 && active === 0 && timers <= first.timers + 1;
        });
      await settled();
      // What leaks grows with every thousand; compiled code and tables stop growing.
      const rounds: string[] = [];
      let holds = false;
      for (let round = 2; round <= MOST_ROUNDS && !holds; round++) {
        const before = standing.heap + standing.buffers;
        await thousand(first.url);
        await settled();
        assert.equal(standing.outcomes, { completed: round * STREAMS });
        const grown = standing.heap + standing.buffers - before;
        rounds.push(`${before} + ${grown}`);
        holds = grown < MOST_GROWN * before;
      }
      assert.equal(standing.faults, {});
      assert.ok(holds, `bytes before and grown, round after round: ${rounds.join(', ')}`);
    } finally {
      served.end();
      await fleet.close();
    }
  });
}

test.run();
