// What `moonroute replay` found of each source: for machines as it is, for people as lines.
import type { SharedCache } from '../cache/shared-cache.js';
import type { StoreMessageResult } from '../cache/types.js';
import type { Contract } from '../contract/descriptor.js';
import type { WorkerStats } from '../events/worker-events.js';
import type { ReconcileCounts } from './replay-reconcile.js';

interface SourceReport {
  /** The first file that has something of it. */
  readonly file: string;
  /** Times that its stream broke. A capture is one connection. */
  readonly losses: number;
  /** Of what is notable, what was left out for its number. */
  readonly notableMore: number;
}

/** What became of the messages of a store's master. */
export interface StoreReport extends SourceReport {
  readonly publisher: 'store';
  readonly source: string;
  readonly messages: number;
  readonly fates: Record<string, number>;
  /** Messages that were not simply applied. */
  readonly notable: readonly { readonly file: string; readonly line: number; readonly result: StoreMessageResult }[];
  readonly objects: number;
  readonly foreignKeys: number;
  readonly foreignTenants: number;
  readonly reconciles: ReconcileCounts;
}

/** What became of the messages of one worker. */
export interface WorkerReport extends SourceReport {
  readonly publisher: 'worker';
  readonly worker: string;
  readonly messages: number;
  /** Data-parallel ranks seen. */
  readonly ranks: readonly number[];
  /** Sequence numbers that did not follow the one before: messages were missed, or the worker began anew. */
  readonly gaps: number;
  /** Messages in which a removal could not be read. */
  readonly lostRemovals: number;
  readonly counts: WorkerStats;
  /** Blocks learned or confirmed, and why others were not; null without a contract, and where hashes are derived alone. */
  readonly learned: { readonly blocks: number; readonly refusals: Readonly<Record<string, number>> } | null;
  /** Events and messages that could not be read. */
  readonly notable: readonly { readonly file: string; readonly line: number; readonly text: string }[];
}

export type Report = StoreReport | WorkerReport;

/** A file that lacks its end. */
export interface CutShort {
  readonly file: string;
  readonly why: string;
}

const NOTABLE_SHOWN = 20;

/** What is there at the end. */
export function endOf(cache: SharedCache, contract: Contract | null) {
  const resident = cache.census().map((census) => ({ ...census, kind: contract!.groups[census.group]!.kind }));
  const { clears, core, derivation } = cache.stats();
  return { edges: core?.edges ?? null, resident, clears, derivation };
}

// ---- for people ----

/** Prints reports and the end. */
export function printReports(
  reports: readonly Report[],
  cut: readonly CutShort[],
  cache: SharedCache,
  contract: Contract | null,
): void {
  for (const report of reports) {
    if (report.publisher === 'store') printStore(report);
    else printWorker(report);
  }
  for (const { file, why } of cut) console.log(`${file} is cut short: ${why}`);
  if (contract === null) return;
  const { edges, resident, clears, derivation } = endOf(cache, contract);
  if (reports.some(({ publisher }) => publisher === 'worker')) {
    if (cache.hashing !== 'derived') console.log(`learned: ${edges} hash edges`);
    if (derivation !== null) printDerivation(derivation, contract);
  }
  if (reports.some(({ publisher }) => publisher === 'store')) {
    console.log('resident');
    for (const { group, kind, complete, objects, cpu, disk, unknown } of resident) {
      console.log(
        `  group ${group} (${kind}): ${complete} complete digests, ${objects} objects (cpu ${cpu}, disk ${disk}, unknown ${unknown})`,
      );
    }
  }
  for (const [cause, count] of Object.entries(clears))
    if (cause !== 'contract-change') console.log(`cleared ${count} × ${cause}`);
}

/** Whether workers hash as their contract says. */
function printDerivation(
  { provenRanks, agreed, refuted }: NonNullable<ReturnType<typeof endOf>['derivation']>,
  { mainEventGroup, hashRule: { algorithm, seed } }: Contract,
): void {
  const rule = `${algorithm} with seed ${JSON.stringify(seed)}`;
  if (refuted !== null) console.log(`derived: refuted. ${refuted}`);
  else if (mainEventGroup === null)
    console.log('derived: the contract has no main event group, whose events could tell');
  else if (provenRanks === 0) console.log(`derived: no event tells whether ${rule} is right`);
  else console.log(`derived: ${counted(agreed, 'event')} of ${counted(provenRanks, 'rank')} agreed with ${rule}`);
}

function counted(n: number, one: string): string {
  return n === 1 ? `1 ${one}` : `${n} ${one}s`;
}

function printStore(report: StoreReport): void {
  const { file, messages, fates, notable, objects, foreignKeys, foreignTenants, losses, reconciles } = report;
  console.log(`${file}: ${messages} messages of a master (${listed(fates) || 'none'})`);
  if (fates['no-contract'] !== undefined)
    console.log('  say --contract FILE, which names the objects that count, to have them applied');
  console.log(
    `  ${objects} object events applied; skipped: ${foreignKeys} foreign keys, ${foreignTenants} foreign tenants`,
  );
  if (losses > 0) console.log(`  ${losses} × the stream broke`);
  const refused = Object.keys(reconciles.refused).length > 0 ? `; refused: ${listed(reconciles.refused)}` : '';
  if (reconciles.accepted > 0 || refused !== '') console.log(`  key lists: ${reconciles.accepted} counted${refused}`);
  printNotable(
    report,
    notable.map(({ result }) => {
      const at = result.sequence === null ? '' : ` at sequence ${result.sequence}`;
      return `${result.fate}${at}${result.detail === null ? '' : `: ${result.detail}`}`;
    }),
  );
}

function printWorker(report: WorkerReport): void {
  const { file, worker, ranks, gaps, losses, lostRemovals, counts, learned, notable } = report;
  const { messages, stored, removed, cleared } = counts;
  console.log(`${file}: ${messages} messages of ${worker}, ranks ${ranks.join(', ') || 'none'}`);
  console.log(`  events: ${stored} stored, ${removed} removed, ${cleared} cleared`);
  printCounts('dropped, for they mean nothing to a router', counts.dropped);
  printCounts('ineligible: indexed for GPU overlap, but they teach nothing about the store', counts.ineligible);
  printCounts('not read', { ...counts.rejected, ...counts.unreadable });
  if (learned !== null) {
    console.log(`  learned or confirmed: ${learned.blocks} blocks`);
    printCounts('taught nothing under the contract', learned.refusals);
  }
  if (losses > 0) console.log(`  ${losses} × the stream broke`);
  if (gaps > 0) console.log(`  ${gaps} × the sequence broke: messages were missed or the worker began anew`);
  if (lostRemovals > 0)
    console.log(`  ${lostRemovals} × a removal could not be read: what was indexed of this worker must be rebuilt`);
  printNotable(
    report,
    notable.map(({ text }) => text),
  );
}

function printCounts(what: string, counts: Readonly<Record<string, number>>): void {
  if (Object.keys(counts).length > 0) console.log(`  ${what}: ${listed(counts)}`);
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([code, count]) => `${count} ${code}`)
    .join(', ');
}

function printNotable({ file, notable, notableMore }: Report, texts: readonly string[]): void {
  for (const [i, text] of texts.slice(0, NOTABLE_SHOWN).entries()) {
    const place = notable[i]!;
    console.log(`  ${place.file === file ? '' : `${place.file} `}line ${place.line}: ${text}`);
  }
  const more = texts.length - NOTABLE_SHOWN + notableMore;
  if (more > 0) console.log(`  … ${more} more; see --json`);
}
