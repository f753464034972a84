// What goes wrong is said where it can't be missed, with what to do about it.
import { fill, h } from '../console/dom.js';

/** The smallest module with an instruction of WebAssembly SIMD. */
const SIMD_MODULE = new Uint8Array([
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
]);

/** Why this browser can't run the core; null where it can. */
export function unfit(): string | null {
  const fits = typeof WebAssembly === 'object' && WebAssembly.validate(SIMD_MODULE) && typeof Worker === 'function';
  return fits
    ? null
    : 'The router’s core needs WebAssembly with SIMD, and this browser has none, or it is switched off. Chrome and Edge have it from version 97, Firefox from 102, Safari from 16.4.';
}

export interface Remedy {
  readonly label: string;
  readonly act: () => void;
}

export class Trouble {
  readonly #box: HTMLElement;

  constructor(box: HTMLElement) {
    this.#box = box;
  }

  say(text: string, remedy: Remedy | null = null): void {
    const dismiss = h('button', { type: 'button', class: 'plain', 'aria-label': 'Dismiss this message' }, 'Dismiss');
    dismiss.addEventListener('click', () => this.clear());
    const act = remedy === null ? null : h('button', { type: 'button' }, remedy.label);
    act?.addEventListener('click', () => remedy!.act());
    this.#box.hidden = false;
    this.#box.replaceChildren(h('p', {}, text), ...(act === null ? [] : [act]), dismiss);
  }

  clear(): void {
    this.#box.hidden = true;
    fill(this.#box);
  }
}
