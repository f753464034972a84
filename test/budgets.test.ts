// Size budgets: the modules of core and reader, and their linear memory, which is whole from the start and never grows.
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadCore } from './support/cores.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const BUDGETS = [
  { build: 'default', file: 'core', memory: 58 * MIB },
  { build: 'wide', file: 'core-wide', memory: 72 * MIB },
  { build: 'large', file: 'core-large', memory: 800 * MIB },
] as const;

for (const { build, file, memory } of BUDGETS) {
  test(`${build}: module ≤ 40 KiB, memory ≤ ${memory / MIB} MiB, initial = maximum, no imports`, async () => {
    const bytes = readFileSync(`build/wasm/${file}.wasm`);
    assert.ok(bytes.length <= 40 * KIB, `${bytes.length} bytes`);
    assert.equal(WebAssembly.Module.imports(new WebAssembly.Module(bytes)), []);
    const core = await loadCore(build);
    const { memoryBytes } = core.stats();
    assert.ok(memoryBytes <= memory, `${memoryBytes / MIB} MiB`);
    assert.throws(() => core.exports.memory.grow(1), /grow/);
    console.log(`  ${build}: ${(bytes.length / KIB).toFixed(1)} KiB, ${(memoryBytes / MIB).toFixed(1)} MiB`);
  });
}

test('reader: module ≤ 16 KiB, memory ≤ 80 MiB, initial = maximum, no imports', () => {
  const bytes = readFileSync('build/wasm/wire.wasm');
  assert.ok(bytes.length <= 16 * KIB, `${bytes.length} bytes`);
  const module = new WebAssembly.Module(bytes);
  assert.equal(WebAssembly.Module.imports(module), []);
  const memory = new WebAssembly.Instance(module).exports['memory'] as WebAssembly.Memory;
  assert.ok(memory.buffer.byteLength <= 80 * MIB, `${memory.buffer.byteLength / MIB} MiB`);
  assert.throws(() => memory.grow(1), /grow/);
});

test.run();
