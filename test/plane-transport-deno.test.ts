// An event plane over NATS in Deno: the packages that Node uses work there as they are, in the clear and over TLS.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { hasNats, makeCertificate, NatsServer, tlsConfig } from './support/nats.js';

const COUNT = 100;

async function inDeno(...args: string[]): Promise<unknown> {
  const deno = spawn('node_modules/.bin/deno', [
    ...['run', '--no-lock', '--no-remote', '--allow-read', '--allow-env', '--allow-sys', '--allow-net'],
    ...['test/runtimes/deno-plane.js', ...args],
  ]);
  let said = '';
  let errors = '';
  deno.stdout.on('data', (chunk) => {
    said += chunk;
  });
  deno.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const timer = setTimeout(() => deno.kill('SIGKILL'), 20_000);
  const [code] = await once(deno, 'close');
  clearTimeout(timer);
  assert.is(code, 0, `${said} ${errors}`);
  return JSON.parse(said);
}

const expected = { taken: true, numbers: [...Array(COUNT).keys()], answer: [1, 9], notices: ['connected'] };

if (!hasNats) test.skip('all of it');
else {
  test('both sides work in Deno over NATS, and leave nothing open', async () => {
    const server = await NatsServer.start();
    try {
      assert.equal(await inDeno(server.url, `${COUNT}`), expected);
    } finally {
      await server.close();
    }
  });

  test('over TLS too', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'moonroute-tls-'));
    const files = makeCertificate(directory);
    const server = await NatsServer.start({ config: tlsConfig(files) });
    try {
      assert.equal(await inDeno(`tls://localhost:${server.port}`, `${COUNT}`, files.certificate), expected);
    } finally {
      await server.close();
      await rm(directory, { recursive: true });
    }
  });
}

test.run();
