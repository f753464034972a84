// The fields of the form: text, choice, switch, and the policies' boxes. Each has its label, its help and a place for its refusal.
import { BUILT_IN_INPUTS } from '../../router/roles.js';
import { MODEL_PRESETS } from '../../sim/settings/models.js';
import type { SettingOption } from '../../sim/settings/options.js';
import { h } from '../console/dom.js';
import { howButton } from './how.js';
import { capital, emptyText, helpOf, labelOf, shortHelp } from './settings-labels.js';

/** One option of the form. */
export interface Field {
  readonly element: HTMLElement;
  readonly control: HTMLElement;
  readonly fault: HTMLElement;
  get(): string;
  set(text: string): void;
}

/** The field of an option. @param helped whether its help is in sight */
export function fieldOf(option: SettingOption, helped: boolean): Field {
  if (option.flag === 'policy') return policies(option);
  return option.value === null ? toggle(option) : entry(option, helped);
}

/** Shows a refusal at a field, or takes it away. */
export function showFault({ element, control, fault }: Field, text: string | null): void {
  fault.textContent = text ?? '';
  fault.hidden = text === null;
  element.classList.toggle('wrong', text !== null);
  if (text === null) control.removeAttribute('aria-invalid');
  else control.setAttribute('aria-invalid', 'true');
}

/** Label, control, help and fault of one option. */
function framed(
  option: SettingOption,
  control: HTMLElement,
  helped: boolean,
): Pick<Field, 'element' | 'control' | 'fault'> {
  const id = `set-${option.flag}`;
  const label = capital(labelOf(option.flag));
  const fault = h('p', { class: 'fault', id: `${id}-fault`, hidden: true });
  control.id = id;
  control.setAttribute('name', option.flag);
  control.setAttribute('aria-describedby', `${id}-help ${id}-fault`);
  const help = h(
    'p',
    { id: `${id}-help`, class: helped ? 'hint' : 'unseen' },
    helped ? shortHelp(option) : helpOf(option),
  );
  const head = h('div', { class: 'label' }, h('label', { for: id }, label));
  head.append(howButton(label, helpOf(option)));
  return { element: h('div', { class: 'field' }, head, control, fault, help), control, fault };
}

function entry(option: SettingOption, helped: boolean): Field {
  const names = option.flag === 'model' ? Object.keys(MODEL_PRESETS) : option.choices;
  const control =
    names === null
      ? h('input', {
          type: 'text',
          placeholder: emptyText(option),
          autocomplete: 'off',
          autocapitalize: 'off',
          spellcheck: 'false',
        })
      : h(
          'select',
          {},
          h('option', { value: '' }, option.usual === null ? 'as it says' : `${option.usual} (default)`),
          ...names.filter((name) => name !== option.usual).map((name) => h('option', { value: name }, name)),
        );
  return {
    ...framed(option, control, helped),
    get: () => control.value,
    set(text) {
      control.value = text === option.usual && names !== null ? '' : text;
    },
  };
}

function toggle(option: SettingOption): Field {
  const control = h('input', { type: 'checkbox' });
  const frame = framed(option, control, false);
  frame.element.classList.add('toggle');
  return {
    ...frame,
    get: () => (control.checked ? 'true' : ''),
    set(text) {
      control.checked = text === 'true';
    },
  };
}

/** A box a policy; the order in which they are named is the order in which they run. */
function policies(option: SettingOption): Field {
  const fault = h('p', { class: 'fault', id: 'set-policy-fault', hidden: true });
  const boxes = Object.keys(BUILT_IN_INPUTS).map((name) => {
    const box = h('input', { type: 'checkbox', value: name, 'aria-describedby': 'set-policy-fault' });
    return { name, box };
  });
  let order: string[] = [];
  const group = h(
    'div',
    { class: 'policies', role: 'group', 'aria-labelledby': 'set-policy-label' },
    ...boxes.map(({ name, box }) => h('label', {}, box, ` ${name}`)),
  );
  const element = h(
    'div',
    { class: 'field all' },
    h(
      'div',
      { class: 'label' },
      h('span', { id: 'set-policy-label' }, 'Policies'),
      howButton('Policies', helpOf(option)),
    ),
    group,
    fault,
  );
  const checked = () => boxes.filter(({ box }) => box.checked).map(({ name }) => name);
  return {
    element,
    control: boxes[0]!.box,
    fault,
    get() {
      const now = checked();
      order = [...order.filter((name) => now.includes(name)), ...now.filter((name) => !order.includes(name))];
      return order.join(',');
    },
    set(text) {
      order = text.split(',').map((name) => name.trim());
      for (const { name, box } of boxes) box.checked = order.includes(name);
    },
  };
}
