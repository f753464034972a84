// The form: every option of the command, the usual ones in sight and the rest behind "more". What is typed is checked at once, with the command's own
// refusals beside the field. An empty field is an option left out.
import { HEADINGS, optionOf, SETTING_OPTIONS, type SettingOption } from '../../sim/settings/options.js';
import { fill, h } from '../console/dom.js';
import type { Settings } from './messages.js';
import { refusalOf } from './settings-check.js';
import { type Field, fieldOf, showFault } from './settings-fields.js';
import { SCENARIOS } from './settings-scenarios.js';
import { type TraceName, traceText } from './trace-file.js';

/** Headings of the usual options, with their flags. */
const USUAL: readonly (readonly [title: string, flags: readonly string[]])[] = [
  ['Traffic', ['requests', 'rate', 'mix', 'workload-seed', 'format', 'limit', 'speedup']],
  ['Workers', ['model', 'workers', 'gpu']],
  ['Store', ['store', 'ssd', 'link', 'store-rate']],
  ['Runs', ['policy', 'sweep', 'curve']],
];
const SEEN = new Set(USUAL.flatMap(([, flags]) => flags));
/** Of the built-in workload, and of a trace: the others would be refused. */
const WORKLOAD = new Set(SETTING_OPTIONS.filter(({ heading }) => heading === 'Built-in workload').map(flagOf));
const OF_TRACE = new Set(SETTING_OPTIONS.filter(({ heading }) => heading === 'Trace').map(flagOf));

export interface FormOptions {
  /** Something was changed, and all is valid. */
  readonly changed: () => void;
  readonly run: () => void;
  /** Another trace, or null for the built-in workload. */
  readonly trace: (file: File | null) => void;
  readonly scenario: (place: number) => void;
}

export class SettingsForm {
  readonly #form: HTMLFormElement;
  readonly #options: FormOptions;
  readonly #fields = new Map<string, Field>();
  readonly #trace = h('p', { class: 'trace-name' });
  readonly #picker = h('input', { type: 'file', id: 'picker', class: 'unseen' });
  readonly #back = h('button', { type: 'button', class: 'plain' }, 'Back to the built-in workload');
  readonly #run = h('button', { type: 'submit', class: 'main', id: 'run', 'aria-keyshortcuts': 'Control+Enter' });
  readonly #folding = h('button', { type: 'button', class: 'fold' });
  readonly #more = h('details', { class: 'more' });
  readonly #general = h('p', { class: 'fault', id: 'general-fault', role: 'alert', hidden: true });
  #hasTrace = false;
  /** What the form says, valid or not. */
  #settings: Settings = {};
  #valid = true;

  constructor(form: HTMLFormElement, options: FormOptions) {
    this.#form = form;
    this.#options = options;
    form.append(this.#build());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      options.run();
    });
    form.addEventListener('input', (event) => {
      if ((event.target as HTMLElement).closest('.field, .policies') !== null) this.#read();
    });
    this.showTrace(null);
  }

  get settings(): Settings {
    return this.#settings;
  }

  /** Whether the command would take them. */
  get valid(): boolean {
    return this.#valid;
  }

  set(settings: Settings): void {
    for (const [flag, field] of this.#fields) field.set(settings[flag] ?? '');
    if (Object.keys(settings).some((flag) => !SEEN.has(flag))) this.#more.open = true;
    this.#read(false);
  }

  /** Shows which options a trace has, and which the built-in workload. */
  showTrace(trace: TraceName | null): void {
    this.#hasTrace = trace !== null;
    fill(this.#trace, trace === null ? 'Built-in chats and agents' : traceText(trace));
    this.#back.hidden = trace === null;
    for (const [flag, { element }] of this.#fields) {
      if (WORKLOAD.has(flag)) element.hidden = this.#hasTrace;
      if (OF_TRACE.has(flag)) element.hidden = !this.#hasTrace;
    }
    for (const group of this.#form.querySelectorAll('fieldset'))
      group.hidden = [...group.querySelectorAll<HTMLElement>('.field')].every(({ hidden }) => hidden);
    this.#read(false);
  }

  /** A refusal of the worker, at the option that it blames. */
  refuse(flag: string | null, text: string): void {
    const field = flag === null ? undefined : this.#fields.get(flag);
    if (field === undefined) {
      this.#general.textContent = text;
      this.#general.hidden = false;
      return;
    }
    showFault(field, text);
    this.#reveal(field);
  }

  /** Takes the keyboard to the first field that is wrong. */
  focusFault(): void {
    const wrong = [...this.#fields.values()].find(({ fault }) => !fault.hidden);
    if (wrong !== undefined) this.#reveal(wrong);
  }

  #reveal({ control }: Field): void {
    this.#unfold(true);
    control.closest('details')?.setAttribute('open', '');
    control.focus();
  }

  pick(): void {
    this.#picker.click();
  }

  /** @param changed whether what is set differs from what was run */
  showRun(running: boolean, changed: boolean): void {
    const words = running ? 'Run these instead' : changed ? 'Run with these settings' : 'Run';
    fill(this.#run, words, ' ', h('kbd', {}, 'Ctrl ↵'));
  }

  #build(): DocumentFragment {
    const all = document.createDocumentFragment();
    const scenario = h(
      'select',
      { id: 'scenario' },
      h('option', { value: '' }, 'A scenario …'),
      ...SCENARIOS.map(({ name }, i) => h('option', { value: String(i) }, name)),
    );
    scenario.addEventListener('change', () => {
      if (scenario.value !== '') this.#options.scenario(Number(scenario.value));
      scenario.value = '';
    });
    all.append(
      h(
        'div',
        { class: 'heading' },
        h('h2', { id: 'settings-title' }, 'Settings'),
        this.#fold(),
        h('label', { class: 'unseen', for: 'scenario' }, 'Set several at once'),
        scenario,
      ),
    );
    for (const [title, flags] of USUAL) all.append(this.#group(title, flags, false));
    this.#more.append(h('summary', {}, 'More settings'));
    for (const heading of HEADINGS) {
      const flags = SETTING_OPTIONS.filter((option) => option.heading === heading && !SEEN.has(option.flag)).map(
        flagOf,
      );
      if (flags.length > 0) this.#more.append(this.#group(heading, flags, true));
    }
    all.append(this.#more, h('div', { class: 'act' }, this.#general, this.#run));
    return all;
  }

  /** Where the page is narrow, settings stand above the answer, and are folded until they are wanted. */
  #fold(): HTMLElement {
    this.#folding.addEventListener('click', () => this.#unfold(!this.#form.classList.contains('open')));
    this.#unfold(false);
    return this.#folding;
  }

  #unfold(open: boolean): void {
    this.#form.classList.toggle('open', open);
    this.#folding.setAttribute('aria-expanded', String(open));
    this.#folding.textContent = open ? 'Hide' : 'Show';
  }

  #group(title: string, flags: readonly string[], helped: boolean): HTMLElement {
    const group = h('fieldset', {}, h('legend', {}, title));
    if (title === 'Traffic') group.append(this.#traceBox());
    const grid = h('div', { class: 'fields' });
    for (const flag of flags) {
      const option = optionOf(flag);
      if (option === undefined) continue;
      const field = fieldOf(option, helped);
      this.#fields.set(flag, field);
      grid.append(field.element);
    }
    group.append(grid);
    return group;
  }

  #traceBox(): HTMLElement {
    const pick = h('label', { for: 'picker', class: 'button' }, 'Choose a trace');
    this.#picker.addEventListener('change', () => {
      const [file] = this.#picker.files ?? [];
      this.#picker.value = '';
      if (file !== undefined) this.#options.trace(file);
    });
    this.#back.addEventListener('click', () => this.#options.trace(null));
    return h(
      'div',
      { class: 'trace' },
      this.#trace,
      this.#picker,
      pick,
      this.#back,
      h(
        'p',
        { class: 'hint' },
        'or drop one anywhere: Mooncake or Qwen-Bailian JSONL, CSV, a recording, gzip too. It is not uploaded.',
      ),
    );
  }

  /** Reads and checks all fields. */
  #read(tell = true): void {
    const settings: Record<string, string> = {};
    for (const [flag, field] of this.#fields) {
      const text = field.get().trim();
      if (text !== '' && !field.element.hidden) settings[flag] = text;
    }
    this.#settings = settings;
    const refusals = refusalOf(settings, this.#hasTrace);
    for (const [flag, field] of this.#fields) showFault(field, refusals.get(flag) ?? null);
    const general = refusals.get(null);
    this.#general.textContent = general ?? '';
    this.#general.hidden = general === undefined;
    this.#valid = refusals.size === 0;
    if (tell) this.#options.changed();
  }
}

function flagOf({ flag }: SettingOption): string {
  return flag;
}
