// How the simulator's page carries the WebAssembly modules: as text of one character a byte, which packs better than base64 (gzip finds bytes that come
// again).

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { patchOf } from './core-patch.mjs';

const fileOf = (name) => `build/wasm/${{ default: 'core', wide: 'core-wide', large: 'core-large' }[name] ?? name}.wasm`;

const isPatch = (name) => name === 'wide' || name === 'large';

/** An esbuild plugin: `core/wasm/NAME.js` is its module, or nothing where `carried` is false. */
export const coreInPage = (carried) => ({
  name: 'core-in-page',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/wasm\/[a-z]+\.js$/ }, ({ path }) => ({
      path: basename(path, '.js'),
      namespace: 'core-in-page',
    }));
    onLoad({ filter: /.*/, namespace: 'core-in-page' }, ({ path }) => ({
      contents: carried ? moduleOf(path) : `export const ${isPatch(path) ? 'patchBase64' : 'wasmBase64'} = '';`,
    }));
  },
});

function moduleOf(name) {
  const bytes = readFileSync(fileOf(name));
  if (!isPatch(name)) return `export const wasmBase64 = btoa(${written(bytes)});`;
  return `export const patchBase64 = btoa(${written(patchOf(readFileSync(fileOf('default')), bytes))});`;
}

/** A string literal of these bytes that survives an HTML page of UTF-8, which would change carriage returns and zeros. */
function written(bytes) {
  const escapes = { 0: '\\0', 10: '\\n', 13: '\\r', 39: "\\'", 92: '\\\\' };
  let text = '';
  for (const [i, byte] of bytes.entries()) {
    const digitNext = bytes[i + 1] >= 48 && bytes[i + 1] <= 57;
    text += byte === 0 && digitNext ? '\\x00' : (escapes[byte] ?? String.fromCharCode(byte));
  }
  return `'${text}'`;
}
