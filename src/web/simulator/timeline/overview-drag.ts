// Dragging in the strip with the whole run: edges resize the window, its middle moves it, and a press elsewhere brings it there.
import { type Grip, gripAt, gripped, type Span, timeAt, whole } from './window.js';

export interface OverviewDrag {
  end(): number;
  window(): Span;
  /** Pixels to the left of the run's beginning. */
  gutter(): number;
  go(next: Span): void;
  fit(): void;
}

/** Pixels around an edge of the window that take hold of it. */
const REACH = 10;

export function followOverview(canvas: HTMLCanvasElement, { end, window, gutter, go, fit }: OverviewDrag): void {
  const place = (event: PointerEvent) => {
    const width = canvas.clientWidth - gutter();
    const x = event.offsetX - gutter();
    return { grip: gripAt(x, window(), end(), width, REACH), time: timeAt(x, whole(end()), width) };
  };
  let held: Grip | null = null;
  let offset = 0;
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const { grip, time } = place(event);
    const { from, to } = window();
    canvas.setPointerCapture(event.pointerId);
    held = grip === 'outside' ? 'middle' : grip;
    offset = grip === 'outside' ? (to - from) / 2 : time - from;
    if (held === 'middle') go(gripped(held, window(), time, offset, end()));
  });
  canvas.addEventListener('pointermove', (event) => {
    const { grip, time } = place(event);
    const over = held ?? grip;
    canvas.style.cursor = over === 'from' || over === 'to' ? 'ew-resize' : over === 'middle' ? 'grab' : 'pointer';
    if (held !== null) go(gripped(held, window(), time, offset, end()));
  });
  const release = () => {
    held = null;
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('dblclick', fit);
}
