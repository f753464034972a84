// The model's assumptions, one click away: what is real, what is simulated and how, and what is not modelled.
import { h } from '../console/dom.js';

const REAL = [
  'The router, its policies, its GPU index and its WebAssembly core are the code of moonroute serve, unchanged. They are fed with events, and decide at each arrival.',
  'The counterfactual of a request is simulated, not estimated: the same simulation up to the request, which then goes to the runner-up.',
];

const SIMULATED: readonly (readonly [string, string])[] = [
  [
    'Workers',
    'Each has a GPU cache of KV blocks (LRU), computes prompts in chunks at a steady speed, and decodes all running requests in steps whose time grows with their number. Up to “running at once” run; later ones wait, first come first served. A request begins when its whole prompt and answer fit beside those that run, so none is ever preempted; one that is larger than a GPU is refused.',
  ],
  [
    'Store',
    'One shared cache over all nodes: memory, which spills its coldest blocks to the SSD, each by last touch. Workers put what they computed as vLLM’s MooncakeStoreConnector does: every full block of full attention, the last window, the last state. Before prefill they fetch what their GPU lacks, as far as all groups allow.',
  ],
  [
    'Network',
    'A fetch waits the latency, then shares the links max-min fairly: its worker’s, all together, and the SSDs’. Puts cost no time and no bandwidth.',
  ],
  [
    'Events',
    'Workers and store tell the router after a delay, with jitter and loss if asked for. Workers replay what was missed; a gap in the store’s stream costs all that was known of it, until a reconcile a while later.',
  ],
  [
    'Clock',
    'The trace’s own, divided by the speed-up. Where a request is said to come so long after its session’s previous answer, it waits for that answer. Everything drawn comes from a seed, so equal settings give equal bytes.',
  ],
];

const NOT_MODELLED = [
  'Images and other multimodal inputs; all prompts are text.',
  'Preemption and swapping of running requests.',
  'Partial tails: only full blocks are shared and counted.',
  'Pipeline parallel workers, disaggregated prefill and decode, speculative decoding.',
  'The network between clients and router, and the router’s own time to decide (it is microseconds; see moonroute bench).',
];

export function fillAssumptions(dialog: HTMLDialogElement): void {
  const list = (texts: readonly string[]) => h('ul', {}, ...texts.map((text) => h('li', {}, text)));
  dialog.append(
    h('h2', { id: 'assumptions-title', tabindex: '-1', autofocus: true }, 'What is assumed'),
    h('h3', {}, 'Real'),
    list(REAL),
    h('h3', {}, 'Simulated'),
    h('dl', {}, ...SIMULATED.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)])),
    h('h3', {}, 'Not modelled'),
    list(NOT_MODELLED),
    h('h3', {}, 'Defaults are guesses'),
    h(
      'p',
      {},
      'Every default is a round number for a 70B-class model on eight-GPU workers. Put in your own before you decide: prefill speed, GPU cache, store size and links matter most.',
    ),
    h('h3', {}, 'The capacity curve'),
    h(
      'p',
      {},
      'One LRU cache that sees every prompt, in one pass over the trace: no workers, no delays, and what GPUs hold would come on top. A bound for a store of that size, not a simulation of one.',
    ),
    closing(),
  );
}

/** A form that closes its dialog. */
export const closing = (): HTMLElement =>
  h('form', { method: 'dialog' }, h('button', { type: 'submit', class: 'main' }, 'Close'));
