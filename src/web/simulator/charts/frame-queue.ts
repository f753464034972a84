// At most one draw per frame and chart, however often it is given new data.

const waiting = new Set<() => void>();
let asked = false;

/** Calls `draw` once at the next frame. */
export function drawSoon(draw: () => void): void {
  waiting.add(draw);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const all = [...waiting];
    waiting.clear();
    for (const each of all) each();
  });
}

export function dropDraw(draw: () => void): void {
  waiting.delete(draw);
}
