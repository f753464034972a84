// `moonroute serve`: the live router. With nothing configured it routes to a simulated fleet of its own, so that there is something to see.
import { Command, Option } from 'commander';
import { MoonrouteError } from '../errors.js';
import { checkConfig, type ServerConfig } from '../server/config.js';
import { type ConfigSources, checkGathered, gatherConfig, loadConfig } from '../server/config-load.js';
import { printedConfig } from '../server/config-print.js';
import { CONFIG_FILE, CONFIG_SETTINGS, type ConfigSetting } from '../server/config-settings.js';
import { type EmbeddedFleet, startEmbedded, withFleet } from '../server/embedded.js';
import { createLog } from '../server/log.js';
import { type RunningService, startService } from '../server/service.js';
import type { ServerLog } from '../server/types.js';
import { printJson } from './files.js';

/** How long a process that has closed everything may linger before it is ended, in milliseconds. */
const LINGER = 2000;

interface Options extends Readonly<Record<string, unknown>> {
  readonly printConfig?: boolean;
  readonly json?: boolean;
}

/** The subcommand. */
export function serveCommand(): Command {
  const command = new Command('serve').description(
    'Route OpenAI requests to the worker that has most of their prompt cached, on its GPU or in the shared store. Without a configuration it starts a simulated fleet of 4 workers and a store, to try it out.',
  );
  for (const setting of [CONFIG_FILE, ...CONFIG_SETTINGS]) command.addOption(optionOf(setting));
  return command
    .option('--print-config', 'print the configuration in force, without secrets, and end')
    .option('--json', 'print addresses as one line of JSON')
    .addHelpText('after', HELP)
    .action(serve);
}

const HELP = `
The command line goes before the environment, that before the file, and all before the defaults.

Signals:
  SIGTERM, SIGINT   refuse new requests, wait for those under way (limits.drainTime), end with 0; a second one ends at once with 1
  SIGHUP            read the file again and take its workers; a faulty file changes nothing

Examples:
  moonroute serve
  moonroute serve --worker a=http://10.0.0.5:8000,events=tcp://10.0.0.5:5557,replay=tcp://10.0.0.5:5558 \\
    --shared-cache-type mooncake-store --master tcp://10.0.0.9:5557,http=http://10.0.0.9:9003
  moonroute serve --config moonroute.json --print-config`;

function optionOf({ flag, env, help, repeats }: ConfigSetting): Option {
  const option = new Option(flag, `${help} (env: ${env}${repeats ? ', several with spaces between' : ''})`);
  if (repeats) option.argParser((text, before: string[] | undefined) => [...(before ?? []), text]);
  return option;
}

async function serve(options: Options): Promise<void> {
  const sources: ConfigSources = { flags: options, env: process.env };
  const gathered = gatherConfig(sources);
  if (options.printConfig) return printJson(printedConfig(checkGathered(gathered, sources)));
  const signals = new Signals();
  let embedded: EmbeddedFleet | null = null;
  let running: RunningService | null = null;
  try {
    if (gathered.empty) embedded = await startEmbedded();
    const config =
      embedded === null
        ? checkGathered(gathered, sources)
        : checkConfig(withFleet(gathered.document, embedded.settings), { env: process.env, origins: gathered.origins });
    const log = createLog(config.log.level);
    for (const note of gathered.notes) log.warn({}, note);
    running = await startService(config, { log, signal: signals.ending });
    say(running, config, embedded, options);
    log.info({ url: running.url, workers: config.workers.length, simulated: embedded !== null }, 'listening');
    const service = running;
    const isEmbedded = embedded !== null;
    await signals.untilEnd(() => reload(service, sources, isEmbedded, log));
  } catch (error) {
    // Told to end while it started.
    if (!isAbandoned(error)) throw error;
  } finally {
    await running?.close();
    await embedded?.close();
    signals.close();
  }
  // Whatever still keeps the process alive must not keep it from ending.
  setTimeout(() => process.exit(), LINGER).unref();
}

/** Takes the workers of the file as it is now. Whatever is wrong with it is logged, and changes nothing. */
async function reload(
  running: RunningService,
  sources: ConfigSources,
  embedded: boolean,
  log: ServerLog,
): Promise<void> {
  if (embedded) return log.info({}, 'nothing to reload: the fleet is simulated');
  let loaded: ReturnType<typeof loadConfig>;
  try {
    loaded = loadConfig(sources);
  } catch (error) {
    return log.error({ error: (error as Error).message }, 'not reloaded: nothing has changed');
  }
  try {
    const { added, removed, changed, kept } = await running.reload(loaded.config);
    log.info({ file: loaded.file, added, removed, changed }, 'workers reloaded');
    if (kept.length > 0) log.warn({ settings: kept }, 'these settings differ from those in force, and need a restart');
  } catch (error) {
    const { code, message } = error as MoonrouteError;
    if (isAbandoned(error)) log.info({}, 'the reload is abandoned: the server ends');
    else if (CHANGES_NOTHING.has(code)) log.error({ error: message }, 'not reloaded: nothing has changed');
    else log.error({ error: message }, 'workers could not all be reloaded');
  }
}

/** Refusals of a reload as a whole. */
const CHANGES_NOTHING: ReadonlySet<string> = new Set(['worker-spec', 'router-full', 'too-many-workers']);

function isAbandoned(error: unknown): boolean {
  return error instanceof MoonrouteError && error.code === 'reload-abandoned';
}

/** The process' signals: the first to end ends in order, a second one at once. */
class Signals {
  readonly #ending = new AbortController();
  #reload: (() => Promise<void>) | null = null;
  /** Reloads follow one another. */
  #reloads: Promise<void> = Promise.resolve();
  readonly #onEnd = (): void => {
    if (this.ending.aborted) process.exit(1);
    this.#ending.abort();
  };
  readonly #onReload = (): void => {
    this.#reloads = this.#reloads.then(() => this.#reload?.());
  };

  constructor() {
    process.on('SIGTERM', this.#onEnd).on('SIGINT', this.#onEnd).on('SIGHUP', this.#onReload);
  }

  /** Aborted by the first signal to end. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** Resolves at the first signal to end, whatever is being reloaded then; meanwhile `reload` is run at each SIGHUP. */
  async untilEnd(reload: () => Promise<void>): Promise<void> {
    this.#reload = reload;
    if (!this.ending.aborted) {
      await new Promise((resolve) => this.ending.addEventListener('abort', resolve, { once: true }));
    }
    this.#reload = null;
  }

  close(): void {
    process.off('SIGTERM', this.#onEnd).off('SIGINT', this.#onEnd).off('SIGHUP', this.#onReload);
  }
}

/** The first lines: where it is, and what to try. */
function say({ url }: RunningService, config: ServerConfig, embedded: EmbeddedFleet | null, { json }: Options): void {
  if (json) {
    console.log(JSON.stringify({ url, simulated: embedded !== null, workers: config.workers.map(({ id }) => id) }));
    return;
  }
  console.log(embedded === null ? realText(url, config) : simulatedText(url, config));
}

function realText(url: string, { workers, policy, sharedCache }: ServerConfig): string {
  const count = workers.length === 1 ? '1 worker' : `${workers.length} workers`;
  return [
    `moonroute routes to ${count} by ${policy}, shared cache ${sharedCache.type}: ${url}`,
    `Console ${url}/   metrics ${url}/metrics   state ${url}/status`,
  ].join('\n');
}

/** A prompt of some blocks, so that its second time shows. */
const PROMPT =
  'You are the assistant of a railway museum. Answer in one sentence, name the engine, its builder and the year. Who built the Rocket?';

function simulatedText(url: string, { workers, policy }: ServerConfig): string {
  const body = JSON.stringify({ prompt: PROMPT, max_tokens: 8 });
  return [
    `moonroute routes by ${policy} to ${workers.length} SIMULATED workers and a simulated Mooncake store: no model computes here.`,
    `Listening at ${url}. Ctrl-C ends it; --config FILE or --worker ID=URL takes workers of yours.`,
    '',
    'Send this twice: the second time, x-moonroute-cached-tokens says what was counted on as cached, and x-moonroute-worker where.',
    '',
    `  curl -si ${url}/v1/completions -H 'content-type: application/json' -d '${body}'`,
    '',
    `Then look at the console, ${url}/ (workers, hit rates, last decisions each with its why), and at ${url}/metrics.`,
  ].join('\n');
}
