// Simulations whose reports must be the same bytes in every JavaScript engine that loads this, with a digest of the workload that they read.
// What is drawn (jitter, loss, a random policy) is drawn from a seed.
const FULL = { kind: 'full_attention', window: null, bytesPerBlock: 1_000_000 };
const WINDOW = { kind: 'sliding_window', window: 1024, bytesPerBlock: 500_000 };
const STATE = { kind: 'mamba', window: null, bytesPerBlock: 2_000_000 };
/** Short of room everywhere, with late and lost messages. */
const TIGHT = {
  workers: { count: 3, gpuBlocks: 12_000 },
  store: { dramBytes: 20e9, ssdBytes: 10e9 },
  groups: [FULL],
  events: { delay: 20, jitter: 150, loss: 0.05, reconcileAfter: 400 },
};
const RUNS = [
  TIGHT,
  { ...TIGHT, seed: 2 },
  { ...TIGHT, policy: 'ttft' },
  { ...TIGHT, policy: 'random', groups: [FULL, WINDOW, STATE], ranks: 3, speedup: 1.7 },
  {
    ...TIGHT,
    policy: 'least-loaded',
    restarts: [
      { at: 3_000, worker: 1 },
      { at: 6_000, worker: null },
    ],
  },
];
/** Ids of a FAST'25 trace have so many tokens. */
const FILE = { rate: 20, idTokens: 512 };
const REQUESTS = 300;
const ROWS = 2000;

/** Rows of the workload as a file of the FAST'25 kind would come over the network. */
function asFile(rows) {
  const lines = Array.from(rows, ({ at, inputTokens, outputTokens, hashIds }) =>
    JSON.stringify({
      timestamp: at,
      input_length: inputTokens,
      output_length: outputTokens,
      hash_ids: Array.from(hashIds),
    }),
  );
  return new Response(lines.join('\n')).body;
}

/**
 * Reports as JSON, in the order of RUNS, and of a trace that is read as it comes; the SHA-256 of the workload's rows, and the report of a
 * simulation of them.
 */
export async function simReports({ builtInWorkload, readTrace, simulate }) {
  const reports = [];
  for (const run of RUNS) {
    reports.push(JSON.stringify(await simulate(run, builtInWorkload({ requests: REQUESTS, rate: 20 }))));
  }
  reports.push(
    JSON.stringify(await simulate(TIGHT, readTrace(asFile(builtInWorkload({ ...FILE, requests: REQUESTS }))))),
  );
  const rows = Array.from(builtInWorkload({ requests: ROWS }), (row) =>
    JSON.stringify({ ...row, hashIds: Array.from(row.hashIds) }),
  );
  const bytes = new TextEncoder().encode(rows.join('\n'));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return {
    reports,
    rows: rows.length,
    digest: Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join(''),
    whole: JSON.stringify(await simulate({}, builtInWorkload({ requests: ROWS }))),
  };
}
