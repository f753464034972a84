// ZMTP without a socket: the bytes written, the steps read from a good stream however it is cut, and every fault that a peer can commit.
// The bytes are written out after RFC 37, apart from the code that writes them.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  commandBody,
  encodeCommand,
  encodeGreeting,
  encodeMessage,
  encodeMetadata,
  pingBody,
  pongBody,
  subscription,
} from '../src/live/zmtp/codec.js';
import { ZMTP_FAULTS, ZmtpFault } from '../src/live/zmtp/faults.js';
import { MAX_COMMAND_BYTES } from '../src/live/zmtp/frame-reader.js';
import { NullMechanism } from '../src/live/zmtp/mechanism.js';
import { Session, type SessionRole, type SessionStep } from '../src/live/zmtp/session.js';
import { Random } from './support/random.js';

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex.replace(/\s/g, ''), 'hex'));
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');
const ascii = (text: string) => Buffer.from(text, 'latin1').toString('hex');
const zeros = (count: number) => '00'.repeat(count);
const concat = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));

const SUB: SessionRole = { socketType: 'SUB', peerTypes: ['PUB', 'XPUB'], first: [subscription('kv')] };
const encodeReady = (type: string) => encodeCommand(commandBody('READY', encodeMetadata(type)));
const newSession = (limits = LIMITS) => new Session(SUB, new NullMechanism(encodeMetadata('SUB'), limits));
const LIMITS = { messageBytes: 1_000, frames: 3 };
const GREETING = `ff${zeros(8)}7f 03 01 ${ascii('NULL')}${zeros(16)} 00 ${zeros(31)}`;
const READY_PUB = `04 19 05${ascii('READY')} 0b${ascii('Socket-Type')} 00000003 ${ascii('PUB')}`;
const HELLO = GREETING + READY_PUB;

/** A step in short: what is sent or said. */
const short = (step: SessionStep): string =>
  step.kind === 'send' ? `send ${hex(step.bytes)}` : step.kind === 'ready' ? 'ready' : step.frames.map(hex).join('|');

/** All steps of a stream in chunks, and the fault that ended it. Every message owns one buffer. */
function play(chunks: Iterable<Uint8Array>, limits = LIMITS): { steps: SessionStep[]; fault: ZmtpFault | null } {
  const session = newSession(limits);
  const steps: SessionStep[] = [];
  try {
    for (const chunk of chunks) {
      session.feed(chunk);
      for (let step = session.next(); step !== null; step = session.next()) {
        steps.push(step);
        if (step.kind !== 'message') continue;
        assert.ok(step.frames.length > 0);
        for (const frame of step.frames) {
          assert.ok(frame.buffer === step.frames[0]!.buffer && frame.buffer !== chunk.buffer);
        }
      }
    }
  } catch (error) {
    if (!(error instanceof ZmtpFault)) throw error;
    return { steps, fault: error };
  }
  return { steps, fault: null };
}

/** What comes behind the handshake's four steps. */
const traffic = (...parts: string[]) =>
  play([bytes(HELLO), ...parts.map(bytes)])
    .steps.slice(4)
    .map(short);

/** Cuts bytes into chunks of random lengths, none longer than `most`. */
function* cut(whole: Uint8Array, random: Random, most: number): Generator<Uint8Array> {
  for (let at = 0; at < whole.length; ) {
    const take = 1 + random.int(most);
    yield whole.slice(at, at + take);
    at += take;
  }
}

test('what a client writes', () => {
  assert.is(hex(encodeGreeting('NULL')), hex(bytes(GREETING)));
  assert.is(hex(encodeReady('PUB')), hex(bytes(READY_PUB)));
  assert.is(hex(encodeMessage([subscription('kv')])), `0003 01 ${ascii('kv')}`.replace(/ /g, ''));
  assert.is(hex(encodeMessage([subscription('')])), '000101');
  assert.is(hex(encodeCommand(pingBody())), `0407 04${ascii('PING')} 0000`.replace(/ /g, ''));
  assert.is(hex(encodeCommand(pongBody(bytes('abcd')))), `0407 04${ascii('PONG')} abcd`.replace(/ /g, ''));
  assert.is(hex(encodeMessage([bytes(''), bytes('0102'), bytes('03')])), '0100010201020001 03'.replace(/ /g, ''));
  const long = encodeMessage([new Uint8Array(255), new Uint8Array(256)]);
  assert.is(hex(long.subarray(0, 2)), '01ff');
  assert.is(hex(long.subarray(257, 266)), '020000000000000100');
  assert.is(long.length, 2 + 255 + 9 + 256);
});

test('a handshake: the rest of the greeting and READY to the greeting, the subscription to READY', () => {
  const { steps, fault } = play([bytes(HELLO)]);
  assert.is(fault, null);
  const rest = hex(encodeGreeting('NULL')).slice(2 * 11);
  assert.is(hex(newSession().opening()) + rest, hex(encodeGreeting('NULL')));
  assert.equal(steps.map(short), [
    `send ${rest}`,
    `send ${hex(encodeReady('SUB'))}`,
    `send ${hex(encodeMessage([subscription('kv')]))}`,
    'ready',
  ]);
});

test('peers that are taken: 3.0 without pings, 3.1 and later ones with; any padding, any case of a property', () => {
  const table: [greeting: string, pings: boolean][] = [
    [GREETING.replace('03 01', '03 00'), false],
    [GREETING, true],
    [GREETING.replace('03 01', '03 07'), true],
    [GREETING.replace('03 01', '04 00'), true],
    [GREETING.replace(zeros(8), '0000000000000001'), true],
  ];
  for (const [greeting, pings] of table) {
    const session = newSession();
    session.feed(bytes(greeting + READY_PUB.replace(ascii('Socket-Type'), ascii('SOCKET-type'))));
    while (session.next()?.kind !== 'ready');
    assert.is(session.pings, pings, greeting);
  }
});

test('messages, empty frames, long frames for short bodies, and commands in between', () => {
  assert.equal(traffic('0000'), ['']);
  assert.equal(traffic('0002 aabb 0100 0101cc 0001dd'), ['aabb', '|cc|dd']);
  assert.equal(traffic('02 0000000000000001 ee'), ['ee']);
  assert.equal(traffic(`04 07 04${ascii('PING')} 0005`), [`send ${hex(encodeCommand(pongBody(bytes(''))))}`]);
  assert.equal(traffic(`06 0000000000000009 04${ascii('PING')} 0005 beef`), [
    `send ${hex(encodeCommand(pongBody(bytes('beef'))))}`,
  ]);
  const whole = `04 17 04${ascii('PING')} 0005 ${'ab'.repeat(16)}`;
  assert.equal(traffic(whole), [`send ${hex(encodeCommand(pongBody(bytes('ab'.repeat(16)))))}`]);
  assert.equal(traffic(`0404 03${ascii('FOO')}`, `0405 04${ascii('PONG')}`, '0001aa'), ['aa'], 'others are ignored');
  const inside = `0101aa 0407 04${ascii('PING')} 0000 0001bb`;
  assert.equal(
    traffic(inside),
    [`send ${hex(encodeCommand(pongBody(bytes(''))))}`, 'aa|bb'],
    'a PING between two frames',
  );
});

test('the bounds themselves are allowed', () => {
  assert.equal(traffic('0101aa 0101bb 0001cc'), ['aa|bb|cc']);
  const limit = `02 00000000000003e8 ${'ab'.repeat(1_000)}`;
  assert.equal(traffic(limit), ['ab'.repeat(1_000)]);
  assert.equal(traffic(limit.slice(0, 300), limit.slice(300)), ['ab'.repeat(1_000)]);
  const command = bytes(`06 ${MAX_COMMAND_BYTES.toString(16).padStart(16, '0')} 03${ascii('FOO')}`);
  const { fault } = play([bytes(HELLO), command, new Uint8Array(MAX_COMMAND_BYTES - 4)]);
  assert.is(fault, null);
});

/** Each fault, by every way to commit it: what the peer sends, and what the message says of it. */
const FAULTS: [code: (typeof ZMTP_FAULTS)[number], what: string, sent: string, says: RegExp][] = [
  ['greeting-signature', 'HTTP', ascii('HTTP/1.1 400 Bad Request\r\n'), /begins with 48/],
  ['greeting-signature', 'one wrong byte', '00', /begins with 00/],
  ['greeting-signature', 'a ZMTP 1 peer', `ff${zeros(7)}01 00`, /begins with ff 00/],
  ['greeting-version', 'a ZMTP 2 peer, which sends no more before we do', `ff${zeros(8)}7f 01`, /version byte 1/],
  ['greeting-mechanism', 'PLAIN', GREETING.replace(ascii('NULL'), '504c41494e').slice(0, -2), /"PLAIN"/],
  ['greeting-mechanism', 'CURVE', GREETING.replace(`${ascii('NULL')}00`, '4355525645'), /"CURVE"/],
  ['greeting-mechanism', 'a text of its own', GREETING.replace(ascii('NULL'), '4e0a4c4c'), /"N\?LL"/],
  ['handshake-order', 'a message before READY', `${GREETING}0001aa`, /a message before its READY/],
  ['handshake-order', 'PING before READY', `${GREETING}0407 04${ascii('PING')} 0000`, /PING before its READY/],
  ['handshake-order', 'HELLO before READY', `${GREETING}0406 05${ascii('HELLO')}`, /HELLO before its READY/],
  ['handshake-order', 'a second READY', HELLO + READY_PUB, /second READY/],
  [
    'socket-type',
    'a ROUTER',
    GREETING +
      READY_PUB.replace('04 19', '04 1c').replace('00000003', '00000006').replace(ascii('PUB'), ascii('ROUTER')),
    /"ROUTER".*PUB or XPUB/,
  ],
  ['socket-type', 'no type', `${GREETING}0406 05${ascii('READY')}`, /null/],
  ['frame-flags', 'a reserved bit', `${HELLO}0800`, /0x08/],
  ['frame-flags', 'all bits', `${HELLO}ff`, /0xff/],
  ['frame-flags', 'a command with more frames', `${HELLO}0507`, /0x05/],
  ['message-bytes', 'one frame too long', `${HELLO}02 00000000000003e9`, /1001 bytes or more, at most 1000/],
  ['message-bytes', 'two frames too long', `${HELLO}03 00000000000003e8 ${'ab'.repeat(1_000)} 0001`, /1001 bytes/],
  ['message-bytes', 'the longest length', `${HELLO}02 ffffffffffffffff`, /maxMessageBytes/],
  ['message-frames', 'a fourth frame', `${HELLO}0100 0100 0100 0000`, /more than 3 frames/],
  ['command-bytes', 'a long command', `${HELLO}06 0000000000002001`, /8193 bytes/],
  ['command-shape', 'no bytes', `${HELLO}0400`, /0 bytes has no name/],
  ['command-shape', 'no name', `${HELLO}0401 00`, /1 bytes has no name/],
  ['command-shape', 'a name that ends behind it', `${HELLO}0403 05${ascii('PI')}`, /ends inside it/],
  [
    'command-shape',
    'a property without its value',
    `${GREETING}0412 05${ascii('READY')} 0b${ascii('Socket-Type')}`,
    /READY has 12 bytes/,
  ],
  [
    'command-shape',
    'a value that ends behind it',
    `${GREETING}0418 05${ascii('READY')} 0b${ascii('Socket-Type')} 00000003 ${ascii('PU')}`,
    /READY has 18 bytes/,
  ],
  [
    'command-shape',
    'a value of 4 GB',
    `${GREETING}0416 05${ascii('READY')} 0b${ascii('Socket-Type')} ffffffff`,
    /READY/,
  ],
  ['command-shape', 'ERROR without a reason', `${GREETING}0406 05${ascii('ERROR')}`, /ERROR has 0 bytes/],
  ['command-shape', 'a reason that ends behind it', `${GREETING}0408 05${ascii('ERROR')} 0261`, /ERROR has 2 bytes/],
  ['command-shape', 'PING without a time', `${HELLO}0406 04${ascii('PING')} 00`, /PING has 1 bytes/],
  ['command-shape', 'a context of 17 bytes', `${HELLO}0418 04${ascii('PING')} 0000 ${zeros(17)}`, /PING has 19 bytes/],
  ['peer-error', 'ERROR in the handshake', `${GREETING}0409 05${ascii('ERROR')} 02 6e6f`, /"no"/],
  [
    'peer-error',
    'a reason that JavaScript has a use for',
    `${GREETING}0412 05${ascii('ERROR')} 0b${ascii('constructor')}`,
    /"constructor"$/,
  ],
  ['peer-error', 'ERROR later', `${HELLO}0409 05${ascii('ERROR')} 02 6e0a`, /"n\?"/],
];

test('every fault by its code, at once and byte by byte, and nothing is read behind it', () => {
  for (const [code, what, sent, says] of FAULTS) {
    const whole = concat(bytes(sent), bytes('0001aa'));
    for (const chunks of [[whole], cut(whole, new Random(1), 1)]) {
      const { steps, fault } = play(chunks);
      assert.is(fault?.code, code, what);
      assert.match(fault!.message, says);
      assert.is(steps.filter((step) => step.kind === 'message').length, 0, what);
    }
  }
  const others = ZMTP_FAULTS.filter((code) => !code.startsWith('curve-')); // those are in live-zmtp-curve.test.ts
  assert.equal([...new Set(FAULTS.map(([code]) => code))], others, 'the table has all of them');
});

test('what has come before a fault is given out', () => {
  assert.equal(traffic('0001aa 0001bb ff'), ['aa', 'bb']);
});

/** A stream with all kinds of frames, and what it says. */
function goodStream(random: Random): { stream: Uint8Array; said: string[] } {
  const parts: Uint8Array[] = [bytes(HELLO)];
  const said: string[] = [];
  for (let i = 0; i < 60; i++) {
    if (random.int(6) === 0) {
      const context = random.hex(random.int(17));
      parts.push(
        bytes(`04 ${(7 + context.length / 2).toString(16).padStart(2, '0')} 04${ascii('PING')} 0000 ${context}`),
      );
      said.push(`send ${hex(encodeCommand(pongBody(bytes(context))))}`);
      continue;
    }
    const sizes = [0, 1, 8, 254, 255, 256, 257, 3_000];
    const frames = Array.from({ length: 1 + random.int(5) }, () => bytes(random.hex(random.pick(sizes))));
    parts.push(encodeMessage(frames));
    said.push(frames.map(hex).join('|'));
  }
  return { stream: concat(...parts), said };
}

test('a good stream says the same however it is cut', () => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = new Random(seed);
    const { stream, said } = goodStream(random);
    for (const most of [1, 2, 9, 40, 300, 5_000, stream.length]) {
      const { steps, fault } = play(cut(stream, random, most), { messageBytes: 15_000, frames: 5 });
      assert.is(fault, null, `seed ${seed}`);
      assert.equal(steps.slice(4).map(short), said, `seed ${seed}, chunks of ${most}`);
    }
  }
});

test('random bytes behind a good handshake end in a typed fault or are messages; none is above the bounds', () => {
  const codes = new Map<string, number>();
  for (let seed = 1; seed <= 3_000; seed++) {
    const random = new Random(seed);
    // Bytes of headers and names are likelier than others, so that it comes further than its first byte.
    const likely = [0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 0x50, 0x49, 0x4e, 0x47];
    const noise = Uint8Array.from({ length: 400 }, () => (random.int(4) === 0 ? random.int(256) : random.pick(likely)));
    const { steps, fault } = play(cut(concat(bytes(HELLO), noise), random, 1 + random.int(500)));
    const code = fault?.code ?? 'none';
    codes.set(code, (codes.get(code) ?? 0) + 1);
    for (const step of steps) {
      if (step.kind !== 'message') continue;
      assert.ok(step.frames.length <= LIMITS.frames);
      assert.ok(step.frames.reduce((sum, frame) => sum + frame.length, 0) <= LIMITS.messageBytes);
    }
  }
  for (const code of ['frame-flags', 'message-bytes', 'message-frames', 'command-bytes', 'command-shape']) {
    assert.ok((codes.get(code) ?? 0) > 0, `${code} came up: ${JSON.stringify([...codes])}`);
  }
});

test('a good stream with one byte changed gives steps or a typed fault', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    const { stream } = goodStream(random);
    stream[random.int(stream.length)]! ^= 1 << random.int(8);
    play(cut(stream, random, 2_000), { messageBytes: 15_000, frames: 5 });
  }
});

test('a message in pieces takes what its headers announce, and what comes late takes no more', () => {
  const { steps } = play([bytes(`${HELLO}0101aa 0001`), bytes('bb 0002'), bytes('cc'), bytes('dd')]);
  const sizes = steps.flatMap((step) => (step.kind === 'message' ? [step.frames[0]!.buffer.byteLength] : []));
  assert.equal(sizes, [2, 2]);
});

test.run();
