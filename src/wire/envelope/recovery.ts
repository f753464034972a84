// What a router asks a worker's local indexer, and what that answers, as MessagePack with named fields (spec/kv-events.md 4.3). An answer is a map of
// one variant. Pages of long dumps are ours: `page` in a question and `next` in a dump, both left out where they are not needed, so that a
// short dump is written as the field writes it.
import { mapOf, missing, typeFault, unsigned32, unsigned64 } from './kv-event.js';
import { MAX_TEXT_BYTES } from './limits.js';
import { Names } from './names.js';
import { Fault, Reader, readWhole } from './reader.js';
import {
  type EventBatch,
  type EventCounts,
  noCounts,
  RouterEventReader,
  type UnreadRouterEvent,
  writeEvents,
} from './router-event.js';
import type { RecoveryAnswer, RecoveryQuestion } from './types.js';
import { Writer } from './writer.js';

/** Characters of an error's words that are written. */
const MAX_WRITTEN_WORDS = 1024;
const RECOVERY = 'recovery';
/** What a dump's scope begins with where it is one domain, which stands as a map on the wire. */
const DOMAIN_SCOPE = 'domain:';

const QUESTION = new Names([
  'worker_id',
  'dp_rank',
  'start_event_id',
  'end_event_id',
  'supports_tree_dump_failed',
  'kind',
  'page',
]);
const KIND = new Names([RECOVERY]);
const ANSWER = new Names([
  'Events',
  'TreeDump',
  'TreeDumpFailed',
  'TooNew',
  'InvalidRange',
  'Error',
  'Status',
  'StateAgentRecovery',
]);
const VARIANT = {
  events: 0,
  treeDump: 1,
  treeDumpFailed: 2,
  tooNew: 3,
  invalidRange: 4,
  error: 5,
  status: 6,
  agent: 7,
};
const EVENTS = new Names(['events', 'last_event_id', 'reset_scope', 'next']);
const FAILED = new Names(['message']);
const TOO_NEW = new Names(['requested_start', 'requested_end', 'newest_available']);
const RANGE = new Names(['start_id', 'end_id']);
const SCOPE = new Names(['domain']);

const reader = new Reader();
const eventReader = new RouterEventReader();
const writer = new Writer();

/** An answer, and those of its events that could not be read: where there are any, it is not the whole of what was asked for. */
export interface RecoveryAnswerRead {
  readonly answer: RecoveryAnswer;
  readonly rejected: readonly UnreadRouterEvent[];
  readonly counts: Readonly<EventCounts>;
}

// ---- questions ----

/** The bytes are the caller's own. @throws {WireError} `unwritable` */
export function encodeRecoveryQuestion(question: RecoveryQuestion): Uint8Array {
  writer.start();
  writer.map(question.page === null ? 6 : 7);
  writer.text('worker_id');
  writer.unsigned(question.workerId, 'worker id');
  writer.text('dp_rank');
  writer.uint32(question.dpRank, 'rank');
  writer.text('start_event_id');
  writeOptional(question.startEventId, 'first event id');
  writer.text('end_event_id');
  writeOptional(question.endEventId, 'last event id');
  writer.text('supports_tree_dump_failed');
  writer.bool(question.supportsTreeDumpFailed);
  writer.text('kind');
  writer.text(RECOVERY);
  if (question.page !== null) {
    writer.text('page');
    writer.text(question.page);
  }
  return writer.take();
}

/** @throws {WireError} `not-supported` for questions of other kinds, and as all readers here */
export function decodeRecoveryQuestion(payload: Uint8Array): RecoveryQuestion {
  return readWhole(reader, payload, readQuestion);
}

function readQuestion(from: Reader): RecoveryQuestion {
  let workerId: bigint | null = null;
  let dpRank: number | null = null;
  let startEventId: bigint | null = null;
  let endEventId: bigint | null = null;
  let supportsTreeDumpFailed = false;
  let page: string | null = null;
  const pairs = mapOf(from, 'the question');
  for (let i = 0; i < pairs; i++) {
    switch (from.name(QUESTION)) {
      case 0:
        workerId = unsigned64(from, 'worker_id');
        break;
      case 1:
        dpRank = unsigned32(from, 'dp_rank');
        break;
      case 2:
        startEventId = readOptional(from, 'start_event_id');
        break;
      case 3:
        endEventId = readOptional(from, 'end_event_id');
        break;
      case 4:
        supportsTreeDumpFailed = readBool(from, 'supports_tree_dump_failed');
        break;
      case 5:
        readKind(from);
        break;
      case 6:
        page = from.nil() ? null : readText(from, 'page');
        break;
      default:
        from.skip();
    }
  }
  if (workerId === null) throw missing('worker_id');
  if (dpRank === null) throw missing('dp_rank');
  return { workerId, dpRank, startEventId, endEventId, supportsTreeDumpFailed, page };
}

function readKind(from: Reader): void {
  const { at } = from;
  if (from.name(KIND) >= 0) return;
  from.at = at;
  throw new Fault('not-supported', `the question's kind is ${from.describe()}: not supported, only ${RECOVERY} is`);
}

// ---- answers ----

/**
 * The bytes are the caller's own.
 * @throws {WireError} `payload-too-large` (over 8 MiB: dump in pages, answer a range with a dump), `unwritable`
 */
export function encodeRecoveryAnswer(answer: RecoveryAnswer): Uint8Array {
  writer.start();
  writer.map(1);
  switch (answer.kind) {
    case 'events':
      writer.text('Events');
      writer.map(2);
      writeRun(answer);
      break;
    case 'tree-dump':
      writer.text('TreeDump');
      writer.map(2 + Number(answer.resetScope !== null) + Number(answer.next !== null));
      writeRun(answer);
      if (answer.resetScope !== null) writeScope(answer.resetScope);
      if (answer.next !== null) {
        writer.text('next');
        writer.text(answer.next);
      }
      break;
    case 'tree-dump-failed':
      writer.text('TreeDumpFailed');
      writer.map(2);
      // The field demands a number here; who asked leaves its place as it is.
      writer.text('last_event_id');
      writer.big(0n);
      writer.text('message');
      writer.text(answer.detail.slice(0, MAX_WRITTEN_WORDS));
      break;
    case 'too-new':
      writer.text('TooNew');
      writer.map(3);
      writer.text('requested_start');
      writer.unsigned(answer.requestedStart, 'first event id');
      writer.text('requested_end');
      writeOptional(answer.requestedEnd, 'last event id');
      writer.text('newest_available');
      writer.unsigned(answer.newestAvailable, 'newest event id');
      break;
    case 'invalid-range':
      writer.text('InvalidRange');
      writer.map(2);
      writer.text('start_id');
      writer.unsigned(answer.startId, 'first event id');
      writer.text('end_id');
      writer.unsigned(answer.endId, 'last event id');
      break;
    case 'error':
      writer.text('Error');
      writer.text(answer.detail.slice(0, MAX_WRITTEN_WORDS));
  }
  return writer.take();
}

function writeRun(answer: Extract<RecoveryAnswer, { kind: 'events' | 'tree-dump' }>): void {
  writer.text('events');
  writeEvents(writer, answer.events);
  writer.text('last_event_id');
  writer.unsigned(answer.lastEventId, 'last event id');
}

function writeScope(scope: string): void {
  writer.text('reset_scope');
  if (!scope.startsWith(DOMAIN_SCOPE)) {
    writer.text(scope);
    return;
  }
  writer.map(1);
  writer.text('domain');
  writer.text(scope.slice(DOMAIN_SCOPE.length));
}

/**
 * Bad events are apart in `rejected`.
 * @throws {WireError} `not-supported` for answers to other kinds of questions, `unknown-data` for what is no answer, and as all readers here
 */
export function decodeRecoveryAnswer(payload: Uint8Array): RecoveryAnswerRead {
  return readWhole(reader, payload, readAnswer);
}

function readAnswer(from: Reader): RecoveryAnswerRead {
  eventReader.start();
  const { at } = from;
  const pairs = from.map();
  const variant = pairs === 1 || pairs < 0 ? from.name(ANSWER) : -1;
  if (pairs < 0 && variant === VARIANT.treeDumpFailed) return bare({ kind: 'tree-dump-failed', detail: '' });
  if (pairs === 1) {
    switch (variant) {
      case VARIANT.events:
        return readRun(from, false);
      case VARIANT.treeDump:
        return readRun(from, true);
      case VARIANT.treeDumpFailed:
        return bare({ kind: 'tree-dump-failed', detail: readFailed(from) });
      case VARIANT.tooNew:
        return bare(readTooNew(from));
      case VARIANT.invalidRange:
        return bare(readRange(from));
      case VARIANT.error:
        return bare({ kind: 'error', detail: readWords(from, 'Error') });
      case VARIANT.status:
      case VARIANT.agent:
        throw new Fault('not-supported', "the answer is one to a state agent's question: not supported");
    }
  }
  from.at = at;
  throw new Fault('unknown-data', `the answer is ${from.describe()}, expected a map of one variant that is known`);
}

function bare(answer: RecoveryAnswer): RecoveryAnswerRead {
  return { answer, rejected: [], counts: noCounts() };
}

function readRun(from: Reader, isDump: boolean): RecoveryAnswerRead {
  let batch: EventBatch | null = null;
  let lastEventId: bigint | null = null;
  let resetScope: string | null = null;
  let next: string | null = null;
  const pairs = mapOf(from, 'the answer');
  for (let i = 0; i < pairs; i++) {
    switch (from.name(EVENTS)) {
      case 0:
        if (batch !== null) throw new Fault('field-type', 'the answer has events twice');
        batch = eventReader.list(from);
        if (batch === null) throw typeFault(from, 'events', 'a list');
        break;
      case 1:
        lastEventId = unsigned64(from, 'last_event_id');
        break;
      case 2:
        resetScope = readScope(from);
        break;
      case 3:
        next = from.nil() ? null : readText(from, 'next');
        break;
      default:
        from.skip();
    }
  }
  if (batch === null) throw missing('events');
  if (lastEventId === null) throw missing('last_event_id');
  const { events, rejected, counts } = batch;
  if (!isDump) return { answer: { kind: 'events', events, lastEventId }, rejected, counts };
  return { answer: { kind: 'tree-dump', events, lastEventId, resetScope, next }, rejected, counts };
}

/** Everything of the rank where it is null or missing; a text; or a map of the one domain. */
function readScope(from: Reader): string | null {
  if (from.nil()) return null;
  if (from.map() !== 1) return readText(from, 'reset_scope');
  if (from.name(SCOPE) < 0)
    throw new Fault('not-supported', 'the scope of the dump is of a kind that is not supported');
  return `${DOMAIN_SCOPE}${readText(from, 'reset_scope.domain')}`;
}

function readFailed(from: Reader): string {
  let detail = '';
  const pairs = mapOf(from, 'TreeDumpFailed');
  for (let i = 0; i < pairs; i++) {
    if (from.name(FAILED) === 0) detail = readWords(from, 'message');
    else from.skip();
  }
  return detail;
}

function readTooNew(from: Reader): RecoveryAnswer {
  let requestedStart = 0n;
  let requestedEnd: bigint | null = null;
  let newestAvailable: bigint | null = null;
  const pairs = mapOf(from, 'TooNew');
  for (let i = 0; i < pairs; i++) {
    switch (from.name(TOO_NEW)) {
      case 0:
        requestedStart = readOptional(from, 'requested_start') ?? 0n;
        break;
      case 1:
        requestedEnd = readOptional(from, 'requested_end');
        break;
      case 2:
        newestAvailable = unsigned64(from, 'newest_available');
        break;
      default:
        from.skip();
    }
  }
  if (newestAvailable === null) throw missing('newest_available');
  return { kind: 'too-new', requestedStart, requestedEnd, newestAvailable };
}

function readRange(from: Reader): RecoveryAnswer {
  let startId: bigint | null = null;
  let endId: bigint | null = null;
  const pairs = mapOf(from, 'InvalidRange');
  for (let i = 0; i < pairs; i++) {
    const name = from.name(RANGE);
    if (name === 0) startId = unsigned64(from, 'start_id');
    else if (name === 1) endId = unsigned64(from, 'end_id');
    else from.skip();
  }
  if (startId === null || endId === null) throw missing(startId === null ? 'start_id' : 'end_id');
  return { kind: 'invalid-range', startId, endId };
}

// ---- single values ----

function writeOptional(value: bigint | null, field: string): void {
  if (value === null) writer.nil();
  else writer.unsigned(value, field);
}

function readOptional(from: Reader, field: string): bigint | null {
  return from.nil() ? null : unsigned64(from, field);
}

function readBool(from: Reader, field: string): boolean {
  const value = from.bool();
  if (value === null) throw typeFault(from, field, 'true or false');
  return value;
}

function readText(from: Reader, field: string): string {
  const text = from.text(MAX_TEXT_BYTES);
  if (text === null) throw typeFault(from, field, `a text of at most ${MAX_TEXT_BYTES} bytes`);
  return text;
}

/** Words for people: what is too long to be shown is only described. */
function readWords(from: Reader, field: string): string {
  const { at } = from;
  const text = from.text(MAX_TEXT_BYTES);
  if (text !== null) return text;
  if (from.textBytes() < 0) throw typeFault(from, field, 'a text');
  from.at = at;
  const seen = from.describe();
  from.skip();
  return seen;
}
