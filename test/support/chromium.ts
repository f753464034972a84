// Pages served over loopback to Debian's chromium (CI installs it). Where there is none, its tests say so and are skipped; under CI they fail instead.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { test } from 'uvu';
import { hasBrowser, launched } from './simulator-page.js';

/** What is served at a path. */
export interface Served {
  readonly type: 'text/html' | 'text/javascript' | 'application/json' | 'application/wasm';
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

export const html = (body: string, headers: Readonly<Record<string, string>> = {}): Served => ({
  ...{ type: 'text/html', body: `<!doctype html><meta charset="utf-8"><title>moonroute</title>${body}`, headers },
});
export const script = (body: string | Uint8Array): Served => ({ type: 'text/javascript', body });
export const json = (value: unknown): Served => ({ type: 'application/json', body: JSON.stringify(value) });

/** `test`, or where there is no browser `test.skip` with a notice that names `file`. */
export function browserTest(file: string): (name: string, work: () => Promise<void>) => void {
  return hasBrowser(file) ? test : test.skip;
}

/** Opens `path` of what `served` gives, and hands the page to `work`. */
export async function onPage<T>(
  served: (path: string) => Served | undefined,
  path: string,
  work: (page: Page, browser: Browser) => Promise<T>,
): Promise<T> {
  const server = createServer((request, response) => {
    const found = served(request.url ?? '/');
    if (found === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': found.type, ...found.headers }).end(found.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  let browser: Browser | undefined;
  try {
    browser = await launched();
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
    return await work(page, browser);
  } finally {
    await browser?.close();
    server.close();
  }
}
