// The timeline's elements: toolbar, both canvases, legend, readout, and the table for who can't see a canvas.
import { h } from '../../console/dom.js';
import { PART_KINDS } from './parts.js';
import { PART_WORDS } from './words.js';

export interface Frame {
  readonly place: HTMLSelectElement;
  readonly window: HTMLElement;
  readonly zoomIn: HTMLButtonElement;
  readonly zoomOut: HTMLButtonElement;
  readonly fit: HTMLButtonElement;
  readonly overview: HTMLCanvasElement;
  readonly canvas: HTMLCanvasElement;
  readonly tooltip: HTMLElement;
  readonly live: HTMLElement;
  readonly limits: HTMLElement;
  readonly spanKeys: HTMLElement;
  readonly cameWords: HTMLElement;
  readonly fetchedWords: HTMLElement;
  readonly details: HTMLDetailsElement;
  readonly tables: HTMLElement;
}

let frames = 0;

export function makeFrame(host: HTMLElement): Frame {
  const id = `timeline-${++frames}`;
  const button = (label: string, words: string) =>
    h('button', { type: 'button', 'aria-label': label, title: label }, words);
  const key = (kind: string, ...words: readonly (Node | string)[]) =>
    h('li', {}, h('span', { class: `key ${kind}`, 'aria-hidden': 'true' }), ...words);
  const place = h('select', { id: `${id}-place` });
  const frame: Frame = {
    place,
    window: h('p', { class: 'window' }),
    zoomIn: button('Zoom in (+)', '+'),
    zoomOut: button('Zoom out (−)', '−'),
    fit: h('button', { type: 'button', title: 'Show the whole run (0)' }, 'Fit'),
    overview: h('canvas', { class: 'overview', 'aria-hidden': 'true' }),
    canvas: h('canvas', { class: 'plot', tabindex: '0', role: 'application', 'aria-describedby': `${id}-help` }),
    tooltip: h('div', { class: 'tooltip', 'aria-hidden': 'true', hidden: true }),
    live: h('p', { class: 'live', 'aria-live': 'polite' }),
    limits: h('ul', { class: 'limits' }),
    spanKeys: h('ul', { class: 'keys' }, ...PART_KINDS.map((kind) => key(kind, PART_WORDS[kind]))),
    cameWords: h('span'),
    fetchedWords: h('span'),
    details: h('details', {}, h('summary', {}, 'What is in view, as tables')),
    tables: h('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'What is in view, as tables' }),
  };
  frame.details.append(frame.tables);
  const blockKeys = h(
    'ul',
    { class: 'keys' },
    key('held', 'blocks held: the deeper, the more'),
    key('stored', frame.cameWords),
    key('fetched', frame.fetchedWords),
    key('evicted', '↓ evicted for want of room'),
    key('capacity', 'capacity'),
  );
  blockKeys.title =
    'Movements are drawn by the square root of their blocks, so that small ones can be seen; hover for exact numbers.';
  const help = h(
    'p',
    { class: 'help', id: `${id}-help` },
    'Wheel or pinch zooms, dragging and Shift with the wheel pan; a click on a request tells why it went there. ',
    'Keys: arrows move a cursor, Enter opens its request, + and − (W, S) zoom, A and D pan, 0 or F shows the whole run, Escape lets the cursor go.',
  );
  host.classList.add('timeline');
  host.append(
    h(
      'div',
      { class: 'bar' },
      h('label', { for: place.id }, 'Show '),
      place,
      h('span', { class: 'buttons', role: 'group', 'aria-label': 'Zoom' }, frame.zoomOut, frame.zoomIn, frame.fit),
      frame.window,
    ),
    frame.overview,
    h('div', { class: 'stage' }, frame.canvas, frame.tooltip),
    frame.live,
    frame.limits,
    frame.spanKeys,
    blockKeys,
    help,
    frame.details,
  );
  return frame;
}
