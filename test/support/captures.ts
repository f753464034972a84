// What the capture and oracle tests share: streams captured from a running Mooncake master, the oracle cases that two thirds of them are
// named after, and a way to change what a captured message says and nothing else of it (data/README.md).
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Decoder, Encoder } from '@msgpack/msgpack';
import { readCapture } from '../../src/oracle/capture.js';
import { type OracleCase, readCaseFile } from '../../src/oracle/case-file.js';
import type { StoreEvent } from './messages.js';

const FIXTURES = 'test/fixtures';
/** Others' data, which is read in place and never becomes a fixture. */
const SHARED_DATA = process.env['MOONROUTE_DATA'] ?? '../shared/data';
const UPSTREAM = join(SHARED_DATA, 'oracle-upstream.json');

/** Streams of whole oracle cases, or of special situations. */
export type CaptureFolder = 'cases' | 'scenarios';

const folderOf = (folder: CaptureFolder) =>
  join(FIXTURES, 'mooncake-captures', folder === 'scenarios' ? 'scenarios' : '.');

/** Names of all captures in a folder, without `.jsonl`. */
export function captureNames(folder: CaptureFolder): string[] {
  return readdirSync(folderOf(folder))
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => name.slice(0, -'.jsonl'.length))
    .sort();
}

/** The messages of a capture, as frames. */
export function captured(folder: CaptureFolder, name: string): Uint8Array[][] {
  const file = join(folderOf(folder), `${name}.jsonl`);
  return readCapture(readFileSync(file, 'utf8'), file);
}

const decoder = new Decoder({ useBigInt64: true });
const encoder = new Encoder({ useBigInt64: true });

/** The events of a message; 64-bit numbers are bigints. */
export function eventsOf(frames: readonly Uint8Array[]): StoreEvent[] {
  return (decoder.decode(frames[2]!) as [unknown, StoreEvent[]])[1];
}

/** The same message with other events; without a change its bytes stay the same. */
export function rewritten(frames: readonly Uint8Array[], change: (event: StoreEvent) => StoreEvent): Uint8Array[] {
  const [timestamp, events, ...rest] = decoder.decode(frames[2]!) as [unknown, StoreEvent[], ...unknown[]];
  return [frames[0]!, frames[1]!, encoder.encode([timestamp, events.map(change), ...rest])];
}

/** This project's 600 cases. */
export function ownCases(): OracleCase[] {
  const file = join(FIXTURES, 'oracle-cases.json.gz');
  return readCaseFile(gunzipSync(readFileSync(file)).toString('utf8'), file);
}

/** The reference's 12 published cases; null, with a notice, where this checkout does not have them. */
export function upstreamCases(): OracleCase[] | null {
  if (existsSync(UPSTREAM)) return readCaseFile(readFileSync(UPSTREAM, 'utf8'), UPSTREAM);
  console.log(`notice: ${UPSTREAM} is not there; what needs the reference's published cases is skipped`);
  return null;
}
