// Runs every command of the README's console blocks (lines that begin with `$ `), in order, and fails on the first that fails. Lines that
// only a person runs (installing into another project) say so with a comment `# not run by CI`. `npm test` and `npm install` are run by
// .ci/run itself and are skipped here. Two serve until they are told to end: `npm start` must answer the request that it prints, `--ui` the address; and both end well.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const blocks = [...readme.matchAll(/```console\n([\s\S]*?)```/g)].map(([, text]) => text);
const commands = blocks
  .flatMap((text) => text.split('\n'))
  .filter((line) => line.startsWith('$ ') && !line.includes('# not run by CI'))
  .map((line) => line.slice(2));
if (commands.length === 0) throw new Error('README.md has no console block with commands');
const done = /^npm (test|install)$/;

/** The process of a group whose command line, word by word, matches. */
function processOf(group, pattern) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [, , , , inGroup] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/\(.*\)/, 'x')
        .split(' ');
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        .split('\0')
        .filter((word) => word !== '');
      if (Number(inGroup) === group && pattern.test(words.join('\0'))) return Number(pid);
    } catch {
      // it has ended meanwhile
    }
  }
  throw new Error(`no process of the group matches ${pattern}`);
}

/** Runs `npm start`; throws unless it answers what it says may be asked, and ends with 0 when it is told to. */
async function serves(command) {
  const child = spawn('bash', ['-c', `exec ${command}`], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const ended = once(child, 'exit');
  try {
    let request = null;
    for await (const line of createInterface({ input: child.stdout })) {
      console.log(line);
      if (/^\s*curl /.test(line)) request = line.trim();
      if (request !== null) break;
    }
    if (request === null) throw new Error('it ended without saying what to ask');
    const { status, stdout } = spawnSync('bash', ['-c', `${request} --fail --silent --show-error`], {
      encoding: 'utf8',
    });
    console.log(stdout);
    if (status !== 0) throw new Error(`what it says may be asked fails with ${status}`);
    // The server itself is told, as a supervisor does; npm ends with what it ended with.
    process.kill(processOf(child.pid, /build\/js\/src\/cli\/main\.js\0serve$/), 'SIGTERM');
    const [code] = await ended;
    console.log(`${command} ended with ${code}`);
    if (code !== 0) throw new Error(`${command} ended with ${code} when it was told to`);
  } finally {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL');
  }
}

/** Runs what serves a page; throws unless the page is there, and it ends with 0 when it is told to. */
async function servesPage(command) {
  const child = spawn('bash', ['-c', `exec ${command}`], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const ended = once(child, 'exit');
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      console.log(line);
      const { ok, status } = await fetch(/http:\S+/.exec(line)[0]);
      if (!ok) throw new Error(`the page answers ${status}`);
      break;
    }
    process.kill(processOf(child.pid, /^node\0.*moonroute\0simulate\0/), 'SIGINT'); // as Ctrl-C does
    const [code] = await ended;
    if (code !== 0) throw new Error(`${command} ended with ${code} when it was told to`);
  } finally {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL');
  }
}

for (const command of commands.map((text) => text.replace('npm install && ', ''))) {
  if (done.test(command)) continue;
  console.log(`$ ${command}`);
  if (command === 'npm start') {
    await serves(command);
    continue;
  }
  if (command.includes(' --ui')) {
    await servesPage(command);
    continue;
  }
  const { status } = spawnSync('bash', ['-c', command], { stdio: 'inherit' });
  if (status !== 0) {
    console.error(`README.md: "${command}" ended with ${status}`);
    process.exit(1);
  }
}
console.log(`${commands.length} README commands`);
