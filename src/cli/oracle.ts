// `moonroute oracle`: runs case files, whose hits vLLM's own coordinator computed, through the real path, and says where we agree.
import { Command, Option } from 'commander';
import { SharedCache } from '../cache/shared-cache.js';
import type { Hashing } from '../contract/descriptor.js';
import { readCaseFile } from '../oracle/case-file.js';
import { type CaseResult, type OracleSummary, oracleCacheOptions, runCase, summarise } from '../oracle/run.js';
import { printJson, readText } from './files.js';

interface FileReport extends OracleSummary {
  readonly file: string;
  readonly mode: Hashing;
  /** Unsupported cases by reason. */
  readonly unsupportedBy: Record<string, number>;
  readonly results: readonly CaseResult[];
}

/** The subcommand. */
export function oracleCommand(): Command {
  return new Command('oracle')
    .description(
      "Compare credit with vLLM's own answer on oracle case files (plain or .gz). Fails if any case is credited above it.",
    )
    .argument('<file...>', 'case files')
    .addOption(
      new Option('--mode <mode>', 'where engine hashes come from: learned from worker events, or derived from tokens')
        .choices(['learned', 'derived', 'both'])
        .default('learned'),
    )
    .option('--cases', 'also list every case that is not equal, with the reasons')
    .option('--json', 'print one JSON document, all results included')
    .addHelpText(
      'after',
      '\nExample:\n  moonroute oracle test/fixtures/oracle-cases.json.gz --cases\n  moonroute oracle test/fixtures/oracle-cases.json.gz --mode derived',
    )
    .action(async (files: string[], options: { mode: Hashing; cases?: boolean; json?: boolean }) => {
      const cache = await SharedCache.create(oracleCacheOptions(options.mode));
      const reports: FileReport[] = [];
      for (const file of files) {
        const results = readCaseFile(readText(file), file).map((oracleCase) => runCase(cache, oracleCase));
        const unsupportedBy: Record<string, number> = {};
        for (const { unsupported } of results)
          if (unsupported !== null) unsupportedBy[unsupported] = (unsupportedBy[unsupported] ?? 0) + 1;
        reports.push({ file, mode: options.mode, ...summarise(results), unsupportedBy, results });
      }
      if (options.json) printJson(reports);
      else for (const report of reports) printReport(report, options.cases === true);
      const over = reports.reduce((sum, report) => sum + report.over, 0);
      if (over > 0) {
        console.error(
          `moonroute: ${over} cases are credited above what vLLM restores; list them with --cases. This build must not be used.`,
        );
        process.exitCode = 1;
      }
    });
}

function printReport(
  { file, mode, cases, equal, equalWithHit, under, over, unsupported, unsupportedBy, results }: FileReport,
  list: boolean,
): void {
  console.log(`${file} (${mode})`);
  console.log(`  cases       ${cases}`);
  console.log(`  equal       ${equal} (${equalWithHit} with a hit, ${equal - equalWithHit} without)`);
  console.log(`  under       ${under}`);
  console.log(`  over        ${over}`);
  console.log(`  unsupported ${unsupported}`);
  for (const [code, count] of Object.entries(unsupportedBy)) console.log(`    ${String(count).padStart(3)} ${code}`);
  if (!list) return;
  for (const result of results) {
    if (result.verdict === 'equal') continue;
    const said = result.unsupported ?? `${result.credited} tokens credited, vLLM restores ${result.expected}`;
    console.log(`  ${result.verdict} ${result.name}: ${said}`);
    for (const { code, text } of result.reasons) console.log(`      ${code}: ${text}`);
  }
}
