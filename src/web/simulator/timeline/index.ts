// The timeline of one worker, or of the store: what it did and held, as people know it from trace viewers. This class only joins its parts: what is in
// view (window.ts), what to ask for (asker.ts), where things lie (layout.ts, parts.ts, strip.ts), what they say (words.ts), how they look (draw.ts).
import type { RequestSpan, ResidencyRow, SimPlace, TimelineView } from '../../../sim/observed/types.js';
import { h } from '../../console/dom.js';
import { oncePerFrame } from '../dom-events.js';
import { Asker } from './asker.js';
import { drawTimeline } from './draw.js';
import { drawOverview, OVERVIEW } from './draw-overview.js';
import { type Frame, makeFrame } from './frame.js';
import { followGestures } from './gestures.js';
import { type Command, commandOf } from './keys.js';
import {
  boundsOf,
  columnAt,
  FAMILIES,
  FAMILIES_NARROW,
  gutterOf,
  type Layout,
  layoutOf,
  NARROW,
  type Row,
  rowAt,
  rowsOf,
  sameRow,
} from './layout.js';
import { followOverview } from './overview-drag.js';
import { type Palette, paletteOf } from './palette.js';
import { MAX_LANES, neighbour, spanAt } from './parts.js';
import { paintStrip } from './strip.js';
import { Surface } from './surface.js';
import { tablesOf } from './tables.js';
import {
  isWhole,
  panned,
  pinched,
  type Question,
  questionFor,
  revealing,
  type Span,
  serves,
  timeAt,
  wheelFactor,
  whole,
  ZOOM_STEP,
  zoomed,
} from './window.js';
import { columnWords, limitWords, spanWords, spoken, summaryOf, type Told, windowWords } from './words.js';

export interface TimelineOptions {
  ask(place: SimPlace, from: number, to: number, columns: number, families: number): Promise<TimelineView>;
  /** A request's bar was clicked, or opened by keyboard. */
  onRequest(request: number): void;
}

export interface TimelineMeta {
  readonly workers: number;
  /** Milliseconds so far. */
  readonly end: number;
  readonly hasStore: boolean;
  /** Names the run: another label is another run. */
  readonly label: string;
  /** Bytes of one block of the store, where blocks are to be told in bytes too. */
  readonly blockBytes?: number;
}

/** Columns of the strip with the whole run. */
const OVERVIEW_COLUMNS = 400;
/** A key moves the cursor by this part of the view where there is no next bar to go to. */
const CURSOR_STEP = 1 / 40;
/** Milliseconds after the last change until the tables are made anew and the window is read out. */
const SETTLED = 250;

interface Wish extends Question {
  readonly place: SimPlace;
  readonly families: number;
  readonly isOverview: boolean;
  /** The run's end when it was asked. */
  readonly end: number;
}

export class Timeline {
  readonly #options: TimelineOptions;
  readonly #frame: Frame;
  readonly #main: Surface;
  readonly #top: Surface;
  readonly #asker: Asker<Wish, TimelineView>;
  readonly #redraw = oncePerFrame(() => this.#draw());
  readonly #stop = new AbortController();
  readonly #resize: ResizeObserver;
  #meta: TimelineMeta | null = null;
  #place: SimPlace = 0;
  #window: Span = whole(0);
  #view: TimelineView | null = null;
  #viewEnd = 0;
  #overview: TimelineView | null = null;
  #overviewEnd = Number.NaN;
  #lanes = 0;
  #strip: OffscreenCanvas | null = null;
  #palette: Palette | null = null;
  #pointer: { x: number; y: number } | null = null;
  #cursor: { row: Row; time: number } | null = null;
  #pinch: readonly [number, number] | null = null;
  #settling: ReturnType<typeof setTimeout> | null = null;
  #failed: string | null = null;

  constructor(host: HTMLElement, options: TimelineOptions) {
    this.#options = options;
    this.#frame = makeFrame(host);
    this.#main = new Surface(this.#frame.canvas);
    this.#top = new Surface(this.#frame.overview);
    this.#asker = new Asker({
      ask: ({ place, from, to, columns, families }) => options.ask(place, from, to, columns, families),
      answered: (view, wish) => this.#take(view, wish),
      failed: (error, wish) => this.#fail(error, wish),
      idle: this.#redraw,
    });
    this.#listen();
    this.#resize = new ResizeObserver(() => this.#redraw());
    this.#resize.observe(host);
    this.show(null);
  }

  /** Shows a run from its beginning to its end, asked for anew; of the same label as before, with the same place and window. */
  show(meta: TimelineMeta | null): void {
    const before = this.#meta;
    this.#meta = meta;
    const { place } = this.#frame;
    if (
      meta === null ||
      before?.label !== meta.label ||
      before.workers !== meta.workers ||
      before.hasStore !== meta.hasStore
    ) {
      this.#forget();
      const workers = Array.from({ length: meta?.workers ?? 0 }, (_, i) =>
        h('option', { value: String(i) }, `Worker ${i}`),
      );
      place.replaceChildren(
        ...workers,
        ...(meta?.hasStore === true ? [h('option', { value: 'store' }, 'The store')] : []),
      );
      // The same place as before, where the run has it.
      if (this.#place === 'store' ? meta?.hasStore !== true : this.#place >= (meta?.workers ?? 0)) this.#place = 0;
      place.value = String(this.#place);
    } else {
      // What was drawn stays until it comes anew: a run of the same name may be another one all the same.
      this.#asker.drop();
      this.#failed = null;
      this.#viewEnd = Number.NaN;
      this.#overviewEnd = Number.NaN;
    }
    if (meta !== null) {
      const stays = before !== null && before.label === meta.label && !isWhole(this.#window, before.end);
      this.#window = stays ? this.#window : whole(meta.end);
    }
    for (const each of [place, this.#frame.zoomIn, this.#frame.zoomOut, this.#frame.fit]) each.disabled = meta === null;
    this.#redraw();
  }

  destroy(): void {
    this.#stop.abort();
    this.#resize.disconnect();
    this.#asker.drop();
    if (this.#settling !== null) clearTimeout(this.#settling);
  }

  // ---- asking ----

  #forget(): void {
    this.#asker.drop();
    this.#view = null;
    this.#overview = null;
    this.#overviewEnd = Number.NaN;
    this.#strip = null;
    this.#lanes = 0;
    this.#cursor = null;
    this.#failed = null;
    this.#frame.live.textContent = '';
  }

  /** One question at a time: first the whole run, then the window. */
  #askIfNeeded(meta: TimelineMeta, width: number): void {
    if (this.#asker.busy || this.#failed !== null) return;
    const { end } = meta;
    const families = this.#main.width < NARROW ? FAMILIES_NARROW : FAMILIES;
    const place = this.#place;
    if (this.#overviewEnd !== end) {
      const columns = Math.min(OVERVIEW_COLUMNS, Math.ceil(width));
      this.#asker.want({ place, ...whole(end), columns, families: 0, isOverview: true, end });
    } else if (this.#viewEnd !== end || !serves(this.#view, this.#window, end, width)) {
      this.#asker.want({ place, ...questionFor(this.#window, end, width), families, isOverview: false, end });
    }
  }

  #take(view: TimelineView, wish: Wish): void {
    this.#lanes = Math.max(this.#lanes, Math.min(MAX_LANES, view.lanes));
    if (wish.isOverview) {
      this.#overview = view;
      this.#overviewEnd = wish.end;
    } else {
      this.#view = view;
      this.#viewEnd = wish.end;
      this.#strip = null;
    }
    this.#redraw();
    this.#settle();
  }

  #fail(error: unknown, wish: Wish): void {
    this.#failed = error instanceof Error ? error.message : String(error);
    if (wish.isOverview) this.#overviewEnd = wish.end;
    this.#redraw();
    this.#settle();
  }

  // ---- drawing ----

  #draw(): void {
    const { canvas } = this.#frame;
    const width = canvas.parentElement!.clientWidth;
    if (width === 0) return;
    const layout = this.#layout();
    this.#main.resize(width, layout.height);
    this.#top.resize(width, OVERVIEW);
    this.#palette ??= paletteOf(canvas, this.#main.context, this.#main.scale);
    const gutter = gutterOf(width);
    const { end } = this.#meta ?? { end: 0 };
    if (this.#meta !== null) this.#askIfNeeded(this.#meta, width - gutter);
    this.#strip ??= this.#paint(layout, this.#palette);
    const scene = {
      ...{ width, height: layout.height, gutter, layout, end, palette: this.#palette },
      ...{ view: this.#view, strip: this.#strip, window: this.#window, overview: this.#overview },
      marked: this.#marked(layout),
      cursor: this.#cursor,
      pointer: this.#pointer === null ? null : this.#timeOf(this.#pointer.x),
    };
    this.#main.draw((context) => drawTimeline(context, scene));
    this.#top.draw((context) => drawOverview(context, scene));
    this.#frame.window.textContent = this.#meta === null ? 'No run yet' : windowWords(this.#window, end);
    this.#tell(layout);
  }

  #layout(): Layout {
    const families = this.#view?.families.length ?? (this.#main.width < NARROW ? FAMILIES_NARROW : FAMILIES);
    return layoutOf(this.#place === 'store' ? 0 : Math.max(1, this.#lanes), families);
  }

  #paint({ strip: { rows } }: Layout, { strip: colours }: Palette): OffscreenCanvas | null {
    const view = this.#view;
    if (view === null) return null;
    const canvas = new OffscreenCanvas(view.columns, rows.height);
    const image = new ImageData(view.columns, rows.height);
    paintStrip(view, rows, colours, image.data);
    canvas.getContext('2d')!.putImageData(image, 0, 0);
    return canvas;
  }

  // ---- what is under pointer and keyboard ----

  #timeOf(x: number): number {
    const gutter = gutterOf(this.#main.width);
    return timeAt(Math.max(0, x - gutter), this.#window, this.#main.width - gutter);
  }

  #spanAtPointer(layout: Layout, x: number, y: number): RequestSpan | null {
    const row = rowAt(layout, y);
    const gutter = gutterOf(this.#main.width);
    if (row?.kind !== 'lane' || this.#view === null || this.#meta === null || x < gutter) return null;
    const place = { x: x - gutter, lane: row.lane };
    return spanAt(this.#view.spans, place, this.#window, this.#main.width - gutter, this.#meta.end);
  }

  #spanAtCursor(): RequestSpan | null {
    if (this.#cursor?.row.kind !== 'lane' || this.#view === null || this.#meta === null) return null;
    const inner = this.#main.width - gutterOf(this.#main.width);
    const { from, to } = this.#window;
    const x = ((this.#cursor.time - from) / (to - from)) * inner;
    return spanAt(this.#view.spans, { x, lane: this.#cursor.row.lane }, this.#window, inner, this.#meta.end);
  }

  #marked(layout: Layout): RequestSpan | null {
    return this.#pointer === null
      ? this.#spanAtCursor()
      : this.#spanAtPointer(layout, this.#pointer.x, this.#pointer.y);
  }

  #wordsOf(row: Row | null, span: RequestSpan | null, time: number): Told | null {
    const view = this.#view;
    const meta = this.#meta;
    if (view === null || meta === null || row === null) return null;
    if (span !== null) return spanWords(span.row, meta.end);
    if (row.kind === 'lane') return null;
    const isTotal = row.kind === 'total';
    const residency: ResidencyRow | undefined = isTotal ? view.total : view.families[row.index];
    const column = columnAt(view, time);
    if (residency === undefined || column === null) return null;
    return columnWords(view, residency, column, { isTotal, blockBytes: meta.blockBytes ?? null });
  }

  /** The tooltip at the pointer. */
  #tell(layout: Layout): void {
    const { tooltip, canvas } = this.#frame;
    const at = this.#pointer;
    const inPlot = at !== null && at.x >= gutterOf(this.#main.width);
    const row = inPlot ? rowAt(layout, at.y) : null;
    const told = at === null ? null : this.#wordsOf(row, this.#marked(layout), this.#timeOf(at.x));
    tooltip.hidden = told === null;
    canvas.classList.toggle('clickable', row?.kind === 'lane' && told !== null);
    if (told === null || at === null) return;
    tooltip.replaceChildren(
      h('strong', {}, told.title),
      h('dl', {}, ...told.lines.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    );
    // Beside the pointer where there is room; else as far as it goes.
    const { offsetWidth, offsetHeight } = tooltip;
    const right = at.x + 14 + offsetWidth <= this.#main.width;
    const left = right ? at.x + 14 : Math.max(0, at.x - 14 - offsetWidth);
    const top = Math.max(0, Math.min(layout.height - offsetHeight, at.y + 14));
    tooltip.style.transform = `translate(${Math.min(left, Math.max(0, this.#main.width - offsetWidth))}px, ${top}px)`;
  }

  /** What takes longer, or would chatter, waits until the hand rests. */
  #settle(): void {
    if (this.#settling !== null) clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      this.#settling = null;
      const { canvas, limits, cameWords, fetchedWords, spanKeys, details, tables } = this.#frame;
      const view = this.#view;
      const { end, label } = this.#meta ?? { end: 0, label: 'no run' };
      const isStore = this.#place === 'store';
      canvas.setAttribute('aria-label', summaryOf(view, this.#window, end, label));
      const notes = this.#failed !== null ? [this.#failed] : view === null ? [] : limitWords(view, end);
      limits.replaceChildren(...notes.map((words) => h('li', {}, words)));
      cameWords.textContent = isStore ? '↑ put by workers' : '↑ stored: computed here';
      fetchedWords.textContent = isStore ? '↑ read by workers' : '↑ fetched from the store';
      spanKeys.hidden = isStore;
      if (!details.open || view === null) return;
      const { onRequest } = this.#options;
      tables.replaceChildren(...tablesOf({ view, window: this.#window, end, onRequest }));
    }, SETTLED);
  }

  // ---- moving ----

  #go(next: Span): boolean {
    const { from, to } = this.#window;
    if (next.from === from && next.to === to) return false;
    this.#window = next;
    this.#failed = null;
    this.#redraw();
    this.#settle();
    return true;
  }

  #zoomBy(factor: number): void {
    const { from, to } = this.#window;
    const at = this.#cursor?.time ?? (from + to) / 2;
    this.#go(zoomed(this.#window, at, factor, this.#meta?.end ?? 0));
  }

  #panBy(part: number): void {
    const { from, to } = this.#window;
    this.#go(panned(this.#window, (to - from) * part, this.#meta?.end ?? 0));
  }

  #listen(): void {
    const { canvas, overview, place, zoomIn, zoomOut, fit, details } = this.#frame;
    const { signal } = this.#stop;
    place.addEventListener('change', () => {
      this.#place = place.value === 'store' ? 'store' : Number(place.value);
      this.#forget();
      this.#redraw();
      this.#settle();
    });
    zoomIn.addEventListener('click', () => this.#zoomBy(1 / ZOOM_STEP));
    zoomOut.addEventListener('click', () => this.#zoomBy(ZOOM_STEP));
    fit.addEventListener('click', () => this.#fit());
    details.addEventListener('toggle', () => this.#settle());
    const recolour = () => {
      this.#palette = null;
      this.#strip = null;
      this.#redraw();
    };
    document.addEventListener('themechange', recolour, { signal });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour, { signal });
    // Moving to a screen of another scale changes no size that a ResizeObserver would tell.
    globalThis.addEventListener('resize', recolour, { signal });
    this.#followPlot(canvas);
    followOverview(overview, {
      end: () => this.#meta?.end ?? 0,
      window: () => this.#window,
      gutter: () => gutterOf(this.#top.width),
      go: (next) => this.#go(next),
      fit: () => this.#fit(),
    });
    canvas.addEventListener('keydown', (event) => this.#key(event));
    canvas.addEventListener('focus', () => this.#settle());
  }

  #fit(): void {
    this.#go(whole(this.#meta?.end ?? 0));
  }

  #hover(at: { x: number; y: number } | null): void {
    this.#pointer = at;
    this.#redraw();
  }

  #followPlot(canvas: HTMLCanvasElement): void {
    const inner = () => this.#main.width - gutterOf(this.#main.width);
    const part = (x: number) => (x - gutterOf(this.#main.width)) / inner();
    const end = () => this.#meta?.end ?? 0;
    followGestures(
      canvas,
      {
        zoom: (x, factor) => this.#go(zoomed(this.#window, this.#timeOf(x), factor, end())),
        pan: (pixels) => {
          this.#pointer = null;
          const { from, to } = this.#window;
          this.#go(panned(this.#window, (pixels / inner()) * (to - from), end()));
        },
        pinchBegin: (a, b) => {
          this.#pinch = [this.#timeOf(a), this.#timeOf(b)];
        },
        pinch: (a, b) => {
          const next = this.#pinch === null ? null : pinched(this.#pinch, part(a), part(b), end());
          if (next !== null) this.#go(next);
        },
        click: (x, y) => {
          const span = this.#spanAtPointer(this.#layout(), x, y);
          this.#hover({ x, y });
          if (span !== null) this.#options.onRequest(span.row.request);
        },
        hover: (x, y) => this.#hover({ x, y }),
        leave: () => this.#hover(null),
        fit: () => this.#fit(),
      },
      wheelFactor,
      this.#stop.signal,
    );
  }

  // ---- keyboard ----

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || this.#meta === null) return;
    const command = commandOf(event.key, event.shiftKey);
    if (command === null || !this.#obey(command, this.#meta.end)) return;
    event.preventDefault();
    this.#redraw();
  }

  /** False where there was nothing to do, and the key may be somebody else's. */
  #obey(command: Command, end: number): boolean {
    switch (command.kind) {
      case 'zoom':
        this.#zoomBy(command.factor);
        return true;
      case 'pan':
        this.#panBy(command.part);
        return true;
      case 'fit':
        this.#fit();
        return true;
      case 'along':
        this.#along(command.back);
        return true;
      case 'across':
        this.#across(command.by);
        return true;
      case 'edge':
        this.#moveTo(this.#row(), command.end ? end : 0);
        return true;
      case 'open': {
        const span = this.#spanAtCursor();
        if (span !== null) this.#options.onRequest(span.row.request);
        return span !== null;
      }
      case 'drop': {
        const had = this.#cursor !== null || this.#pointer !== null;
        this.#dropCursor();
        return had;
      }
    }
  }

  #row(): Row {
    return this.#cursor?.row ?? rowsOf(this.#layout())[0]!;
  }

  #dropCursor(): void {
    this.#cursor = null;
    this.#pointer = null;
    this.#frame.live.textContent = '';
  }

  /** Left and right: to the next bar of a lane, or on by a part of the view. */
  #along(back: boolean): void {
    const { from, to } = this.#window;
    if (this.#cursor === null) {
      this.#moveTo(this.#row(), (from + to) / 2);
      return;
    }
    const { row, time } = this.#cursor;
    // From within a bar: to the one after it, or before.
    const here = this.#spanAtCursor()?.row.begunAt ?? time;
    const step = (to - from) * CURSOR_STEP * (back ? -1 : 1);
    const next = row.kind === 'lane' && this.#view !== null ? neighbour(this.#view.spans, row.lane, here, back) : null;
    this.#moveTo(row, next === null ? time + step : next.row.begunAt);
  }

  /** Up and down: to the row before or after. */
  #across(by: number): void {
    const rows = rowsOf(this.#layout());
    const now = rows.findIndex((row) => sameRow(row, this.#cursor?.row ?? null));
    const { from, to } = this.#window;
    const time = this.#cursor?.time ?? (from + to) / 2;
    this.#moveTo(rows[now < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, now + by))]!, time);
  }

  #moveTo(row: Row, time: number): void {
    const { end } = this.#meta!;
    const at = Math.max(0, Math.min(end, time));
    this.#pointer = null;
    this.#cursor = { row, time: at };
    this.#go(revealing(this.#window, at, end));
    const told = this.#wordsOf(row, this.#spanAtCursor(), at);
    const nothing = row.kind === 'lane' ? `Line ${row.lane + 1}: no request here.` : 'Not yet loaded.';
    this.#frame.live.textContent = told === null ? nothing : spoken(told);
    this.#scrollTo(row);
  }

  /** Brings the cursor's row into the page's view, where the timeline is higher than that. */
  #scrollTo(row: Row): void {
    const { top, bottom } = boundsOf(this.#layout(), row);
    const box = this.#frame.canvas.getBoundingClientRect();
    const over = box.top + bottom + 16 - globalThis.innerHeight;
    const under = box.top + top - 16;
    if (over > 0) globalThis.scrollBy(0, over);
    else if (under < 0) globalThis.scrollBy(0, under);
  }
}
