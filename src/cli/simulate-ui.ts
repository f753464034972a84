// `moonroute simulate --ui`: the simulator's page on loopback. Options of the simulation become the page's address, and a trace is served beside it; the page does
// the rest in the browser.
import { spawn } from 'node:child_process';
import { type Stats, statSync } from 'node:fs';
import { basename } from 'node:path';
import { type Command, Option } from 'commander';
import { ConfigError } from '../errors.js';
import { runOf } from '../sim/settings/from-texts.js';
import { DEFAULT_POLICIES, SETTING_OPTIONS } from '../sim/settings/options.js';
import { COUNT } from '../sim/settings/units.js';
import { hashOf } from '../web/simulator/settings-hash.js';
import { readText } from './files.js';
import { parser } from './simulate-options.js';
import type { ServedTrace } from './simulate-ui-server.js';

const MAX_PORT = 65_535;
/** What would print elsewhere, or is read from files that a page has none of. */
const APART = ['json', 'csv', 'html', 'verbose', 'config'] as const;

export interface UiOptions extends Readonly<Record<string, unknown>> {
  readonly ui?: boolean;
  readonly port?: number;
  readonly open?: 'yes' | 'no';
}

/** Adds the page's options to the command, and collects the texts of all others as they are typed. */
export function withUi(command: Command): Record<string, string> {
  command
    .addOption(
      new Option('--ui', 'serve a page that runs all this in a browser, on loopback until Ctrl-C').helpGroup('Page:'),
    )
    .addOption(
      new Option('--port <n>', 'port of the page (default any that is free)')
        .argParser(parser<unknown>(portOf))
        .helpGroup('Page:'),
    )
    .addOption(
      new Option('--open <yes|no>', 'open it in the browser (default yes where there is a terminal)')
        .choices(['yes', 'no'])
        .helpGroup('Page:'),
    );
  const texts: Record<string, string> = {};
  for (const { flag, value, repeats } of SETTING_OPTIONS)
    command.on(`option:${flag}`, (text: string | null) => {
      const given = value === null ? 'true' : (text ?? '');
      texts[flag] = repeats && texts[flag] !== undefined ? `${texts[flag]},${given}` : given;
    });
  return texts;
}

function portOf(text: string): number {
  const port = COUNT.parse(text);
  if (port > MAX_PORT) throw new ConfigError('port', `"${text}" is no port; give 0 to ${MAX_PORT}`);
  return port;
}

/**
 * Serves the page until SIGINT or SIGTERM.
 * @param texts options of the simulation as they were typed
 * @throws ConfigError `ui-apart`, `ui-traces`, `ui-missing`, `trace-unreadable`, and what the simulation's options are refused for
 */
export async function serveUi(paths: readonly string[], options: UiOptions, texts: Readonly<Record<string, string>>) {
  const apart = APART.find((name) => options[name] !== undefined);
  if (apart !== undefined)
    throw new ConfigError('ui-apart', `--${apart} does not go with --ui: the page shows and saves all results itself`);
  const trace = traceOf(paths);
  const settings = settingsOf(texts);
  runOf(settings, trace !== null);
  // Only here, so that a simulation without a page waits for no server.
  const { servePage } = await import('./simulate-ui-server.js');
  const listening = await servePage(trace, options.port ?? 0);
  const address = `${listening.url}/${Object.keys(settings).length > 0 ? hashOf(settings, null) : ''}`;
  console.log(`moonroute simulator: ${address}`);
  if (options.open === 'yes' || (options.open === undefined && process.stdout.isTTY === true)) openInBrowser(address);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await listening.close();
}

/** As a page that is opened with options: what they leave out is the command's, and the curve comes along. */
function settingsOf(texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (Object.keys(texts).length === 0) return {};
  const groups = texts['groups'] === undefined ? {} : { groups: readText(texts['groups']) };
  const curve = texts['curve'] === undefined ? { curve: 'true', policy: DEFAULT_POLICIES } : {};
  return { ...curve, ...texts, ...groups };
}

function traceOf(paths: readonly string[]): ServedTrace | null {
  const [path] = paths;
  if (path === undefined) return null;
  if (paths.length > 1)
    throw new ConfigError('ui-traces', `${paths.length} traces are given; the page takes one at a time: name one`);
  if (path === '-')
    throw new ConfigError('ui-traces', 'standard input can be read once only; save it to a file, and name that');
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (error) {
    throw new ConfigError('trace-unreadable', `cannot read ${path}: ${(error as Error).message}`);
  }
  if (!stats.isFile()) throw new ConfigError('trace-unreadable', `cannot read ${path}: it is no file`);
  return { path, name: basename(path), size: stats.size };
}

/** As the platform does it; where it can't, the address has been said. */
function openInBrowser(address: string): void {
  const [command, args] =
    process.platform === 'darwin'
      ? ['open', [address]]
      : process.platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', address]]
        : ['xdg-open', [address]];
  const child = spawn(command as string, args as string[], { detached: true, stdio: 'ignore' });
  child.on('error', () => undefined);
  child.unref();
}
