// What the doctor's tests share: a target that names a fleet, findings by code, and traffic while it listens.
import { Fleet, type FleetOptions } from '../../src/fleet/fleet.js';
import type { SimulatedMaster } from '../../src/fleet/master.js';
import type { SimulatedWorker } from '../../src/fleet/worker.js';
import { findingsOf } from '../../src/server/doctor/checks/index.js';
import { type CollectOptions, collectEvidence } from '../../src/server/doctor/collect.js';
import type { DoctorTarget } from '../../src/server/doctor/evidence.js';
import type { Finding } from '../../src/server/doctor/finding.js';
import type { WorkerSpec } from '../../src/server/types.js';
import { complete } from './fleet-worker.js';

export function specOf(worker: SimulatedWorker, changes: Partial<WorkerSpec> = {}): WorkerSpec {
  return {
    id: worker.id,
    url: worker.httpUrl,
    events: worker.eventsEndpoints,
    replay: worker.replayEndpoints.length === 0 ? null : worker.replayEndpoints,
    topic: '',
    dpRanks: { start: 0, size: worker.dp },
    contract: 'endpoint',
    ...changes,
  };
}

export function targetOf(
  workers: readonly WorkerSpec[],
  masters: readonly SimulatedMaster[],
  changes: Partial<DoctorTarget> = {},
): DoctorTarget {
  return {
    model: null,
    blockSize: 16,
    saltMode: 'prefixed',
    tokenizer: null,
    workers,
    sharedCache: {
      type: masters.length === 0 ? 'none' : 'mooncake-store',
      masters: masters.map(({ eventsEndpoint, httpUrl }) => ({ events: eventsEndpoint, http: httpUrl })),
      hashing: 'learned',
      trustSeed: false,
      allowUnverifiedContract: false,
    },
    ...changes,
  };
}

/** What the doctor finds, looking at it for a short while. */
export async function examine(target: DoctorTarget, options: Partial<CollectOptions> = {}): Promise<Finding[]> {
  return findingsOf(await collectEvidence(target, { seconds: 0.5, ...options }));
}

export function failures(findings: readonly Finding[]): Finding[] {
  return findings.filter(({ status }) => status === 'failed');
}

/** Codes of what failed, each once. */
export function failed(findings: readonly Finding[]): string[] {
  return [...new Set(failures(findings).map(({ code }) => code))];
}

/** The findings of one check, as lines. */
export function said(findings: readonly Finding[], code: string): string {
  return findings
    .filter((finding) => finding.code === code)
    .map(({ status, subject, seen, fix }) => `${status} ${subject}: ${seen}${fix === null ? '' : ` FIX ${fix}`}`)
    .join('\n');
}

/** A fleet without pauses, closed behind the work. */
export async function withFleet<T>(options: FleetOptions, work: (fleet: Fleet) => Promise<T>): Promise<T> {
  const fleet = await Fleet.start({ ...options, worker: { latency: { timeScale: 0 }, ...options.worker } });
  try {
    return await work(fleet);
  } finally {
    await fleet.close();
  }
}

let names = 0;

/** Sends prompts that are new, one after the other, while the work is done. */
export async function during<T>(work: Promise<T>, url: string, fields: Readonly<Record<string, unknown>>): Promise<T> {
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  const traffic = async (): Promise<void> => {
    while (!done) {
      const start = ++names * 1000;
      await complete(
        url,
        Array.from({ length: 80 }, (_, i) => start + i),
        fields,
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const [result] = await Promise.all([ended, traffic()]);
  return result;
}
