// The shell around the simulator's worker (worker-simulator.ts): messages, a clock, and turns.
import type { Ask } from './messages.js';
import { SimulatorWorker } from './worker-simulator.js';

/** A message to oneself comes behind those that are waiting, and sooner than any timer. */
const { port1: heard, port2: said } = new MessageChannel();
const waiting: (() => void)[] = [];
heard.onmessage = () => waiting.shift()?.();

const worker = new SimulatorWorker({
  // Of a worker; the types at hand are a page's.
  post: (answer, transfer) => (postMessage as (message: unknown, transfer: Transferable[]) => void)(answer, transfer),
  now: () => performance.now(),
  turn: () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      said.postMessage(null);
    }),
});

addEventListener('message', ({ data }: MessageEvent<Ask>) => worker.take(data));
