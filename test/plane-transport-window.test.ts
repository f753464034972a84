// The window of batches under way into a log: in order, also when some fail; bounded; and nothing is sent behind what is settled.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SendWindow, WINDOW_BATCHES, WINDOW_BYTES } from '../src/live/plane/transport/send-window.js';

function open(): { window: SendWindow; sent: string[]; add(id: string, length?: number): { fate: string } } {
  const sent: string[] = [];
  const window = new SendWindow(({ id }) => sent.push(id));
  window.release();
  return {
    window,
    sent,
    add: (id, length = 1) => {
      const outcome = { fate: 'open' };
      void window.add({ subject: id[0]!, payload: new Uint8Array(length), id }).then((stored) => {
        outcome.fate = stored ? 'stored' : 'lost';
      });
      return outcome;
    },
  };
}
const settled = () => new Promise((done) => setImmediate(done));

test('nothing is sent before it may be, then all in order', () => {
  const sent: string[] = [];
  const window = new SendWindow(({ id }) => sent.push(id));
  for (const id of ['a1', 'b1', 'a2']) void window.add({ subject: id[0]!, payload: new Uint8Array(1), id });
  assert.equal(sent, []);
  window.release();
  assert.equal(sent, ['a1', 'b1', 'a2']);
});

test('so many are under way at a time, and no more', () => {
  const { window, sent, add } = open();
  for (let at = 0; at < WINDOW_BATCHES + 2; at++) add(`a${at}`);
  assert.is(sent.length, WINDOW_BATCHES);
  window.stored('a5');
  assert.is(sent.length, WINDOW_BATCHES + 1);
  window.refused('a0');
  assert.is(sent.length, WINDOW_BATCHES + 2);
});

test('so many bytes are under way at a time; one that is longer goes alone', () => {
  const { window, sent, add } = open();
  add('a0', WINDOW_BYTES - 1);
  add('a1', 2);
  add('a2', WINDOW_BYTES * 2);
  assert.equal(sent, ['a0']);
  assert.is(window.pendingBytes, WINDOW_BYTES * 3 + 1);
  window.stored('a0');
  assert.equal(sent, ['a0', 'a1']);
  window.stored('a1');
  assert.equal(sent, ['a0', 'a1', 'a2']);
  window.stored('a2');
  assert.is(window.pendingBytes, 0);
});

test('after a failure nothing new is sent until all is settled; then those that failed, in order, and what waits', async () => {
  const { window, sent, add } = open();
  const fates = ['a0', 'a1', 'a2'].map((id) => add(id));
  window.failed('a1');
  fates.push(add('a3'));
  let landed = false;
  void window.landed().then(() => {
    landed = true;
  });
  window.stored('a0');
  await settled();
  assert.is(landed, false);
  window.failed('a2');
  await settled();
  assert.ok(landed && window.held);
  assert.equal(sent, ['a0', 'a1', 'a2']);
  window.release();
  assert.equal(sent, ['a0', 'a1', 'a2', 'a1', 'a2', 'a3']);
  for (const id of ['a1', 'a2', 'a3']) window.stored(id);
  await settled();
  assert.equal(
    fates.map(({ fate }) => fate),
    Array(4).fill('stored'),
  );
});

test('what failed counts as lost where a later batch of its subject is stored; others are sent again', async () => {
  const { window, sent, add } = open();
  const [a0, b0, a1] = [add('a0'), add('b0'), add('a1')];
  window.failed('a0');
  window.failed('b0');
  window.stored('a1');
  window.release();
  await settled();
  assert.equal([a0.fate, b0.fate, a1.fate], ['lost', 'open', 'stored']);
  assert.equal(sent, ['a0', 'b0', 'a1', 'b0']);
});

test('what is told twice, or of what nobody knows, changes nothing', async () => {
  const { window, add } = open();
  const a0 = add('a0');
  window.stored('a0');
  window.stored('a0');
  window.failed('a0');
  window.refused('z9');
  await settled();
  assert.is(a0.fate, 'stored');
  assert.is(window.held, false);
  assert.is(window.pendingBytes, 0);
});

test('at the end all is given up, and who waits for the end of it all is told', async () => {
  const { window, sent, add } = open();
  const fates = [add('a0'), add('a1')];
  let empty = false;
  void window.emptied().then(() => {
    empty = true;
  });
  window.stored('a0');
  await settled();
  assert.is(empty, false);
  window.drop();
  window.stored('a1');
  await settled();
  assert.ok(empty);
  assert.equal(
    fates.map(({ fate }) => fate),
    ['stored', 'lost'],
  );
  assert.is(sent.length, 2);
  await window.emptied();
  await window.landed();
});

test.run();
