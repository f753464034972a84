// One chart as a picture to keep: title, legend, plots, what it says, in the page's colours on their ground, with two pixels for each of CSS.
import { MoonrouteError } from '../../../errors.js';
import { type Entry, frameOf, SWATCH } from './frame.js';
import { TEXT } from './pen.js';
import { type Theme, themeOf } from './theme.js';

const PIXELS = 2;
/** CSS pixels. */
const EDGE = 16;
const TITLE = 16;
const GAP = 8;
const LINE = 18;

/** The chart that was put into that element. */
export async function pngOf(host: HTMLElement): Promise<Blob> {
  const frame = frameOf(host);
  if (frame === undefined) throw new MoonrouteError('no-chart', 'That element holds no chart.');
  const theme = themeOf(frame.figure);
  const { title, entries, summary, caption, empty } = frame.parts();
  const plots = empty === '' ? frame.spec.pictures(PIXELS) : [];
  const width = Math.max(frame.figure.clientWidth, 300);
  const page = new Page(theme, width);
  page.text(title, TITLE, theme.ink, '600 ');
  page.legend(empty === '' ? entries : []);
  for (const plot of plots) page.picture(plot);
  page.text(empty === '' ? summary : empty, TEXT + 1, theme.ink);
  page.text(caption, TEXT, theme.soft);
  return page.blob();
}

/** Puts things one below the other: what is to be drawn is kept until the height is known. */
class Page {
  readonly #canvas = document.createElement('canvas');
  readonly #ctx = this.#canvas.getContext('2d')!;
  readonly #theme: Theme;
  readonly #width: number;
  readonly #steps: (() => void)[] = [];
  #y = EDGE;

  constructor(theme: Theme, width: number) {
    this.#theme = theme;
    this.#width = width;
  }

  text(text: string, size: number, colour: string, weight = ''): void {
    const font = `${weight}${size * PIXELS}px ${this.#theme.family}`;
    for (const line of this.#lines(text, font)) {
      const y = this.#y;
      this.#steps.push(() => this.#write(line, EDGE, y, font, colour));
      this.#y += Math.round(size * 1.45);
    }
    if (text !== '') this.#y += GAP / 2;
  }

  legend(entries: readonly Entry[]): void {
    const font = `${(TEXT + 1) * PIXELS}px ${this.#theme.family}`;
    let x = EDGE;
    for (const { text, paint } of entries) {
      this.#ctx.font = font;
      const width = SWATCH.width + 6 + this.#ctx.measureText(text).width / PIXELS;
      if (x > EDGE && x + width > this.#width + EDGE) {
        x = EDGE;
        this.#y += LINE;
      }
      const [left, top] = [x, this.#y];
      this.#steps.push(() => {
        const swatch = document.createElement('canvas');
        swatch.width = SWATCH.width * PIXELS;
        swatch.height = SWATCH.height * PIXELS;
        paint(swatch.getContext('2d')!, this.#theme, swatch.width, swatch.height, PIXELS);
        this.#ctx.drawImage(swatch, left * PIXELS, top * PIXELS);
        this.#write(text, left + SWATCH.width + 6, top, font, this.#theme.ink);
      });
      x += width + EDGE;
    }
    if (entries.length > 0) this.#y += LINE + GAP;
  }

  picture(plot: HTMLCanvasElement): void {
    const y = this.#y;
    this.#steps.push(() => this.#ctx.drawImage(plot, EDGE * PIXELS, y * PIXELS));
    this.#y += plot.height / PIXELS + GAP;
  }

  blob(): Promise<Blob> {
    this.#canvas.width = (this.#width + 2 * EDGE) * PIXELS;
    this.#canvas.height = Math.ceil((this.#y + EDGE) * PIXELS);
    this.#ctx.fillStyle = this.#theme.panel;
    this.#ctx.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
    for (const step of this.#steps) step();
    return new Promise((done, failed) =>
      this.#canvas.toBlob((blob) => {
        if (blob === null)
          failed(new MoonrouteError('no-picture', 'The browser could not make a picture of this size.'));
        else done(blob);
      }, 'image/png'),
    );
  }

  #write(text: string, x: number, y: number, font: string, colour: string): void {
    this.#ctx.font = font;
    this.#ctx.fillStyle = colour;
    this.#ctx.textBaseline = 'top';
    this.#ctx.fillText(text, x * PIXELS, y * PIXELS);
  }

  #lines(text: string, font: string): string[] {
    this.#ctx.font = font;
    const lines: string[] = [];
    for (const paragraph of text === '' ? [] : text.split('\n')) {
      let line = '';
      for (const word of paragraph.split(' ')) {
        const longer = line === '' ? word : `${line} ${word}`;
        if (line !== '' && this.#ctx.measureText(longer).width > this.#width * PIXELS) {
          lines.push(line);
          line = word;
        } else line = longer;
      }
      lines.push(line);
    }
    return lines;
  }
}
