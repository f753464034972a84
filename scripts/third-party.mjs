// The licences of packages whose code is inside built files: the browser files, the benchmark, the pages. What is merely depended on brings its own.
import { existsSync, readFileSync } from 'node:fs';

/** A test compares these with what the bundler took in. */
export const BUNDLED = ['@assemblyscript/loader', '@msgpack/msgpack', 'hash-wasm'];

const FILES = ['LICENSE', 'LICENSE.md', 'LICENSE.txt'];

/** Name, version, licence, and its text where the package has one; Apache-2.0 is this project's own. */
export function thirdPartyNotice(names = BUNDLED) {
  return names
    .map((name) => {
      const folder = `node_modules/${name}`;
      const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
      const file = FILES.map((one) => `${folder}/${one}`).find((one) => existsSync(one));
      if (file === undefined && license !== 'Apache-2.0')
        throw new Error(`${name} has no text of its licence, ${license}`);
      const text = file === undefined ? 'The text is in LICENSE.' : readFileSync(file, 'utf8').trim();
      return `${name} ${version}: ${license}\n\n${text}\n`;
    })
    .join('\n---\n\n');
}
