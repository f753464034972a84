// The whole memory on one page: every region's base, stride and cap, fixed when the core is built.
//
// One source makes several builds, chosen by the constant BUILD (asconfig.json): default, wide (more groups and prefixes) and
// large (more edges and digests); tiny and tiny-wide exist for tests, which reach every cap with them. Memory is reserved whole
// at start and never grows. Bases are compile-time constants, so that they become the immediate offset of a load or store.
//
//   region            stride            entries                 default   what
//   TAIL … DIGESTS_OUT                                          0.2 MiB   engine hashes: what is hashed, and the digests
//   REQUEST           8                 REQUEST_BLOCKS          2.0 MiB   a request's (or event's) local hashes
//   PATH_DONE         1 | 8 (wide)      REQUEST_BLOCKS          0.3 MiB   completeness of the walked path, flat
//   INPUT             1                 INPUT_BYTES             4.0 MiB   bytes from the host; staging behind them
//   PREFIX_BYTES      PREFIX_BYTES_MAX  PREFIX_CAP              0.3 MiB   required object-key prefixes
//   LOCAL … DONE      62 | 69 (wide)    SLOTS                  23.3 MiB   learned edges, one slot each (slots.ts)
//   EXTENT_*, JUMP    10                SLOTS / 16              0.2 MiB   free space, clear generation, jump hint of 16 slots
//   RECORDS           64                DIGEST_CAP + 1         16.0 MiB   resident digests, one cache line each (residency.ts)
//   EDGE_TABLE        4                 2^TABLE_BITS            4.0 MiB   (parent, local) → slot
//   CHILD_TABLE       4                 2^TABLE_BITS            4.0 MiB   external hash → slot
//   DIGEST_TABLE      8                 2^TABLE_BITS            8.0 MiB   low64 → record, with a clear generation
//   MEMBER_TABLE      8                 2^MEMBER_BITS           wide only (digest, prefix) → media, with a clear generation
//   AMBIGUOUS_TABLE   8                 2 × AMBIGUOUS_CAP       0.1 MiB   low64 values with two digests

// The builds
export const WIDE: bool = BUILD == 1 || BUILD == 4;
const LARGE: bool = BUILD == 2;
const TINY: bool = BUILD >= 3;

// Caps
export const EDGE_CAP: u32 = LARGE ? 4194304 : TINY ? 64 : 262144;
export const DIGEST_CAP: u32 = EDGE_CAP; // equal on purpose: see evictDigest
export const GROUP_CAP: u32 = WIDE ? 64 : 8;
export const PREFIX_CAP: u32 = WIDE ? 1024 : 64;
export const PREFIX_BYTES_MAX: u32 = 4096;
export const MEMBER_CAP: u32 = TINY ? 256 : 524288; // objects; wide builds only
export const AMBIGUOUS_CAP: u32 = TINY ? 8 : 4096;
export const CONFLICT_CAP: u32 = EDGE_CAP / 16;
export const REQUEST_BLOCKS: u32 = TINY ? 4096 : 262144;
export const EVENT_BLOCKS: u32 = REQUEST_BLOCKS / 4; // blocks one stored event may carry
export const INPUT_BYTES: u32 = (4 << 20) + (16 << 10); // the largest contract: 1,024 prefixes of 4,096 bytes
export const MESSAGE_BYTES: u32 = 1 << 20; // a store message's payload
export const MESSAGE_EVENTS: u32 = 4096;

// Table entries: 7 low bits of the home position | hash bits | index. Every build uses this format; only the split moves.
// A load of a quarter at the caps costs 8 MiB more than one of a half and makes learning half as fast again: what a probe costs is the branch that ends it,
// where nobody can foresee how long it is. The large build has a half, and so have the small ones, whose tests want crowds.
export const TABLE_BITS: u32 = LARGE ? 23 : TINY ? 7 : 20;
export const INDEX_BITS: u32 = LARGE ? 23 : TINY ? 8 : 19;
export const HASH_BITS: u32 = 25 - INDEX_BITS;
export const TABLE_MASK: u32 = (1 << TABLE_BITS) - 1;
export const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
export const MEMBER_BITS: u32 = TINY ? 9 : 20;
export const MEMBER_MASK: u32 = (1 << MEMBER_BITS) - 1;
export const AMBIGUOUS_MASK: u32 = 2 * AMBIGUOUS_CAP - 1;
export const PREFIX_MASK: u32 = 2 * PREFIX_CAP - 1;

// Half as many slots again as edges, so that a chain mostly finds a free slot behind its parent's.
export const SLOTS: usize = <usize>EDGE_CAP * 3 / 2;
export const EXTENT_SLOTS: u32 = 16;
export const EXTENTS: usize = (SLOTS + 15) / 16;
export const EXTENT_WORDS: usize = (EXTENTS + 63) / 64;
export const SUMMARY_WORDS: usize = (EXTENT_WORDS + 63) / 64;
export const DONE_SHIFT: usize = WIDE ? 3 : 0; // log2 of the bytes of one completeness mask

// Bases. SKEW keeps equal indices of neighbouring arrays out of one L1 set; LINE rounds to a cache line.
const SKEW: usize = 192;
const LINE: usize = 63;

// [0, 0x10000) belongs to the compiler's static data and to these small areas.
export const RESULT: usize = 0x4000; // what a call returns beside its value: u32 or u64 fields named where they are written
export const RESULT_BYTES: usize = 0x2000;
export const CELLS: usize = 0x6000; // u32 state (cells.ts)
export const COUNTERS: usize = 0x6200; // u64 counters (cells.ts)
export const WHY: usize = 0x6600; // per group: the first block that blocked it, 1-based; 0 = none
export const WINDOW_LOW: usize = 0x6800; // per window unit: how far down its blocks are verified
export const HASH_SECRET: usize = 0x6a00; // xxh3.ts
export const GROUPS: usize = 0x6c00; // per group: first prefix u32, prefix count u32
export const GROUP_MASKS: usize = 0x6e00; // per group: u64 mask of its prefixes (narrow)
export const PREFIX_GROUP: usize = 0x7800; // u8 per prefix
export const PREFIX_LENGTH: usize = 0x8000; // u32 per prefix
export const PREFIX_TABLE: usize = 0x9000; // u16 per entry: prefix id + 1
// 0x9000 + 2 × 1,024 × 2 = 0xa000
export const PLANS: usize = 0xa000; // plan.ts

// Engine hashes, at the same addresses in the reader's memory (wire-layout.ts)
export const HASH_RULE: usize = 0xc000; // engine-hash.ts: algorithm, tokens of a block, bytes of the two tails, u32 each; root digest at 16
export const PARENT_DIGEST: usize = 0xc040; // 32 bytes
export const HASH_STATE: usize = 0xc060; // sha256.ts
export const HASH_PADDING: usize = 0xc080; // a message's last chunks
export const HASH_WORDS: usize = 0xc100; // a chunk's words
export const HASH_SCHEDULE: usize = 0xc180; // of a chunk by itself: a word every 16 bytes
export const HASH_SCHEDULES: usize = 0xc580; // of four, side by side
// 0xc580 + 64 × 16 = 0xc980
export const TAIL_BYTES: u32 = 24640; // the longest LoRA name and salt: 2 × 4,096 characters of 3 bytes, and what is around them
export const TAIL_FIRST: usize = 0x10000; // what follows the tokens of a chain's first block …
export const TAIL_REST: usize = 0x16400; // … and of the others; either has slack behind it
export const HASH_CHUNKS: usize = 0x1c800; // u32: chunks whose schedules are made four at a time
export const HASH_MESSAGES: usize = 0x1e000; // messages of the blocks that come next
export const HASH_MESSAGES_BYTES: usize = 0x15000; // one of 8,192 tokens and the longest tail
export const DIGESTS_OUT: usize = HASH_MESSAGES + HASH_MESSAGES_BYTES;
export const DIGESTS_OUT_BLOCKS: u32 = 1024;
export const HASH_END: usize = DIGESTS_OUT + <usize>DIGESTS_OUT_BLOCKS * 32;

export const REQUEST: usize = HASH_END;
export const PATH_DONE: usize = (REQUEST + <usize>REQUEST_BLOCKS * 8 + 256 + SKEW + LINE) & ~LINE;
export const INPUT: usize = (PATH_DONE + (<usize>REQUEST_BLOCKS << DONE_SHIFT) + 256 + SKEW + LINE) & ~LINE;
export const INPUT_GUARD: usize = 256; // readable bytes behind the input
export const STAGE: usize = INPUT + <usize>MESSAGE_BYTES * 2; // decoded object events, behind the longest message
export const PREFIX_BYTES: usize = (INPUT + <usize>INPUT_BYTES + INPUT_GUARD + SKEW + LINE) & ~LINE;

export const LOCAL: usize = (PREFIX_BYTES + <usize>PREFIX_CAP * PREFIX_BYTES_MAX + 64 + SKEW + LINE) & ~LINE;
export const EXTERNAL: usize = (LOCAL + SLOTS * 8 + 256 + SKEW + LINE) & ~LINE;
export const PARENT: usize = (EXTERNAL + SLOTS * 8 + SKEW + LINE) & ~LINE;
export const HIGH: usize = (PARENT + SLOTS * 8 + SKEW + LINE) & ~LINE;
export const NEXT: usize = (HIGH + SLOTS * 24 + SKEW + LINE) & ~LINE;
export const PREV: usize = (NEXT + SLOTS * 4 + SKEW + LINE) & ~LINE;
export const LINK: usize = (PREV + SLOTS * 4 + SKEW + LINE) & ~LINE;
export const FLAGS: usize = (LINK + SLOTS * 4 + SKEW + LINE) & ~LINE;
export const DONE: usize = (FLAGS + SLOTS + 64 + SKEW + LINE) & ~LINE;

export const EXTENT_USED: usize = (DONE + (SLOTS << DONE_SHIFT) + 256 + SKEW + LINE) & ~LINE; // u16: its used slots
export const EXTENT_GEN: usize = (EXTENT_USED + EXTENTS * 2 + SKEW + LINE) & ~LINE; // u32: generation of its DONE masks
export const JUMP: usize = (EXTENT_GEN + EXTENTS * 4 + 64 + SKEW + LINE) & ~LINE; // u32: latest child elsewhere
export const BUSY: usize = (JUMP + EXTENTS * 4 + SKEW + LINE) & ~LINE; // bit: some slot used
export const FULL: usize = (BUSY + EXTENT_WORDS * 8 + SKEW + LINE) & ~LINE; // bit: every slot used
export const BUSY_WORDS: usize = (FULL + EXTENT_WORDS * 8 + SKEW + LINE) & ~LINE; // bit: that word of BUSY is all ones
export const FULL_WORDS: usize = (BUSY_WORDS + SUMMARY_WORDS * 8 + SKEW + LINE) & ~LINE;

export const EDGE_TABLE: usize = (FULL_WORDS + SUMMARY_WORDS * 8 + SKEW + LINE) & ~LINE;
export const CHILD_TABLE: usize = EDGE_TABLE + (<usize>4 << TABLE_BITS) + 64;
export const DIGEST_TABLE: usize = CHILD_TABLE + (<usize>4 << TABLE_BITS) + 64;
export const MEMBER_TABLE: usize = DIGEST_TABLE + (<usize>8 << TABLE_BITS) + 64;
export const AMBIGUOUS_TABLE: usize = MEMBER_TABLE + (WIDE ? (<usize>8 << MEMBER_BITS) : 0) + 64;
export const RECORDS: usize = (AMBIGUOUS_TABLE + <usize>AMBIGUOUS_CAP * 16 + 64 + LINE) & ~LINE;
/** First byte behind the last region; the host checks that the instance's memory holds it. */
export const MEMORY_END: usize = RECORDS + (<usize>DIGEST_CAP + 1) * 64;
