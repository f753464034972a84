// The simulator's built page in Debian's chromium, from disk unless an address is given, with no network: whatever it would ask of anyone is refused and
// kept, and what went wrong in it as well. Pages are looked at by `page.evaluate` with functions: their policy runs no text.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { SimResult } from '../../src/sim/report-types.js';

const BROWSER = process.env['MOONROUTE_CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
export const PAGE = 'build/simulator/index.html';
export const COMMAND = resolve('build/js/src/cli/main.js');
const AXE = 'node_modules/axe-core/axe.min.js';
/** What is waited for comes in a moment, or, where many tests share a machine, in some. */
const DEADLINE_MS = 30_000;
const POLL_MS = 20;
/** What a page from disk may load: itself, its worker, and what it made. */
const ITS_OWN = /^(?:file|blob|data):/;

/** Complete in less than a second, and tight enough that policies differ. */
export const QUICK =
  '#requests=200&workers=4&gpu=20GB&store=50GB&policy=kv,round-robin&curve=true' as const satisfies string;
/** Takes longer than any test: to be looked at while it runs, and cancelled. */
export const LONG = '#requests=200000&workers=8&policy=kv' as const satisfies string;

/** Without a browser: skipped with a notice, but never in CI. */
export function hasBrowser(file: string): boolean {
  const has = existsSync(BROWSER) || Boolean(process.env['CI']);
  if (!has) console.log(`skipped: ${file} (no ${BROWSER}; apt-get install chromium)`);
  return has;
}

export const launched = (): Promise<Browser> => chromium.launch({ executablePath: BROWSER, args: FLAGS });

export interface Given {
  /** Of the address; the page runs its own defaults without. */
  readonly hash?: string;
  readonly context?: BrowserContextOptions;
  /** Of a server instead of the file; nothing else may be asked. */
  readonly url?: string;
  /** Before the page is loaded. */
  readonly before?: (page: Page) => Promise<void>;
}

export interface Opened {
  readonly page: Page;
  /** Errors of the console and of scripts. */
  readonly errors: string[];
  /** What was asked for beyond the page itself. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** Opens the page in a browser context of its own. */
export async function open(browser: Browser, { hash = '', context = {}, url, before }: Given = {}): Promise<Opened> {
  const given = await browser.newContext({
    offline: url === undefined,
    viewport: { width: 1280, height: 900 },
    ...context,
  });
  const errors: string[] = [];
  const asked: string[] = [];
  const mayAsk = (address: string) => ITS_OWN.test(address) || (url !== undefined && address.startsWith(url));
  given.on('request', (request) => {
    if (!mayAsk(request.url())) asked.push(request.url());
  });
  await given.route('**/*', (route) => (mayAsk(route.request().url()) ? route.continue() : route.abort()));
  const page = await given.newPage();
  page.on('websocket', (socket) => asked.push(socket.url()));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  await before?.(page);
  await page.goto(`${url ?? pathToFileURL(PAGE).href}${hash}`);
  return { page, errors, asked, close: () => given.close() };
}

/** Waits until it holds. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + DEADLINE_MS; !(await holds()); ) {
    if (Date.now() > end) throw new Error(`waited ${DEADLINE_MS} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

export const textOf = async (page: Page, selector: string): Promise<string> =>
  (await page.locator(selector).first().textContent()) ?? '';

/** Waits until a text matches. */
export async function reads(page: Page, selector: string, pattern: RegExp): Promise<string> {
  let text = '';
  const holds = async () => {
    text = await page.evaluate((where) => document.querySelector(where)?.textContent ?? '', selector);
    return pattern.test(text);
  };
  await until(`${selector} to read ${pattern}`, holds).catch((error: Error) => {
    throw new Error(`${error.message}; it reads: ${text}`);
  });
  return text;
}

/** Waits until a run has ended, and is the one in front. */
export const ended = (page: Page, run = 1): Promise<void> =>
  until(`run ${run} to end`, () =>
    page.evaluate(
      (number) =>
        document.getElementById('progress')!.hidden &&
        new RegExp(`^Run ${number}(?: |$)`).test(document.getElementById('shown')!.textContent ?? ''),
      run,
    ),
  );

/** Waits until a run has told how far it is. */
export const underWay = (page: Page): Promise<string> =>
  reads(page, '#progress p', /[\d,]+ requests/).then(async (text) => {
    await page.locator('#cancel').waitFor();
    return text;
  });

/** The file that a click brings. */
export async function downloaded(page: Page, selector: string): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click(selector)]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

// ---- the command ----

const execute = promisify(execFile);

/** What the command line that a page shows prints, in the shell that people paste it into. */
export async function printed(line: string, folder: string, form: '--json' | '--csv'): Promise<Buffer> {
  const script = `moonroute() { "$NODE" "$COMMAND" "$@"; }; ${line} ${form}`;
  const { stdout } = await execute('/bin/sh', ['-c', script], {
    cwd: folder,
    env: { ...process.env, NODE: process.execPath, COMMAND },
    maxBuffer: 1 << 26,
    encoding: 'buffer',
  });
  return stdout;
}

export const resultOf = (bytes: Buffer): SimResult => JSON.parse(bytes.toString()) as SimResult;

// ---- traces ----

/** A folder with files in it, until the tests have ended. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'moonroute-page-'));

  write(name: string, content: string | Uint8Array): string {
    const file = join(this.path, name);
    writeFileSync(file, content);
    return file;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** FAST'25 lines: sessions that take turns, each prompt beginning like the one before it. */
export function traceText(requests: number, sessions = 20): string {
  const lines = Array.from({ length: requests }, (_, i) => {
    const [session, turn] = [i % sessions, Math.floor(i / sessions)];
    const ids = Array.from({ length: 2 + turn }, (_, block) => (block === 0 ? 0 : 1000 * session + block));
    const row = { timestamp: 150 * i, input_length: 512 * ids.length, output_length: 30 + (i % 40), hash_ids: ids };
    return `${JSON.stringify(row)}\n`;
  });
  return lines.join('');
}

/** Drags a file over the page and lets it go there, as a hand does; `over` is called while it hangs above. */
export async function dropped(page: Page, files: readonly string[], over = async (): Promise<void> => undefined) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [...files], dragOperationsMask: 1 };
  const event = (type: 'dragEnter' | 'dragOver' | 'drop') =>
    session.send('Input.dispatchDragEvent', { type, x: 500, y: 300, data });
  await event('dragEnter');
  await event('dragOver');
  await over();
  await event('drop');
  await session.detach();
}

// ---- people ----

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string | null;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** Serious and critical faults that axe-core finds; its script comes past the page's policy, which stays in force. */
export async function accessFaults(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  if (!(await page.evaluate(() => 'axe' in globalThis)))
    await session.send('Runtime.evaluate', { expression: readFileSync(AXE, 'utf8') });
  await session.detach();
  const { violations } = await page.evaluate(
    () =>
      (globalThis as unknown as { axe: { run(options: object): Promise<AxeResult> } }).axe.run({
        resultTypes: ['violations'],
      }) as Promise<AxeResult>,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary}`);
}

/** How many pixels the page is wider than its window. */
export const overhang = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

export interface PictureFacts {
  readonly width: number;
  readonly height: number;
  /** Different colours, of a sample of its pixels. */
  readonly colours: number;
}

/** What a PNG shows, as a browser decodes it. */
export async function pictureFacts(page: Page, png: Buffer): Promise<PictureFacts> {
  return page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const { width, height } = image;
    const context = new OffscreenCanvas(width, height).getContext('2d')!;
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
    const colours = new Set<number>();
    for (let i = 0; i < pixels.length; i += 7) colours.add(pixels[i]!);
    return { width, height, colours: colours.size };
  }, png.toString('base64'));
}
