// Which releases of published packages the rivals stand on. The build puts the numbers in (scripts/build.mjs).
declare const BENCH_RIVALS: Readonly<Record<string, string>> | undefined;

/** By package. */
export const rivalVersions: Readonly<Record<string, string>> = typeof BENCH_RIVALS === 'undefined' ? {} : BENCH_RIVALS;
