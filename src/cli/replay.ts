// `moonroute replay`: feeds captured messages of the store's master and of workers through the real path and shows what they teach, what
// they leave resident, and why the rest counts for nothing.
import { basename } from 'node:path';
import { Command, Option } from 'commander';
import { sequenceStep } from '../cache/sequence.js';
import { SharedCache } from '../cache/shared-cache.js';
import type { StoreMessageResult } from '../cache/types.js';
import { validateContract } from '../contract/validate.js';
import { ConfigError, WireError } from '../errors.js';
import { type Source, WorkerEvents, type WorkerStats } from '../events/worker-events.js';
import { type Publisher, publisherOf, readCapture } from '../oracle/capture.js';
import { printJson, readJson, readText } from './files.js';

/** What became of the messages of one store capture. */
interface StoreReport {
  readonly publisher: 'store';
  readonly file: string;
  readonly messages: number;
  readonly fates: Record<string, number>;
  /** Messages that were not simply applied. */
  readonly notable: { readonly line: number; readonly result: StoreMessageResult }[];
  readonly objects: number;
  readonly foreignKeys: number;
  readonly foreignTenants: number;
}

/** What became of the messages of one worker's capture. */
interface WorkerReport {
  readonly publisher: 'worker';
  readonly file: string;
  readonly worker: string;
  /** Data-parallel ranks seen. */
  readonly ranks: readonly number[];
  /** Sequence numbers that did not follow the one before: messages were missed, or the worker began anew. */
  readonly gaps: number;
  /** Messages in which a removal could not be read. */
  readonly lostRemovals: number;
  readonly counts: WorkerStats;
  /** Blocks learned or confirmed, and why others were not; null without a contract. */
  readonly learned: { readonly blocks: number; readonly refusals: Readonly<Record<string, number>> } | null;
  /** Events and messages that could not be read. */
  readonly notable: { readonly line: number; readonly text: string }[];
}

type Report = StoreReport | WorkerReport;

interface Options {
  readonly contract?: string;
  readonly as?: Publisher;
  readonly json?: boolean;
}

/** The subcommand. */
export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'Feed captured event streams (JSON lines: seq, topic, payload) of a Mooncake master or of vLLM workers, and print what they teach, what is resident and what counted for nothing. Each file is one connection; a worker is named by its file.',
    )
    .argument('<capture...>', 'capture files, in order')
    .option('--contract <file>', 'contract descriptor (JSON); needed for captures of a master')
    .addOption(
      new Option('--as <publisher>', "who published them, where that can't be told").choices(['store', 'worker']),
    )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      '\nExamples:\n  moonroute replay worker-0.jsonl\n  moonroute replay worker-0.jsonl master.jsonl --contract contract.json',
    )
    .action(async (files: string[], options: Options) => {
      const session = await Session.open(options);
      const reports = files.map((file) => session.replay(file, options.as));
      if (options.json) printJson({ files: reports, ...session.end() });
      else print(reports, session);
    });
}

/** One run: all captures go to the same cache. */
class Session {
  readonly #sources: Source[] = [];
  #masterSeen = false;

  private constructor(
    readonly cache: SharedCache,
    readonly contract: ReturnType<typeof validateContract> | null,
  ) {}

  static async open({ contract }: Options): Promise<Session> {
    const cache = await SharedCache.create();
    const session = new Session(cache, contract === undefined ? null : validateContract(readJson(contract)));
    cache.updateContract(session.contract, []);
    return session;
  }

  replay(file: string, as: Publisher | undefined): Report {
    const messages = readCapture(readText(file), file);
    const publisher = as ?? publisherOf(messages);
    if (publisher === null) {
      throw new ConfigError(
        'capture-publisher',
        `${file}: no event can be read, so it can't be told who published it; say --as store or --as worker.`,
      );
    }
    return publisher === 'store' ? this.#replayStore(file, messages) : this.#replayWorker(file, messages);
  }

  #replayStore(file: string, messages: readonly Uint8Array[][]): StoreReport {
    if (this.contract === null) {
      throw new ConfigError(
        'contract-missing',
        `${file} is a master's capture: say --contract FILE, which names the objects that count.`,
      );
    }
    if (this.#masterSeen) this.cache.streamLost('reconnect');
    this.#masterSeen = true;
    const fates: Record<string, number> = {};
    const notable: StoreReport['notable'] = [];
    let [objects, foreignKeys, foreignTenants] = [0, 0, 0];
    for (const [index, frames] of messages.entries()) {
      const result = this.cache.applyStoreMessage(frames);
      fates[result.fate] = (fates[result.fate] ?? 0) + 1;
      if (result.fate !== 'applied') notable.push({ line: index + 1, result });
      objects += result.objects;
      foreignKeys += result.skipped.foreignKey;
      foreignTenants += result.skipped.foreignTenant;
    }
    return {
      publisher: 'store',
      file,
      messages: messages.length,
      fates,
      notable,
      objects,
      foreignKeys,
      foreignTenants,
    };
  }

  #replayWorker(file: string, messages: readonly Uint8Array[][]): WorkerReport {
    const worker = basename(file).replace(/\..*$/, '');
    const workers = new WorkerEvents();
    const notable: WorkerReport['notable'] = [];
    const ranks = new Set<number>();
    const before = this.cache.stats().refusals;
    let [blocks, gaps, lostRemovals] = [0, 0, 0];
    let last: bigint | null = null;
    for (const [index, frames] of messages.entries()) {
      const line = index + 1;
      try {
        const message = workers.read(worker, frames);
        if (last !== null && sequenceStep(last, message.sequence) === 'gap') gaps++;
        last = message.sequence;
        if (message.lostRemoval) lostRemovals++;
        for (const { index: at, code, text } of message.rejected)
          notable.push({ line, text: `event ${at}: ${code}: ${text}` });
        this.#admit(message.source, ranks);
        if (this.contract !== null) blocks += this.cache.observeMessage(message);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        notable.push({ line, text: `unreadable: ${error.code}: ${error.message}` });
      }
    }
    const refusals = differenceOf(this.cache.stats().refusals, before);
    return {
      publisher: 'worker',
      file,
      worker,
      ranks: [...ranks].sort((a, b) => a - b),
      gaps,
      lostRemovals,
      counts: workers.stats(),
      learned: this.contract === null ? null : { blocks, refusals },
      notable,
    };
  }

  #admit(source: Source, ranks: Set<number>): void {
    if (ranks.has(source.dpRank)) return;
    ranks.add(source.dpRank);
    this.#sources.push(source);
    this.cache.updateContract(this.contract, this.#sources);
  }

  /** What is there at the end. */
  end() {
    const resident = this.cache
      .census()
      .map((census) => ({ ...census, kind: this.contract!.groups[census.group]!.kind }));
    const { clears, core } = this.cache.stats();
    return { edges: core?.edges ?? null, resident, clears };
  }
}

function differenceOf(after: Readonly<Record<string, number>>, before: Readonly<Record<string, number>>) {
  return Object.fromEntries(
    Object.entries(after).flatMap(([key, count]) => {
      const more = count - (before[key] ?? 0);
      return more > 0 ? [[key, more]] : [];
    }),
  );
}

// ---- for people ----

const NOTABLE_SHOWN = 20;

function print(reports: readonly Report[], session: Session): void {
  for (const report of reports) {
    if (report.publisher === 'store') printStore(report);
    else printWorker(report);
  }
  if (session.contract === null) return;
  const { edges, resident, clears } = session.end();
  if (reports.some(({ publisher }) => publisher === 'worker')) console.log(`learned: ${edges} hash edges`);
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

function printStore({ file, messages, fates, notable, objects, foreignKeys, foreignTenants }: StoreReport): void {
  console.log(`${file}: ${messages} messages of a master (${listed(fates) || 'none'})`);
  console.log(
    `  ${objects} object events applied; skipped: ${foreignKeys} foreign keys, ${foreignTenants} foreign tenants`,
  );
  printNotable(
    notable.map(({ line, result }) => {
      const at = result.sequence === null ? '' : ` at sequence ${result.sequence}`;
      return `line ${line}: ${result.fate}${at}${result.detail === null ? '' : `: ${result.detail}`}`;
    }),
  );
}

function printWorker({ file, worker, ranks, gaps, lostRemovals, counts, learned, notable }: WorkerReport): void {
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
  if (gaps > 0) console.log(`  ${gaps} × the sequence broke: messages were missed or the worker began anew`);
  if (lostRemovals > 0)
    console.log(`  ${lostRemovals} × a removal could not be read: what was indexed of this worker must be rebuilt`);
  printNotable(notable.map(({ line, text }) => `line ${line}: ${text}`));
}

function printCounts(what: string, counts: Readonly<Record<string, number>>): void {
  if (Object.keys(counts).length > 0) console.log(`  ${what}: ${listed(counts)}`);
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([code, count]) => `${count} ${code}`)
    .join(', ');
}

function printNotable(lines: readonly string[]): void {
  for (const line of lines.slice(0, NOTABLE_SHOWN)) console.log(`  ${line}`);
  if (lines.length > NOTABLE_SHOWN) console.log(`  … ${lines.length - NOTABLE_SHOWN} more; see --json`);
}
