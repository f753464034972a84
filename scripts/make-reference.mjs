// Writes docs/reference from the public declarations and their comments, one page an entry point of the package: `node scripts/make-reference.mjs`, after
// a build. `--check` writes nothing and fails where a page is stale or an export has no comment.
// Declarations come from build/types; interfaces and types from their source, whose line comments a compiler drops. (typedoc 0.28 wants TypeScript 6.)
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const FOLDER = 'docs/reference';
const KINDS = { class: 'Classes', function: 'Functions', const: 'Constants', interface: 'Types', type: 'Types' };
const HEAD = /^(?:export )?(?:declare )?(?:abstract )?(class|function|const|interface|type) (\w+)/;
const PAGES = Object.entries(JSON.parse(readFileSync('package.json', 'utf8')).exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([name, { types }]) => ({ name: name.replace('.', 'moonroute'), file: normalize(types) }));

/** Text without its comments and what strings hold, line by line as long as before. */
function bare(text) {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, (part) =>
    part.replace(/[^\n]/g, ' '),
  );
}

/** The statement that begins at line `from`: its lines up to where its brackets are closed and it ends. */
function statementAt(lines, bareLines, from) {
  const braced = /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface)/.test(lines[from]);
  let depth = 0;
  for (let at = from; at < lines.length; at++) {
    const code = bareLines[at].replaceAll('=>', '');
    for (const sign of code) depth += '([{<'.includes(sign) ? 1 : ')]}>'.includes(sign) ? -1 : 0;
    const end = code.trimEnd();
    if (depth === 0 && (end.endsWith(';') || (braced && end.endsWith('}'))))
      return lines.slice(from, at + 1).join('\n');
  }
  throw new Error(`no end of: ${lines[from]}`);
}

/** The names of an export's or import's list, each with what it is called there. */
function namesIn(list) {
  const items = list.split(',').filter((item) => item.trim() !== '');
  return items.map((item) => {
    const [name, as = name] = item
      .trim()
      .replace(/^type /, '')
      .split(' as ');
    return [name, as];
  });
}

const files = new Map();

/** What a file of declarations says: its declarations by name, what it passes on, and where its imported names are from. */
function read(file) {
  if (files.has(file)) return files.get(file);
  const text = readFileSync(file, 'utf8');
  const lines = text.split('\n');
  const bareLines = bare(text).split('\n');
  const at = (path) => join(dirname(file), path.replace(/\.js$/, '.d.ts'));
  const found = { declared: new Map(), passed: new Map(), all: [], imported: new Map() };
  files.set(file, found);
  for (const [, what, list, from] of text.matchAll(/^(export|import) (?:type )?\{([^}]*)\} from '(\.[^']*)';/gm)) {
    for (const [name, as] of namesIn(list)) {
      (what === 'export' ? found.passed : found.imported).set(as, { file: at(from), name });
    }
  }
  for (const [, list] of text.matchAll(/^export (?:type )?\{([^}]*)\};/gm))
    for (const [name, as] of namesIn(list)) found.passed.set(as, found.imported.get(name) ?? { file, name });
  for (const [, from] of text.matchAll(/^export (?:type )?\* from '(\.[^']*)';/gm)) found.all.push(at(from));
  lines.forEach((line, index) => {
    const [, kind, name] = HEAD.exec(line) ?? [];
    if (kind === undefined) return;
    const before = lines.slice(0, index).join('\n');
    const [, comment = ''] = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n?$/.exec(before) ?? [];
    const code = statementAt(lines, bareLines, index);
    const known = found.declared.get(name);
    if (known === undefined) found.declared.set(name, { file, kind, name, comment, code });
    else known.code += `\n${code}`; // overloads
  });
  return found;
}

/** The declaration of a name that a file exports, wherever it is. */
function find(file, name) {
  const { declared, passed, all } = read(file);
  if (declared.has(name)) return declared.get(name);
  if (passed.has(name)) return find(passed.get(name).file, passed.get(name).name);
  for (const other of all) {
    const found = find(other, name);
    if (found !== null) return found;
  }
  return null;
}

/** All that a file exports: name and declaration. */
function exportsOf(file) {
  const { declared, passed, all } = read(file);
  const found = new Map();
  for (const other of all) for (const [name, one] of exportsOf(other)) found.set(name, one);
  for (const name of [...declared.keys(), ...passed.keys()]) found.set(name, find(file, name));
  return found;
}

const sourceOf = (file) => file.replace(/^build\/types\//, '').replace(/\.d\.ts$/, '.ts');

/** A declaration as a reader of it wants it: without what is private, and with the line comments of its source. */
function codeOf({ file, kind, name, code }) {
  if (kind === 'interface' || kind === 'type') {
    const text = readFileSync(sourceOf(file), 'utf8');
    const lines = text.split('\n');
    const from = lines.findIndex((line) => HEAD.exec(line)?.[2] === name);
    return statementAt(lines, bare(text).split('\n'), from).replace(/^export /, '');
  }
  return code
    .replace(/^export (declare )?/gm, '')
    .replace(/^ +(#private|private \w+).*;\n/gm, '')
    .replace(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2));
}

/** A comment as paragraphs; a tag begins one. */
function prose(comment) {
  const text = comment
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trim())
    .join(' ')
    .trim();
  return text
    .replace(/\s*@throws /g, '\n\nThrows ')
    .replace(/\s*@template (\w+) /g, '\n\n`$1`: ')
    .trim();
}

/** What the entry's first comment says of it. */
function introOf(file) {
  const lines = readFileSync(sourceOf(file), 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return lines
    .slice(0, end)
    .map((line) => line.slice(2).trim())
    .join(' ');
}

const exported = new Set(PAGES.flatMap(({ file }) => [...exportsOf(file).values()]));

/** Types without an export that public declarations name, and those that these name in turn. */
function partsOf(declarations) {
  const found = new Map();
  const queue = [...declarations];
  for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
    const { imported, declared } = read(one.file);
    for (const [word] of bare(codeOf(one)).matchAll(/\b[A-Z]\w*/g)) {
      const { file, name } = imported.get(word) ?? { file: one.file, name: word };
      const type = imported.has(word) || declared.has(word) ? find(file, name) : null;
      if (type === null || KINDS[type.kind] !== 'Types' || exported.has(type) || found.has(name)) continue;
      found.set(name, type);
      queue.push(type);
    }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

const shownKinds = [...new Set(Object.values(KINDS))];

function pageOf({ name, file }) {
  const all = [...exportsOf(file)].sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = [
    `# \`${name}\``,
    'Generated from the comments by `scripts/make-reference.mjs`. Do not edit.',
    introOf(file),
  ];
  const groups = shownKinds.map((title) => [title, all.filter(([, { kind }]) => KINDS[kind] === title)]);
  groups.push(['Parts of these types, without an export', partsOf(all.map(([, one]) => one))]);
  for (const [title, members] of groups) {
    if (members.length === 0) continue;
    const links = members.map(([as]) => `[${as}](#${as.toLowerCase()})`);
    parts.push(`**${title}**: ${links.join(' · ')}`);
  }
  for (const [title, members] of groups) {
    if (members.length > 0) parts.push(`## ${title}`);
    for (const [as, one] of members) parts.push(`### ${as}`, prose(one.comment), `\`\`\`ts\n${codeOf(one)}\n\`\`\``);
  }
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** The pages' exports that have no comment. */
function bareExports({ name, file }) {
  return [...exportsOf(file)]
    .filter(([, { comment }]) => comment.trim() === '')
    .map(([as, one]) => `${name}: ${as} has no comment (${sourceOf(one.file)})`);
}

const pages = new Map(PAGES.map((page) => [`${page.name.replaceAll('/', '-')}.md`, pageOf(page)]));
if (process.argv.includes('--check')) {
  const faults = PAGES.flatMap(bareExports);
  for (const [file, text] of pages) {
    const path = join(FOLDER, file);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text)
      faults.push(`${path} is stale; run node scripts/make-reference.mjs`);
  }
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
} else {
  mkdirSync(FOLDER, { recursive: true });
  for (const file of readdirSync(FOLDER)) if (!pages.has(file)) rmSync(join(FOLDER, file));
  for (const [file, text] of pages) writeFileSync(join(FOLDER, file), text);
}
