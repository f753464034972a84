// The module that scripts/build.mjs generates from the tiny build of the core.
/** The WebAssembly module, base64. */
export const wasmBase64: string;
