// One row an event: where its numbers stand in the flat arrays, and the few that are its alone. The host reads rows by these places.
export const ROW_BYTES: usize = 64;
export const HASHES_AT: usize = 0; // index of its first hash
export const BLOCKS: usize = 4; // hashes
export const HASH_FORM: usize = 8; // 0 none, 1 integers, 2 digests
export const TOKENS_AT: usize = 12; // index of its first token
export const TOKEN_COUNT: usize = 16;
export const PAIRS: usize = 20; // 1 = token ids came as pairs
export const PARENT_FORM: usize = 24; // as HASH_FORM; 0 = no parent
export const PARENT: usize = 28; // low 64 bits of the parent's hash
export const PARENT_AT: usize = 36; // where its digest stands in the payload
export const NIL_KEYS: usize = 40; // items of the extra keys where all are nil
export const LAID: usize = 44; // DENSE, BEHIND, KEYED
export const SHAPE: usize = 48; // place of its shape (shapes.ts), where it was recognised

export const INTEGERS: u32 = 1;
export const WHOLE_DIGESTS: u32 = 2;

export const DENSE: u32 = 1; // single tokens, exactly those of its blocks
export const BEHIND: u32 = 2; // and the row before is dense too, of the same shape and form of hashes, and its numbers end where these begin
export const KEYED: u32 = 4; // its extra keys are one nil for each block
