// How charts over time follow their common window, and how one gets back to all of it: a button, a double click, Escape.
import { h } from '../../console/dom.js';
import type { Frame } from './frame.js';
import { type Tick, timeTicks } from './ticks.js';
import type { TimeWindow } from './time-window.js';

export const TIME_NAME = 'time since the first arrival';
export const ZOOM_HINT = 'Drag to zoom all charts over time; a double click or Escape shows the whole run.';
export const timeAxisTicks = (from: number, to: number, most: number): Tick[] => timeTicks(from, to, most);

/** Returns how to stop it. */
export function followWindow(frame: Frame, window: TimeWindow): () => void {
  const button = h('button', { type: 'button', hidden: true, 'aria-keyshortcuts': 'Escape' }, 'Whole run');
  const reset = () => window.set(null);
  button.addEventListener('click', () => {
    reset();
    frame.plots.querySelector<HTMLElement>('.chart-plot')?.focus();
  });
  frame.tools.prepend(button);
  const stop = window.listen(() => {
    button.hidden = window.zoom === null;
    frame.redraw();
  });
  button.hidden = window.zoom === null;
  // Before anyone else, since Escape ends other things too: what one looks at comes first.
  const onKey = (event: KeyboardEvent) => {
    const here = frame.figure.contains(event.target as Node) || frame.figure.matches(':hover');
    if (event.key !== 'Escape' || window.zoom === null || !here) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    reset();
  };
  document.addEventListener('keydown', onKey, { capture: true });
  return () => {
    stop();
    document.removeEventListener('keydown', onKey, { capture: true });
  };
}
