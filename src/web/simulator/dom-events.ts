// Small things that every part of the page does.

/** Calls `draw` in the next animation frame, once, however often it is asked for. */
export function oncePerFrame(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/** Puts text on the clipboard. Pages from disk may not; then it is selected in `shown` for the person to copy. */
export async function copy(text: string, shown: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown === null) return false;
    getSelection()?.selectAllChildren(shown);
    return document.execCommand('copy');
  }
}

/** Gives a file to the person. */
export function save(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
