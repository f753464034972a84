// How the simulator's page carries the WebAssembly modules: as text of one character a byte, which packs better than base64 (gzip finds bytes that come
// again), and the builds of the core that are no default as what differs from the default one: they are one source with other constants.

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

const fileOf = (name) => `build/wasm/${{ default: 'core', wide: 'core-wide', large: 'core-large' }[name] ?? name}.wasm`;

/** Bytes worth a jump, and worth taking where no jump is needed; how much longer a far match must be. */
const LEAST_MATCH = 8;
const LEAST_NEAR = 5;
const FAR = 4;
/** Of one sequence in the base that are tried. */
const MOST_PLACES = 256;

/** An esbuild plugin: `core/wasm/NAME.js` is its module, or nothing where `carried` is false. */
export const coreInPage = (carried) => ({
  name: 'core-in-page',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/wasm\/[a-z]+\.js$/ }, ({ path }) => ({
      path: basename(path, '.js'),
      namespace: 'core-in-page',
    }));
    onLoad({ filter: /.*/, namespace: 'core-in-page' }, ({ path }) => ({
      contents: carried ? moduleOf(path) : "export const wasmBase64 = '';",
    }));
  },
});

function moduleOf(name) {
  const bytes = readFileSync(fileOf(name));
  if (name !== 'wide' && name !== 'large') return `export const wasmBase64 = btoa(${written(bytes)});`;
  const patch = patchOf(readFileSync(fileOf('default')), bytes);
  return `import { wasmBase64 as base } from './wasm/default.js';
const patched = ${applied};
export const wasmBase64 = btoa(patched(atob(base), ${written(patch)}));`;
}

/** Runs in the page: each step is how many new bytes, those, how far to jump in the base, and how many bytes to take (two bytes each). */
function applied(base, patch) {
  const two = (place) => patch.charCodeAt(place) * 256 + patch.charCodeAt(place + 1);
  let text = '';
  let from = 0;
  for (let i = 0; i < patch.length; i += 4) {
    const fresh = patch.charCodeAt(i++);
    text += patch.slice(i, i + fresh);
    i += fresh;
    from += two(i) - 32768;
    const take = two(i + 2);
    text += base.slice(from, from + take);
    from += take;
  }
  return text;
}

/** Steps from `base` to `wanted`: what is found in the base at the place that is expected, or else wherever most of it is. */
function patchOf(base, wanted) {
  const places = new Map();
  const keyOf = (bytes, at) => bytes.toString('latin1', at, at + LEAST_MATCH);
  for (let at = 0; at + LEAST_MATCH <= base.length; at++) {
    const known = places.get(keyOf(base, at));
    if (known === undefined) places.set(keyOf(base, at), [at]);
    else if (known.length < MOST_PLACES) known.push(at);
  }
  const matchAt = (i, j) => {
    let length = 0;
    while (j + length < wanted.length && i + length < base.length && base[i + length] === wanted[j + length]) length++;
    return length;
  };
  const steps = [];
  const fresh = [];
  let expected = 0;
  const step = (place, take) => {
    const jump = place - expected + 32_768;
    steps.push(fresh.length, ...fresh, jump >> 8, jump & 255, take >> 8, take & 255);
    expected = place + take;
    fresh.length = 0;
  };
  for (let j = 0; j < wanted.length; ) {
    // Past the new bytes the base goes on as far as it did, most often.
    const ahead = expected + fresh.length;
    let [place, take] = [ahead, matchAt(ahead, j)];
    for (const at of places.get(keyOf(wanted, j)) ?? []) {
      const length = matchAt(at, j);
      if (length > take + FAR && Math.abs(at - expected) < 32_768) [place, take] = [at, length];
    }
    if (take >= (place === ahead ? LEAST_NEAR : LEAST_MATCH)) {
      step(place, take);
      j += take;
    } else {
      fresh.push(wanted[j++]);
      if (fresh.length === 255) step(expected, 0);
    }
  }
  if (fresh.length > 0) step(expected, 0);
  return Buffer.from(steps);
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
