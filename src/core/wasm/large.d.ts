// The module that scripts/build.mjs generates from the large build of the core.
/** What makes this build of the default one (core/module-patch.ts), base64. */
export const patchBase64: string;
