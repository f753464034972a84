#!/usr/bin/env node
// The `moonroute` command: one file a subcommand. Only the one that is asked for is loaded, so that none waits for, or needs permission of, what
// another one stands on. Exit code 0 only for success; errors go to stderr.
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { MoonrouteError } from '../errors.js';

/** In the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.js')).serveCommand(),
  doctor: async () => (await import('./doctor.js')).doctorCommand(),
  publish: async () => (await import('./publish.js')).publishCommand(),
  oracle: async () => (await import('./oracle.js')).oracleCommand(),
  record: async () => (await import('./record.js')).recordCommand(),
  replay: async () => (await import('./replay.js')).replayCommand(),
  fleet: async () => (await import('./fleet.js')).fleetCommand(),
  simulate: async () => (await import('./simulate.js')).simulateCommand(),
  contract: async () => (await import('./contract.js')).contractCommand(),
  hash: async () => (await import('./hash.js')).hashCommand(),
  bench: async () => (await import('./bench.js')).benchCommand(),
};

const { version } = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'));

const program = new Command('moonroute')
  .version(version)
  .description('KV-cache-aware routing core: credits prompt prefixes that only a shared Mooncake store holds.')
  .showHelpAfterError();

const [asked] = process.argv.slice(2);
const wanted = asked !== undefined && Object.hasOwn(COMMANDS, asked) ? [asked] : Object.keys(COMMANDS);
for (const name of wanted) program.addCommand(await COMMANDS[name]!());

try {
  await program.parseAsync();
} catch (error) {
  const known = error instanceof MoonrouteError || (error as NodeJS.ErrnoException).code !== undefined;
  console.error(known ? `moonroute: ${(error as Error).message}` : error);
  process.exitCode = 1;
}
