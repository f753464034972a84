// What README and docs claim is so: links lead somewhere, doctor's lines and reasons exist, and none is missing, options are those of the command, the
// counts are the oracle's, what is generated is fresh, and the README is short enough to be read at once.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CHECKS } from '../src/server/doctor/checks/index.js';

const README = readFileSync('README.md', 'utf8');
const MOST_LINES = 250;
const PAGES = readdirSync('docs', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => join('docs', file))
  .concat('README.md', 'CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md', 'bench/RESULTS.md', 'assembly/README.md');

const node = (...args: string[]) => spawnSync(process.execPath, args, { encoding: 'utf8' });

/** Text between a heading and the next one. */
function section(text: string, heading: string): string {
  const from = text.indexOf(`\n${heading}\n`);
  assert.ok(from >= 0, heading);
  const to = text.indexOf('\n## ', from + 2);
  return text.slice(from, to < 0 ? undefined : to);
}

/** Cells of the rows of all tables, without heads. */
function rows(text: string): string[][] {
  const lines = text.split('\n').filter((line) => line.startsWith('|'));
  const isRule = (line: string | undefined) => /^[|\s:-]+$/.test(line ?? '');
  return lines
    .filter((line, i) => !isRule(line) && !isRule(lines[i + 1]))
    .map((line) => line.slice(1, -1).split('|'))
    .map((cells) => cells.map((cell) => cell.trim()));
}

/** Names in code spans. */
const codes = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The members of a union of texts in a source file. */
function union(file: string, name: string): string[] {
  const text = readFileSync(file, 'utf8');
  const from = text.indexOf(`type ${name} =`);
  assert.ok(from >= 0, name);
  const declaration = text.slice(from, text.indexOf('\n\n', from));
  return [...declaration.matchAll(/[|=]\s*'([a-z-]+)'/g)].map(([, member]) => member!);
}

/** As GitHub names a heading. */
const slug = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');

for (const page of PAGES) {
  test(`${page}: links lead somewhere`, () => {
    const text = readFileSync(page, 'utf8').replace(/```[\s\S]*?```/g, '');
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target!)) continue;
      const [path, anchor] = target!.split('#');
      const file = path === '' ? page : normalize(join(dirname(page), path!));
      assert.ok(existsSync(file), `${target} of ${page}`);
      if (anchor === undefined || statSync(file).isDirectory()) continue;
      const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading!));
      assert.ok(headings.includes(anchor), `${target} of ${page}: there are ${headings.join(', ')}`);
    }
  });
}

test('the README is read at once', () => {
  assert.ok(README.split('\n').length <= MOST_LINES);
});

test('the README: each fault names lines that the doctor has, and reasons that decisions give', () => {
  const known = new Set(CHECKS.map(({ code }) => code));
  const reasons = new Set(rows(readFileSync('docs/reasons.md', 'utf8')).flatMap(([code]) => codes(code!)));
  const faults = rows(section(README, '## When nothing is restored'));
  assert.ok(faults.length >= 12);
  for (const [fault, said, lines] of faults) {
    for (const code of codes(said!)) assert.ok(reasons.has(code), `${code} of: ${fault}`);
    assert.ok(codes(lines!).length > 0, fault);
    for (const code of codes(lines!)) assert.ok(known.has(code), `${code} of: ${fault}`);
  }
});

test('docs/reasons.md has every reason, and no other', () => {
  const source = [
    ...union('src/cache/reasons.ts', 'ReasonCode'),
    ...union('src/router/roles.ts', 'NotReadCode'),
    ...union('src/events/request.ts', 'RequestReason'),
    ...union('src/router/admission.ts', 'AdmissionCode').filter((code) => code !== 'admitted'),
    ...union('src/router/zero-credit.ts', 'SharedZeroCode'),
    ...union('src/router/zero-credit.ts', 'LocalZeroCode'),
    ...union('src/router/candidates.ts', 'OutCode'),
    ...union('src/router/decision.ts', 'NotEligibleCode'),
  ];
  const listed = rows(readFileSync('docs/reasons.md', 'utf8')).map(([code]) => codes(code!)[0]!);
  assert.equal(listed.length, new Set(listed).size, 'no code stands twice');
  assert.equal([...listed].sort(), [...new Set(source)].sort());
});

test('docs/reasons.md names lines that the doctor has', () => {
  const known = new Set(CHECKS.map(({ code }) => code));
  for (const [code, text] of rows(readFileSync('docs/reasons.md', 'utf8')))
    for (const [, named] of text!.matchAll(/doctor's ((?:`[a-z-]+`(?:, )?)+)/g))
      for (const line of codes(named!)) assert.ok(known.has(line), `${line} of ${code}`);
});

test('the README lists the commands that there are', () => {
  const help = node('build/js/src/cli/main.js', '--help').stdout;
  const there = [...help.matchAll(/^ {2}([a-z]+) (?: |\[)/gm)]
    .map(([, name]) => name!)
    .filter((name) => name !== 'help');
  const listed = rows(section(README, '## Commands')).map(([command]) => codes(command!)[0]!.split(' ')[0]!);
  assert.equal([...new Set(listed)].sort(), there.sort());
});

test('docs/plane.md: the options of publish', () => {
  const help = node('build/js/src/cli/main.js', 'publish', '--help').stdout;
  const options = rows(section(readFileSync('docs/plane.md', 'utf8'), '## Publishing')).flatMap(([option]) =>
    codes(option!),
  );
  assert.ok(options.length >= 12);
  for (const option of options) assert.ok(help.includes(`${option} <`), option);
});

test('a command that CI does not run says why', () => {
  for (const line of README.split('\n').filter((line) => line.includes('not run by CI')))
    assert.match(line, /# not run by CI: \S+/);
});

test("the README's counts are the oracle's", () => {
  const counts = rows(section(README, '## How exact it is')).map(([, ...cells]) => cells.map(Number));
  const measured = ['learned', 'derived'].map((mode) => {
    const args = ['oracle', 'test/fixtures/oracle-cases.json.gz', '--mode', mode, '--json'];
    const [{ equal, under, over, unsupported }] = JSON.parse(node('build/js/src/cli/main.js', ...args).stdout);
    return [equal, under, over, unsupported];
  });
  assert.equal(counts, measured);
});

for (const script of ['make-readme', 'make-reference']) {
  test(`${script} has nothing to do`, () => {
    const { status, stderr } = node(`scripts/${script}.mjs`, '--check');
    assert.is(status, 0, stderr);
  });
}

test.run();
