// One behaviour suite in every JavaScript engine: Node shows what the package promises, Deno sees the same to the last bit. Pages are in
// runtime-browser.test.ts (built files) and package-bundled.test.ts (esbuild, from the packed package).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { behaviourInput } from './support/behaviour-input.js';
import { checkSeen, seenInNode } from './support/behaviours.js';

const input = behaviourInput();
const seen = seenInNode(input);

test('Node, by the names of the package', async () => {
  checkSeen(await seen);
});

test('Deno sees what Node sees', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'moonroute-deno-'));
  try {
    const file = join(folder, 'input.json');
    writeFileSync(file, JSON.stringify(input));
    const said = execFileSync(
      'node_modules/.bin/deno',
      ['run', '--no-lock', '--no-remote', '--allow-read', '--allow-env', 'test/runtimes/deno-behaviours.js', file],
      { encoding: 'utf8', maxBuffer: 64 << 20 },
    );
    assert.equal(JSON.parse(said), await seen);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.run();
