// How far the run is: a bar, which simulation of how many, and the button that ends it.
import { byId } from '../console/dom.js';
import type { Running } from './running.js';

export function showProgress(box: HTMLElement, running: Running): void {
  box.hidden = !running.busy;
  if (box.hidden) return;
  const bar = box.querySelector('progress')!;
  const { current, endingRun } = running;
  byId('cancel').firstChild!.textContent = endingRun === null ? 'Cancel ' : 'End at once ';
  const standing = current?.standing ?? null;
  const part = standing?.part ?? null;
  if (standing === null || part === null) bar.removeAttribute('value');
  else bar.value = (standing.simulation + part) / standing.simulations;
  box.querySelector('p')!.textContent = wordsOf(running);
}

function wordsOf({ current, endingRun }: Running): string {
  if (endingRun !== null) return `Run ${endingRun.number} ends: requests under way are completed …`;
  const standing = current?.standing ?? null;
  if (standing === null) return 'Starting …';
  const { simulation, simulations, label, part, requests } = standing;
  const of = simulations > 1 ? `${simulation + 1} of ${simulations}: ` : '';
  return `${of}${label}, ${requests.toLocaleString('en')} requests${part === null ? '' : `, ${Math.floor(100 * part)} %`}`;
}
