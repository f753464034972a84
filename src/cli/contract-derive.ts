// `moonroute contract derive`: a contract from a model's public configuration, for engines that can not load the worker extension.
import { Command, InvalidArgumentError } from 'commander';
import { type DeriveOptions, deriveDescriptor } from '../contract/derive.js';
import { ContractError } from '../errors.js';
import { printJson, readJson } from './files.js';

type Options = DeriveOptions & { readonly json?: boolean };

const NOTE = `moonroute: this contract is derived, and no engine has vouched for it. It credits nothing unless sharedCache.allowUnverifiedContract is true; moonroute
  doctor says how far what the store holds bears it out. An engine that can load the worker extension publishes a verified one.`;

/** The subcommand. */
export function contractDeriveCommand(): Command {
  return new Command('derive')
    .description(
      "Derive an unverified contract descriptor from a model's public config.json and from how its engine was started, and print it as JSON.",
    )
    .argument('<file>', "the model's config.json")
    .requiredOption('--model <name>', "the engine's --model; the last part of a path stands in keys")
    .option('--cache-prefix <text>', 'cache_prefix of its connector; by default none')
    .option('--tp <ranks>', 'tensor-parallel size', whole)
    .option('--pp <ranks>', 'pipeline-parallel size', whole)
    .option('--block-size <tokens>', 'tokens of a block, 16 unless said; needed for models with states', whole)
    .option('--hash-block-size <tokens>', 'tokens of a hash block; by default those of a block', whole)
    .option('--hash-seed <text>', 'the value of PYTHONHASHSEED; by default 0')
    .option('--json', 'print errors as JSON, and no note')
    .addHelpText(
      'after',
      `
The engine's vLLM is taken to be the pinned revision. What is printed goes into a worker's "contract": {"file": …}. It credits nothing unless
sharedCache.allowUnverifiedContract is set; docs/contract.md says when to.

Example:
  moonroute contract derive config.json --model Qwen/Qwen3-32B --tp 4 --cache-prefix pool-a > contract.json`,
    )
    .action((file: string, { json = false, ...options }: Options) => {
      try {
        printJson(deriveDescriptor(readJson(file), options));
        if (!json) console.error(NOTE);
      } catch (error) {
        if (!(error instanceof ContractError)) throw error;
        if (json) printJson({ code: error.code, message: error.message });
        else console.error(`${file}: refused (${error.code})\n  ${error.message}`);
        process.exitCode = 1;
      }
    });
}

function whole(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('give a whole number, 1 or more.');
}
