#!/usr/bin/env node
// The `moonroute` command: one file a subcommand, put together here. Exit code 0 only for success; errors go to stderr.
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { MoonrouteError } from '../errors.js';
import { contractCommand } from './contract.js';
import { doctorCommand } from './doctor.js';
import { fleetCommand } from './fleet.js';
import { hashCommand } from './hash.js';
import { oracleCommand } from './oracle.js';
import { recordCommand } from './record.js';
import { replayCommand } from './replay.js';
import { serveCommand } from './serve.js';
import { simulateCommand } from './simulate.js';

const { version } = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'));

const program = new Command('moonroute')
  .version(version)
  .description('KV-cache-aware routing core: credits prompt prefixes that only a shared Mooncake store holds.')
  .showHelpAfterError()
  .addCommand(serveCommand())
  .addCommand(doctorCommand())
  .addCommand(oracleCommand())
  .addCommand(recordCommand())
  .addCommand(replayCommand())
  .addCommand(fleetCommand())
  .addCommand(simulateCommand())
  .addCommand(contractCommand())
  .addCommand(hashCommand());

try {
  await program.parseAsync();
} catch (error) {
  const known = error instanceof MoonrouteError || (error as NodeJS.ErrnoException).code !== undefined;
  console.error(known ? `moonroute: ${(error as Error).message}` : error);
  process.exitCode = 1;
}
