// The line of the capacity chart that one can drag: by pointer, and by keys as a slider.
import { h } from '../../console/dom.js';

export interface SliderSpec {
  readonly label: string;
  /** The value at that many CSS pixels from the plotting area's left. */
  readonly valueAt: (left: number) => number;
  readonly key: (key: string) => number | null;
  /** `final`: the pointer or the key was let go. */
  readonly moved: (value: number, final: boolean) => void;
}

export interface Stand {
  readonly value: number;
  readonly least: number;
  readonly most: number;
  readonly text: string;
  /** CSS pixels. */
  readonly left: number;
}

export class Slider {
  readonly element: HTMLElement;
  readonly #spec: SliderSpec;
  readonly #over: HTMLElement;
  /** What the pointer has moved it to, and what a key has, that is not yet let go. */
  #pulled: number | null = null;
  #keyed: number | null = null;

  /** Stands over a plotting area, where a click moves it too. */
  constructor(over: HTMLElement, spec: SliderSpec) {
    this.#spec = spec;
    this.#over = over;
    this.element = h('div', { class: 'chart-slider', role: 'slider', tabindex: '0', 'aria-label': spec.label });
    this.element.addEventListener('pointerdown', (event) => this.#down(event));
    this.element.addEventListener('pointermove', (event) => this.#move(event));
    this.element.addEventListener('pointerup', () => this.#letGo());
    this.element.addEventListener('pointercancel', () => this.#letGo());
    this.element.addEventListener('keydown', (event) => this.#key(event));
    this.element.addEventListener('keyup', () => this.#keyUp());
    this.element.addEventListener('blur', () => this.#keyUp());
    over.append(this.element);
    over.addEventListener('click', (event) => {
      if (event.target === this.element) return;
      this.element.focus({ preventScroll: true });
      this.#spec.moved(this.#valueAt(event), true);
    });
  }

  get busy(): boolean {
    return this.#pulled !== null || this.#keyed !== null;
  }

  place({ value, least, most, text, left }: Stand): void {
    const { element } = this;
    for (const [name, each] of [
      ['aria-valuenow', Math.round(value)],
      ['aria-valuemin', Math.round(least)],
      ['aria-valuemax', Math.round(most)],
      ['aria-valuetext', text],
    ] as const)
      if (element.getAttribute(name) !== String(each)) element.setAttribute(name, String(each));
    element.style.left = `${left}px`;
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0) return;
    event.preventDefault();
    this.element.setPointerCapture(event.pointerId);
    this.element.focus({ preventScroll: true });
    this.#pulled = Number.NaN;
  }

  #move(event: PointerEvent): void {
    if (this.#pulled === null) return;
    this.#pulled = this.#valueAt(event);
    this.#spec.moved(this.#pulled, false);
  }

  #valueAt(event: MouseEvent): number {
    return this.#spec.valueAt(event.clientX - this.#over.getBoundingClientRect().left);
  }

  #letGo(): void {
    const value = this.#pulled;
    this.#pulled = null;
    if (value !== null && !Number.isNaN(value)) this.#spec.moved(value, true);
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const value = this.#spec.key(event.key);
    if (value === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.#keyed = value;
    this.#spec.moved(value, false);
  }

  #keyUp(): void {
    const value = this.#keyed;
    this.#keyed = null;
    if (value !== null) this.#spec.moved(value, true);
  }
}
