// A trace may be dropped anywhere on the page.

/** @param take gets the first file, and how many more there were */
export function listenForDrops(shade: HTMLElement, take: (file: File, left: number) => void): void {
  const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true;
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer!.dropEffect = 'copy';
    shade.hidden = false;
  });
  addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) shade.hidden = true;
  });
  addEventListener('drop', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    shade.hidden = true;
    const files = [...event.dataTransfer!.files];
    if (files[0] !== undefined) take(files[0], files.length - 1);
  });
}
