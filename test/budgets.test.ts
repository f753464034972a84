// Size budgets: the modules of core, reader and GPU index, and their linear memory, which is whole from the start and never grows; the browser entry, and the simulator's page.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PrefixIndex } from '../src/core/prefix-index.js';
import { loadCore } from './support/cores.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const BUDGETS = [
  { build: 'default', file: 'core', memory: 64 * MIB },
  { build: 'wide', file: 'core-wide', memory: 80 * MIB },
  { build: 'large', file: 'core-large', memory: 800 * MIB },
] as const;

for (const { build, file, memory } of BUDGETS) {
  test(`${build}: module ≤ 46 KiB, memory ≤ ${memory / MIB} MiB, initial = maximum, no imports`, async () => {
    const bytes = readFileSync(`build/wasm/${file}.wasm`);
    assert.ok(bytes.length <= 46 * KIB, `${bytes.length} bytes`);
    assert.equal(WebAssembly.Module.imports(new WebAssembly.Module(bytes)), []);
    const core = await loadCore(build);
    const { memoryBytes } = core.stats();
    assert.ok(memoryBytes <= memory, `${memoryBytes / MIB} MiB`);
    assert.throws(() => core.exports.memory.grow(1), /grow/);
    console.log(`  ${build}: ${(bytes.length / KIB).toFixed(1)} KiB, ${(memoryBytes / MIB).toFixed(1)} MiB`);
  });
}

test('reader: module ≤ 20 KiB, memory ≤ 80 MiB, initial = maximum, no imports', () => {
  const bytes = readFileSync('build/wasm/wire.wasm');
  assert.ok(bytes.length <= 20 * KIB, `${bytes.length} bytes`);
  const module = new WebAssembly.Module(bytes);
  assert.equal(WebAssembly.Module.imports(module), []);
  const memory = new WebAssembly.Instance(module).exports['memory'] as WebAssembly.Memory;
  assert.ok(memory.buffer.byteLength <= 80 * MIB, `${memory.buffer.byteLength / MIB} MiB`);
  assert.throws(() => memory.grow(1), /grow/);
});

test('GPU index: module ≤ 16 KiB; the memory it is given, and in it ≤ 40 bytes a block and ≤ 17 a name beside a bounded pool of sets', async () => {
  const file = readFileSync('build/wasm/prefixes.wasm');
  assert.ok(file.length <= 16 * KIB, `${file.length} bytes`);
  assert.equal(
    WebAssembly.Module.imports(new WebAssembly.Module(file)).map(({ kind }) => kind),
    ['memory'],
  );
  for (const [bytes, ranks] of [
    [MIB, 1],
    [64 * MIB, 64],
    [64 * MIB, 1024],
    [100 * MIB + 1, 130],
  ] as const) {
    const { memoryBytes, entryCap, aliasCap, setCap, ...stats } = (await PrefixIndex.create({ bytes, ranks })).stats();
    assert.ok(memoryBytes <= bytes && memoryBytes > bytes - 65_536, `${memoryBytes} of ${bytes} bytes`);
    const sets = setCap * ((stats.ranks / 64) * 32 + 17);
    assert.ok(sets <= bytes / 6, `${sets} bytes of sets`);
    const fixed = 150 * KIB;
    assert.ok(
      entryCap * 40 + aliasCap * 17 + sets >= memoryBytes - fixed,
      `${entryCap} blocks, ${aliasCap} names, ${setCap} sets in ${memoryBytes} bytes`,
    );
  }
});

test('simulator page: one file, ≤ 250 kB packed with gzip', () => {
  const page = readFileSync('build/simulator/index.html');
  const packed = gzipSync(page, { level: 9 }).length;
  assert.ok(packed <= 250_000, `${packed} bytes packed`);
  assert.not.match(page.toString(), /\/\*(?:STYLE|WORKER|PAGE)\*\//);
  console.log(`  simulator page: ${(packed / 1000).toFixed(1)} kB packed, ${(page.length / 1000).toFixed(0)} kB`);
});

test.run();
