// What a chart is given: one simulation's picture and what people call it.
import type { SimPicture } from '../../../sim/observed/types.js';

export interface Labelled {
  /** 'kv', 'A · kv' … */
  readonly label: string;
  readonly picture: SimPicture;
}
