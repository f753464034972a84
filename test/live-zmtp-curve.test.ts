// CURVE without a socket: keys, boxes, the handshake and traffic against a server of our own that is written apart from the client, and every
// way in which a peer can break them. live-zmtp-deno.test.ts runs this file in Deno too; live-zmtp-curve-libzmq.test.ts has the real peer.
import { inspect } from 'node:util';
import { x25519 } from '@noble/curves/ed25519.js';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import { encodeMetadata, subscription } from '../src/live/zmtp/codec.js';
import { BoxStream, boxKey } from '../src/live/zmtp/curve-box.js';
import { CurveKeys, type CurveOptions } from '../src/live/zmtp/curve-keys.js';
import { CurveMechanism } from '../src/live/zmtp/curve-mechanism.js';
import { ZMTP_FAULTS, ZmtpFault } from '../src/live/zmtp/faults.js';
import { MAX_COMMAND_BYTES } from '../src/live/zmtp/frame-reader.js';
import { NullMechanism } from '../src/live/zmtp/mechanism.js';
import { Session, type SessionRole } from '../src/live/zmtp/session.js';
import { ZmtpSubscriber } from '../src/live/zmtp/socket.js';
import { decodeZ85 } from '../src/live/zmtp/z85.js';
import { COMMAND, CurveServer, command, frame, GREETING, number, seal, sharedKey } from './support/curve-server.js';
import { Random } from './support/random.js';

const ascii = (text: string) => Buffer.from(text, 'latin1');
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');
const SUB: SessionRole = { socketType: 'SUB', peerTypes: ['PUB', 'XPUB'], first: [subscription('kv')] };
const LIMITS = { messageBytes: 1_000, frames: 3 };
/** The pair that libzmq's manual gives for tests, and its server's public key. */
const PAIR = {
  publicKey: 'Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID',
  secretKey: 'D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs',
};
const SERVER_KEY = 'rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7';

/** A client's session before a server, with all that it said. */
class Scene {
  readonly server = new CurveServer();
  readonly session: Session;
  readonly messages: string[] = [];
  /** Bodies of the frames that the client sent behind its greeting. */
  readonly sent: Buffer[] = [];
  ready = false;

  constructor(serverKey?: Uint8Array) {
    const keys = new CurveKeys({ ...PAIR, serverKey: serverKey ?? this.server.long.publicKey });
    this.session = new Session(SUB, new CurveMechanism(keys, encodeMetadata('SUB'), LIMITS));
  }

  feed(...chunks: Uint8Array[]): this {
    for (const chunk of chunks) {
      this.session.feed(Uint8Array.from(chunk));
      for (let step = this.session.next(); step !== null; step = this.session.next()) {
        if (step.kind === 'ready') this.ready = true;
        else if (step.kind === 'send') this.sent.push(Buffer.from(step.bytes));
        else {
          assert.ok(step.frames.every((one) => one.buffer === step.frames[0]!.buffer));
          this.messages.push(step.frames.map(hex).join('|'));
        }
      }
    }
    return this;
  }

  /** What the client sent last, without its frame's header. */
  get body(): Uint8Array {
    const last = this.sent.at(-1)!;
    return last.subarray((last[0]! & 2) === 0 ? 2 : 9);
  }

  /** The data of the command that the client sent last. */
  get data(): Uint8Array {
    return this.body.subarray(1 + this.body[0]!);
  }

  greeted = () => this.feed(GREETING);
  welcomed = () => this.greeted().feed(this.server.welcome(this.data));
  shaken = () => this.welcomed().feed(this.server.ready(this.data));
}

function faultOf(run: () => unknown): ZmtpFault | null {
  try {
    run();
  } catch (error) {
    if (error instanceof ZmtpFault) return error;
    throw error;
  }
  return null;
}

test('Z85: the example of its specification, and texts that are none', () => {
  assert.is(hex(decodeZ85('HelloWorld')!), '864fd26fb559f75b');
  assert.is(hex(decodeZ85('%nSc0')!), 'ffffffff');
  for (const text of ['Hello!', 'Hell ', 'Hell~', '%nSc1', '#####', 'Hell\u{1f319}'])
    assert.is(decodeZ85(text), null, text);
});

test('keys as text or bytes; what is wrong with one is said without the key', () => {
  const good: CurveOptions = { ...PAIR, serverKey: SERVER_KEY };
  const bytes = { ...good, secretKey: decodeZ85(PAIR.secretKey)! };
  assert.is(hex(new CurveKeys(good).publicKey), hex(new CurveKeys(bytes).publicKey));
  const table: [wrong: object, says: RegExp][] = [
    [{ serverKey: SERVER_KEY.slice(1) }, /serverKey is a text of 39 characters, expected 40/],
    [{ secretKey: PAIR.secretKey.replace('D', '~') }, /secretKey is a text of 40 characters/],
    [{ secretKey: new Uint8Array(31) }, /secretKey is 31 bytes/],
    [{ publicKey: undefined }, /publicKey is undefined/],
    [{ publicKey: SERVER_KEY }, /publicKey does not belong to secretKey/],
    [{ publicKey: PAIR.secretKey, secretKey: PAIR.publicKey }, /publicKey does not belong to secretKey/],
    [{ serverKey: new Uint8Array(32) }, /serverKey is no public key/],
  ];
  for (const [wrong, says] of table) {
    try {
      new ZmtpSubscriber('tcp://127.0.0.1:1', '', { onMessage() {}, onEvent() {} }, { curve: { ...good, ...wrong } });
      assert.unreachable(`${says}`);
    } catch (error) {
      assert.ok(error instanceof MoonrouteError && error.code === 'curve-keys', String(error));
      assert.match(error.message, says);
      assert.ok(!inspect(error).includes(PAIR.secretKey.slice(1, 20)));
    }
  }
});

test('keys that are printed or serialised say nothing', () => {
  const keys = new CurveKeys({ ...PAIR, serverKey: SERVER_KEY });
  assert.is(inspect(keys), 'CurveKeys {}');
  const secret = decodeZ85(PAIR.secretKey)!.subarray(0, 4).join(', ');
  assert.not.ok(inspect(keys, { depth: 9, showHidden: true, getters: true }).includes(secret));
  assert.is(JSON.stringify(keys), '{}');
});

test('a stream of boxes is what noble’s own boxes are, for every length around its blocks', () => {
  const [one, other] = [x25519.keygen(), x25519.keygen()];
  const key = boxKey(one.secretKey, other.publicKey)!;
  assert.is(hex(key), hex(sharedKey(other.secretKey, one.publicKey)));
  const text = 'CurveZMQMESSAGES';
  const stream = new BoxStream(key, text);
  for (const [i, size] of [0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 95, 96, 97, 500, 5_000].entries()) {
    const plain = Uint8Array.from({ length: size }, (_, at) => at * 7 + i);
    const padded = new Uint8Array(32 + size);
    padded.set(plain, 32);
    const tag = stream.seal(number(i), padded);
    const box = Buffer.concat([tag, padded.subarray(32)]);
    assert.is(hex(box), hex(seal(key, Buffer.concat([ascii(text), number(i)]), plain)), `${size} bytes`);
    padded.fill(0, 0, 32);
    assert.is(hex(stream.open(number(i), padded, tag)!), hex(Buffer.concat([Buffer.alloc(32), plain])));
    assert.is(stream.open(number(i + 1), padded, tag), null, 'another nonce');
  }
});

test('a handshake: the server sees a vouch, our key and our type, and then our subscription, sealed', () => {
  const scene = new Scene().shaken();
  const { server } = scene;
  assert.ok(scene.ready);
  assert.is(hex(server.clientKey), hex(decodeZ85(PAIR.publicKey)!));
  assert.is(server.clientMetadata, '\x0bSocket-Type\0\0\0\x03SUB');
  assert.is(scene.sent.at(-1)![0], 0, 'as libzmq has it: no command outside');
  assert.is(Buffer.from(server.opened(scene.body)).toString('latin1'), '\0\x01kv');
  const plain = Buffer.concat(scene.sent.slice(1));
  for (const said of ['Socket-Type', 'kv']) assert.ok(!plain.includes(said), `${said} is not in the clear`);
});

test('messages of one frame or more, commands between them, and the answer to a PING', () => {
  const scene = new Scene().shaken();
  const { server } = scene;
  const sealed = (nonce: number, flags: number, body: string) =>
    frame(0, server.message(nonce, flags, Buffer.from(body, 'hex')));
  scene.feed(sealed(2, 0, 'aa'), sealed(3, 0, ''), sealed(9, 1, 'bb'), sealed(10, 1, ''));
  scene.feed(sealed(11, 2, `${hex(ascii('\x04PING'))}0005beef`), sealed(12, 2, hex(ascii('\x03FOO'))));
  scene.feed(sealed(13, 0, 'cc'), frame(COMMAND, server.message(14, 0, Buffer.alloc(200, 0xdd))));
  scene.feed(sealed(15, 0, 'ee'.repeat(1_000)));
  assert.equal(scene.messages, ['aa', '', 'bb||cc', 'dd'.repeat(200), 'ee'.repeat(1_000)]);
  assert.is(hex(server.opened(scene.body)), `02${hex(ascii('\x04PONG'))}beef`);
});

test('no number comes twice, they rise over all that is sent, and each connection has a key of its own', () => {
  const scenes = [new Scene(), new Scene()];
  for (const scene of scenes) {
    const { server, session } = scene.shaken();
    server.opened(scene.body);
    for (let i = 0; i < 3; i++) server.opened(session.ping().subarray(2));
    // Frames of one message, which come in one piece.
    let bytes = session.message([ascii('a'), new Uint8Array(0), Buffer.alloc(300)]);
    for (const [flags, size] of [
      [1, 1],
      [1, 0],
      [0, 300],
    ] as const) {
      const header = size > 222 ? 9 : 2;
      const plain = server.opened(bytes.subarray(header, header + 33 + size));
      assert.equal([plain[0], plain.length], [flags, 1 + size]);
      bytes = bytes.subarray(header + 33 + size);
    }
    assert.is(bytes.length, 0);
    assert.equal(
      server.numbers,
      Array.from({ length: 9 }, (_, i) => BigInt(i + 1)),
    );
  }
  assert.is.not(hex(scenes[0]!.server.clientPassing), hex(scenes[1]!.server.clientPassing));
});

/** Every fault of CURVE, by the ways to commit it. */
const FAULTS: [code: string, what: string, run: (scene: Scene) => unknown, says: RegExp][] = [
  [
    'greeting-mechanism',
    'NULL',
    (s) => s.feed(Buffer.from(hex(GREETING).replace('4355525645', '4e554c4c00'), 'hex')),
    /"NULL".*CURVE.*in the clear/,
  ],
  ['handshake-order', 'READY first', (s) => s.greeted().feed(command('READY')), /READY before its WELCOME/],
  [
    'handshake-order',
    'a client',
    (s) => s.greeted().feed(command('HELLO', Buffer.alloc(194))),
    /HELLO before its WELCOME/,
  ],
  ['handshake-order', 'a second WELCOME', (s) => s.welcomed().feed(command('WELCOME')), /WELCOME before its READY/],
  ['handshake-order', 'a plain message', (s) => s.welcomed().feed(frame(0, ascii('x'))), /a message before its READY/],
  [
    'handshake-order',
    'a second READY',
    (s) => s.shaken().feed(frame(0, s.server.message(2, 2, ascii('\x05READY')))),
    /second READY/,
  ],
  ['peer-error', 'a verdict', (s) => s.welcomed().feed(command('ERROR', ascii('\x03400'))), /"400".*publicKey/],
  ['socket-type', 'a ROUTER', (s) => s.welcomed().feed(s.server.ready(s.data, 'ROUTER')), /"ROUTER"/],
  [
    'command-shape',
    'a short WELCOME',
    (s) => s.greeted().feed(command('WELCOME', Buffer.alloc(159))),
    /WELCOME has 159 bytes, expected 160/,
  ],
  [
    'command-shape',
    'a short READY',
    (s) => s.welcomed().feed(command('READY', Buffer.alloc(23))),
    /READY has 23 bytes/,
  ],
  [
    'curve-box',
    'a WELCOME of nobody',
    (s) => s.greeted().feed(command('WELCOME', Buffer.alloc(160))),
    /WELCOME.*serverKey/,
  ],
  [
    'curve-box',
    'a passing key without a secret',
    (s) => s.greeted().feed(s.server.welcome(s.data, new Uint8Array(32))),
    /WELCOME/,
  ],
  ['curve-box', 'a READY of nobody', (s) => s.welcomed().feed(command('READY', Buffer.alloc(60))), /READY/],
  [
    'curve-box',
    'a MESSAGE of nobody',
    (s) => s.shaken().feed(frame(0, Buffer.concat([ascii('\x07MESSAGE'), Buffer.alloc(60)]))),
    /a MESSAGE of 68 bytes/,
  ],
  [
    'curve-nonce',
    'sent again',
    (s) => s.shaken().feed(frame(0, s.server.message(2, 0, ascii('a'))), frame(0, s.server.message(2, 0, ascii('a')))),
    /2 behind 2/,
  ],
  ['curve-nonce', 'READY’s number', (s) => s.shaken().feed(frame(0, s.server.message(1, 0, ascii('a')))), /1 behind 1/],
  [
    'curve-nonce',
    'back from the last number',
    (s) =>
      s
        .shaken()
        .feed(
          frame(0, s.server.message(2n ** 64n - 1n, 2, ascii('\x04PONG'))),
          frame(0, s.server.message(2, 0, ascii('a'))),
        ),
    /2 behind 1844/,
  ],
  [
    'curve-message',
    'a message in the clear',
    (s) => s.shaken().feed(frame(0, Buffer.alloc(40))),
    /40 bytes that is no MESSAGE/,
  ],
  ['curve-message', 'PING in the clear', (s) => s.shaken().feed(command('PING', Buffer.alloc(2))), /no MESSAGE/],
  ['curve-message', 'ERROR in the clear', (s) => s.shaken().feed(command('ERROR', ascii('\x03400'))), /no MESSAGE/],
  [
    'curve-message',
    'no flags',
    (s) => s.shaken().feed(frame(0, s.server.message(2, 0, ascii('')).subarray(0, 32))),
    /32 bytes/,
  ],
  [
    'curve-message',
    'frames outside',
    (s) => s.shaken().feed(frame(1, s.server.message(2, 1, ascii('a'))), frame(0, s.server.message(3, 0, ascii('a')))),
    /2 frames/,
  ],
  [
    'curve-message',
    'a command with more',
    (s) => s.shaken().feed(frame(0, s.server.message(2, 3, ascii('\x04PONG')))),
    /0x03/,
  ],
  ['curve-message', 'a reserved flag', (s) => s.shaken().feed(frame(0, s.server.message(2, 0x80, ascii('a')))), /0x80/],
  [
    'command-bytes',
    'a long command',
    (s) => s.shaken().feed(frame(COMMAND, Buffer.alloc(MAX_COMMAND_BYTES + 1))),
    /8193/,
  ],
  [
    'command-shape',
    'a command without a name',
    (s) => s.shaken().feed(frame(0, s.server.message(2, 2, ascii('')))),
    /no name/,
  ],
  ['message-bytes', 'a frame too long', (s) => s.shaken().feed(frame(0, Buffer.alloc(1_034))), /maxMessageBytes/],
  [
    'message-bytes',
    'frames too long',
    (s) =>
      s
        .shaken()
        .feed(frame(0, s.server.message(2, 1, Buffer.alloc(999))), frame(0, s.server.message(3, 0, Buffer.alloc(2)))),
    /1001 bytes/,
  ],
  [
    'message-frames',
    'a fourth frame',
    (s) => s.shaken().feed(...[2, 3, 4, 5].map((n) => frame(0, s.server.message(n, 1, ascii(''))))),
    /more than 3 frames/,
  ],
];

test('every fault by its code', () => {
  for (const [code, what, run, says] of FAULTS) {
    const scene = new Scene();
    const fault = faultOf(() => run(scene));
    assert.is(fault?.code, code, what);
    assert.match(fault!.message, says);
  }
  const hangsUp = (scene: Scene) => scene.session.hungUp();
  assert.is(hangsUp(new Scene()), null, 'before the greeting anything may be the cause');
  for (const [scene, says] of [
    [new Scene().greeted(), /HELLO.*serverKey/],
    [new Scene().welcomed(), /INITIATE.*publicKey/],
  ] as const) {
    assert.is(hangsUp(scene)?.code, 'curve-refused');
    assert.match(hangsUp(scene)!.message, says);
  }
  assert.is(hangsUp(new Scene().shaken()), null, 'a loss like any other');
  const codes = new Set([...FAULTS.map(([code]) => code), 'curve-refused']);
  assert.ok(ZMTP_FAULTS.filter((code) => code.startsWith('curve-')).every((code) => codes.has(code)));
});

test('a server with another key than serverKey can’t read our HELLO, nor can we read its WELCOME', () => {
  const scene = new Scene(x25519.keygen().publicKey).greeted();
  assert.throws(() => scene.server.welcome(scene.data), /tag/);
});

test('a NULL client says what a CURVE server wants', () => {
  const session = new Session(SUB, new NullMechanism(encodeMetadata('SUB'), LIMITS));
  assert.match(faultOf(() => session.feed(GREETING))!.message, /"CURVE".*NULL.*option curve/);
});

test('one changed bit of a sealed frame, wherever it is, is a fault, and no message', () => {
  for (let at = 0; at < 40; at++) {
    const scene = new Scene().shaken();
    const body = scene.server.message(2, 0, ascii('secret!'));
    body[at]! ^= 1 << (at % 8);
    const fault = faultOf(() => scene.feed(frame(0, body)));
    assert.is(fault?.code, at < 8 ? 'curve-message' : 'curve-box', `byte ${at}`);
    assert.equal(scene.messages, []);
  }
});

test('a good stream says the same however it is cut', () => {
  for (let seed = 1; seed <= 6; seed++) {
    const random = new Random(seed);
    const scene = new Scene().shaken();
    const parts: Buffer[] = [];
    const said: string[] = [];
    for (let i = 0, nonce = 2; i < 30; i++) {
      const frames = Array.from({ length: 1 + random.int(3) }, () =>
        Buffer.from(random.hex(random.pick([0, 1, 30, 31, 221, 222, 223, 300])), 'hex'),
      );
      said.push(frames.map(hex).join('|'));
      for (const [j, one] of frames.entries()) {
        parts.push(frame(0, scene.server.message(nonce++, j < frames.length - 1 ? 1 : 0, one)));
      }
    }
    const stream = Buffer.concat(parts);
    const most = random.pick([1, 9, 70, 1_000, stream.length]);
    for (let at = 0; at < stream.length; ) {
      const take = 1 + random.int(most);
      scene.feed(stream.subarray(at, at + take));
      at += take;
    }
    assert.equal(scene.messages, said, `seed ${seed}, chunks of ${most}`);
  }
});

test.run();
