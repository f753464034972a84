// Who takes what a worker's streams bring: a router, or a publisher that tells others (plane/publish).
import type { WorkerMessageResult } from '../router/gpu-events.js';
import type { WorkerId } from '../router/worker-info.js';

/** Takes messages, and hears of what can't be believed any more. */
export interface WorkerSink {
  /** Takes one message of a rank in. */
  onWorkerMessage(
    id: WorkerId,
    frames: readonly Uint8Array[],
    options: { readonly dpRank: number },
  ): Pick<WorkerMessageResult, 'fate' | 'lostRemoval' | 'detail'>;
  /** A rank's blocks may be gone: all that it held goes. */
  rebuildWorker(id: WorkerId, dpRank: number): unknown;
  /** Likewise, and it may be another process by now, so what was kept of its publisher goes too. */
  workerStreamLost(id: WorkerId, dpRank: number): unknown;
}
