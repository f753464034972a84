// The trace that `moonroute simulate TRACE --ui` serves beside the page. A page from disk has none, and may load nothing.

/** The file; null where the page comes without one. */
export async function servedTrace(): Promise<File | null> {
  const named = document.querySelector<HTMLMetaElement>('meta[name="moonroute-trace"]');
  if (named === null) return null;
  const { path = '', name = 'trace' } = named.dataset;
  const response = await fetch(path);
  if (!response.ok) throw new Error(`the command answered ${response.status}`);
  return new File([await response.blob()], name);
}
