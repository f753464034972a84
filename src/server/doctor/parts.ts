// What the collector's parts share.
import type { Clock } from '../../live/clock.js';
import type { CurveOptions } from '../../live/zmtp/socket.js';
import type { LocalTokenizer } from '../tokenizer-local.js';

/** Tokenises here, as the server does. */
export type Tokenises = Pick<LocalTokenizer, 'shapeOf' | 'tokenise'>;

export interface CollectParts {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  /** Keys of the event sockets; null where they are not encrypted. */
  readonly curve: CurveOptions | null;
  /** Aborted when nobody wants answers any more. */
  readonly signal: AbortSignal;
}
