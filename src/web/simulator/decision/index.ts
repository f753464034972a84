// "Why this worker?": one decision with its sum, its runner-up and what would have come of it, every candidate, and why credit ends. A modal dialog at the
// page's side: Escape and a click beside it close it, and focus returns to where it came from.
import type { DecisionAccount } from '../../../sim/observed/types.js';
import { countText } from '../../../sim/report-format.js';
import { h } from '../../console/dom.js';
import { accountOf } from './account.js';

export interface DecisionOptions {
  /** Simulates again up to the request and explains it; `signal` says that nobody waits any more. */
  ask(request: number, signal: AbortSignal): Promise<DecisionAccount>;
}

let panels = 0;

export class DecisionPanel {
  readonly #options: DecisionOptions;
  readonly #dialog: HTMLDialogElement;
  readonly #title: HTMLHeadingElement;
  readonly #body = h('div', { class: 'body' });
  readonly #status = h('p', { class: 'status', role: 'status' });
  #asking: AbortController | null = null;

  constructor(host: HTMLElement, options: DecisionOptions) {
    this.#options = options;
    const id = `decision-${++panels}`;
    this.#title = h('h2', { id, tabindex: '-1' });
    const close = h('button', { type: 'button', class: 'close', 'aria-label': 'Close' }, '✕');
    this.#dialog = h(
      'dialog',
      { class: 'decision', 'aria-labelledby': id },
      h('div', { class: 'head' }, this.#title, close),
      this.#status,
      this.#body,
    );
    host.append(this.#dialog);
    close.addEventListener('click', () => this.close());
    this.#dialog.addEventListener('click', (event) => {
      // The dialog's own area is covered by its children: only its backdrop is the dialog itself.
      if (event.target === this.#dialog) this.close();
    });
    this.#dialog.addEventListener('close', () => this.#abort());
  }

  /** Opens on a request; one that is open is replaced. */
  open(request: number): void {
    this.#abort();
    const asking = new AbortController();
    this.#asking = asking;
    this.#title.textContent = `Why this worker? Request ${countText(request)}`;
    this.#status.textContent = `Simulating again up to request ${countText(request)}, to ask the router itself …`;
    this.#status.className = 'status busy';
    this.#body.replaceChildren();
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#dialog.scrollTop = 0;
    this.#title.focus();
    void this.#load(request, asking);
  }

  close(): void {
    if (this.#dialog.open) this.#dialog.close();
  }

  #abort(): void {
    this.#asking?.abort();
    this.#asking = null;
  }

  async #load(request: number, asking: AbortController): Promise<void> {
    let parts: readonly Node[] = [];
    let status = '';
    try {
      parts = accountOf(await this.#options.ask(request, asking.signal));
    } catch (error) {
      status = `No answer: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (asking.signal.aborted) return;
    this.#status.textContent = status;
    this.#status.className = status === '' ? 'status' : 'status failed';
    this.#body.replaceChildren(...parts);
  }
}
