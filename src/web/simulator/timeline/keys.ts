// What a key means on the timeline. Pure.
import { PAN_STEP, ZOOM_STEP } from './window.js';

export type Command =
  /** So many times as much in view. */
  | { readonly kind: 'zoom'; readonly factor: number }
  /** By a part of the view. */
  | { readonly kind: 'pan'; readonly part: number }
  | { readonly kind: 'fit' }
  /** The cursor: along its row, to another row, to an end of the run. */
  | { readonly kind: 'along'; readonly back: boolean }
  | { readonly kind: 'across'; readonly by: number }
  | { readonly kind: 'edge'; readonly end: boolean }
  | { readonly kind: 'open' }
  | { readonly kind: 'drop' };

const zoomIn: Command = { kind: 'zoom', factor: 1 / ZOOM_STEP };
const zoomOut: Command = { kind: 'zoom', factor: ZOOM_STEP };
const left: Command = { kind: 'pan', part: -PAN_STEP };
const right: Command = { kind: 'pan', part: PAN_STEP };
const fit: Command = { kind: 'fit' };
const open: Command = { kind: 'open' };

const COMMANDS: Readonly<Record<string, Command>> = {
  ...{ '+': zoomIn, '=': zoomIn, w: zoomIn, '-': zoomOut, '−': zoomOut, s: zoomOut },
  ...{ a: left, d: right, '0': fit, f: fit, enter: open, ' ': open },
  arrowleft: { kind: 'along', back: true },
  arrowright: { kind: 'along', back: false },
  arrowup: { kind: 'across', by: -1 },
  arrowdown: { kind: 'across', by: 1 },
  home: { kind: 'edge', end: false },
  end: { kind: 'edge', end: true },
  escape: { kind: 'drop' },
};

/** Null for keys that are not the timeline's. */
export function commandOf(key: string, shift: boolean): Command | null {
  const command = COMMANDS[key.toLowerCase()] ?? null;
  return shift && command?.kind === 'along' ? (command.back ? left : right) : command;
}
