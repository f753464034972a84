// Runs the test files, each in a process of its own, two at a time: most of them wait for sockets and timers. `node scripts/test.mjs [PATTERN]` runs those
// whose names match. Ends with the sums; a file that crashes, hangs or has no tests counts as one that failed.
import { spawn } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const FOLDER = 'build/js/test';
const AT_ONCE = 2;
/** Longest time for one file. */
const FILE_MS = 10 * 60_000;

const pattern = new RegExp(process.argv[2] ?? '');
/** Large files first, so that no long one is left for the end. */
const files = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.test.js') && pattern.test(file))
  .sort((a, b) => statSync(`${FOLDER}/${b}`).size - statSync(`${FOLDER}/${a}`).size);
const sums = { total: 0, passed: 0, skipped: 0 };
const failed = [];

function run(file) {
  return new Promise((resolve) => {
    const name = `^${file.replaceAll('.', '[.]')}$`;
    const child = spawn(process.execPath, ['node_modules/uvu/bin.js', FOLDER, name], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: FILE_MS,
      killSignal: 'SIGKILL',
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
    child.on('close', (code) => resolve({ output, code }));
  });
}

function count(output, word) {
  const found = new RegExp(`${word}:\\s+(\\d+)`).exec(stripVTControlCharacters(output));
  return found === null ? null : Number(found[1]);
}

async function work() {
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const started = performance.now();
    const { output, code } = await run(file);
    const [total, passed, skipped] = ['Total', 'Passed', 'Skipped'].map((word) => count(output, word));
    // A file may skip all that it has, where something optional is missing.
    const good = code === 0 && total + skipped > 0;
    sums.total += Math.max(total ?? 0, good ? 0 : (passed ?? 0) + 1);
    sums.passed += passed ?? 0;
    sums.skipped += skipped ?? 0;
    if (!good) failed.push(file);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(good ? `${file}: ${passed} passed, ${seconds} s` : `${file}: FAILED after ${seconds} s\n${output}`);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, work));
if (failed.length > 0) console.log(`\nfailed: ${failed.join(', ')}`);
console.log(`\n  Total:     ${sums.total}\n  Passed:    ${sums.passed}\n  Skipped:   ${sums.skipped}`);
process.exitCode = failed.length === 0 && sums.total > 0 ? 0 : 1;
