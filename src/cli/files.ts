// Reads the files that commands are given: plain or gzip, with errors that name the file.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { ConfigError } from '../errors.js';

/** Largest file that a command reads whole, after unpacking. */
const MAX_FILE_BYTES = 1 << 30;

/** The file's text; unpacked if it is gzip. @throws ConfigError `file-unreadable`. */
export function readText(file: string): string {
  try {
    const bytes = readFileSync(file);
    const plain =
      bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes, { maxOutputLength: MAX_FILE_BYTES }) : bytes;
    return plain.toString('utf8');
  } catch (error) {
    throw new ConfigError('file-unreadable', `cannot read ${file}: ${(error as Error).message}`);
  }
}

/** The file's JSON value. @throws ConfigError `file-unreadable`, `file-json`. */
export function readJson(file: string): unknown {
  const text = readText(file);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError('file-json', `${file} is not JSON: ${(error as Error).message}`);
  }
}

/** Prints a value for machines; 64-bit integers become decimal texts. */
export function printJson(value: unknown): void {
  console.log(JSON.stringify(value, (_, field) => (typeof field === 'bigint' ? field.toString() : field), 2));
}
