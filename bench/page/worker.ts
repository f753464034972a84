// Runs the suites off the page's thread. Its owner ends it to cancel.
import { bench } from '../bundle.js';
import { browserOf } from './browser.js';
import type { Answer, Ask } from './messages.js';

declare const BENCH_PACKAGE: { readonly version: string; readonly commit: string };

const answer = (said: Answer) => postMessage(said);

addEventListener('message', async ({ data }: MessageEvent<Ask>) => {
  const { mode, suites, machine, processors } = data;
  const { engine, engineFamily } = browserOf(navigator.userAgent);
  try {
    const report = await bench.run(suites, {
      mode,
      environment: {
        ...{ engine, engineFamily, machine, processors },
        package: BENCH_PACKAGE.version,
        commit: BENCH_PACKAGE.commit,
        date: new Date().toISOString().slice(0, 10),
        clockStep: bench.clockStep(),
      },
      // No engine tells a page about its heap in a way that others share.
      engine: { heapBytes: () => null },
      progress: (progress) => answer({ kind: 'progress', progress }),
    });
    answer({ kind: 'report', report });
  } catch (error) {
    answer({ kind: 'failed', text: error instanceof Error ? error.message : String(error) });
  }
});
