// Files of a run: what the command prints for its settings, from the worker, and pictures of its charts.
import { save } from './dom-events.js';
import { type Run, simulationsOf } from './runs.js';

/** Pixels between charts, and around them, in a picture of all. */
const GAP = 24;

/** `moonroute-run2-kv-ttft`: a file's name that says run and policies. */
export function fileName(run: Run, ending: string, part = ''): string {
  const policies = [...new Set(simulationsOf(run).map(({ policy }) => policy))].join('-');
  return `moonroute-run${run.number}${policies === '' ? '' : `-${policies}`}${part === '' ? '' : `-${part}`}.${ending}`;
}

const TYPES = { json: 'application/json', csv: 'text/csv' } as const;

export function saveText(run: Run, form: 'json' | 'csv', text: string): void {
  save(fileName(run, form), new Blob([text], { type: TYPES[form] }));
}

/** One picture below the other, on the page's ground. */
export async function stacked(pictures: readonly Blob[], ground: string): Promise<Blob> {
  const images = await Promise.all(pictures.map((picture) => createImageBitmap(picture)));
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(...images.map(({ width }) => width)) + 2 * GAP;
  canvas.height = images.reduce((sum, { height }) => sum + height + GAP, GAP);
  const context = canvas.getContext('2d')!;
  context.fillStyle = ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  let top = GAP;
  for (const image of images) {
    context.drawImage(image, GAP, top);
    top += image.height + GAP;
  }
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob === null ? reject(new Error('The picture is too large.')) : resolve(blob))),
  );
}
