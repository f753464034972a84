// Which rows of a long list are on screen, and which pages of it are kept. Pure.

/** Browsers limit how high an element may be; a longer list is scrolled by proportion. */
export const MAX_SCROLL_HEIGHT = 8_000_000;
/** Rows of one question, and pages that are kept: 6,400 rows. */
export const PAGE = 100;
export const MAX_PAGES = 64;
/** Rows above and below the screen that are made too, so that a small scroll shows no hole. */
const AROUND = 4;

export interface ListSize {
  readonly total: number;
  readonly rowHeight: number;
  /** Pixels that rows can be seen in. */
  readonly viewport: number;
}

/** How high the scrolled content is. */
export const contentHeight = ({ total, rowHeight }: ListSize): number => Math.min(MAX_SCROLL_HEIGHT, total * rowHeight);

/** The row at the top, with a fraction. */
function topOf(size: ListSize, scrollTop: number): number {
  const { total, rowHeight, viewport } = size;
  const range = contentHeight(size) - viewport;
  const last = total - viewport / rowHeight;
  return range <= 0 || last <= 0 ? 0 : (Math.min(range, Math.max(0, scrollTop)) / range) * last;
}

export interface ShownRows {
  readonly first: number;
  readonly count: number;
  /** Pixels from the content's top to the first of them. */
  readonly offset: number;
}

export function shownRows(size: ListSize, scrollTop: number): ShownRows {
  const { total, rowHeight, viewport } = size;
  const top = topOf(size, scrollTop);
  const first = Math.max(0, Math.floor(top) - AROUND);
  const end = Math.min(total, Math.ceil(top + viewport / rowHeight) + AROUND);
  return { first, count: Math.max(0, end - first), offset: scrollTop - (top - first) * rowHeight };
}

/** Where to scroll so that a row is fully seen; null where it is. */
export function scrollTo(size: ListSize, row: number, scrollTop: number): number | null {
  const { total, rowHeight, viewport } = size;
  const fits = viewport / rowHeight;
  const top = topOf(size, scrollTop);
  const wanted = row < top ? row : row + 1 > top + fits ? row + 1 - fits : null;
  const last = total - fits;
  if (wanted === null || last <= 0) return null;
  return (Math.min(last, Math.max(0, wanted)) / last) * (contentHeight(size) - viewport);
}

/** The row that a key leads to; null for other keys. */
export function rowAfter(key: string, row: number, { total, rowHeight, viewport }: ListSize): number | null {
  const page = Math.max(1, Math.floor(viewport / rowHeight) - 1);
  const moves: Readonly<Record<string, number>> = {
    ArrowUp: row - 1,
    ArrowDown: row + 1,
    PageUp: row - page,
    PageDown: row + page,
    Home: 0,
    End: total - 1,
  };
  const next = moves[key];
  return next === undefined ? null : Math.max(0, Math.min(total - 1, next));
}

// ---- pages ----

/** Pages of rows by number; those not looked at for longest go first. */
export class Pages<Row> {
  readonly #pages = new Map<number, readonly Row[]>();

  set(page: number, rows: readonly Row[]): void {
    this.#pages.delete(page);
    this.#pages.set(page, rows);
    for (const old of this.#pages.keys()) {
      if (this.#pages.size <= MAX_PAGES) break;
      this.#pages.delete(old);
    }
  }

  /** A row, if its page is at hand. */
  at(index: number): Row | undefined {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** The first page that rows from `first` on need and that is not at hand; null for none. Pages that are needed stay. */
  missing(first: number, count: number): number | null {
    let found: number | null = null;
    for (let page = Math.floor(first / PAGE); page * PAGE < first + count; page++) {
      const rows = this.#pages.get(page);
      if (rows === undefined) found ??= page;
      else this.set(page, rows);
    }
    return found;
  }

  clear(): void {
    this.#pages.clear();
  }
}

/** Rows between which a request must be that is looked for by number. */
export interface Search {
  readonly wanted: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Where to look next in a list by arrival, of which some requests may be missing (refused ones); `low` above `high` says that there is nowhere else.
 */
export function nextSearch(search: Search, index: number, found: number): Search & { readonly index: number } {
  const { wanted } = search;
  const low = found < wanted ? index + 1 : search.low;
  const high = found > wanted ? index - 1 : search.high;
  return { wanted, low, high, index: Math.min(high, Math.max(low, index + wanted - found)) };
}
