// One plot: a canvas with axes on which a function draws, and a cursor over it. What the pointer or the arrow keys are at is read; a pull of the mouse
// marks a span of time; and plots of one window follow each other in both.
import { h } from '../../console/dom.js';
import { type AxisSpec, drawAxes, outerHeight, plotBox } from './axes.js';
import type { Box, Pen } from './pen.js';
import { type Scale, scaleOf } from './scale.js';
import { themeOf } from './theme.js';
import type { TimeWindow } from './time-window.js';

export interface PlotSpec {
  /** What it shows, for whom the picture is no help. */
  readonly label: () => string;
  /** CSS pixels of the plotting area. */
  readonly height: () => number;
  readonly x: AxisSpec;
  readonly y: AxisSpec;
  /** Whether the texts below are left to another plot. */
  readonly quiet?: () => boolean;
  /** Plots of one window share zoom and cursor. */
  readonly window?: TimeWindow;
  readonly draw: (pen: Pen) => void;
  /** The cursor is at these values; nulls: nowhere, or, of y alone, only along x. */
  readonly read: (x: number | null, y: number | null) => void;
  /** Where the arrow keys stop, in order. */
  readonly stops?: () => readonly number[];
  /** What up and down do: by how many rows. */
  readonly rows?: (by: number) => void;
}

/** CSS pixels: a shorter pull is a click. */
const LEAST_DRAG = 6;
/** CSS pixels. */
const RIM = 5;
/** Stops that PageUp and PageDown pass. */
const PAGE = 10;

export class Plot {
  readonly element: HTMLElement;
  /** The plotting area, where the pointer is heard. */
  readonly over: HTMLElement;
  readonly #canvas = h('canvas', { 'aria-hidden': 'true' });
  readonly #cursor = h('div', { class: 'chart-cursor', hidden: true });
  readonly #marked = h('div', { class: 'chart-marked', hidden: true });
  readonly #spec: PlotSpec;
  readonly #stop: (() => void) | null;
  #width = 0;
  #box: Box = { left: 0, top: 0, width: 1, height: 1 };
  #x: Scale = scaleOf([0, 1]);
  #y: Scale = scaleOf([0, 1]);
  /** Where the pointer is, in CSS pixels of the plotting area. */
  #pointer: { readonly left: number; readonly top: number } | null = null;
  /** Where a pull began. */
  #pulledFrom: number | null = null;
  /** Where the keys are, or a plot that this one follows. */
  #at: number | null = null;

  constructor(spec: PlotSpec) {
    this.#spec = spec;
    this.over = h('div', { class: 'chart-over' }, this.#marked, this.#cursor);
    // What it shows is said once it is drawn; it has a name before that too.
    const attributes = { class: 'chart-plot', tabindex: '0', role: 'img', 'aria-label': 'A chart, not yet drawn' };
    this.element = h('div', attributes, this.#canvas, this.over);
    this.element.addEventListener('keydown', (event) => this.#key(event));
    this.element.addEventListener('blur', () => this.#tell(null));
    this.over.addEventListener('pointerdown', (event) => this.#down(event));
    this.over.addEventListener('pointermove', (event) => this.#move(event));
    this.over.addEventListener('pointerup', (event) => this.#up(event));
    this.over.addEventListener('pointercancel', (event) => this.#leave(event));
    this.over.addEventListener('pointerleave', (event) => this.#leave(event));
    this.over.addEventListener('dblclick', () => spec.window?.set(null));
    this.#stop = spec.window?.follow((time, from) => from !== this && this.#follow(time)) ?? null;
  }

  /** Draws anew, for the width that there is. */
  draw(width: number): void {
    if (width <= 0) return;
    this.#width = width;
    const label = this.#spec.label();
    if (this.element.getAttribute('aria-label') !== label) this.element.setAttribute('aria-label', label);
    this.#box = this.#paint(this.#canvas, devicePixelRatio || 1);
    const { left, top, width: w, height } = this.#box;
    Object.assign(this.over.style, { left: `${left}px`, top: `${top}px`, width: `${w}px`, height: `${height}px` });
    // The pointer stays where it is, and what is under it may be another time now.
    if (this.#pointer !== null) this.#tell(this.valueAt(this.#pointer.left));
    else this.#read();
  }

  /** The same picture with `pixels` of its own for each CSS pixel. */
  picture(pixels: number): HTMLCanvasElement {
    const canvas = h('canvas');
    this.#paint(canvas, pixels);
    return canvas;
  }

  /** CSS pixels from the plotting area's left; and back. */
  leftOf(value: number): number {
    return this.#x.part(value) * this.#box.width;
  }

  valueAt(left: number): number {
    return this.#x.value(Math.max(0, Math.min(1, left / this.#box.width)));
  }

  destroy(): void {
    this.#stop?.();
    this.element.remove();
  }

  #paint(canvas: HTMLCanvasElement, ratio: number): Box {
    const { x, y, quiet, draw } = this.#spec;
    const silent = quiet?.() ?? false;
    const css = plotBox(this.#width, this.#spec.height(), y);
    const height = outerHeight(css.height, silent);
    const box = {
      left: Math.round(css.left * ratio),
      top: Math.round(css.top * ratio),
      width: Math.round(css.width * ratio),
      height: Math.round(css.height * ratio),
    };
    const [across, along] = [Math.round(this.#width * ratio), Math.round(height * ratio)];
    // To give a canvas the size that it has would clear it all the same, and cost more.
    if (canvas.width !== across) canvas.width = across;
    if (canvas.height !== along) canvas.height = along;
    canvas.style.height = `${height}px`;
    const [xs, ys] = [scaleOf(x.range(), x.log), scaleOf(y.range(), y.log)];
    [this.#x, this.#y] = [xs, ys];
    const ctx = canvas.getContext('2d')!;
    ctx.clearRect(0, 0, across, along);
    const pen: Pen = {
      ctx,
      theme: themeOf(this.element),
      box,
      ratio,
      x: (value) => box.left + xs.part(value) * box.width,
      y: (value) => box.top + (y.downward ? ys.part(value) : 1 - ys.part(value)) * box.height,
    };
    drawAxes(pen, x, y, silent);
    ctx.save();
    ctx.beginPath();
    // A little more than the box: lines along its top and bottom are seen whole.
    ctx.rect(box.left, box.top - RIM * ratio, box.width, box.height + 2 * RIM * ratio);
    ctx.clip();
    draw(pen);
    ctx.restore();
    return css;
  }

  // ---- the cursor ----

  /** Says to all that follow where this plot's cursor is. */
  #tell(x: number | null): void {
    this.#at = x;
    this.#read();
    this.#spec.window?.point(x, this);
  }

  #follow(time: number | null): void {
    // What another one has lost says nothing against the pointer that is here.
    if (time === null && this.#pointer !== null) return;
    if (this.#width === 0 || this.element.hidden) return;
    this.#pointer = null;
    this.#at = time;
    this.#read();
  }

  #read(): void {
    const part = this.#at === null ? -1 : this.#x.part(this.#at);
    const inside = part >= 0 && part <= 1;
    this.#cursor.hidden = !inside;
    this.#cursor.style.transform = `translateX(${Math.round(part * this.#box.width)}px)`;
    const top = this.#pointer === null ? null : this.#pointer.top / this.#box.height;
    const y = top === null ? null : this.#y.value(this.#spec.y.downward ? top : 1 - top);
    this.#spec.read(inside ? this.#at : null, inside ? y : null);
  }

  // ---- the pointer ----

  #place(event: PointerEvent): { left: number; top: number } {
    const { left, top } = this.over.getBoundingClientRect();
    return { left: event.clientX - left, top: event.clientY - top };
  }

  #down(event: PointerEvent): void {
    this.#move(event);
    if (event.button !== 0 || event.pointerType === 'touch' || this.#spec.window === undefined) return;
    this.#pulledFrom = this.#place(event).left;
    this.over.setPointerCapture(event.pointerId);
  }

  #move(event: PointerEvent): void {
    this.#pointer = this.#place(event);
    this.#tell(this.valueAt(this.#pointer.left));
    const span = this.#pulled();
    this.#marked.hidden = span === null;
    if (span === null) return;
    this.#marked.style.left = `${span.left}px`;
    this.#marked.style.width = `${span.width}px`;
  }

  #up(event: PointerEvent): void {
    this.#pointer = this.#place(event);
    const span = this.#pulled();
    this.#pulledFrom = null;
    this.#marked.hidden = true;
    if (span !== null)
      this.#spec.window?.set({ from: this.valueAt(span.left), to: this.valueAt(span.left + span.width) });
  }

  #pulled(): { left: number; width: number } | null {
    if (this.#pulledFrom === null || this.#pointer === null) return null;
    const to = Math.max(0, Math.min(this.#box.width, this.#pointer.left));
    const left = Math.min(to, this.#pulledFrom);
    const width = Math.max(to, this.#pulledFrom) - left;
    return width < LEAST_DRAG ? null : { left, width };
  }

  #leave({ pointerType }: PointerEvent): void {
    this.#pulledFrom = null;
    this.#marked.hidden = true;
    // A finger leaves with every tap: what it pointed at can still be read.
    if (pointerType === 'touch') return;
    this.#pointer = null;
    this.#tell(null);
  }

  // ---- keys ----

  #key(event: KeyboardEvent): void {
    const { stops, rows } = this.#spec;
    if (event.target !== this.element || event.altKey || event.ctrlKey || event.metaKey) return;
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by !== undefined && rows !== undefined) {
      event.preventDefault();
      rows(by);
      if (this.#at === null) this.#tell(stops?.().at(-1) ?? null);
      return;
    }
    const places = (stops?.() ?? []).filter((place) => this.#x.part(place) >= 0 && this.#x.part(place) <= 1);
    const last = places.length - 1;
    const now = this.#at === null ? null : nearest(places, this.#at);
    const next = {
      ArrowLeft: now === null ? last : now - 1,
      ArrowRight: now === null ? 0 : now + 1,
      PageUp: (now ?? last) - PAGE,
      PageDown: (now ?? 0) + PAGE,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined || last < 0) return;
    event.preventDefault();
    this.#pointer = null;
    this.#tell(places[Math.max(0, Math.min(last, next))]!);
  }
}

function nearest(places: readonly number[], value: number): number {
  let best = 0;
  places.forEach((place, i) => {
    if (Math.abs(place - value) < Math.abs(places[best]! - value)) best = i;
  });
  return best;
}
