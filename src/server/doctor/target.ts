// What of a configuration the doctor examines.
import type { ServerConfig } from '../config.js';
import type { DoctorTarget } from './evidence.js';

export function targetOf({
  model,
  blockSize,
  workers,
  sharedCache,
  salt,
  eventPlane,
  tokenizer,
}: ServerConfig): DoctorTarget {
  const { type, masters, hashing, trustSeed, allowUnverifiedContract } = sharedCache;
  return {
    model,
    blockSize,
    workers,
    sharedCache: { type, masters, hashing, trustSeed, allowUnverifiedContract },
    saltMode: salt.mode,
    eventPlane,
    tokenizer: tokenizer === null ? null : { file: tokenizer.file, chatTemplate: tokenizer.chatTemplate },
  };
}
