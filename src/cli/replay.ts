// `moonroute replay`: feeds recordings and captures of the store's master and of workers through the real path and shows what they teach,
// what they leave resident, and why the rest counts for nothing; or sends them again, to any router.
import { Command, Option } from 'commander';
import { HASHINGS, type Hashing } from '../contract/descriptor.js';
import { validateContract } from '../contract/validate.js';
import { ConfigError } from '../errors.js';
import type { SourceKind } from '../live/recording.js';
import { printJson, readJson } from './files.js';
import { Pace, speedOf } from './replay-pace.js';
import { publishAll } from './replay-publish.js';
import { openFiles } from './replay-read.js';
import { endOf, printReports } from './replay-report.js';
import { ReplaySession } from './replay-session.js';
import { parser } from './simulate-options.js';

interface Options {
  readonly contract?: string;
  readonly hashing: Hashing;
  readonly as?: SourceKind;
  readonly speed: number;
  readonly publish?: boolean;
  readonly port?: number;
  readonly waitForSubscriber?: boolean;
  readonly json?: boolean;
}

/** The subcommand. */
export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'Feed recordings of `moonroute record`, or captured event streams (JSON lines: seq, topic, payload), of a Mooncake master and of vLLM workers, and print what they teach, what is resident and what counted for nothing. Recordings that stand next to each other are read together in the order of time, and what they have of one name is one source. A capture is one connection; a worker is named by its file.',
    )
    .argument('<file...>', 'recordings and captures, plain or gzip, in order')
    .option('--contract <file>', "contract descriptor (JSON); what a master's events count by")
    .addOption(
      new Option(
        '--hashing <mode>',
        'where engine hashes come from: workers teach them, they are derived by the contract and held against events, or both',
      )
        .choices(HASHINGS)
        .default('learned'),
    )
    .addOption(
      new Option('--as <publisher>', "who published them, where that can't be told").choices(['store', 'worker']),
    )
    .addOption(
      new Option('--speed <speed>', 'max, original, or a factor like 2x')
        .default(Number.POSITIVE_INFINITY, 'max')
        .argParser(parser(speedOf)),
    )
    .option('--publish', 'send the recorded frames again, from ZeroMQ PUB sockets on loopback, and print nothing else')
    .option('--port <n>', 'with --publish: port of the first socket, each further one has the next', parser(portOf))
    .option('--wait-for-subscriber', 'with --publish: send when each socket has a subscriber')
    .option('--json', 'print one JSON document; with --publish two, each a line: endpoints, and what was sent')
    .addHelpText(
      'after',
      '\nExamples:\n  moonroute replay worker-0.jsonl\n  moonroute replay worker-0.jsonl master.jsonl --contract contract.json\n  moonroute replay worker-0.jsonl --contract contract.json --hashing derived\n  moonroute replay pool*.jsonl.gz --contract contract.json --speed 10x\n  moonroute replay pool.jsonl --publish --port 5557 --wait-for-subscriber --speed original',
    )
    .action(async (paths: string[], options: Options) => {
      const { port, waitForSubscriber } = options;
      if (options.publish !== true && (port !== undefined || waitForSubscriber === true))
        throw new ConfigError('option-misplaced', '--port and --wait-for-subscriber are for --publish');
      if (options.publish) await publish(paths, options);
      else await feed(paths, options);
    });
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new ConfigError('port', `"${text}" is no port; give 1 to 65535`);
  return port;
}

async function feed(paths: readonly string[], options: Options): Promise<void> {
  const { hashing } = options;
  const contract = options.contract === undefined ? null : validateContract(readJson(options.contract), { hashing });
  const session = await ReplaySession.open(contract, options.as, hashing);
  const pace = new Pace(options.speed);
  for (const files of await openFiles(paths)) await session.replay(files, pace);
  const { reports, cut, cache } = session;
  if (options.json) printJson({ files: reports, cut, ...endOf(cache, contract) });
  else printReports(reports, cut, cache, contract);
}

async function publish(paths: readonly string[], options: Options): Promise<void> {
  const endpoints: Record<string, string> = {};
  const told = (): void => {
    if (options.json) console.log(JSON.stringify({ endpoints }));
  };
  const sent = await publishAll(await openFiles(paths), {
    port: options.port ?? null,
    waitForSubscriber: options.waitForSubscriber === true,
    pace: new Pace(options.speed),
    bound: (name, endpoint) => {
      endpoints[name] = endpoint;
      if (!options.json) console.log(`${name} ${endpoint}`);
    },
    ready: told,
  });
  if (options.json) console.log(JSON.stringify({ sent }));
  else for (const [name, messages] of Object.entries(sent)) console.log(`${name}: ${messages} messages sent`);
}
