// The module that scripts/build.mjs generates from the GPU prefix index.
/** The WebAssembly module, base64. */
export const wasmBase64: string;
