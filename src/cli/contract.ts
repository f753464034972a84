// `moonroute contract check` (and derive): would these workers get shared-store hints, and if not, which rule says so?
import { Command, Option } from 'commander';
import { agreeOnContract } from '../contract/agree.js';
import { type Contract, HASHINGS, type Hashing } from '../contract/descriptor.js';
import { unlearnedRule, validateContract } from '../contract/validate.js';
import { ContractError } from '../errors.js';
import { contractDeriveCommand } from './contract-derive.js';
import { printJson, readJson } from './files.js';

/** The subcommand. */
export function contractCommand(): Command {
  const check = new Command('check')
    .description("Validate a worker's contract descriptor, or an array with the replies of all ranks of one worker.")
    .argument('<file>', 'JSON file')
    .addOption(
      new Option(
        '--hashing <mode>',
        'where digests are to come from: workers teach them, the router computes them, or both',
      )
        .choices(HASHINGS)
        .default('learned'),
    )
    .option('--json', 'print the validated contract, or the error, as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  moonroute contract check contract.json\n  moonroute contract check contract.json --hashing derived --json',
    )
    .action((file: string, { hashing, json: asJson }: { hashing: Hashing; json?: boolean }) => {
      const json = readJson(file);
      try {
        const contract = Array.isArray(json)
          ? agreeOnContract(json, { worldSize: json.length, hashing })
          : validateContract(json, { hashing });
        if (asJson) printJson({ valid: true, contract });
        else printContract(file, contract);
      } catch (error) {
        if (!(error instanceof ContractError)) throw error;
        if (asJson) printJson({ valid: false, code: error.code, message: error.message });
        else console.error(`${file}: refused (${error.code})\n  ${error.message}`);
        process.exitCode = 1;
      }
    });
  return new Command('contract')
    .description('Work with contract descriptors.')
    .addCommand(check)
    .addCommand(contractDeriveCommand());
}

function printContract(file: string, contract: Contract): void {
  const { adapter, mainEventBlockSize, hashBlockSize, lcmBlockSize, partialHashHits, hashRule, groups } = contract;
  console.log(
    `${file}: valid (${adapter})${contract.verified ? '' : ', unverified: derived, and no engine has vouched for it'}`,
  );
  console.log(
    `  main event block ${mainEventBlockSize} tokens, hash block ${hashBlockSize}, alignment ${lcmBlockSize}, partial hits ${partialHashHits ? 'on' : 'off'}`,
  );
  const rule = unlearnedRule(contract);
  const teaching = rule === null ? 'can teach' : `can not teach: ${rule.message} (contract rule ${rule.number})`;
  console.log(`  hash rule ${hashRule.algorithm}, seed ${JSON.stringify(hashRule.seed)}; events ${teaching}`);
  for (const group of groups) {
    const window = group.slidingWindow === null ? '' : `, window ${group.slidingWindow}`;
    console.log(
      `  group ${group.groupId} ${group.kind}: block ${group.blockSize}${window}, ${group.keyPrefixes.length} required prefixes`,
    );
  }
}
