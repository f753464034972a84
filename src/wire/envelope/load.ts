// Load reports between routers, as MessagePack with named fields: ours, no other router speaks them.
import { mapOf, missing, typeFault, unsigned32, unsigned64 } from './kv-event.js';
import { MAX_LOAD_RANKS, MAX_SESSION_BYTES } from './limits.js';
import { Names } from './names.js';
import { Fault, Reader, readWhole } from './reader.js';
import type { LoadReport, RankLoadShare } from './types.js';
import { unwritable, Writer } from './writer.js';

const REPORT = new Names(['router', 'sequence', 'good_for', 'ranks']);
const SHARE = new Names(['worker_id', 'dp_rank', 'active_requests', 'prefill_tokens', 'decode_blocks']);
/** Least bytes of a rank: a map of its two names that must be there, with a byte each. */
const LEAST_SHARE = 1 + 10 + 1 + 8 + 1;

const reader = new Reader();
const writer = new Writer();

/** The bytes are the caller's own. @throws {WireError} `unwritable`, `payload-too-large` */
export function encodeLoadReport(report: LoadReport): Uint8Array {
  const { ranks } = report;
  if (ranks.length > MAX_LOAD_RANKS)
    throw unwritable(`a load report has ${ranks.length} ranks, at most ${MAX_LOAD_RANKS} are read`);
  writer.start();
  writer.map(4);
  writer.text('router');
  writer.text(report.router);
  writer.text('sequence');
  writer.unsigned(report.sequence, 'sequence');
  writer.text('good_for');
  writeAmount(report.goodFor, 'good_for');
  writer.text('ranks');
  writer.array(ranks.length);
  for (const share of ranks) {
    writer.map(5);
    writer.text('worker_id');
    writer.unsigned(share.workerId, 'worker id');
    writer.text('dp_rank');
    writer.uint32(share.dpRank, 'rank');
    writer.text('active_requests');
    writeAmount(share.activeRequests, 'active requests');
    writer.text('prefill_tokens');
    writeAmount(share.prefillTokens, 'prefill tokens');
    writer.text('decode_blocks');
    writeAmount(share.decodeBlocks, 'decode blocks');
  }
  return writer.take();
}

function writeAmount(value: number, field: string): void {
  if (!isAmount(value)) throw unwritable(`${field} is ${value}, expected a number from 0 to 2^53`);
  writer.number(value);
}

/** @throws {WireError} as all readers here; `too-many` for more ranks than any pool has */
export function decodeLoadReport(payload: Uint8Array): LoadReport {
  return readWhole(reader, payload, readReport);
}

function readReport(from: Reader): LoadReport {
  let router: string | null = null;
  let sequence: bigint | null = null;
  let goodFor: number | null = null;
  let ranks: readonly RankLoadShare[] | null = null;
  const pairs = mapOf(from, 'the load report');
  for (let i = 0; i < pairs; i++) {
    switch (from.name(REPORT)) {
      case 0:
        router = from.text(MAX_SESSION_BYTES);
        if (router === null) throw typeFault(from, 'router', `a text of at most ${MAX_SESSION_BYTES} bytes`);
        break;
      case 1:
        sequence = unsigned64(from, 'sequence');
        break;
      case 2:
        goodFor = readAmount(from, 'good_for');
        break;
      case 3:
        ranks = readShares(from);
        break;
      default:
        from.skip();
    }
  }
  if (router === null) throw missing('router');
  if (sequence === null) throw missing('sequence');
  if (goodFor === null) throw missing('good_for');
  if (ranks === null) throw missing('ranks');
  return { router, sequence, goodFor, ranks };
}

function readShares(from: Reader): RankLoadShare[] {
  const count = from.array();
  if (count < 0) throw typeFault(from, 'ranks', 'a list');
  if (count > MAX_LOAD_RANKS || count * LEAST_SHARE > from.end - from.at) {
    throw new Fault('too-many', `the report lists ${count} ranks, at most ${MAX_LOAD_RANKS} are read`);
  }
  return Array.from({ length: count }, () => readShare(from));
}

function readShare(from: Reader): RankLoadShare {
  let workerId: bigint | null = null;
  let dpRank: number | null = null;
  let activeRequests = 0;
  let prefillTokens = 0;
  let decodeBlocks = 0;
  const pairs = mapOf(from, 'a rank');
  for (let i = 0; i < pairs; i++) {
    switch (from.name(SHARE)) {
      case 0:
        workerId = unsigned64(from, 'worker_id');
        break;
      case 1:
        dpRank = unsigned32(from, 'dp_rank');
        break;
      case 2:
        activeRequests = readAmount(from, 'active_requests');
        break;
      case 3:
        prefillTokens = readAmount(from, 'prefill_tokens');
        break;
      case 4:
        decodeBlocks = readAmount(from, 'decode_blocks');
        break;
      default:
        from.skip();
    }
  }
  if (workerId === null || dpRank === null) throw missing(`ranks.${workerId === null ? 'worker_id' : 'dp_rank'}`);
  return { workerId, dpRank, activeRequests, prefillTokens, decodeBlocks };
}

/** A foreign number enters sums that policies divide by: finite, and not below zero. */
function readAmount(from: Reader, field: string): number {
  const { at } = from;
  const value = from.number();
  if (typeof value === 'number' && isAmount(value)) return value;
  from.at = at;
  throw typeFault(from, field, 'a number from 0 to 2^53');
}

function isAmount(value: number): boolean {
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}
