// `moonroute hash`: local and sequence hashes of a prompt, to compare with what another router or an engine says.
import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { blockHashes, sequenceHashes } from '../core/local-hash.js';
import { ConfigError } from '../errors.js';
import { printJson } from './files.js';

/** The subcommand. */
export function hashCommand(): Command {
  return new Command('hash')
    .description('Print local block hashes and sequence hashes (XXH3-64, seed 1337) of token ids.')
    .argument('[tokens...]', 'token ids, separated by spaces or commas; - or none reads standard input')
    .requiredOption('--block-size <tokens>', 'tokens a block', wholeNumber)
    .option('--lora <name>', 'LoRA name')
    .option('--namespace <name>', 'cache namespace')
    .option('--json', 'print JSON; 64-bit values are decimal texts')
    .addHelpText('after', '\nExample:\n  moonroute hash --block-size 4 1 2 3 4 5 6 7 8')
    .action((tokens: string[], options: { blockSize: number; lora?: string; namespace?: string; json?: boolean }) => {
      const given = tokens.length === 0 || tokens[0] === '-' ? readFileSync(0, 'utf8') : tokens.join(' ');
      const ids = readTokens(given);
      const local = blockHashes(ids, options.blockSize, { loraName: options.lora, cacheNamespace: options.namespace });
      const sequence = sequenceHashes(local);
      const tail = ids.length - local.length * options.blockSize;
      if (options.json) {
        printJson({
          blockSize: options.blockSize,
          tokens: ids.length,
          tail,
          local: [...local],
          sequence: [...sequence],
        });
        return;
      }
      for (const [i, hash] of local.entries()) console.log(`block ${i}  local ${hash}  sequence ${sequence[i]}`);
      if (tail > 0)
        console.error(`moonroute: the last ${tail} of ${ids.length} tokens fill no block and are not hashed`);
    });
}

function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value) || Number(value) < 1)
    throw new InvalidArgumentError('give a whole number of tokens, 1 or more.');
  return Number(value);
}

function readTokens(text: string): Uint32Array {
  const words = text.split(/[\s,[\]]+/).filter((word) => word !== '');
  return Uint32Array.from(words, (word) => {
    if (!/^\d+$/.test(word) || Number(word) > 0xffff_ffff) {
      throw new ConfigError('token-id', `"${word}" is no token id; give whole numbers from 0 to 4294967295.`);
    }
    return Number(word);
  });
}
