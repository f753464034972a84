// Pointer, touch and wheel on the timeline's canvases, turned into what they mean. Coordinates are CSS pixels of the canvas.

/** Pixels that a press may move and still be a click. */
const CLICK_SLACK = 4;
/** Milliseconds for which the wheel goes on doing what it did: a page that scrolls under the pointer zooms nothing, and a zoom that ends scrolls nothing. */
const WHEEL_REST = 300;

export interface Gestures {
  /** The wheel: `factor` times as much in view, around `x`. False where that changes nothing, and the page may scroll. */
  zoom(x: number, factor: number): boolean;
  pan(pixels: number): void;
  /** Two fingers came down, and moved. */
  pinchBegin(a: number, b: number): void;
  pinch(a: number, b: number): void;
  click(x: number, y: number): void;
  /** A pointer moves over it, or touched it. */
  hover(x: number, y: number): void;
  leave(): void;
  fit(): void;
}

/** Follows gestures on an element. `factorOf` turns wheel movement into a factor; `signal` ends what is listened to elsewhere. */
export function followGestures(
  element: HTMLElement,
  gestures: Gestures,
  factorOf: (delta: number, unit: number) => number,
  signal: AbortSignal,
): void {
  const down = new Map<number, { x: number; y: number }>();
  let moved = 0;
  let several = false;
  const places = (): [number, number] => {
    const [a, b] = [...down.values()];
    return [a!.x, b!.x];
  };
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || down.size === 2) return;
    if (down.size === 0) {
      moved = 0;
      several = false;
    }
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    element.setPointerCapture(event.pointerId);
    if (down.size === 2) {
      several = true;
      gestures.pinchBegin(...places());
    }
  });
  element.addEventListener('pointermove', (event) => {
    const { offsetX: x, offsetY: y } = event;
    const held = down.get(event.pointerId);
    if (held === undefined) {
      gestures.hover(x, y);
      return;
    }
    const by = x - held.x;
    moved += Math.abs(by) + Math.abs(y - held.y);
    held.x = x;
    held.y = y;
    if (down.size === 2) gestures.pinch(...places());
    else if (moved > CLICK_SLACK) {
      element.classList.add('panning');
      gestures.pan(-by);
    }
  });
  const up = (event: PointerEvent, ended: boolean) => {
    if (!down.delete(event.pointerId)) return;
    element.classList.remove('panning');
    if (ended && !several && moved <= CLICK_SLACK) gestures.click(event.offsetX, event.offsetY);
  };
  element.addEventListener('pointerup', (event) => up(event, true));
  element.addEventListener('pointercancel', (event) => up(event, false));
  element.addEventListener('pointerleave', ({ pointerType }) => {
    // A finger leaves with every touch: what it touched stays told.
    if (pointerType !== 'touch') gestures.leave();
  });
  element.addEventListener('dblclick', () => gestures.fit());
  let scrolled = Number.NEGATIVE_INFINITY;
  let zoomed = Number.NEGATIVE_INFINITY;
  document.addEventListener(
    'scroll',
    () => {
      scrolled = performance.now();
    },
    { signal, passive: true },
  );
  element.addEventListener(
    'wheel',
    (event) => {
      const { deltaX, deltaY, deltaMode, ctrlKey, shiftKey, offsetX } = event;
      if (!ctrlKey && (shiftKey || Math.abs(deltaX) > Math.abs(deltaY))) {
        event.preventDefault();
        gestures.pan((deltaX || deltaY) * (deltaMode === 0 ? 1 : 16));
        return;
      }
      const now = performance.now();
      if (!ctrlKey && now - scrolled < WHEEL_REST) return;
      // A trackpad's pinch comes as a wheel with ctrl, in small portions; it must never zoom the page instead.
      const changed = gestures.zoom(offsetX, factorOf(ctrlKey ? deltaY * 4 : deltaY, deltaMode));
      if (changed) zoomed = now;
      if (ctrlKey || now - zoomed < WHEEL_REST) event.preventDefault();
    },
    { passive: false },
  );
}
