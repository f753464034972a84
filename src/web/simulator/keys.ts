// Keyboard shortcuts, and the list of them.
import { h } from '../console/dom.js';
import { closing } from './assumptions.js';

export interface Shortcuts {
  readonly run: () => void;
  /** Whether there was something to cancel or to close. */
  readonly escape: () => void;
  readonly pick: () => void;
  readonly help: () => void;
  readonly theme: () => void;
}

const LIST: readonly (readonly [string, string])[] = [
  ['Ctrl or ⌘ + Enter', 'run with these settings'],
  ['Esc', 'hide an explanation; cancel the run; once more: end it at once'],
  ['o', 'open a trace'],
  ['t', 'light, dark or as the system has it'],
  ['?', 'this list'],
  ['← →', 'move the capacity line, a chart’s cursor or the timeline, when it has focus'],
];

export function listenForKeys(shortcuts: Shortcuts): void {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || (event.target as Element | null)?.closest?.('dialog') != null) return;
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      shortcuts.run();
    } else if (event.key === 'Escape') shortcuts.escape();
    else if (!event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target)) {
      if (event.key === '?') shortcuts.help();
      else if (event.key === 'o') shortcuts.pick();
      else if (event.key === 't') shortcuts.theme();
    }
  });
}

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest('input:not([type=checkbox]):not([type=radio]), textarea, select, dialog') !== null;

export function fillKeys(dialog: HTMLDialogElement): void {
  dialog.append(
    h('h2', { id: 'keys-title', tabindex: '-1', autofocus: true }, 'Keyboard'),
    h(
      'dl',
      { class: 'shortcuts' },
      ...LIST.flatMap(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)]),
    ),
    closing(),
  );
}
