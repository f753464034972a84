// How a number was made, where one looks at it: on hover, on focus, and on a tap; Escape hides it. One small box serves the whole page, and belongs by
// aria-describedby to what it explains while it is shown.
import { h } from '../console/dom.js';

const GAP = 6;
const EDGE = 8;

/** Marks an element as explained. */
export function explain<T extends Element>(element: T, how: string): T {
  element.setAttribute('data-how', how);
  return element;
}

/** A small button that explains what stands beside it. */
export const howButton = (about: string, how: string): HTMLButtonElement =>
  explain(h('button', { type: 'button', class: 'info', 'aria-label': `About ${about}` }, 'i'), how);

/** A number in running text, with how it was made. */
export const figure = (text: string, how: string): HTMLButtonElement => {
  // A number stays with its unit.
  return explain(h('button', { type: 'button', class: 'figure' }, text.replaceAll(' ', '\u00a0')), how);
};

/** Shows explanations wherever an element has one. */
export class How {
  readonly #box: HTMLElement;
  #of: Element | null = null;

  constructor(box: HTMLElement) {
    this.#box = box;
    document.addEventListener('pointerover', ({ target, pointerType }) => {
      if (pointerType === 'touch') return;
      const near = explained(target);
      if (near !== null) this.#show(near);
      else if (target !== box && !box.contains(target as Node)) this.#hideUnlessFocused();
    });
    document.addEventListener('focusin', ({ target }) => {
      const near = explained(target);
      if (near !== null) this.#show(near);
      else this.hide();
    });
    document.addEventListener('click', ({ target }) => {
      const near = explained(target);
      if (near === null) this.hide();
      else this.#show(near);
    });
    addEventListener('scroll', () => this.#place(), { passive: true, capture: true });
    addEventListener('resize', () => this.#place(), { passive: true });
  }

  /** Whether something was shown. */
  hide(): boolean {
    const was = this.#of !== null;
    this.#of?.removeAttribute('aria-describedby');
    this.#of = null;
    this.#box.hidden = true;
    return was;
  }

  #hideUnlessFocused(): void {
    if (this.#of !== null && this.#of !== document.activeElement) this.hide();
  }

  #show(element: Element): void {
    if (this.#of === element) return;
    this.hide();
    this.#box.textContent = (element.getAttribute('data-how') ?? '').replaceAll(' %', '\u00a0%');
    this.#box.hidden = false;
    this.#of = element;
    element.setAttribute('aria-describedby', this.#box.id);
    this.#place();
  }

  #place(): void {
    if (this.#of === null) return;
    if (!this.#of.isConnected) {
      this.hide();
      return;
    }
    const near = this.#of.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.#box;
    const left = Math.max(EDGE, Math.min(near.left, document.documentElement.clientWidth - width - EDGE));
    const above = near.top - height - GAP;
    const top = above >= EDGE ? above : near.bottom + GAP;
    this.#box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}

const explained = (target: EventTarget | null): Element | null =>
  target instanceof Element ? target.closest('[data-how]') : null;
