// What a whole simulation costs: the published conversation trace (12,031 requests, 9.04 million references to full 16-token blocks) on eight
// workers, with the real router at every decision. Where the trace is not there, and for a short run, the built-in workload takes its
// place, without an aim. Memory is that of the whole process, other suites included, at most, as seen between requests.
import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { builtInWorkload, readTrace, type SimReport, simulate, type TraceRequest } from '../src/sim/index.js';
import { Sample } from './method/sample.js';
import type { Effort, Row } from './row.js';

const TRACE = join(process.env['MOONROUTE_DATA'] ?? '../shared/data', 'traces/mooncake-conversation.jsonl');
const WORKERS = 8;
const MOST_RUNS = 3;
const REQUESTS_INSTEAD = 2000;
const MIB = 1 << 20;
const SECOND = 1000;

/** Ranks whose objects make a block complete, and the seconds aimed at. */
const CASES = [
  { ranks: 2, seconds: 10 },
  { ranks: 6, seconds: 20 },
] as const;

/** One group of full attention, policy `kv`: reading the trace is counted in. */
export async function simSuite(effort: Effort): Promise<Row[]> {
  const whole = !effort.short && existsSync(TRACE);
  const requests = (): AsyncIterable<TraceRequest> | Iterable<TraceRequest> =>
    whole ? readTrace(createReadStream(TRACE)) : builtInWorkload({ requests: REQUESTS_INSTEAD });
  const rows: Row[] = [];
  for (const { ranks, seconds } of CASES) {
    const times: number[] = [];
    let report: SimReport | null = null;
    let held = 0;
    for (let run = 0; run < Math.min(effort.turns, MOST_RUNS); run++) {
      const progress = () => {
        held = Math.max(held, process.memoryUsage.rss());
      };
      const started = performance.now();
      report = await simulate({ policy: 'kv', workers: { count: WORKERS }, ranks }, requests(), { progress });
      times.push(performance.now() - started);
    }
    const core = new Sample(times);
    const { requests: served, blocks } = report!;
    const perBlock = ((core.median * 1e6) / blocks.full).toFixed(0);
    rows.push({
      suite: `simulation of ${whole ? 'the conversation trace' : 'the built-in workload'}, ${WORKERS} workers, ${ranks} ranks`,
      core,
      aim: whole ? `≤ ${seconds} s` : null,
      met: whole ? core.median <= seconds * SECOND : null,
      note: [
        `${served} requests, ${blocks.full} blocks, ${perBlock} ns a block`,
        `${(held / MIB).toFixed(0)} MiB held`,
        `least ${(core.at(0) / SECOND).toFixed(2)} s`,
      ].join(', '),
    });
  }
  return rows;
}
