// `moonroute doctor`: connects to everything that a configuration names, listens for a while, and says what is wrong and how to mend it.
import { Command } from 'commander';
import { ConfigError } from '../errors.js';
import { loadConfig } from '../server/config-load.js';
import { findingsOf } from '../server/doctor/checks/index.js';
import { collectEvidence, SECONDS } from '../server/doctor/collect.js';
import { reportOf, reportText } from '../server/doctor/report.js';
import { targetOf } from '../server/doctor/target.js';
import { LocalTokenizer } from '../server/tokenizer-local.js';
import { printJson } from './files.js';
import { parser } from './simulate-options.js';

const DEFAULT_SECONDS = 10;

interface Options {
  readonly config?: string;
  readonly seconds: number;
  readonly probe?: boolean;
  readonly json?: boolean;
}

/** The subcommand. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description(
      'Connect to the workers and masters of a configuration, listen for a while, and print what is fine (✓), what is wrong with its fix (✗), and what does not apply (–). Exit code 0 only if nothing failed.',
    )
    .option('--config <file>', 'the configuration of moonroute serve (environment: MOONROUTE_CONFIG)')
    .option('--seconds <n>', 'listen for so long', parser(secondsOf), DEFAULT_SECONDS)
    .option(
      '--probe',
      'send one small completion (one token) to every rank of every worker, so that events flow on an idle pool',
    )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
It listens and asks, and changes nothing; only --probe gives workers something to do. docs/doctor.md lists all checks by their codes.

Examples:
  moonroute doctor --config moonroute.json
  moonroute doctor --config moonroute.json --probe --seconds 5 --json`,
    )
    .action(doctorAction);
}

async function doctorAction({ seconds, probe = false, json = false, ...flags }: Options): Promise<void> {
  const { config, empty } = loadConfig({ flags, env: process.env });
  if (empty) {
    throw new ConfigError('doctor-nothing', 'no configuration names a worker or a master; say --config FILE');
  }
  const ended = new AbortController();
  const end = (): void => ended.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    const { curve, tokenizer } = config;
    const local = tokenizer === null ? null : LocalTokenizer.load(tokenizer);
    const options = { seconds, probe, curve, local, signal: ended.signal };
    // Whoever waits sees why.
    if (process.stderr.isTTY) console.error(`moonroute: listening for ${seconds} s; Ctrl-C ends that early`);
    const evidence = await collectEvidence(targetOf(config), options);
    const report = reportOf(findingsOf(evidence));
    if (json) printJson(report);
    else console.log(reportText(report));
    if (!report.ok) process.exitCode = 1;
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

function secondsOf(text: string): number {
  const seconds = Number(text);
  if (seconds >= SECONDS.least && seconds <= SECONDS.most) return seconds;
  throw new ConfigError('doctor-seconds', `--seconds ${text}: give ${SECONDS.least} to ${SECONDS.most}`);
}
