// Recorded messages, as a socket would give them.
import { readFileSync } from 'node:fs';

/** A file beside the examples, as text. */
export const file = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');

/** Recorded messages as the three ZeroMQ frames that a socket would give. */
export const recorded = (path) =>
  file(path)
    .trim()
    .split('\n')
    .map((line) => {
      const { seq, topic, payload } = JSON.parse(line);
      const sequence = Buffer.alloc(8);
      sequence.writeBigUInt64BE(BigInt(seq));
      return [Buffer.from(topic, 'hex'), sequence, Buffer.from(payload, 'hex')];
    });
