// Which browser this is, from what it says of itself: the engine's own name last, since each claims to be the ones before it.

/** Later names win: Chromium says Safari too, and Edge says Chrome. */
const NAMES = [
  ['Safari', /Version\/([\d.]+).*Safari/],
  ['Firefox', /Firefox\/([\d.]+)/],
  ['Chromium', /Chrom(?:e|ium)\/([\d.]+)/],
] as const;

export function browserOf(userAgent: string): { readonly engine: string; readonly engineFamily: string } {
  let known = { engine: 'a browser', engineFamily: 'a browser' };
  for (const [name, pattern] of NAMES) {
    const version = pattern.exec(userAgent)?.[1];
    if (version !== undefined)
      known = { engine: `${name} ${version}`, engineFamily: `${name} ${version.split('.')[0]}` };
  }
  return known;
}
