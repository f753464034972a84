// `moonroute contract check`: would these workers get shared-store hints, and if not, which rule says so?
import { Command } from 'commander';
import { agreeOnContract } from '../contract/agree.js';
import type { Contract } from '../contract/descriptor.js';
import { validateContract } from '../contract/validate.js';
import { ContractError } from '../errors.js';
import { printJson, readJson } from './files.js';

/** The subcommand. */
export function contractCommand(): Command {
  const check = new Command('check')
    .description("Validate a worker's contract descriptor, or an array with the replies of all ranks of one worker.")
    .argument('<file>', 'JSON file')
    .option('--json', 'print the validated contract, or the error, as JSON')
    .addHelpText('after', '\nExample:\n  moonroute contract check contract.json')
    .action((file: string, options: { json?: boolean }) => {
      const json = readJson(file);
      try {
        const contract = Array.isArray(json)
          ? agreeOnContract(json, { worldSize: json.length })
          : validateContract(json);
        if (options.json) printJson({ valid: true, contract });
        else printContract(file, contract);
      } catch (error) {
        if (!(error instanceof ContractError)) throw error;
        if (options.json) printJson({ valid: false, code: error.code, message: error.message });
        else console.error(`${file}: refused (${error.code})\n  ${error.message}`);
        process.exitCode = 1;
      }
    });
  return new Command('contract').description('Work with contract descriptors.').addCommand(check);
}

function printContract(file: string, contract: Contract): void {
  const { adapter, mainEventBlockSize, hashBlockSize, lcmBlockSize, partialHashHits, groups } = contract;
  console.log(`${file}: valid (${adapter})`);
  console.log(
    `  main event block ${mainEventBlockSize} tokens, hash block ${hashBlockSize}, alignment ${lcmBlockSize}, partial hits ${partialHashHits ? 'on' : 'off'}`,
  );
  for (const group of groups) {
    const window = group.slidingWindow === null ? '' : `, window ${group.slidingWindow}`;
    console.log(
      `  group ${group.groupId} ${group.kind}: block ${group.blockSize}${window}, ${group.keyPrefixes.length} required prefixes`,
    );
  }
}
