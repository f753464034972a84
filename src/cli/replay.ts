// `moonroute replay`: feeds captured store messages through the real path and shows what they leave resident.
import { Command } from 'commander';
import { SharedCache } from '../cache/shared-cache.js';
import type { StoreMessageResult } from '../cache/types.js';
import { validateContract } from '../contract/validate.js';
import { readCapture } from '../oracle/capture.js';
import { printJson, readJson, readText } from './files.js';

interface FileReport {
  readonly file: string;
  readonly messages: number;
  readonly fates: Record<string, number>;
  /** Messages that were not simply applied. */
  readonly notable: { readonly line: number; readonly result: StoreMessageResult }[];
  readonly objects: number;
  readonly foreignKeys: number;
  readonly foreignTenants: number;
}

/** The subcommand. */
export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'Feed captured Mooncake event streams (JSON lines: seq, topic, payload) and print what is resident. Each file is one connection.',
    )
    .argument('<capture...>', 'capture files, in order')
    .requiredOption('--contract <file>', 'contract descriptor (JSON)')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  moonroute replay capture.jsonl --contract contract.json')
    .action(async (files: string[], options: { contract: string; json?: boolean }) => {
      const contract = validateContract(readJson(options.contract));
      const cache = await SharedCache.create();
      cache.updateContract(contract, []);
      const reports = files.map((file, index) => {
        if (index > 0) cache.streamLost('reconnect');
        return replayFile(cache, file);
      });
      const resident = cache.census().map((census) => ({ ...census, kind: contract.groups[census.group]!.kind }));
      const { clears } = cache.stats();
      if (options.json) {
        printJson({ files: reports, resident, clears });
        return;
      }
      for (const report of reports) printReport(report);
      console.log('resident');
      for (const { group, kind, complete, objects, cpu, disk, unknown } of resident) {
        console.log(
          `  group ${group} (${kind}): ${complete} complete digests, ${objects} objects (cpu ${cpu}, disk ${disk}, unknown ${unknown})`,
        );
      }
      for (const [cause, count] of Object.entries(clears))
        if (cause !== 'contract-change') console.log(`cleared ${count} × ${cause}`);
    });
}

function replayFile(cache: SharedCache, file: string): FileReport {
  const messages = readCapture(readText(file), file);
  const fates: Record<string, number> = {};
  const notable: FileReport['notable'] = [];
  let [objects, foreignKeys, foreignTenants] = [0, 0, 0];
  for (const [index, frames] of messages.entries()) {
    const result = cache.applyStoreMessage(frames);
    fates[result.fate] = (fates[result.fate] ?? 0) + 1;
    if (result.fate !== 'applied') notable.push({ line: index + 1, result });
    objects += result.objects;
    foreignKeys += result.skipped.foreignKey;
    foreignTenants += result.skipped.foreignTenant;
  }
  return { file, messages: messages.length, fates, notable, objects, foreignKeys, foreignTenants };
}

const NOTABLE_SHOWN = 20;

function printReport({ file, messages, fates, notable, objects, foreignKeys, foreignTenants }: FileReport): void {
  const said = Object.entries(fates).map(([fate, count]) => `${count} ${fate}`);
  console.log(`${file}: ${messages} messages (${said.join(', ') || 'none'})`);
  console.log(
    `  ${objects} object events applied; skipped: ${foreignKeys} foreign keys, ${foreignTenants} foreign tenants`,
  );
  for (const { line, result } of notable.slice(0, NOTABLE_SHOWN)) {
    console.log(
      `  line ${line}: ${result.fate}${result.sequence === null ? '' : ` at sequence ${result.sequence}`}${result.detail === null ? '' : `: ${result.detail}`}`,
    );
  }
  if (notable.length > NOTABLE_SHOWN) console.log(`  … ${notable.length - NOTABLE_SHOWN} more; see --json`);
}
