// Every bound of the envelope codec. A publisher keeps to small batches (spec/kv-events.md 4.2: 128 events, 8,192 blocks, 8 MiB); a reader takes a
// few times that, so that another publisher's taste loses no events, and no more, so that a stranger's bytes cost no more than they weigh.

const MIB = 1024 * 1024;

/** Most bytes that are written as one payload: what a batch may have. */
export const MAX_WRITTEN_BYTES = 8 * MIB;
/** Most bytes of a payload that is read. One more mebibyte than is written, for who counts blocks only and tests after adding an event. */
export const MAX_PAYLOAD_BYTES = 9 * MIB;
/** Most characters of a JSON text that is read: a block takes up to 93 of them, and 57 bytes in MessagePack. */
export const MAX_JSON_CHARS = 16 * MIB;
/** Most events of one payload, 512 times a batch's: a page of a dump has an event for each run of blocks, which may be as short as one. */
export const MAX_READ_EVENTS = 65_536;
/** Most hashes, stored and removed, of one payload: 8 MiB of them where a list of small numbers would make eight bytes out of each one. */
export const MAX_READ_HASHES = 1_048_576;
/** Most containers inside each other. Events take 7; the rest is for what is passed on or passed over. */
export const MAX_DEPTH = 32;
/** Most containers inside each other in one value that is passed on. */
export const MAX_PLAIN_DEPTH = 12;
/** Most lists, maps and texts that are passed on with the events of one payload: 16 for each block of a batch. */
export const MAX_PLAIN_OBJECTS = 131_072;
/** Most bytes of values that are passed on with the events of one payload. */
export const MAX_PLAIN_BYTES = 4 * MIB;
/** Most bytes of a session's name. */
export const MAX_SESSION_BYTES = 1024;
/** Most bytes of other texts that are read: a page's name, an error's words. */
export const MAX_TEXT_BYTES = 4096;
/** Most ranks in one load report, far above what a pool has. */
export const MAX_LOAD_RANKS = 16_384;
