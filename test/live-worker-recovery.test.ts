// A worker's stream kept whole: gaps filled from the replay socket in order, restarts noticed even where counters look contiguous, and the
// index part emptied where something can't be had again. First case by case, then against a simulated worker with random faults.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type RebuildCause, WorkerRecovery } from '../src/live/worker-recovery.js';
import { writeSequence } from '../src/wire/frames.js';
import { replayEnd, replayReply } from '../src/wire/replay.js';
import { Random } from './support/random.js';

const EMPTY = new Uint8Array(0);
const LAYOUT = 'with-topic';

/** A message of life `life`; its payload names both, and nothing else is ever looked at. */
function message(sequence: number, life = 1): Uint8Array[] {
  return [EMPTY, writeSequence(BigInt(sequence)), Uint8Array.of(life, sequence >> 8, sequence & 255)];
}
const reply = (sequence: number, life = 1): Uint8Array[] =>
  replayReply(EMPTY, { topic: EMPTY, sequence: BigInt(sequence), payload: message(sequence, life)[2]! }, LAYOUT).slice(
    1,
  );
const END = replayEnd(EMPTY, LAYOUT).slice(1);

/** Runs a recovery and writes down what it asks for. */
class Script {
  readonly log: string[] = [];
  readonly recovery: WorkerRecovery;
  /** Payloads, as life:sequence, that can't be read or lose a removal. */
  readonly bad = new Map<string, 'unreadable' | 'lostRemoval'>();

  constructor(canReplay = true) {
    this.recovery = new WorkerRecovery(
      {
        apply: (frames) => {
          const [life, high, low] = frames.at(-1)!;
          const name = `${life}:${(high! << 8) | low!}`;
          this.log.push(name);
          const bad = this.bad.get(name);
          return { lostRemoval: bad === 'lostRemoval', unreadable: bad === 'unreadable' || frames.length !== 3 };
        },
        rebuild: (cause, newLife) => this.log.push(`${newLife ? 'forget' : 'rebuild'} ${cause}`),
        ask: (start) => this.log.push(`ask ${start}`),
        resubscribe: () => this.log.push('resubscribe'),
      },
      { canReplay },
    );
  }

  /** Live messages, which the caller says are taken, or must wait. */
  live(frames: Uint8Array[], taken = true): this {
    assert.is(this.recovery.message(frames), taken);
    return this;
  }
  replies(...frames: Uint8Array[][]): this {
    for (const one of frames) assert.ok(this.recovery.reply(one));
    return this;
  }
  said(...lines: string[]): this {
    assert.equal(this.log.splice(0), lines);
    return this;
  }
  connected(): this {
    this.recovery.connected();
    return this;
  }
}

// ---- with a replay socket ----

test('start: what the buffer holds is applied, then what is live; nothing is rebuilt', () => {
  const script = new Script().connected().said('ask 0').replies(reply(3), reply(4), END).said('1:3', '1:4');
  script.live(message(5)).said('1:5');
  assert.not(script.recovery.replaying);
  assert.equal(script.recovery.rebuilds, {});
});

test('start: an empty buffer is no fault', () => {
  new Script().connected().said('ask 0').replies(END).said().live(message(0)).said('1:0');
});

test('start: a first message that is not number 0, though the buffer was empty, shows that one is missing', () => {
  const script = new Script().connected().replies(END).said('ask 0').live(message(2), false).said('ask 0');
  script.replies(reply(0), reply(1), reply(2), END).said('1:0', '1:1', '1:2').live(message(2)).said();
  // A worker that keeps no buffer has nothing to say about it.
  const other = new Script().connected().replies(END).said('ask 0').live(message(2), false).said('ask 0');
  other.replies(END).said().live(message(2)).said('1:2');
  assert.equal(other.recovery.rebuilds, {});
});

test('gap: the batches between come from the replay, and the live one that showed it after them', () => {
  const script = begun(3).live(message(6), false).said('ask 3');
  assert.ok(script.recovery.replaying);
  script.replies(reply(3), reply(4), reply(5), reply(6), reply(7), END).said('1:4', '1:5', '1:6', '1:7');
  script.live(message(6)).live(message(7)).said().live(message(8)).said('1:8');
  assert.is(script.recovery.counts.duplicates, 2);
  assert.is(script.recovery.counts.gaps, 1);
});

test('gap: batches that the buffer no longer holds cost the index part, once', () => {
  const script = begun(3).live(message(9), false).said('ask 3');
  script.replies(reply(7), reply(8), reply(9), END).said('forget evicted', '1:7', '1:8', '1:9').live(message(9)).said();
  assert.equal(script.recovery.rebuilds, { evicted: 1 });
});

test('gap: a batch that the worker could not send is a hole', () => {
  const script = begun(3).live(message(6), false).said('ask 3');
  script.replies(reply(3), reply(5), reply(6), END).said('rebuild hole', '1:5', '1:6').live(message(6)).said();
});

for (const [what, replies] of [
  ['does not bring', [reply(3), reply(4)]],
  ['has other bytes for', [reply(3), reply(4), reply(5), reply(6, 2)]],
] as const) {
  test(`gap: a live message that the replay ${what} is of another life; the subscription is made anew`, () => {
    const script = begun(3)
      .live(message(6), false)
      .said('ask 3')
      .replies(...replies, END);
    assert.is(script.log.pop(), 'resubscribe');
    assert.not(script.recovery.replaying);
  });
}

test('gap before anything was known: a worker that began anew while it was asked is not mixed with its last life', () => {
  const script = new Script().connected().replies(END).said('ask 0').live(message(3), false).said('ask 0');
  script.replies(reply(0, 2), reply(1, 2), END).said('2:0', '2:1', 'forget mismatch', 'resubscribe');
});

test('reconnect: the last batch is recognised and not applied twice', () => {
  const script = begun(3).connected().said('ask 3').replies(reply(3), END).said().live(message(4)).said('1:4');
  assert.equal(script.recovery.rebuilds, {});
});

test('reconnect to another life whose counters look contiguous: everything of the old one goes', () => {
  const script = begun(3).connected().said('ask 3').replies(reply(3, 2), reply(4, 2), END);
  script
    .said('forget restarted', 'resubscribe', 'ask 0')
    .replies(reply(0, 2), reply(1, 2), reply(2, 2), reply(3, 2), reply(4, 2), END);
  script.said('2:0', '2:1', '2:2', '2:3', '2:4').live(message(5, 2)).said('2:5');
  assert.is(script.recovery.counts.restarts, 1);
});

test('reconnect to another life that has not come as far: likewise', () => {
  const script = begun(3).connected().said('ask 3').replies(END).said('forget restarted', 'resubscribe', 'ask 0');
  script.replies(reply(0, 2), END).said('2:0').live(message(1, 2)).said('2:1');
});

test('a number that goes back on one connection (behind a forwarder) is looked into, and is a restart', () => {
  const script = begun(3)
    .live(message(0, 2), false)
    .said('ask 3')
    .replies(END)
    .said('forget restarted', 'resubscribe', 'ask 0');
  script.replies(reply(0, 2), reply(1, 2), END).said('2:0', '2:1').live(message(0, 2)).live(message(1, 2)).said();
  script.live(message(2, 2)).said('2:2');
});

test('the number of the last message with other bytes is a restart as well', () => {
  const script = begun(0).live(message(0, 2), false).said('ask 0').replies(reply(0, 2), END);
  script
    .said('forget restarted', 'resubscribe', 'ask 0')
    .replies(reply(0, 2), END)
    .said('2:0')
    .live(message(0, 2))
    .said();
});

test('the same message twice is a duplicate', () => {
  const script = begun(3).live(message(3)).said();
  assert.is(script.recovery.counts.duplicates, 1);
});

test('a restart through a forwarder right after a replay is not taken for its duplicates', () => {
  const script = begun(3)
    .live(message(6), false)
    .said('ask 3')
    .replies(reply(3), reply(4), reply(5), reply(6), reply(7), END);
  script.said('1:4', '1:5', '1:6', '1:7').live(message(6)).said();
  script.live(message(0, 2), false).said('ask 7').replies(END).said('forget restarted', 'resubscribe', 'ask 0');
});

test('a replay given up costs the index part, and live messages go on', () => {
  const script = begun(3).live(message(6), false).said('ask 3').replies(reply(3), reply(4)).said('1:4');
  script.recovery.failed();
  script.said('forget unanswered').live(message(6)).live(message(7)).said('1:6', '1:7');
  assert.is(script.recovery.counts.replayFailures, 1);
});

test('a replay given up before anything was known costs nothing', () => {
  const script = new Script().connected().said('ask 0');
  script.recovery.failed();
  script.said().live(message(4)).said('1:4');
});

test('a replay asked again goes on behind what it has brought', () => {
  const script = begun(3).live(message(7), false).said('ask 3').replies(reply(3), reply(4)).said('1:4');
  script.recovery.retry();
  script
    .said('ask 4')
    .replies(reply(4), reply(5), reply(6), reply(7), END)
    .said('1:5', '1:6', '1:7')
    .live(message(7))
    .said();
});

test('a reply that is none of the protocol is said to the shell, and changes nothing', () => {
  const script = begun(3).connected().said('ask 3');
  assert.not(script.recovery.reply([Uint8Array.of(1)]));
  assert.ok(script.recovery.replaying);
  script.replies(reply(3), END).said();
});

test('replies after the end, and without a question, are nothing', () => {
  begun(3).replies(reply(4)).said().live(message(4)).said('1:4');
});

// ---- without one ----

test('without a replay socket a gap costs the index part', () => {
  const script = new Script(false)
    .connected()
    .said()
    .live(message(3))
    .said('1:3')
    .live(message(5))
    .said('rebuild gap', '1:5');
  assert.is(script.recovery.counts.gaps, 1);
});

test('without one a number that goes back is a restart', () => {
  new Script(false).connected().live(message(3)).said('1:3').live(message(0, 2)).said('forget restarted', '2:0');
});

test('without one every reconnection costs everything', () => {
  const script = new Script(false).connected().live(message(3)).said('1:3').connected().said('forget reconnected');
  script.live(message(9)).said('1:9');
});

// ---- what can't be read, and silence ----

test('frames that are no message cost the index part, and the next number shows what was missed', () => {
  const script = begun(3)
    .live([Uint8Array.of(0, 0, 9)])
    .said('0:9', 'rebuild unreadable');
  script.live(message(5), false).said('ask 3');
});

for (const [kind, cause] of [
  ['unreadable', 'unreadable'],
  ['lostRemoval', 'lost-removal'],
] as const) {
  test(`a payload with ${cause}: the index part starts from empty behind it, live or replayed`, () => {
    const script = begun(3);
    script.bad.set('1:4', kind);
    script.live(message(4)).said('1:4', `rebuild ${cause}`).live(message(5)).said('1:5');
    const second = begun(3);
    second.bad.set('1:4', kind);
    second.connected().said('ask 3').replies(reply(3), reply(4), reply(5), END).said('1:4', `rebuild ${cause}`, '1:5');
  });
}

test('a connection that stays down: everything goes, and the replay afterwards begins at the buffer', () => {
  const script = begun(3);
  script.recovery.stale();
  script
    .said('forget stale')
    .connected()
    .said('ask 0')
    .replies(reply(2), reply(3), reply(4), END)
    .said('1:2', '1:3', '1:4');
  const fresh = new Script();
  fresh.recovery.stale();
  fresh.said();
});

/** A stream whose last message was a live one. */
function begun(sequence: number): Script {
  const script = new Script().connected().said('ask 0');
  if (sequence > 0) script.replies(reply(sequence - 1)).said(`1:${sequence - 1}`);
  return script.replies(END).live(message(sequence)).said(`1:${sequence}`);
}

// ---- against a simulated worker ----

/** A worker whose messages add and remove blocks, its buffer, and one connection to it. */
class Worker {
  life = 1;
  next = 0;
  readonly held = new Set<number>();
  /** Batches of this life that it could not keep. */
  holes = 0;
  buffer: { sequence: number; payload: Uint8Array }[] = [];
  readonly wire: (Uint8Array[] | 'connected')[] = [];
  connected = true;

  constructor(
    readonly random: Random,
    readonly bufferSteps: number,
  ) {}

  /** One batch: a block comes or goes. `lost`: nobody hears of it; `hole`: the worker could not even keep it. */
  act(lost: boolean, hole: boolean): void {
    const block = this.random.int(40);
    const adds = !this.held.has(block);
    if (adds) this.held.add(block);
    else this.held.delete(block);
    const sequence = this.next++;
    const payload = Uint8Array.of(this.life, sequence >> 8, sequence & 255, adds ? 1 : 0, block);
    if (hole) {
      this.holes++;
      return;
    }
    this.buffer.push({ sequence, payload });
    if (this.buffer.length > this.bufferSteps) this.buffer.shift();
    if (this.connected && !lost) this.wire.push([EMPTY, writeSequence(BigInt(sequence)), payload]);
  }
  restart(): void {
    this.life++;
    this.next = 0;
    this.holes = 0;
    this.held.clear();
    this.buffer = [];
  }
}

interface Tally {
  quiet: number;
  whole: number;
  rebuilds: number;
}

function simulate(seed: number, canReplay: boolean, steps: number, tally: Tally): void {
  const random = new Random(seed);
  const worker = new Worker(random, 1 + random.int(60));
  const mirror = new Set<number>();
  const questions: bigint[] = [];
  let newest: readonly [number, number] = [0, -1];
  const rebuilds: RebuildCause[] = [];
  const recovery = new WorkerRecovery(
    {
      apply: ([, , payload]) => {
        const [life, high, low, adds, block] = payload!;
        const sequence = (high! << 8) | low!;
        assert.ok(
          life! > newest[0] || (life === newest[0] && sequence > newest[1]),
          'an older batch after a newer one',
        );
        newest = [life!, sequence];
        if (adds === 1) mirror.add(block!);
        else mirror.delete(block!);
        return { lostRemoval: false, unreadable: false };
      },
      rebuild: (cause) => {
        rebuilds.push(cause);
        mirror.clear();
        // Nothing is left of what came before, so it may come again.
        if (cause === 'mismatch') newest = [newest[0], -1];
      },
      ask: (start) => {
        questions.length = 0;
        questions.push(start);
      },
      resubscribe: () => {
        worker.wire.length = 0;
        if (worker.connected) worker.wire.push('connected');
      },
    },
    { canReplay },
  );
  const deliver = (): boolean => {
    const start = questions.pop();
    if (start !== undefined) {
      for (const { sequence, payload } of worker.buffer) {
        if (BigInt(sequence) < start) continue;
        recovery.reply(replayReply(EMPTY, { topic: EMPTY, sequence: BigInt(sequence), payload }, LAYOUT).slice(1));
        if (questions.length > 0) return true; // another question: this answer is not heard to its end
      }
      recovery.reply(END);
      return true;
    }
    if (recovery.replaying) {
      recovery.failed();
      return true;
    }
    const item = worker.wire[0];
    if (item === undefined) return false;
    if (item === 'connected') recovery.connected();
    else if (!recovery.message(item)) return true;
    worker.wire.shift();
    return true;
  };
  recovery.connected();
  for (let step = 0; step < steps; step++) {
    const dice = random.int(100);
    if (dice < 55) worker.act(random.int(12) === 0, random.int(60) === 0);
    else if (dice < 57) worker.connected = false;
    else if (dice < 60) {
      if (!worker.connected) worker.wire.push('connected');
      worker.connected = true;
    } else if (dice < 61) {
      // A process that ends takes its connection along.
      worker.restart();
      if (worker.connected) worker.wire.push('connected');
    } else if (dice < 98) deliver();
    else {
      // Quiet: all that was sent is heard, and one more message shows what was not.
      if (!worker.connected) worker.wire.push('connected');
      worker.connected = true;
      while (deliver());
      worker.act(false, false);
      while (deliver());
      tally.quiet++;
      for (const block of mirror) assert.ok(worker.held.has(block), `seed ${seed}: block ${block} is long gone`);
      if (mirror.size === worker.held.size) tally.whole++;
      if (
        canReplay &&
        !rebuilds.some((cause) => cause !== 'restarted') &&
        worker.holes === 0 &&
        worker.next <= worker.bufferSteps
      ) {
        assert.is(mirror.size, worker.held.size, `seed ${seed}: nothing was lost for good, and blocks are missing`);
      }
    }
  }
  tally.rebuilds += rebuilds.length;
}

for (const canReplay of [true, false]) {
  test(`random faults, ${canReplay ? 'with' : 'without'} a replay socket: never a stale block, never an older batch after a newer one`, () => {
    const tally: Tally = { quiet: 0, whole: 0, rebuilds: 0 };
    for (let seed = 1; seed <= 400; seed++) simulate(seed, canReplay, 400, tally);
    assert.ok(tally.quiet > 1000 && tally.rebuilds > 100, JSON.stringify(tally));
    if (canReplay) assert.ok(tally.whole > tally.quiet / 4, JSON.stringify(tally));
  });
}

test.run();
