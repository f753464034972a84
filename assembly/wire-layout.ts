// The reader's memory on one page. It is a module of its own, apart from the core: one message of a worker is read here, its numbers
// laid out flat, its blocks hashed; what is learned from it is copied on, 16 bytes a block. Memory is reserved whole at start and
// only pages that a message reaches are ever touched.
//
//   region    stride   entries        size      what
//   engine hashes                      0.2 MiB  where layout.ts has them
//   PAYLOAD   1        PAYLOAD_BYTES  16 MiB    the message as it came
//   ROWS      64       EVENT_CAP       4 MiB    where each event's numbers stand (rows.ts)
//   TOKENS    4        TOKEN_CAP      16 MiB    token ids of all its events, back to back
//   LOWS      8        HASH_CAP        4 MiB    low 64 bits of all its engine hashes, back to back
//   DIGESTS   32       HASH_CAP       16 MiB    the whole digests, at the same indices, where the wire carries them
//   SHAPES    1,024    SHAPE_CAP         8 KiB   what events look like (shapes.ts)
//   LOCALS    8        HASH_CAP        4 MiB    local hashes of blocks, at the indices of their engine hashes
//   SEEN      8        4 × HASH_CAP   16 MiB    scratch: the search for repeated hashes; bytes to be hashed

import { HASH_END } from './layout';

export const PAYLOAD_BYTES: u32 = 16 << 20;
export const TOKEN_CAP: u32 = 1 << 22;
export const HASH_CAP: u32 = 1 << 19; // 32-byte hashes of a full payload: 16 MiB / 34
export const EVENT_CAP: u32 = 1 << 16;
export const EVENT_TOKENS: u32 = 1 << 20; // of one event
export const SHAPE_CAP: u32 = 8;
export const SHAPE_BYTES: usize = 1024;
/** Readable bytes behind the payload, all of them no MessagePack: a header may be read before its length is checked. */
export const GUARD: u32 = 256;

// [0, 0x10000) belongs to the compiler's static data, to these and to engine hashes.
export const RESULT: usize = 0x4000; // what a call returns beside its value
export const SHAPE_ORDER: usize = 0x5000; // u8 a shape (shapes.ts)
export const PAYLOAD: usize = HASH_END;
export const ROWS: usize = PAYLOAD + <usize>PAYLOAD_BYTES + GUARD;
export const TOKENS: usize = ROWS + <usize>EVENT_CAP * 64;
export const LOWS: usize = TOKENS + <usize>TOKEN_CAP * 4;
export const DIGESTS: usize = LOWS + <usize>HASH_CAP * 8;
export const SHAPES: usize = DIGESTS + <usize>HASH_CAP * 32;
export const LOCALS: usize = SHAPES + <usize>SHAPE_CAP * SHAPE_BYTES;
export const SEEN: usize = LOCALS + <usize>HASH_CAP * 8;
export const MEMORY_END: usize = SEEN + <usize>HASH_CAP * 4 * 8;
