// What comes into the simulator's page and what leaves it: traces by picker and by drop, exports that are the command's output byte for byte, pictures, links that
// reproduce a run, and `moonroute simulate --ui`. Needs Debian's chromium (CI installs it); without it the test says so and is skipped.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  COMMAND,
  downloaded,
  dropped,
  ended,
  Folder,
  type Given,
  hasBrowser,
  launched,
  type Opened,
  open,
  pictureFacts,
  printed,
  QUICK,
  reads,
  resultOf,
  textOf,
  traceText,
  until,
} from './support/simulator-page.js';

const runs = hasBrowser('simulator-page-files');
const browserTest = runs ? test : test.skip;
/** Of a trace, which says its own requests. */
const OF_TRACE = 'workers=4&gpu=20GB&store=50GB&policy=kv,ttft&curve=true';
/** Before one is chosen. */
const SMALL = `#requests=50&${OF_TRACE}`;

const folder = new Folder();
const TEXT = traceText(300);
const plain = folder.write("my trace's.jsonl", TEXT);
const zipped = folder.write('zipped.jsonl.gz', gzipSync(TEXT));
/** As long as the first, and other requests. */
const other = folder.write('other.jsonl', TEXT.replace('"timestamp":150,', '"timestamp":151,'));

let browser: Browser;
test.before(async () => {
  if (runs) browser = await launched();
});
test.after(async () => {
  await browser?.close();
  folder.remove();
});

/** Opens it, works with it, and sees that nothing went wrong and nobody was asked. */
async function opened<T>(given: Given, work: (opened: Opened) => Promise<T>): Promise<T> {
  const it = await open(browser, given);
  try {
    const result = await work(it);
    assert.equal(it.errors, []);
    assert.equal(it.asked, [], 'nothing is asked of anyone');
    return result;
  } finally {
    await it.close();
  }
}

/** The files of the run in front are what the command prints for the line that the page shows. @returns the JSON */
async function exportsAsCommand(page: Page, run: number, forms: readonly ('json' | 'csv')[]): Promise<Buffer> {
  const line = await textOf(page, '#command');
  const wanted = await Promise.all(forms.map((form) => printed(line, folder.path, `--${form}`)));
  let json: Buffer = Buffer.alloc(0);
  for (const [i, form] of forms.entries()) {
    const { name, bytes } = await downloaded(page, `#run-${run}-${form}`);
    assert.match(name, new RegExp(`^moonroute-run${run}-[a-z-]+\\.${form}$`));
    assert.ok(
      bytes.length > 500 && bytes.equals(wanted[i]!),
      `${name}: ${line}: ${firstDifference(bytes, wanted[i]!)}`,
    );
    if (form === 'json') json = bytes;
  }
  return json;
}

function firstDifference(a: Buffer, b: Buffer): string {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  const near = (bytes: Buffer) => JSON.stringify(bytes.subarray(Math.max(0, i - 20), i + 20).toString());
  return `${a.length} and ${b.length} bytes; at ${i}: ${near(a)} and ${near(b)}`;
}

browserTest('of the built-in workload: JSON and CSV are the command’s, byte for byte', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    assert.match(await textOf(page, '#command'), /^moonroute simulate --policy kv,round-robin --curve --requests 200 /);
    await exportsAsCommand(page, 1, ['json', 'csv']);
  }),
);

browserTest('PNG of one chart, and of all: of their size, with something on them, light and dark', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    const colours = new Set<string>();
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      const one = await downloaded(page, '[data-chart=capacity]');
      assert.is(one.name, 'moonroute-run1-kv-round-robin-capacity.png');
      await checkPicture(page, one.bytes);
      colours.add(one.bytes.toString('base64'));
    }
    assert.is(colours.size, 2, 'dark is another picture');
    const all = await downloaded(page, '#runs .tools button:last-child');
    assert.is(all.name, 'moonroute-run1-kv-round-robin-charts.png');
    const { height } = await checkPicture(page, all.bytes);
    assert.ok(height > 2_000, `${height} pixels of five charts`);
  }),
);

async function checkPicture(page: Page, png: Buffer) {
  assert.equal([...png.subarray(0, 8)], [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  assert.ok(png.length > 10_000, `${png.length} bytes`);
  const facts = await pictureFacts(page, png);
  assert.ok(facts.width >= 600 && facts.height >= 400 && facts.colours > 20, JSON.stringify(facts));
  return facts;
}

browserTest('a trace by picker: it runs at once, and exports as the command reads it', () =>
  opened({ hash: SMALL }, async ({ page }) => {
    await ended(page);
    await page.setInputFiles('#picker', plain);
    await ended(page, 2);
    assert.match(await textOf(page, '#shown'), /^Run 2 · my trace's\.jsonl \(fast25\): 300 requests/);
    assert.match(await textOf(page, '.trace-name'), /^my trace's\.jsonl, [\d.]+ kB$/);
    assert.ok(await page.locator('#set-requests').isHidden(), 'a trace says its own requests');
    assert.ok((await textOf(page, '#command')).endsWith(` 'my trace'\\''s.jsonl'`));
    await exportsAsCommand(page, 2, ['json', 'csv']);
    await page.click('.trace button');
    await ended(page, 3);
    assert.match(await textOf(page, '#shown'), /^Run 3 · (?!my trace)/);
  }),
);

browserTest('a trace let go above the page, gzip or plain, is the same trace', () =>
  opened({ hash: SMALL }, async ({ page }) => {
    await ended(page);
    const shade = page.locator('#drop');
    await dropped(page, [zipped], async () => assert.ok(await shade.isVisible()));
    assert.ok(await shade.isHidden());
    await ended(page, 2);
    assert.match(await textOf(page, '#shown'), /^Run 2 · zipped\.jsonl\.gz \(fast25, gzip\): 300 requests/);
    const ofZipped = resultOf(await exportsAsCommand(page, 2, ['json']));
    await dropped(page, [plain, other]);
    await ended(page, 3);
    await reads(page, '#trouble', /One trace at a time: my trace's\.jsonl was taken, 1 left out/);
    const ofPlain = resultOf((await downloaded(page, '#run-3-json')).bytes);
    assert.equal(
      ofPlain.runs.map(({ report }) => report),
      ofZipped.runs.map(({ report }) => report),
    );
  }),
);

browserTest('a link reproduces a run', async () => {
  const [hash, json] = await opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    await page.fill('#set-store', '20GB');
    await page.fill('#set-workload-seed', '7');
    await page.locator('.more summary').click();
    await page.fill('#set-restart', 'store@20s,worker:1@30s');
    await page.click('#run');
    await ended(page, 2);
    const address = await page.evaluate(() => location.hash);
    return [address, (await downloaded(page, '#run-2-json')).bytes] as const;
  });
  assert.match(hash, /workload-seed=7.*store=20GB.*restart=store@20s,worker:1@30s/);
  await opened({ hash }, async ({ page }) => {
    await ended(page);
    assert.is(await page.inputValue('#set-workload-seed'), '7');
    const again = (await downloaded(page, '#run-1-json')).bytes;
    assert.ok(again.equals(json), firstDifference(again, json));
    // What the address is changed to by hand, or by going back, is run as well.
    await page.evaluate((address) => {
      location.hash = address;
    }, QUICK);
    await ended(page, 2);
    assert.is(await page.inputValue('#set-workload-seed'), '');
  });
});

browserTest('a link with a trace asks for it, is content with it, and tells another file', async () => {
  const [hash, json] = await opened({ hash: SMALL }, async ({ page }) => {
    await ended(page);
    await page.setInputFiles('#picker', plain);
    await ended(page, 2);
    await until('the hash of the trace', async () => /trace-sha256=[0-9a-f]{64}/.test(page.url()));
    return [new URL(page.url()).hash, (await downloaded(page, '#run-2-json')).bytes] as const;
  });
  await opened({ hash }, async ({ page }) => {
    await reads(page, '#trouble', /made with a trace of its own: my trace's\.jsonl, [\d.]+ kB, SHA-256 [0-9a-f]{12}…/);
    assert.is(await page.locator('#runs tbody tr').count(), 0, 'nothing else runs instead');
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.click('#trouble >> text=Choose the trace'),
    ]);
    await chooser.setFiles(other);
    await ended(page);
    await reads(page, '#trouble', /other\.jsonl is as long, but has other content .* numbers will differ/);
  });
  await opened({ hash }, async ({ page }) => {
    await reads(page, '#trouble', /of its own/);
    await dropped(page, [plain]);
    await ended(page);
    await until('the hash of the trace', async () => new URL(page.url()).hash === hash);
    assert.ok(await page.locator('#trouble').isHidden());
    const again = (await downloaded(page, '#run-1-json')).bytes;
    assert.ok(again.equals(json), firstDifference(again, json));
  });
});

browserTest('what can be no trace is said, and what was there stays', () =>
  opened({ hash: SMALL }, async ({ page }) => {
    await ended(page);
    const before = await textOf(page, '#policies');
    await page.setInputFiles('#picker', folder.write('empty.jsonl', ''));
    await reads(page, '#trouble', /empty\.jsonl is empty \(or a folder\)/);
    assert.is(await textOf(page, '#policies'), before);
    await page.setInputFiles('#picker', folder.write('letter.txt', 'Dear all,\nthis is no trace.\n'));
    await reads(page, '#trouble', /letter\.txt.*no known trace begins with 'Dear all,'.*Known are: fast25/s);
    await ended(page, 2);
    assert.match(await textOf(page, '#shown'), /^Run 2 · failed/);
    assert.match(await textOf(page, '#headline'), /This run failed: the message says why/);
    assert.is(await page.locator('#trouble').getAttribute('role'), 'alert');
    await page.setInputFiles('#picker', folder.write('cut.jsonl.gz', gzipSync(TEXT).subarray(0, 700)));
    await ended(page, 3);
    await reads(page, '#trouble', /gzip|cut|ended/i);
    await page.click('#trouble >> text=Dismiss');
    assert.ok(await page.locator('#trouble').isHidden());
    // What ran before is still there.
    await page.click('#run-1-a');
    await reads(page, '#shown', /^Run 1 /);
    assert.is(await textOf(page, '#policies'), before);
    await page.setInputFiles('#picker', plain);
    await ended(page, 4);
    assert.match(await textOf(page, '#shown'), /300 requests/);
  }),
);

/** A page that the command serves, while `work` goes on. */
async function served(args: readonly string[], work: (url: string, hash: string) => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [COMMAND, 'simulate', '--ui', '--open', 'no', ...args], { cwd: folder.path });
  const exit = once(child, 'exit');
  try {
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    const address = new URL(/^moonroute simulator: (http:\S+)\n$/.exec(said.toString())![1]!);
    await work(address.origin, address.hash);
    child.kill('SIGINT');
    assert.equal(await exit, [0, null]);
  } finally {
    child.kill('SIGKILL');
  }
}

browserTest('moonroute simulate --ui: the page with the settings of the command line', () =>
  served(QUICK.slice(1).split('&').flatMap(asOption), (url, hash) =>
    opened({ url: `${url}/`, hash }, async ({ page }) => {
      await ended(page);
      await exportsAsCommand(page, 1, ['json']);
    }),
  ),
);

browserTest('moonroute simulate --ui TRACE: its trace runs at once, and Ctrl-C ends it', () =>
  served(["my trace's.jsonl", ...OF_TRACE.split('&').flatMap(asOption)], (url, hash) =>
    opened({ url: `${url}/`, hash }, async ({ page }) => {
      await ended(page);
      assert.match(await textOf(page, '#shown'), /^Run 1 · my trace's\.jsonl \(fast25\): 300 requests/);
      await exportsAsCommand(page, 1, ['json']);
    }),
  ),
);

/** `workers=4` as the command takes it. */
function asOption(part: string): string[] {
  const [flag, value] = part.split('=') as [string, string];
  return value === 'true' ? [`--${flag}`] : [`--${flag}`, value];
}

test.run();
