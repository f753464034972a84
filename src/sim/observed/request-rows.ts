// What became of each request, a row each, in columns. Of one that a restart sent again it is how it went the last time.
import { grown } from './columns.js';
import type { RequestRow } from './types.js';

/** Requests with a row; later ones are in the series and the quantiles only. 2¹⁹ rows are 51 MB. */
export const MAX_ROWS = 0x8_0000;
const FIRST_ROOM = 1024;
const NONE = -1;

export class RequestRows {
  count = 0;
  promptTokens = new Uint32Array(FIRST_ROOM);
  outputTokens = new Uint32Array(FIRST_ROOM);
  full = new Int32Array(FIRST_ROOM);
  family = new Int32Array(FIRST_ROOM);
  worker = new Int16Array(FIRST_ROOM);
  runnerUp = new Int16Array(FIRST_ROOM);
  /** Line of bars while it runs, and after; −1 for none. */
  lane = new Int16Array(FIRST_ROOM);
  /** How often the router decided about it. */
  sent = new Uint8Array(FIRST_ROOM);
  at = new Float64Array(FIRST_ROOM);
  begunAt = new Float64Array(FIRST_ROOM);
  fetchedAt = new Float64Array(FIRST_ROOM);
  firstTokenAt = new Float64Array(FIRST_ROOM);
  endedAt = new Float64Array(FIRST_ROOM);
  gpu = new Int32Array(FIRST_ROOM);
  dram = new Int32Array(FIRST_ROOM);
  ssd = new Int32Array(FIRST_ROOM);
  credited = new Int32Array(FIRST_ROOM);
  creditError = new Int32Array(FIRST_ROOM);
  cost = new Float64Array(FIRST_ROOM);
  runnerUpCost = new Float64Array(FIRST_ROOM);

  get bytes(): number {
    return this.at.length * BYTES_PER_ROW;
  }

  /** The next row. */
  add(promptTokens: number, outputTokens: number, full: number, family: number): void {
    const place = this.count++;
    if (place === this.at.length) this.#grow();
    this.promptTokens[place] = promptTokens;
    this.outputTokens[place] = outputTokens;
    this.full[place] = full;
    this.family[place] = family;
    this.at[place] = Number.NaN;
    this.reset(place);
  }

  /** It starts anew: nothing of how it went stands. */
  reset(place: number): void {
    this.worker[place] = NONE;
    this.runnerUp[place] = NONE;
    this.lane[place] = NONE;
    for (const column of [this.begunAt, this.fetchedAt, this.firstTokenAt, this.endedAt, this.cost, this.runnerUpCost])
      column[place] = Number.NaN;
    for (const column of [this.gpu, this.dram, this.ssd, this.credited, this.creditError]) column[place] = 0;
  }

  row(place: number): RequestRow {
    const begun = !Number.isNaN(this.begunAt[place]!);
    const found = (column: Int32Array): number => (begun ? column[place]! : Number.NaN);
    const number = (column: Int16Array): number => (column[place] === NONE ? Number.NaN : column[place]!);
    return {
      request: place,
      worker: number(this.worker),
      promptTokens: this.promptTokens[place]!,
      outputTokens: this.outputTokens[place]!,
      at: this.at[place]!,
      begunAt: this.begunAt[place]!,
      fetchedAt: this.fetchedAt[place]!,
      firstTokenAt: this.firstTokenAt[place]!,
      endedAt: this.endedAt[place]!,
      full: this.full[place]!,
      gpu: found(this.gpu),
      dram: found(this.dram),
      ssd: found(this.ssd),
      credited: this.credited[place]!,
      creditError: found(this.creditError),
      cost: this.cost[place]!,
      runnerUpCost: this.runnerUpCost[place]!,
      runnerUp: number(this.runnerUp),
    };
  }

  #grow(): void {
    const room = Math.min(MAX_ROWS, this.at.length * 2);
    this.promptTokens = grown(this.promptTokens, room);
    this.outputTokens = grown(this.outputTokens, room);
    this.full = grown(this.full, room);
    this.family = grown(this.family, room);
    this.worker = grown(this.worker, room);
    this.runnerUp = grown(this.runnerUp, room);
    this.lane = grown(this.lane, room);
    this.sent = grown(this.sent, room);
    this.at = grown(this.at, room);
    this.begunAt = grown(this.begunAt, room);
    this.fetchedAt = grown(this.fetchedAt, room);
    this.firstTokenAt = grown(this.firstTokenAt, room);
    this.endedAt = grown(this.endedAt, room);
    this.gpu = grown(this.gpu, room);
    this.dram = grown(this.dram, room);
    this.ssd = grown(this.ssd, room);
    this.credited = grown(this.credited, room);
    this.creditError = grown(this.creditError, room);
    this.cost = grown(this.cost, room);
    this.runnerUpCost = grown(this.runnerUpCost, room);
  }
}

/** 9 columns of 32 bits, 3 of 16, 1 of 8, 7 of 64. */
const BYTES_PER_ROW = 9 * 4 + 3 * 2 + 1 + 7 * 8;
