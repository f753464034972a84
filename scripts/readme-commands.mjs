// Runs every command of the README's console blocks (lines that begin with `$ `), in order, and fails on the first that fails. Lines that
// only a person runs (installing into another project) say so with a comment `# not run by CI`. `npm test` and `npm install` are run by
// .ci/run itself and are skipped here.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const blocks = [...readme.matchAll(/```console\n([\s\S]*?)```/g)].map(([, text]) => text);
const commands = blocks
  .flatMap((text) => text.split('\n'))
  .filter((line) => line.startsWith('$ ') && !line.includes('# not run by CI'))
  .map((line) => line.slice(2));
if (commands.length === 0) throw new Error('README.md has no console block with commands');
const done = /^npm (test|install)$/;
for (const command of commands.map((text) => text.replace('npm install && ', ''))) {
  if (done.test(command)) continue;
  console.log(`$ ${command}`);
  const { status } = spawnSync('bash', ['-c', command], { stdio: 'inherit' });
  if (status !== 0) {
    console.error(`README.md: "${command}" ended with ${status}`);
    process.exit(1);
  }
}
console.log(`${commands.length} README commands`);
