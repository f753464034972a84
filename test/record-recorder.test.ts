// The recorder's decisions, without files or sockets: what becomes a line, when a part ends, what a slow disk costs, and how holes are told.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { KEYS_PER_LINE, Recorder, type RecorderOptions, type RecorderStep } from '../src/live/recorder.js';
import type { Recorded } from '../src/live/recording.js';
import { readRecordedLine } from '../src/live/recording-read.js';
import { headerLine, keysLine, lineBytes } from '../src/live/recording-write.js';
import { writeSequence } from '../src/wire/frames.js';

const STARTED = Date.UTC(2026, 10, 30, 9, 15);
const SOURCES: RecorderOptions['sources'] = [
  { name: 'w0', kind: 'worker', endpoint: 'tcp://127.0.0.1:1' },
  { name: 'store', kind: 'store', endpoint: 'tcp://127.0.0.1:2' },
];
const HEADER_BYTES = lineBytes(headerLine(STARTED, SOURCES));

function recorder(options: Partial<RecorderOptions> = {}) {
  const steps: RecorderStep[] = [];
  const made = new Recorder({ sources: SOURCES, started: STARTED, rotateBytes: 1e9, keep: 10, ...options }, (step) =>
    steps.push(step),
  );
  const lines = (): Recorded[] =>
    steps.flatMap((step) => (step.do === 'write' ? [readRecordedLine(step.text, 'it')!] : []));
  return { recorder: made, steps, lines };
}

const frames = (sequence: bigint | number, bytes = 3): Uint8Array[] => [
  new Uint8Array(0),
  writeSequence(BigInt(sequence)),
  new Uint8Array(bytes).fill(7),
];

/** What lines say, in short. */
const told = (lines: readonly Recorded[]): string[] =>
  lines.map((line) => {
    if (line.type === 'header') return 'header';
    if (line.type === 'message') return `${line.from} ${line.frames[1]!.at(-1)}`;
    if (line.type === 'keys') return `keys ${line.keys?.length ?? 'same'} at ${line.at} of ${line.n}`;
    if (line.type === 'status') return `status ${line.body}`;
    return `${line.event} ${line.from}`;
  });

test('what is recorded is read back as it was', () => {
  const { recorder: made, lines } = recorder();
  const message = [Uint8Array.of(1, 2), writeSequence(300n), Uint8Array.from({ length: 1000 }, (_, i) => i & 255)];
  made.message(12.3456789, 'w0', message);
  made.monitor(20, 'store', 'lost', { cause: 'refused', detail: 'nobody "there"\n' });
  made.status(30, 'store', '{"enabled":true}');
  const [header, first, lost, status] = lines();
  assert.equal(header, { type: 'header', started: STARTED, sources: SOURCES });
  assert.equal(first, { type: 'message', t: 12.346, from: 'w0', kind: 'worker', frames: message });
  assert.equal(lost, { type: 'monitor', t: 20, from: 'store', event: 'lost', breaks: true });
  assert.equal(status, { type: 'status', t: 30, from: 'store', body: '{"enabled":true}' });
});

test('a sequence that does not follow is told before its message; a duplicate is none, and numbers wrap', () => {
  const { recorder: made, steps, lines } = recorder();
  for (const sequence of [5n, 6n, 6n, 9n, 0n, (1n << 64n) - 1n, 0n]) made.message(1, 'w0', frames(sequence));
  made.message(1, 'w0', [new Uint8Array(0)]); // no sequence at all
  const expected = ['w0 5', 'w0 6', 'w0 6', 'gap w0', 'w0 9', 'gap w0', 'w0 0', 'gap w0', 'w0 255', 'w0 0'];
  assert.equal(told(lines().slice(1, -1)), expected);
  const gap = steps.find((step) => step.do === 'write' && step.text.includes('"gap"'));
  assert.match(gap?.do === 'write' ? gap.text : '', '"after":"6","at":"9"');
  assert.is(made.summary().sources['w0']!.gaps, 3);
});

test('a part ends before the line that it has no room for; the oldest of too many is deleted', () => {
  const { recorder: made, steps } = recorder({ rotateBytes: HEADER_BYTES + 300, keep: 3 });
  for (let sequence = 0; sequence < 10; sequence++) made.message(1, 'w0', frames(sequence, 60));
  const turns = steps.filter((step) => step.do === 'rotate');
  assert.equal(turns.slice(0, 4), [
    { do: 'rotate', part: 1, forget: null },
    { do: 'rotate', part: 2, forget: null },
    { do: 'rotate', part: 3, forget: 1 },
    { do: 'rotate', part: 4, forget: 2 },
  ]);
  let bytes = 0;
  for (const step of steps) {
    bytes = step.do === 'rotate' ? 0 : bytes + step.bytes;
    assert.ok(bytes <= HEADER_BYTES + 300);
  }
  // Each part begins with the header.
  for (const [i, step] of steps.entries())
    if (step.do === 'rotate') assert.match((steps[i + 1] as { text: string }).text, 'moonroute_recording');
  const { parts, deleted } = made.summary();
  assert.equal([parts, deleted], [turns.length + 1, turns.length - 2]);
});

test('a line larger than a part has one of its own', () => {
  const { recorder: made, steps } = recorder({ rotateBytes: HEADER_BYTES + 200, keep: 1 });
  made.message(1, 'w0', frames(1, 5000));
  made.message(1, 'w0', frames(2, 5000));
  assert.equal(
    steps.map((step) => (step.do === 'rotate' ? step.forget : 'write')),
    ['write', 'write', 1, 'write', 'write'],
  );
});

test('a slow disk costs messages, not memory: the hole is counted and told in its place, each source its own', () => {
  const { recorder: made, lines, steps } = recorder({ queueBytes: 10_000 });
  for (let sequence = 0; sequence < 100; sequence++) made.message(sequence, 'w0', frames(sequence, 600));
  made.message(100, 'store', frames(1, 10));
  const kept = made.summary().sources['w0']!;
  assert.ok(made.queued <= 10_000);
  assert.ok(kept.messages > 5 && kept.messages + kept.dropped === 100);
  assert.is(made.summary().sources['store']!.dropped, 1);
  // What sockets tell is not dropped.
  made.monitor(101, 'w0', 'lost');
  assert.equal(told(lines()).at(-1), 'lost w0');
  // Half must be free again.
  const landing = (bytes: number) => made.landed(bytes);
  landing(made.queued - 6000);
  made.message(102, 'w0', frames(100));
  assert.equal(told(lines()).at(-1), 'lost w0');
  landing(made.queued - 4000);
  made.message(103, 'w0', frames(101));
  made.message(104, 'store', frames(2));
  made.message(105, 'w0', frames(102));
  assert.equal(told(lines()).slice(-5), ['dropped w0', 'w0 101', 'dropped store', 'store 2', 'w0 102']);
  const texts = steps.flatMap((step) => (step.do === 'write' && step.text.includes('"dropped"') ? [step.text] : []));
  assert.match(texts[0]!, `"messages":${kept.dropped + 1},`);
  assert.is(
    lines().some((line) => line.type === 'note' && line.breaks),
    true,
  );
});

test('a disk that takes nothing gets a bounded number of lines', () => {
  const { recorder: made } = recorder({ queueBytes: 10_000 });
  for (let i = 0; i < 50_000; i++) {
    made.monitor(i, 'w0', 'lost', { cause: 'refused', detail: 'x'.repeat(100) });
    made.message(i, 'w0', frames(2 * i, 600));
  }
  assert.ok(made.queued < 10_000 + (1 << 20) + 1000, `${made.queued}`);
});

test('a key list comes in pieces, and is written again only in another part or when it is another', () => {
  const { recorder: made, lines } = recorder({ rotateBytes: 2_000_000 });
  const keys = Array.from({ length: 2 * KEYS_PER_LINE + 5 }, (_, i) => `p@${i}`);
  made.keys(1, 'store', keys, 'a');
  made.keys(2, 'store', keys, 'a');
  made.keys(3, 'store', [], 'b');
  made.keys(4, 'store', keys.slice(0, 1), 'c');
  const pieces = [
    `keys ${KEYS_PER_LINE} at 0 of ${keys.length}`,
    `keys ${KEYS_PER_LINE} at ${KEYS_PER_LINE} of ${keys.length}`,
    `keys 5 at ${2 * KEYS_PER_LINE} of ${keys.length}`,
  ];
  assert.equal(told(lines()).slice(1), [...pieces, 'keys same at 0 of 20005', 'keys 0 at 0 of 0', 'keys 1 at 0 of 1']);
  made.message(5, 'w0', frames(1, 1_400_000));
  made.keys(6, 'store', keys.slice(0, 1), 'c');
  assert.equal(told(lines()).slice(-3), ['header', 'w0 1', 'keys 1 at 0 of 1']);
});

test('a key list that two parts share is written again whole', () => {
  const keys = Array.from({ length: KEYS_PER_LINE + 1 }, (_, i) => `p@${i}`);
  const first = lineBytes(keysLine(1, 'store', keys.length, 0, keys.slice(0, KEYS_PER_LINE)));
  const { recorder: made, lines } = recorder({ rotateBytes: HEADER_BYTES + first });
  made.keys(1, 'store', keys, 'a'); // the second piece begins another part
  assert.is(made.summary().parts, 2);
  made.keys(2, 'store', keys, 'a');
  const pieces = told(lines()).filter((line) => line !== 'header');
  assert.equal(pieces, [...pieces.slice(0, 2), ...pieces.slice(0, 2)]);
});

test('a key list that the disk is too slow for is left out, and said so', () => {
  const { recorder: made, lines } = recorder({ queueBytes: 1000 });
  made.keys(
    1,
    'store',
    Array.from({ length: 1000 }, (_, i) => `p@${i}`),
    'a',
  );
  assert.equal(told(lines()).slice(1), ['list-dropped store']);
});

test('the last line is a summary, behind all holes', () => {
  const { recorder: made, lines, steps } = recorder({ queueBytes: 1000 });
  made.message(1, 'w0', frames(1, 100));
  made.message(1, 'w0', frames(2, 5000));
  made.end(9, 'SIGINT');
  assert.equal(told(lines()).slice(-2), ['dropped w0', 'summary null']);
  const last = JSON.parse((steps.at(-1) as { text: string }).text);
  assert.equal([last.why, last.messages, last.dropped, last.parts], ['SIGINT', 1, 1, 1]);
  assert.equal(last.sources.w0, { messages: 1, bytes: 108, losses: 0, gaps: 0, dropped: 1 });
});

test.run();
