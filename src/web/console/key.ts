// The admin key: asked for when the server wants one, and kept for this tab alone.
import { byId } from './dom.js';

const NAME = 'moonroute-admin-key';

export function keptKey(): string | null {
  return sessionStorage.getItem(NAME);
}

export function forgetKey(): void {
  sessionStorage.removeItem(NAME);
}

/** Asks for a key; false when the reader would rather not. @param fault what was wrong with the last one */
export function askKey(fault: string): Promise<boolean> {
  const dialog = byId<HTMLDialogElement>('key');
  const input = byId<HTMLInputElement>('key-text');
  byId('key-fault').textContent = fault;
  input.value = '';
  if (!dialog.open) dialog.showModal();
  input.focus();
  return new Promise((resolve) => {
    dialog.addEventListener(
      'close',
      () => {
        const given = input.value;
        input.value = '';
        if (given !== '') sessionStorage.setItem(NAME, given);
        resolve(given !== '');
      },
      { once: true },
    );
  });
}
