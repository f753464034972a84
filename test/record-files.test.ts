// The files of a recording: names, modes, packing, deletion of old parts, and what happens when they can't be written.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, type MoonrouteError } from '../src/errors.js';
import { partName, RecordingFiles } from '../src/live/record-files.js';
import type { RecorderStep } from '../src/live/recorder.js';

const folder = mkdtempSync(join(tmpdir(), 'moonroute-record-'));
test.after(() => rmSync(folder, { recursive: true }));
let folders = 0;

async function files(gzip: boolean, name = gzip ? 'pool.jsonl.gz' : 'pool.jsonl') {
  const place = mkdtempSync(join(folder, `${folders++}-`));
  const landed: number[] = [];
  const failures: MoonrouteError[] = [];
  const made = await RecordingFiles.open({
    out: join(place, name),
    gzip,
    landed: (bytes) => landed.push(bytes),
    failed: (error) => failures.push(error),
  });
  return { made, place, landed, failures, total: () => landed.reduce((sum, bytes) => sum + bytes, 0) };
}

const write = (text: string): RecorderStep => ({ do: 'write', text, bytes: text.length });

test('numbers stand before the ending, so that names sort by time', () => {
  const names = [
    ['a/pool.jsonl', 'a/pool.0007.jsonl'],
    ['pool.jsonl.gz', 'pool.0007.jsonl.gz'],
    ['/x/pool', '/x/pool.0007'],
    ['pool.v2.json', 'pool.v2.0007.json'],
    ['pool.gz', 'pool.0007.gz'],
  ] as const;
  for (const [out, part] of names) assert.is(partName(out, 7), part);
  assert.is(partName('p.jsonl', 12345), 'p.12345.jsonl');
  assert.equal(['p.jsonl', partName('p.jsonl', 10), partName('p.jsonl', 9)].sort(), [
    'p.0009.jsonl',
    'p.0010.jsonl',
    'p.jsonl',
  ]);
});

for (const gzip of [false, true]) {
  test(`parts, ${gzip ? 'packed' : 'plain'}: only the owner's, the oldest deleted, all bytes landed`, async () => {
    const { made, place, failures, total } = await files(gzip);
    for (const step of [
      write('one\n'),
      write('two\n'),
      { do: 'rotate', part: 1, forget: null },
      write('three\n'),
      { do: 'rotate', part: 2, forget: 1 },
      write('four\n'),
    ] as const)
      made.take(step);
    await made.end();
    assert.equal(failures, []);
    assert.is(total(), 'one\ntwo\nthree\nfour\n'.length);
    const ending = gzip ? '.jsonl.gz' : '.jsonl';
    assert.equal(readdirSync(place).sort(), [`pool.0002${ending}`, `pool${ending}`]);
    const textOf = (name: string) => {
      const bytes = readFileSync(join(place, name));
      return String(gzip ? gunzipSync(bytes) : bytes);
    };
    assert.equal([textOf(`pool.0002${ending}`), textOf(`pool${ending}`)], ['three\n', 'four\n']);
    for (const name of readdirSync(place)) assert.is(statSync(join(place, name)).mode & 0o777, 0o600);
  });
}

test('what a packer holds comes into the file when it is flushed', async () => {
  const { made, place } = await files(true);
  made.take(write('one\n'));
  const size = () => statSync(join(place, 'pool.jsonl.gz')).size;
  const before = size();
  const end = Date.now() + 5000;
  while (size() <= before + 10) {
    if (Date.now() > end) throw new Error('waited 5 s for the flushed bytes');
    made.flush();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await made.end();
});

test('nothing that is there is overwritten: the file, and numbered parts of it', async () => {
  for (const there of ['pool.jsonl', 'pool.0003.jsonl']) {
    const place = mkdtempSync(join(folder, `${folders++}-`));
    writeFileSync(join(place, there), 'old');
    writeFileSync(join(place, 'pool.other.jsonl'), 'another');
    const options = { out: join(place, 'pool.jsonl'), gzip: false, landed: () => {}, failed: () => {} };
    try {
      await RecordingFiles.open(options);
      assert.unreachable();
    } catch (error) {
      assert.instance(error, ConfigError);
      assert.is((error as ConfigError).code, 'record-exists');
      assert.match((error as ConfigError).message, there);
    }
    assert.is(String(readFileSync(join(place, there))), 'old');
  }
});

test('a folder that is not there is an error with its name', async () => {
  const out = join(folder, 'nowhere', 'pool.jsonl');
  const options = { out, gzip: false, landed: () => {}, failed: () => {} };
  const error = await RecordingFiles.open(options).then(
    () => null,
    (error: ConfigError) => error,
  );
  assert.is(error?.code, 'record-unwritable');
  assert.match(error!.message, out);
});

test('files that fail are told once, and nothing more is taken', async () => {
  const { made, place, failures } = await files(false);
  rmSync(join(place, 'pool.jsonl'));
  made.take({ do: 'rotate', part: 1, forget: null }); // there is nothing to rename
  made.take(write('one\n'));
  await made.end();
  made.take(write('two\n'));
  await made.end();
  assert.equal(
    failures.map(({ code }) => code),
    ['record-failed'],
  );
  assert.match(failures[0]!.message, 'pool.jsonl');
});

test.run();
