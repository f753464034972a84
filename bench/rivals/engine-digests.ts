// vLLM's block digests the way a JavaScript router would make them with node:crypto: plainly, small Buffers joined for each block; and tuned, the
// same bytes written into one reused buffer. The module is handed in: browsers have none that answers at once.

export type CreateHash = typeof import('node:crypto').createHash;

const ROOT_BYTES = Uint8Array.from([0x80, 5, 0x95, 5, 0, 0, 0, 0, 0, 0, 0, 0x8c, 1, 0x30, 0x94, 0x2e]); // the pickled seed, "0"
const TOKENS_AT = 47;
const FRAME_AT = 11;
const TOKEN_BYTES = 7;
const END = [0x74, 0x94, 0x4e, 0x87, 0x94, 0x2e] as const;

const rootOf = (createHash: CreateHash) => createHash('sha256').update(ROOT_BYTES).digest();

/** Plain: Buffers for every part, joined twice. Blocks of at least four tokens. */
export function plainDigests(createHash: CreateHash, tokens: Uint32Array, blockSize: number): Buffer[] {
  const digests: Buffer[] = [];
  let parent = rootOf(createHash);
  for (let at = 0; at + blockSize <= tokens.length; at += blockSize) {
    const parts: Uint8Array[] = [Buffer.of(0x43, 0x20), parent, Buffer.of(0x94, 0x28)];
    for (const token of tokens.subarray(at, at + blockSize)) parts.push(pickled(token));
    parts.push(Buffer.from(END));
    const payload = Buffer.concat(parts);
    const head = Buffer.alloc(FRAME_AT);
    head.set([0x80, 5, 0x95]);
    head.writeBigUInt64LE(BigInt(payload.length), 3);
    parent = createHash('sha256')
      .update(Buffer.concat([head, payload]))
      .digest();
    digests.push(parent);
  }
  return digests;
}

function pickled(token: number): Buffer {
  if (token < 0x100) return Buffer.of(0x4b, token);
  if (token < 0x1_0000) return Buffer.of(0x4d, token & 0xff, token >> 8);
  if (token < 0x8000_0000) return Buffer.of(0x4a, token & 0xff, token >> 8, token >> 16, token >> 24);
  return Buffer.of(0x8a, 5, token & 0xff, token >> 8, token >> 16, token >> 24, 0);
}

/** Tuned: one buffer, of which only what varies is written anew; digests go to `out`, 32 bytes each. */
export class TunedDigests {
  readonly #createHash: CreateHash;
  readonly #blockSize: number;
  readonly #bytes: Uint8Array;
  readonly #root: Uint8Array;

  constructor(createHash: CreateHash, blockSize: number) {
    this.#createHash = createHash;
    this.#root = rootOf(createHash);
    this.#blockSize = blockSize;
    this.#bytes = new Uint8Array(TOKENS_AT + blockSize * TOKEN_BYTES + END.length);
    this.#bytes.set([0x80, 5, 0x95]);
    this.#bytes.set([0x43, 0x20], FRAME_AT);
    this.#bytes.set([0x94, 0x28], TOKENS_AT - 2);
  }

  digest(tokens: Uint32Array, out: Uint8Array): void {
    const bytes = this.#bytes;
    const createHash = this.#createHash;
    let parent: Uint8Array = this.#root;
    for (let at = 0, to = 0; at + this.#blockSize <= tokens.length; to += parent.length) {
      bytes.set(parent, FRAME_AT + 2);
      let end = TOKENS_AT;
      for (const last = at + this.#blockSize; at < last; at++) {
        const token = tokens[at]!;
        if (token < 0x100) {
          bytes[end++] = 0x4b;
          bytes[end++] = token;
        } else if (token < 0x1_0000) {
          bytes[end++] = 0x4d;
          bytes[end++] = token;
          bytes[end++] = token >>> 8;
        } else {
          const wide = token >= 0x8000_0000;
          bytes[end++] = wide ? 0x8a : 0x4a;
          if (wide) bytes[end++] = 5;
          bytes[end++] = token;
          bytes[end++] = token >>> 8;
          bytes[end++] = token >>> 16;
          bytes[end++] = token >>> 24;
          if (wide) bytes[end++] = 0;
        }
      }
      for (const byte of END) bytes[end++] = byte;
      const length = end - FRAME_AT;
      bytes[3] = length;
      bytes[4] = length >>> 8;
      parent = createHash('sha256').update(bytes.subarray(0, end)).digest();
      out.set(parent, to);
    }
  }
}
