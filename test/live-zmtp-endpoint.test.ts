// Where a client may connect to, what is refused, and what a client may be told.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { parseEndpoint } from '../src/live/zmtp/endpoint.js';
import { type SocketOptions, ZmtpDealer, ZmtpSubscriber } from '../src/live/zmtp/socket.js';

const handlers = { onMessage: () => {}, onEvent: () => {} };

test('endpoints that are taken', () => {
  const tcp = (host: string, port: number) => ({ kind: 'tcp', host, port });
  assert.equal(parseEndpoint('tcp://127.0.0.1:5557'), tcp('127.0.0.1', 5557));
  assert.equal(parseEndpoint('tcp://worker-0.pool_a.svc:1'), tcp('worker-0.pool_a.svc', 1));
  assert.equal(parseEndpoint('tcp://[::1]:65535'), tcp('::1', 65_535));
  assert.equal(parseEndpoint('tcp://[fe80::1%eth0]:5557'), tcp('fe80::1%eth0', 5557));
  assert.equal(parseEndpoint('ipc:///run/kv events.sock'), { kind: 'ipc', path: '/run/kv events.sock' });
  assert.equal(parseEndpoint(`ipc:///${'a'.repeat(106)}`), { kind: 'ipc', path: `/${'a'.repeat(106)}` });
});

test('endpoints that are refused, by the constructor', () => {
  const wrong = [
    '',
    'localhost:5557',
    'http://localhost:5557',
    'tcp://localhost',
    'tcp://localhost:',
    'tcp://:5557',
    'tcp://*:5557',
    'tcp://localhost:*',
    'tcp://localhost:0',
    'tcp://localhost:65536',
    'tcp://localhost:5557/',
    'tcp://::1:5557',
    'tcp://[localhost]:5557',
    'tcp://[127.0.0.1]:5557',
    'tcp://eth0;localhost:5557',
    ' tcp://localhost:5557',
    'ipc://relative.sock',
    'ipc://@abstract',
    'ipc:///a\0b',
    `ipc:///${'a'.repeat(107)}`,
    `ipc:///${'é'.repeat(54)}`,
    'inproc://x',
  ];
  for (const endpoint of wrong) {
    for (const make of [() => new ZmtpSubscriber(endpoint, '', handlers), () => new ZmtpDealer(endpoint, handlers)]) {
      assert.throws(make, (error: unknown) => error instanceof ConfigError && error.code === 'endpoint', endpoint);
    }
  }
});

test('options that are refused, by name', () => {
  const wrong: SocketOptions[] = [
    { maxMessageBytes: 0 },
    { maxMessageBytes: 2 ** 31 },
    { maxFrames: 1.5 },
    { heartbeatMs: -1 },
    { heartbeatTimeoutMs: Number.NaN },
    { connectTimeoutMs: Number.POSITIVE_INFINITY },
    { reconnectMs: 0 },
    { reconnectMaxMs: 2 ** 31 },
    { heartbeatMs: 7_000 },
    { reconnectMs: 6_000 },
  ];
  for (const options of wrong) {
    const named = (error: unknown) =>
      error instanceof ConfigError &&
      error.code === 'socket-options' &&
      error.message.includes(Object.keys(options)[0]!);
    assert.throws(() => new ZmtpDealer('tcp://localhost:1', handlers, options), named);
  }
});

test('a closed socket is not opened again', () => {
  const dealer = new ZmtpDealer('tcp://127.0.0.1:1', handlers);
  dealer.close();
  dealer.close();
  assert.throws(
    () => dealer.open(),
    (error: unknown) => error instanceof ConfigError && error.code === 'socket-closed',
  );
});

test.run();
