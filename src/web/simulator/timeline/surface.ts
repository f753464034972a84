// A canvas as sharp as its screen, drawn at most once a frame.

export class Surface {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  #width = 0;
  #height = 0;
  #scale = 1;

  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d')!;
  }

  get width(): number {
    return this.#width;
  }

  get scale(): number {
    return this.#scale;
  }

  /** Takes the size in CSS pixels, and the screen's scale as it is now. */
  resize(width: number, height: number): void {
    const scale = globalThis.devicePixelRatio || 1;
    if (width === this.#width && height === this.#height && scale === this.#scale) return;
    this.#width = width;
    this.#height = height;
    this.#scale = scale;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
  }

  draw(work: (context: CanvasRenderingContext2D) => void): void {
    this.context.setTransform(this.#scale, 0, 0, this.#scale, 0, 0);
    work(this.context);
  }
}
