// The page's colours as a canvas needs them: read from the custom properties once, and again when the theme has changed.

export interface Theme {
  readonly page: string;
  readonly panel: string;
  readonly ink: string;
  readonly soft: string;
  readonly rule: string;
  readonly accent: string;
  readonly gpu: string;
  readonly dram: string;
  readonly ssd: string;
  readonly none: string;
  /** Of single simulations. */
  readonly lines: readonly string[];
  readonly family: string;
}

const LINES = ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5'] as const;

let known: Theme | null = null;

export function themeOf(element: Element): Theme {
  known ??= readTheme(element);
  return known;
}

function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim() || '#808080';
  return {
    page: of('--page'),
    panel: of('--panel'),
    ink: of('--ink'),
    soft: of('--soft'),
    rule: of('--rule'),
    accent: of('--accent'),
    gpu: of('--gpu'),
    dram: of('--dram'),
    ssd: of('--ssd'),
    none: of('--none'),
    lines: LINES.map(of),
    family: style.fontFamily || 'system-ui, sans-serif',
  };
}

/** Calls back when colours may have changed, or the pixels of the screen; returns how to stop that. */
export function onThemeChange(redraw: () => void): () => void {
  const changed = () => {
    known = null;
    redraw();
  };
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const screen = new AbortController();
  watchPixels(changed, screen.signal);
  document.addEventListener('themechange', changed);
  dark.addEventListener('change', changed);
  return () => {
    screen.abort();
    document.removeEventListener('themechange', changed);
    dark.removeEventListener('change', changed);
  };
}

/** A query holds for one ratio: each change asks anew. */
function watchPixels(changed: () => void, signal: AbortSignal): void {
  const again = () => {
    changed();
    watchPixels(changed, signal);
  };
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', again, { once: true, signal });
}

/** Dashes of lines by their place, so that colour is never all that tells them apart. In CSS pixels. */
const DASHES: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 5]];

export interface LineStyle {
  readonly colour: string;
  readonly dash: readonly number[];
}

/** Colours and dashes repeat with different periods: thirty lines before two look alike. */
export function lineStyle(theme: Theme, place: number): LineStyle {
  return { colour: theme.lines[place % theme.lines.length]!, dash: DASHES[place % DASHES.length]! };
}
