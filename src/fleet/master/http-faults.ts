// Ways in which the master's admin port can fail, for tests of whoever reads it. One fault holds for a path, or for all of them, until it is taken back.
// That nothing listens any more is no fault of a reply: see SimulatedMaster.httpDown.

export type HttpFault =
  /** Answers with that status instead. */
  | { readonly kind: 'status'; readonly status: number; readonly body?: string }
  /** Takes the request and never answers. */
  | { readonly kind: 'silent' }
  /** Answers rightly, so many bytes a second. */
  | { readonly kind: 'slow'; readonly bytesPerSecond: number }
  /** Announces the whole body, sends that share of it and breaks off. */
  | { readonly kind: 'truncated'; readonly share: number }
  /** Goes on with foreign lines until so many bytes were sent. */
  | { readonly kind: 'huge'; readonly bytes: number }
  /** Answers 200 with bytes that are neither JSON nor keys. */
  | { readonly kind: 'garbage' };

/** What a garbled reply says: no UTF-8, no JSON, and lines that are no keys. */
export const GARBAGE = Uint8Array.from({ length: 512 }, (_, i) => (i % 64 === 63 ? 0x0a : (i * 37 + 0x80) & 0xff));
/** A line of a huge reply. */
export const FOREIGN_LINE = `foreign@${'f'.repeat(119)}\n`;
